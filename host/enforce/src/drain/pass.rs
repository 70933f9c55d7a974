//! One pass of a drain.

use super::evict::{Evicted, evict};
use super::filter::{Fate, daemon_set, fate};
use crate::settings::Settings;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use std::collections::BTreeMap;
use tokio::time::Instant;
use tread_kube::asking::{Call, CallOutcome, Failed, ask};

/// So many pods are asked for in one answer.
const PAGE: u32 = 500;
/// So many evictions are on their way at a time.
const AT_ONCE: usize = 5;
/// The priority of `system-cluster-critical`, the lowest of those that go last.
const CRITICAL: i32 = 2_000_000_000;

/// The pods that have to move before a node is drained.
#[derive(Debug, Clone, Default)]
pub struct Left {
    /// Each with what becomes of it: by namespace and name.
    pub pods: Vec<(Pod, Fate)>,
}

/// Why a pod does not move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Its namespace and name.
    pub pod: String,
    /// What its eviction came to.
    pub by: Evicted,
}

impl Left {
    /// Whether the node is drained.
    pub fn is_none(&self) -> bool {
        self.pods.is_empty()
    }

    /// Those to be asked for now: what the cluster needs most goes when nothing else is left.
    fn next(&self) -> impl Iterator<Item = &Pod> {
        let is_critical = |pod: &Pod| {
            let priority = pod.spec.as_ref().and_then(|spec| spec.priority);
            priority.is_some_and(|priority| priority >= CRITICAL)
        };
        let others = self.pods.iter().any(|(pod, _)| !is_critical(pod));
        let pods = self.pods.iter().map(|(pod, _)| pod);
        pods.filter(move |pod| !(others && is_critical(pod)))
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
    }
}

/// Looks which pods of a node have to move.
pub(crate) async fn look(settings: &Settings, node: &str) -> Result<Left, Failed> {
    let mut daemon_sets = BTreeMap::new();
    let mut left = Left::default();
    for pod in pods_on(settings, node).await? {
        let has_daemon_set = match daemon_set(&pod) {
            Some(name) => {
                let key = (pod.namespace().unwrap_or_default(), name.to_owned());
                match daemon_sets.get(&key) {
                    Some(is_there) => *is_there,
                    None => {
                        let is_there = is_there(settings, &key).await?;
                        daemon_sets.insert(key, is_there);
                        is_there
                    }
                }
            }
            None => false,
        };
        let fate = fate(&pod, has_daemon_set);
        if fate.moves() {
            left.pods.push((pod, fate));
        }
    }
    left.pods.sort_by_key(|(pod, _)| (pod.namespace(), pod.name_any()));
    Ok(left)
}

async fn pods_on(settings: &Settings, node: &str) -> Result<Vec<Pod>, Failed> {
    let api: Api<Pod> = Api::all(settings.client.clone());
    let mut params = ListParams::default().fields(&format!("spec.nodeName={node}")).limit(PAGE);
    let mut pods = Vec::new();
    loop {
        let call = Call::new("list", "pods");
        let page = ask(&settings.metrics, call, api.list(&params)).await?;
        pods.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(pods),
        }
    }
}

async fn is_there(
    settings: &Settings,
    (namespace, name): &(String, String),
) -> Result<bool, Failed> {
    let api: Api<DaemonSet> = Api::namespaced(settings.client.clone(), namespace);
    let call = Call::new("get", "daemonsets").within(namespace);
    match ask(&settings.metrics, call, api.get_metadata(name)).await {
        Ok(_) => Ok(true),
        Err(failed) if failed.outcome == CallOutcome::Gone => Ok(false),
        Err(failed) => Err(failed),
    }
}

/// Asks for the pods to be evicted that were left, until this time at most.
pub(crate) async fn pass(settings: &Settings, left: &Left, until: Instant) -> Vec<Blocked> {
    let asked: Vec<_> = left.next().map(|pod| ask_for(settings, pod, until)).collect();
    let all: Vec<Option<Blocked>> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    all.into_iter().flatten().collect()
}

/// Nothing if it is on its way out, or there is no time left for it.
async fn ask_for(settings: &Settings, pod: &Pod, until: Instant) -> Option<Blocked> {
    if Instant::now() >= until {
        return None;
    }
    let by = evict(settings, pod, until).await;
    let name = || format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    let is_blocked = !matches!(by, Evicted::Accepted | Evicted::Gone);
    is_blocked.then(|| Blocked { pod: name(), by })
}
