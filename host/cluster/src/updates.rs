//! What a NodeUpdate says of its node, as its agent wrote it.

use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::{UpdateOrder, UpdatePhase, UpdateStage};
use tread_model::object_name::is_possible;

/// The UID of the node that it is of.
pub(crate) fn node_of(update: &NodeUpdate) -> Option<&str> {
    let owners = update.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.kind == "Node").map(|owner| owner.uid.as_str())
}

/// The rendered config that the node has.
pub(crate) fn current(update: &NodeUpdate) -> Option<String> {
    let config = &update.status.as_ref()?.current.as_ref()?.name;
    // Whoever is root on the node writes here what they like.
    is_possible(config).then(|| config.clone())
}

/// Whether the node failed at what was ordered last: it is not well, or went back to what it had.
pub(crate) fn has_failed(update: &NodeUpdate) -> bool {
    let Some(status) = &update.status else { return false };
    let order = update.spec.order.as_ref();
    let is_over = |operation: &str| status.operation.as_deref() != Some(operation);
    match status.phase {
        _ if order.is_some_and(is_left_unwell) => true,
        // That was before it was ordered anew.
        _ if order.is_some_and(|order| is_over(&order.operation)) => false,
        Some(UpdatePhase::Degraded) => true,
        Some(UpdatePhase::WentBack) => order.is_some(),
        // It refused the order, and says why: one that was withdrawn has nothing to say.
        Some(UpdatePhase::TurnedBack) => order.is_some() && status.message.is_some(),
        _ => false,
    }
}

/// Nothing is done on it any more, and an operation before left it unwell.
fn is_left_unwell(order: &UpdateOrder) -> bool {
    order.stage == UpdateStage::Closed && order.unwell
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_node_has_failed_by_what_it_says_of_its_last_order() {
        let failed = |spec: Value, status: Value| {
            let object = json!({"metadata": {"name": "n"}, "spec": spec, "status": status});
            has_failed(&serde_json::from_value(object).unwrap())
        };
        let spec = |unwell: bool| {
            json!({"pool": "worker", "order": {"operation": "b", "disrupts": "Reboot", "token": 1,
                "stage": "Closed", "unwell": unwell, "config": {"name": "rendered-2", "digest": "d"}}})
        };
        let none = json!({"pool": "worker"});
        let says = |operation: &str, phase: &str| json!({"operation": operation, "phase": phase});
        let why = json!({"operation": "b", "phase": "TurnedBack", "message": "no room"});
        for (spec, status, expected) in [
            (none.clone(), json!({}), false),
            (none.clone(), json!({"phase": "Degraded"}), true),
            (none, json!({"phase": "WentBack"}), false),
            (spec(false), says("b", "Degraded"), true),
            (spec(false), says("b", "WentBack"), true),
            (spec(false), says("b", "TurnedBack"), false),
            (spec(false), why, true),
            (spec(false), says("b", "NeedsBoot"), false),
            (spec(false), says("b", "Done"), false),
            (spec(false), says("a", "Degraded"), false),
            (spec(true), says("b", "Done"), true),
            (spec(true), json!({}), true),
        ] {
            assert_eq!(failed(spec.clone(), status.clone()), expected, "{spec} {status}");
        }
    }
}
