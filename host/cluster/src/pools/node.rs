//! What has to be known of a node.

use super::taints::LastingTaints;
use crate::labels::Labels;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tread_kube::held::flagged;
use tread_model::joining::TAINT;
use tread_model::object_name::is_possible;
use tread_model::protocol::HeldBy;

const CURRENT: &str = "machineconfiguration.openshift.io/currentConfig";
/// What a machine booted with, where the operator writes it (since OpenShift 4.22).
const FIRST_PIVOT: &str = "machineconfiguration.openshift.io/firstPivotConfig";
/// The operator gave it the labels of the pool that it booted into.
const LABELLED: &str = "machineconfiguration.openshift.io/customPoolLabelsApplied";
const STATE: &str = "machineconfiguration.openshift.io/state";
const TOPOLOGY: &str = "machineconfiguration.openshift.io/controlPlaneTopology";
/// In place of what is no name: nobody has such a config.
const NO_NAME: &str = "(no name of a config)";

/// What has to be known of a node: small, since there are thousands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Its UID, by which it is told from others of its name.
    pub uid: String,
    /// When it registered, in seconds.
    pub created: i64,
    /// Pools select it by these.
    pub labels: Labels,
    /// The rendered config that it has, as far as it says so.
    pub current: Option<String>,
    /// The rendered config that it booted with first, where it says so.
    pub first_pivot: Option<String>,
    /// Whether OpenShift's operator gave it the labels of the pool that it booted into.
    pub is_labelled: bool,
    /// Whether it says that it failed.
    pub is_degraded: bool,
    /// Whether there is nowhere to move its pods to.
    pub single_replica: bool,
    /// Whether it registered as joining, and has not joined: known where tread rolls out.
    pub joins: bool,
    /// Who else has it, by what stands on it.
    pub held: Option<HeldBy>,
    /// What pods have to tolerate to be put there: known where tread rolls out.
    pub taints: LastingTaints,
}

impl Node {
    /// From the metadata of a Node.
    pub fn of(metadata: &mut ObjectMeta) -> Node {
        let annotations = metadata.annotations.take().unwrap_or_default();
        // Whoever is root on the node writes here what they like.
        let config = |key: &str| {
            let name = annotations.get(key).filter(|name| !name.is_empty())?;
            Some(if is_possible(name) { name.clone() } else { NO_NAME.to_owned() })
        };
        let state = annotations.get(STATE).map_or("", String::as_str);
        Node {
            uid: metadata.uid.take().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
            labels: metadata.labels.take().unwrap_or_default(),
            current: config(CURRENT),
            first_pivot: config(FIRST_PIVOT),
            is_labelled: annotations.contains_key(LABELLED),
            is_degraded: ["Degraded", "Unreconcilable"].contains(&state),
            single_replica: annotations.get(TOPOLOGY).is_some_and(|it| it == "SingleReplica"),
            joins: false,
            held: None,
            taints: LastingTaints::default(),
        }
    }

    /// From a whole Node, where somebody else rolls out.
    pub fn of_whole(node: &mut core::Node) -> Node {
        let held = flagged(node);
        Node { held, ..Node::of(&mut node.metadata) }
    }

    /// The same where tread rolls out, and a node joins by what its taints say.
    pub fn that_may_join(node: &mut core::Node) -> Node {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
        let joins = taints.into_iter().flatten().any(|taint| taint.key == TAINT);
        let taints = LastingTaints::of(node);
        Node { joins, taints, ..Node::of_whole(node) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_joins_while_it_has_the_taint_whatever_that_says() {
        for (taints, joins) in [
            (json!(null), false),
            (json!([]), false),
            (json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]), false),
            (
                json!([{"key": "a", "effect": "NoSchedule"}, {"key": TAINT, "effect": "NoExecute"}]),
                true,
            ),
            (json!([{"key": TAINT, "value": "1", "effect": "NoSchedule"}]), true),
        ] {
            let node =
                json!({"metadata": {"annotations": {TAINT: "1"}}, "spec": {"taints": taints}});
            let mut node = serde_json::from_value(node).unwrap();
            assert_eq!(Node::that_may_join(&mut node).joins, joins, "{taints}");
            assert!(!Node::of_whole(&mut node).joins, "nobody joins where somebody else rolls out");
        }
    }

    #[test]
    fn what_a_node_says_that_it_has_is_a_name_or_is_not_repeated() {
        for (said, current) in [
            (None, None),
            (Some(""), None),
            (Some("rendered-worker-1"), Some("rendered-worker-1")),
            (Some("\u{1b}[2Jrendered"), Some(NO_NAME)),
            (Some("../../secrets/x"), Some(NO_NAME)),
            (Some("a".repeat(254).as_str()), Some(NO_NAME)),
        ] {
            let annotations = said.map(|said| [(CURRENT.to_owned(), said.to_owned())].into());
            let mut metadata = ObjectMeta { annotations, ..ObjectMeta::default() };
            assert_eq!(Node::of(&mut metadata).current.as_deref(), current, "{said:?}");
        }
    }
}
