//! Whether a node proved that it is well since its last step: by one clock, the node's own.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;

/// Whether a node is Ready, and has been for so long when its kubelet said last that it lives:
/// counted from the end of its last step, by the clock of the node.
pub(crate) fn is_proved(
    node: &Node,
    kubelet: Option<&Lease>,
    ended: Timestamp,
    ready_for: Duration,
) -> bool {
    let Some(ready) = ready(node).filter(|it| it.status == "True") else { return false };
    let since = ready.last_transition_time.as_ref().map_or(ended, |at| at.0.max(ended));
    let renewed = kubelet.and_then(|it| it.spec.as_ref()?.renew_time.as_ref());
    renewed.is_some_and(|renewed| {
        let for_so_long = Duration::try_from(renewed.0.duration_since(since));
        for_so_long.is_ok_and(|it| it >= ready_for)
    })
}

fn ready(node: &Node) -> Option<&NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "Ready")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_is_proved_by_its_kubelet_after_the_last_step() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let proved = |status: &str, since: i64, renewed: Option<i64>, ended: i64| {
            let ready = json!({"type": "Ready", "status": status, "lastTransitionTime": at(since)});
            let node = json!({"status": {"conditions": [ready]}});
            let lease = renewed.map(|renewed| json!({"spec": {"renewTime": at(renewed)}}));
            let lease: Option<Lease> = lease.map(|it| serde_json::from_value(it).unwrap());
            let node = serde_json::from_value(node).unwrap();
            is_proved(&node, lease.as_ref(), at(ended), Duration::from_secs(30))
        };
        for (what, is, well) in [
            ("well for long", ("True", -900, Some(31), 0), true),
            ("the kubelet was silent since", ("True", -900, Some(-1), 0), false),
            ("the kubelet lived a while only", ("True", -900, Some(29), 0), false),
            ("it became Ready later", ("True", 20, Some(40), 0), false),
            ("and has been Ready for long", ("True", 20, Some(50), 0), true),
            ("not Ready", ("False", -900, Some(90), 0), false),
            ("not known", ("Unknown", -900, Some(90), 0), false),
            ("no kubelet", ("True", -900, None, 0), false),
        ] {
            assert_eq!(proved(is.0, is.1, is.2, is.3), well, "{what}");
        }
        let ended = at(0);
        assert!(!is_proved(&Node::default(), None, ended, Duration::ZERO));
    }
}
