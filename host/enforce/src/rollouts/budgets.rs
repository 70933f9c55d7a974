//! What has to be known of PodDisruptionBudgets: small, since there are thousands.

use futures::StreamExt as _;
use futures::future::ready;
use futures::stream::BoxStream;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use std::sync::Arc;
use tread_cluster::index::{All, Kept};

/// What decides whether a budget blocks for good. How many of its pods are healthy just now is
/// none of it: that changes all the time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Budget {
    uid: String,
    generation: i64,
    expected: i32,
    desired: i32,
}

impl Budget {
    pub(super) fn of(budget: &PodDisruptionBudget) -> Budget {
        let status = budget.status.as_ref();
        Budget {
            uid: budget.metadata.uid.clone().unwrap_or_default(),
            generation: budget.metadata.generation.unwrap_or_default(),
            expected: status.map(|it| it.expected_pods).unwrap_or_default(),
            desired: status.map(|it| it.desired_healthy).unwrap_or_default(),
        }
    }
}

/// By namespace and name.
pub(super) fn key(budget: &PodDisruptionBudget) -> String {
    let metadata = &budget.metadata;
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}/{}", part(&metadata.namespace), part(&metadata.name))
}

/// Whenever any of it changes.
pub(super) fn changes(kept: &Kept<String, Budget>) -> BoxStream<'static, ()> {
    let mut before: All<String, Budget> = Arc::default();
    let changed = kept.moments().filter(move |now| {
        let is_other = before != *now;
        before = Arc::clone(now);
        ready(is_other)
    });
    changed.map(drop).boxed()
}
