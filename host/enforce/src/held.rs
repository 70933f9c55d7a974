//! Who has a node, by the marks on it.

use k8s_openapi::api::core::v1::{Node, Taint};
use tread_kube::node_lease::parse_operation;
use tread_model::protocol::{Cordon, HeldBy};

/// On a node that tread cordoned: the operation that it is cordoned for.
pub const CORDON_ANNOTATION: &str = "tread.dev/cordoned-for";
/// The reason of conditions that tread sets itself.
pub(crate) const OWN_REASON: &str = "TreadUpdate";

/// Conditions by which somebody says that a node is drained or maintained.
const DRAINS: &str = "DrainInProgress";
const MAINTAINS: [&str; 2] = ["MaintenancePlanned", "MaintenanceInProgress"];
/// medik8s: of a node that is being drained, and of one that nobody may touch.
const MEDIK8S_DRAIN: &str = "medik8s.io/drain";
const MEDIK8S_EXCLUDE: &str = "remediation.medik8s.io/exclude-from-remediation";
/// Of nodes that an autoscaler is about to remove.
const AUTOSCALERS: [&str; 3] =
    ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"];

/// What other objects say of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Whether there is a NodeMaintenance for it.
    pub by_object: bool,
    /// Whether its Machine is being deleted, or marked for it.
    pub machine_goes: bool,
}

impl Maintained {
    /// Who has the node, by that.
    pub(crate) fn held(self) -> Option<HeldBy> {
        match self {
            Maintained { machine_goes: true, .. } => Some(HeldBy::Deletion),
            Maintained { by_object: true, .. } => Some(HeldBy::Maintenance),
            Maintained { .. } => None,
        }
    }
}

/// Who else has a node, by marks other than its cordon and its Lease.
pub(crate) fn held(node: &Node, maintained: Maintained) -> Option<HeldBy> {
    match () {
        () if maintained.machine_goes || node.metadata.deletion_timestamp.is_some() => {
            Some(HeldBy::Deletion)
        }
        () if has_taint(node, &AUTOSCALERS) => Some(HeldBy::Autoscaler),
        () if has_taint(node, &[MEDIK8S_DRAIN]) || has_condition(node, DRAINS) => {
            Some(HeldBy::Drain)
        }
        () if maintained.by_object || is_excluded(node) => Some(HeldBy::Maintenance),
        () if MAINTAINS.iter().any(|type_| has_condition(node, type_)) => Some(HeldBy::Maintenance),
        () => None,
    }
}

/// Whether a node is cordoned, and by whom.
pub(crate) fn cordon(node: &Node) -> Cordon {
    let is_cordoned = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
    let annotations = node.metadata.annotations.as_ref();
    let mark = annotations.and_then(|all| all.get(CORDON_ANNOTATION));
    match mark.and_then(|text| parse_operation(text)) {
        _ if !is_cordoned => Cordon::No,
        Some(operation) => Cordon::Ours(operation),
        None => Cordon::Anothers,
    }
}

fn has_taint(node: &Node, keys: &[&str]) -> bool {
    let taints: &[Taint] =
        node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    taints.iter().any(|taint| keys.contains(&taint.key.as_str()))
}

/// Whether somebody else says so.
fn has_condition(node: &Node, type_: &str) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|it| {
        it.type_ == type_ && it.status == "True" && it.reason.as_deref() != Some(OWN_REASON)
    })
}

fn is_excluded(node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    labels.and_then(|all| all.get(MEDIK8S_EXCLUDE)).is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tread_model::protocol::Operation;

    fn node(value: Value) -> Node {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn whoever_has_a_node_by_a_mark_is_known() {
        let taint = |key: &str| json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}});
        let condition = |type_: &str, status: &str, reason: &str| {
            let one = json!({"type": type_, "status": status, "reason": reason});
            json!({"status": {"conditions": [one]}})
        };
        let label = |value: &str| json!({"metadata": {"labels": {MEDIK8S_EXCLUDE: value}}});
        for (what, value, by) in [
            ("nobody", json!({}), None),
            ("another taint", taint("node.kubernetes.io/unschedulable"), None),
            ("medik8s drains", taint("medik8s.io/drain"), Some(HeldBy::Drain)),
            ("the autoscaler", taint(AUTOSCALERS[0]), Some(HeldBy::Autoscaler)),
            ("Karpenter", taint("karpenter.sh/disrupted"), Some(HeldBy::Autoscaler)),
            ("kubectl drains", condition(DRAINS, "True", "AdminRequested"), Some(HeldBy::Drain)),
            ("kubectl drained", condition(DRAINS, "False", "AdminRequested"), None),
            ("tread drains", condition(DRAINS, "True", OWN_REASON), None),
            (
                "maintenance to come",
                condition(MAINTAINS[0], "True", "x"),
                Some(HeldBy::Maintenance),
            ),
            ("maintenance", condition(MAINTAINS[1], "True", "x"), Some(HeldBy::Maintenance)),
            ("excluded", label("true"), Some(HeldBy::Maintenance)),
            ("not excluded", label("false"), None),
        ] {
            assert_eq!(held(&node(value), Maintained::default()), by, "{what}");
        }
        let by = |maintained| held(&Node::default(), maintained);
        assert_eq!(
            by(Maintained { by_object: true, ..Maintained::default() }),
            Some(HeldBy::Maintenance)
        );
        assert_eq!(by(Maintained { machine_goes: true, by_object: true }), Some(HeldBy::Deletion));
    }

    #[test]
    fn a_cordon_is_treads_own_only_with_its_mark() {
        let cordoned = |mark: &str| {
            let annotations = json!({CORDON_ANNOTATION: mark});
            cordon(&node(
                json!({"metadata": {"annotations": annotations}, "spec": {"unschedulable": true}}),
            ))
        };
        assert_eq!(cordoned("00000000000000000000000000000007"), Cordon::Ours(Operation(7)));
        assert_eq!(cordoned("somebody"), Cordon::Anothers);
        assert_eq!(cordon(&node(json!({"spec": {"unschedulable": true}}))), Cordon::Anothers);
        let left = json!({"metadata": {"annotations": {CORDON_ANNOTATION: "00000000000000000000000000000007"}}});
        assert_eq!(cordon(&node(left)), Cordon::No);
    }
}
