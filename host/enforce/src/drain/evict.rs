//! Asking the API server to evict one pod.

use super::budgets;
use crate::settings::Settings;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;
use tread_kube::asking::{Call, PATIENCE, ask_before};

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evicted {
    /// It is on its way out.
    Accepted,
    /// It is gone, or another one has its name.
    Gone,
    /// Budgets do not allow it now: by name.
    Blocked(Vec<String>),
    /// Budgets never allow it: the API server evicts no pod that several hold.
    Never(Vec<String>),
    /// It did not work, in words; it may later.
    Failed(String),
}

/// Asks for a pod to be evicted: this one, and no other of its name.
pub(super) async fn evict(settings: &Settings, pod: &Pod, deadline: Instant) -> Evicted {
    let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
    let api: Api<Pod> = Api::namespaced(settings.client.clone(), &namespace);
    let (body, params) = (body(pod), PostParams::default());
    let asked = api.create_subresource::<Value, Value>("eviction", &name, &params, &body);
    let call = Call::new("create", "evictions").within(&namespace);
    let deadline = deadline.min(Instant::now() + PATIENCE);
    let failed = match ask_before(deadline, &settings.metrics, call, asked).await {
        Ok(_) => return Evicted::Accepted,
        Err(failed) => failed,
    };
    match failed.code {
        404 | 409 => Evicted::Gone,
        429 | 500 => match budgets_of(settings, pod, &namespace).await {
            Some(several) if several.len() > 1 => Evicted::Never(several),
            Some(one) if failed.code == 429 && !one.is_empty() => Evicted::Blocked(one),
            _ => Evicted::Failed(failed.why),
        },
        _ => Evicted::Failed(failed.why),
    }
}

/// With the pod's UID: kube's own body does not hold it.
fn body(pod: &Pod) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.metadata.uid}},
    })
}

/// Nothing where it cannot be known.
async fn budgets_of(settings: &Settings, pod: &Pod, namespace: &str) -> Option<Vec<String>> {
    let budgets = budgets::of_namespace(settings, namespace).await.ok()?;
    Some(budgets::holding(&budgets, pod.labels()))
}
