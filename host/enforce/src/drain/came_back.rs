//! Pods that come to a node although it is cordoned: they tolerate that, or name the node themselves.
//! Whatever makes them would bring them back, however often they are evicted.

use super::asked::Asked;
use super::budgets::Budgets;
use super::evict::{How, evict, has_too_much_to_do};
use crate::settings::Settings;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::asking::{Failed, PATIENCE};
use tread_kube::dated::time;
use tread_kube::held::cordoned_since;
use tread_model::protocol::Time;

/// How far the drain is that a look is for; nothing of it before the node is cordoned.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Course {
    /// Since when the node is drained under the cordon that it has.
    cordoned: Option<Time>,
    /// Whether pods are deleted by now, whatever their budgets say.
    pub(super) deletes: bool,
}

impl Course {
    /// That of a node whose drain began then. Somebody may have undone its first cordon.
    pub(crate) fn of(node: &Node, since: Option<Time>, asked: &Asked, now: Time) -> Course {
        let cordoned = cordoned_since(node).and_then(time).zip(since);
        let late = since.zip(asked.timeout).is_some_and(|(at, timeout)| at.after(timeout) <= now);
        Course {
            cordoned: cordoned.map(|(cordoned, since)| cordoned.max(since)),
            deletes: asked.deletes && late,
        }
    }

    /// Whether a pod was made when the node had been cordoned for longer than whoever places pods may
    /// not know of that.
    pub(super) fn is_back(&self, pod: &Pod, unknown_for: Duration) -> bool {
        let made = pod.metadata.creation_timestamp.as_ref().and_then(|at| time(at.0));
        pod.metadata.deletion_timestamp.is_none()
            && made.zip(self.cordoned).is_some_and(|(made, at)| made.since(at) > unknown_for)
    }
}

/// Where the first of these pods is that could not be evicted now, if there is one: found without
/// evicting any. An error where the API server does not say.
pub(super) async fn held(settings: &Settings, pods: &[Pod]) -> Result<Option<usize>, Failed> {
    for (at, pod) in pods.iter().enumerate() {
        let until = Instant::now() + PATIENCE;
        match evict(settings, pod, How::DryRun, None, until).await {
            Ok(()) => {}
            Err(failed) if failed.code == 0 || has_too_much_to_do(&failed) => return Err(failed),
            Err(_) => return Ok(Some(at)),
        }
    }
    Ok(beyond_their_budgets(settings, pods).await)
}

/// The same of pods each of which could be evicted by itself: a dry run takes nothing from what a budget
/// allows.
async fn beyond_their_budgets(settings: &Settings, pods: &[Pod]) -> Option<usize> {
    let mut budgets = Budgets::default();
    let mut counts: BTreeMap<(String, String), i32> = BTreeMap::new();
    for (at, pod) in pods.iter().enumerate() {
        let Some(holding) = budgets.of(settings, pod).await else { return Some(at) };
        for budget in holding {
            let count = counts.entry((pod.namespace().unwrap_or_default(), budget.name));
            let count = count.or_default();
            *count += 1;
            if *count > budget.allowed.max(1) {
                return Some(at);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::Timestamp;
    use serde_json::{Value, json};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn node(cordoned: Option<i64>) -> Node {
        let taint = |at: Timestamp| {
            json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule",
                "timeAdded": at}])
        };
        let taints = cordoned.map(|second| taint(at(second)));
        serde_json::from_value(json!({"spec": {"unschedulable": true, "taints": taints}})).unwrap()
    }

    #[test]
    fn a_pod_came_back_if_it_was_made_when_the_node_had_been_cordoned_for_a_while() {
        let pod = |made: i64, going: bool| -> Pod {
            let gone = going.then(|| at(made));
            let metadata = json!({"creationTimestamp": at(made), "deletionTimestamp": gone});
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let now = Time(Duration::from_secs(9000));
        // Since when the node is drained and has its cordon, when the pod was made, whether it is on
        // its way out, and whether it came back.
        for (drained, cordoned, made, going, expected) in [
            (Some(1000), Some(1001), 900, false, false),
            (Some(1000), Some(1001), 1061, false, false),
            (Some(1000), Some(1001), 1062, false, true),
            (Some(1000), Some(1001), 1062, true, false),
            // It is cordoned for longer than it is drained.
            (Some(1000), Some(10), 1060, false, false),
            (Some(1000), Some(10), 1061, false, true),
            // Somebody undid its cordon meanwhile, and pods may have come that know of none.
            (Some(1000), Some(2000), 1900, false, false),
            (Some(1000), Some(2000), 2061, false, true),
            // Nobody says since when.
            (Some(1000), None, 5000, false, false),
            (None, Some(1001), 5000, false, false),
        ] {
            let since = drained.and_then(|second| time(at(second)));
            let course = Course::of(&node(cordoned), since, &Asked::default(), now);
            let found = course.is_back(&pod(made, going), Duration::from_secs(60));
            assert_eq!(found, expected, "{drained:?}, {cordoned:?}, {made}, {going}");
        }
    }

    #[test]
    fn pods_are_deleted_only_after_the_timeout_and_where_the_rollout_says_so() {
        let deletes = |settings: Value, now: u64| {
            let asked = Asked::of(Some(&serde_json::from_value(settings).unwrap())).unwrap();
            let now = Time(Duration::from_secs(now));
            Course::of(&node(Some(1001)), time(at(1000)), &asked, now).deletes
        };
        let asked = || json!({"timeout": "60s", "afterTimeout": "Delete"});
        assert!(!deletes(asked(), 1059) && deletes(asked(), 1060));
        assert!(!deletes(json!({"timeout": "60s"}), 1060));
    }
}
