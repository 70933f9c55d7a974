//! Which pods of a node have to move.

use super::asked::Asked;
use super::came_back::{Course, held};
use super::filter::{Fate, Refusal, daemon_set, fate, is_finished};
use super::listed::{LISTS, Listed, PAGE};
use crate::settings::Settings;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::{ObjectList, Request};
use kube::{Api, Resource as _, ResourceExt as _};
use std::collections::BTreeMap;
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::paging::in_pages;
use tread_model::object_name::is_name;
use tread_model::protocol::Time;
use tread_model::text::listed;

/// How many pods are named that stay.
const NAMED: usize = 10;
/// The priority of `system-cluster-critical`, the lowest of those that go last.
const CRITICAL: i32 = 2_000_000_000;

/// The pods that have to move before a node is drained.
#[derive(Debug, Clone, Default)]
pub struct Left {
    /// Each with what becomes of it: by namespace and name.
    pub pods: Vec<(Pod, Fate)>,
    /// Those that came to the node although that is cordoned, and stay.
    pub(super) came_back: Vec<Pod>,
}

impl Left {
    /// Whether the node is drained.
    pub fn is_none(&self) -> bool {
        self.pods.is_empty()
    }

    /// Those to be asked for now, those of the lowest priority first: what the cluster needs most
    /// goes when nothing else is left. With force also those that are waited for.
    pub(super) fn next(&self, by_force: bool) -> Vec<&Pod> {
        let is_critical = |pod: &Pod| priority(pod) >= CRITICAL;
        let others = self.pods.iter().any(|(pod, _)| !is_critical(pod));
        let asked = |fate: Fate| fate.is_evicted() || (by_force && fate == Fate::WaitedFor);
        let pods = self.pods.iter().filter(|(_, fate)| asked(*fate)).map(|(pod, _)| pod);
        let mut next: Vec<&Pod> = pods
            .filter(|pod| !(others && is_critical(pod)))
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
            .collect();
        next.sort_by_key(|pod| priority(pod));
        next
    }
}

/// The namespace and the name of a pod.
pub(super) fn full_name(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}

fn priority(pod: &Pod) -> i32 {
    pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default()
}

/// Looks which pods of a node have to move.
pub(crate) async fn look(
    settings: &Settings,
    node: &str,
    asked: &Asked,
    now: Time,
    course: Course,
) -> Result<Left, Failed> {
    let mut daemon_sets = BTreeMap::new();
    let mut left = Left::default();
    for Listed { pod, is_read } in pods_on(settings, node).await? {
        if !is_read {
            left.pods.push((pod, Fate::Refused(Refusal::Unread)));
            continue;
        }
        let has_daemon_set = match daemon_set(&pod) {
            // No other name is one of an object: there is none, and none is asked for.
            Some(name) if is_name(name) => {
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
            _ => false,
        };
        let fate = fate(&pod, has_daemon_set, asked, now);
        match fate.is_evicted() && course.is_back(&pod, settings.terms.drift) {
            // Nothing is lost by one that is at its end.
            true if is_finished(&pod) => {}
            true => left.came_back.push(pod),
            false if fate.moves() => left.pods.push((pod, fate)),
            false => {}
        }
    }
    left.pods.sort_by_key(|(pod, _)| (pod.namespace(), pod.name_any()));
    left.came_back.sort_by_key(|pod| (pod.namespace(), pod.name_any()));
    if left.is_none() && !left.came_back.is_empty() {
        // The node boots next, which ends them: so it waits until each of them could be evicted.
        let held = if course.deletes { None } else { held(settings, &left.came_back).await? };
        match held {
            Some(at) => left.pods.push((left.came_back.remove(at), Fate::CameBack)),
            None => tracing::info!(
                node,
                pods = listed(&left.came_back.iter().map(full_name).collect::<Vec<_>>(), NAMED),
                "they came to the node although it is cordoned, and stay while it is disrupted"
            ),
        }
    }
    Ok(left)
}

async fn pods_on(settings: &Settings, node: &str) -> Result<Vec<Listed>, Failed> {
    let pods = Request::new(Pod::url_path(&(), None));
    let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let list = |params: ListParams| {
        let request = pods.list(&params).map_err(kube::Error::BuildRequest);
        async { settings.client.request::<ObjectList<Listed>>(request?).await }
    };
    let _turn = LISTS.acquire().await;
    in_pages(PAGE, &settings.metrics, Call::new("list", "pods"), params, list, Some).await
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_of_a_low_priority_go_first_and_what_the_cluster_needs_goes_last() {
        let pod = |name: &str, priority: Option<i32>, fate: Fate, goes: bool| {
            let gone = goes.then_some("2026-01-01T00:00:00Z");
            let pod = json!({
                "metadata": {"name": name, "deletionTimestamp": gone},
                "spec": {"priority": priority, "containers": []},
            });
            (serde_json::from_value(pod).unwrap(), fate)
        };
        let names = |left: &Left, by_force: bool| -> Vec<String> {
            left.next(by_force).into_iter().map(|pod| pod.name_any()).collect()
        };
        let mut left = Left {
            pods: vec![
                pod("high", Some(1_000_000), Fate::Moves, false),
                pod("dns", Some(CRITICAL), Fate::Moves, false),
                pod("low", Some(-10), Fate::Unmanaged, false),
                pod("job", Some(5), Fate::WaitedFor, false),
                pod("none", None, Fate::LosesStorage, false),
                pod("going", Some(-100), Fate::Moves, true),
            ],
            ..Left::default()
        };
        assert_eq!(names(&left, false), ["low", "none", "high"]);
        assert_eq!(names(&left, true), ["low", "none", "job", "high"]);
        // Whatever is still there goes before it, whoever ends it.
        left.pods.retain(|(pod, _)| ["dns", "job"].contains(&pod.name_any().as_str()));
        assert!(names(&left, false).is_empty());
        left.pods.retain(|(pod, _)| pod.name_any() == "dns");
        assert_eq!(names(&left, false), ["dns"]);
    }
}
