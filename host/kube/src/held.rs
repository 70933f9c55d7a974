//! Who has a node, by the marks on it and by the objects of others about it.

mod mark;

use crate::api::machines::Kind;
use crate::api::words::NAME;
use crate::clean::clean;
use crate::node_lease::{self, operation_text, parse_operation};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::core::DynamicObject;
use mark::{AUTOSCALERS, Found, MEDIK8S_DRAIN};
use std::time::Duration;
use tread_model::protocol::{Cordon, HeldBy, Operation, Stamp, Terms, Time};

pub use mark::{Mark, OWN_REASON, cordoned_since, says};

/// On a node that tread cordoned: the operation that it is cordoned for.
pub const CORDON_ANNOTATION: &str = "tread.dev/cordoned-for";
/// On a node that tread cordoned: the operation again, and the stamp of this one cordon. It is a
/// second annotation, since earlier versions of tread would take a longer value in the first one
/// for somebody else's mark. Such a version may leave the stamp of an earlier operation: a stamp
/// counts only beside the mark of its own operation.
pub const STAMP_ANNOTATION: &str = "tread.dev/cordon";
/// On a node that OpenShift's operator cordons for its own rollout, this begins with `drain-`
/// until it is uncordoned.
const OPERATORS_DRAIN: &str = "machineconfiguration.openshift.io/desiredDrain";

/// An admin's word that a node is maintained, from its creation to its end.
pub const NODE_MAINTENANCE: Kind = Kind {
    name: "nodemaintenances.nodemaintenance.medik8s.io",
    group: "nodemaintenance.medik8s.io",
    version: "v1beta1",
    kind: "NodeMaintenance",
    plural: "nodemaintenances",
    namespaced: false,
};

/// The longest that is repeated of what others write.
const LONGEST: usize = 100;

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
    pub fn held(self) -> Option<HeldBy> {
        match self {
            Maintained { machine_goes: true, .. } => Some(HeldBy::Deletion),
            Maintained { by_object: true, .. } => Some(HeldBy::Maintenance),
            Maintained { .. } => None,
        }
    }
}

/// Whether a taint says that somebody removes or drains the node: it goes with that.
pub fn is_passing(taint: &str) -> bool {
    AUTOSCALERS.contains(&taint) || taint == MEDIK8S_DRAIN
}

/// Who else has a node, by marks other than its cordon and its Lease.
pub fn held(node: &Node, maintained: Maintained) -> Option<HeldBy> {
    let on_it = || Found::on(node).map(|found| found.by());
    match maintained {
        Maintained { machine_goes: true, .. } => Some(HeldBy::Deletion),
        Maintained { .. } => on_it().or_else(|| maintained.held()),
    }
}

/// Whether a node is cordoned, and by whom.
pub fn cordon(node: &Node) -> Cordon {
    let is_cordoned = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
    let annotations = node.metadata.annotations.as_ref();
    let mark = |name: &str| annotations.and_then(|all| all.get(name));
    match mark(CORDON_ANNOTATION).and_then(|text| parse_operation(text)) {
        _ if !is_cordoned => Cordon::No,
        Some(operation) => {
            let stamp = mark(STAMP_ANNOTATION).and_then(|text| parse_stamp(text, operation));
            Cordon::Ours(operation, stamp)
        }
        None => Cordon::Anothers,
    }
}

/// The stamp of a cordon, as it is written.
pub fn stamp_text(operation: Operation, stamp: Stamp) -> String {
    format!("{} {:032x}", operation_text(operation), stamp.0)
}

/// The stamp of a cordon of this operation, read again.
fn parse_stamp(text: &str, operation: Operation) -> Option<Stamp> {
    let (of, stamp) = text.split_once(' ')?;
    let stamp = parse_operation(stamp)?;
    (parse_operation(of) == Some(operation)).then_some(Stamp(stamp.0))
}

/// Who has a node by what stands on it, its cordon included. What OpenShift's operator cordons for
/// its own rollout nobody else has.
pub fn flagged(node: &Node) -> Option<HeldBy> {
    let is_cordoned = cordon(node) == Cordon::Anothers && !is_drained_by_operator(node);
    held(node, Maintained::default()).or_else(|| is_cordoned.then_some(HeldBy::Cordon))
}

/// Whether OpenShift's operator drains it, or is about to reboot it after that.
fn is_drained_by_operator(node: &Node) -> bool {
    let annotations = node.metadata.annotations.as_ref();
    let desired = annotations.and_then(|all| all.get(OPERATORS_DRAIN));
    desired.is_some_and(|desired| desired.starts_with("drain-"))
}

/// That somebody maintains a node, by a NodeMaintenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintenance {
    /// The node.
    pub node: String,
    /// What the object says.
    pub mark: Mark,
}

/// What a NodeMaintenance says; nothing if it is about no node.
pub fn maintained(object: &DynamicObject) -> Option<Maintenance> {
    let node = object.data.get("spec")?.get("nodeName")?.as_str()?;
    let mark = || Mark::of_maintenance(object);
    (!node.is_empty()).then(|| Maintenance { node: node.to_owned(), mark: mark() })
}

/// Whether tread is the holder of a Lease, by whatever name of an installation.
pub fn is_treads(holder: &str) -> bool {
    holder.strip_prefix(NAME).is_some_and(|rest| rest.starts_with('/'))
}

/// Who holds a node's Lease that is not tread's, since when and for how long: the same however
/// often it is renewed. Nothing if nobody does.
pub fn leased(object: &Lease, now: Time, terms: &Terms) -> Option<String> {
    let spec = object.spec.as_ref()?;
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    let lease = node_lease::read(object, &node_lease::holder(""));
    if is_treads(holder) || !lease.is_anothers(now, terms) {
        return None;
    }
    let holder = match holder {
        "" => "somebody who does not say who".to_owned(),
        holder => short(holder),
    };
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let since = spec.acquire_time.as_ref().map(|at| format!(" since {:.0}", at.0));
    let lasts = lease.lasts.map(|lasts| format!(", for {}", span(lasts)));
    let reason = object.metadata.annotations.as_ref();
    let reason = reason.and_then(|all| all.get(node_lease::REASON_ANNOTATION));
    let reason = reason.map(|reason| format!(" ({})", short(reason)));
    Some(format!(
        "Lease {namespace}/{name} held by {holder}{}{}{}",
        since.unwrap_or_default(),
        lasts.unwrap_or_default(),
        reason.unwrap_or_default()
    ))
}

/// In whole minutes where it is some.
fn span(lasts: Duration) -> String {
    match lasts.as_secs() {
        seconds if seconds >= 3600 && seconds.is_multiple_of(3600) => {
            format!("{}h", seconds / 3600)
        }
        seconds if seconds >= 60 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

fn short(text: &str) -> String {
    clean(text).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::mark::{DRAINS, MAINTAINS, MEDIK8S_EXCLUDE};
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
        assert_eq!(cordoned("00000000000000000000000000000007"), Cordon::Ours(Operation(7), None));
        assert_eq!(cordoned("somebody"), Cordon::Anothers);
        assert_eq!(cordon(&node(json!({"spec": {"unschedulable": true}}))), Cordon::Anothers);
        let left = json!({"metadata": {"annotations": {CORDON_ANNOTATION: "00000000000000000000000000000007"}}});
        assert_eq!(cordon(&node(left)), Cordon::No);
    }

    #[test]
    fn a_stamp_counts_beside_the_mark_of_its_own_operation_only() {
        let seven = "00000000000000000000000000000007";
        let stamped = |stamp: &str| {
            let annotations = json!({CORDON_ANNOTATION: seven, STAMP_ANNOTATION: stamp});
            cordon(&node(
                json!({"metadata": {"annotations": annotations}, "spec": {"unschedulable": true}}),
            ))
        };
        let written = stamp_text(Operation(7), Stamp(u128::MAX));
        assert_eq!(stamped(&written), Cordon::Ours(Operation(7), Some(Stamp(u128::MAX))));
        for other in [&*stamp_text(Operation(8), Stamp(9)), seven, "", " ", &*format!("{seven} 9")]
        {
            assert_eq!(stamped(other), Cordon::Ours(Operation(7), None), "{other}");
        }
    }

    #[test]
    fn what_the_operator_cordons_for_its_own_rollout_is_no_flag() {
        let cordoned = |desired: &str| {
            node(json!({"metadata": {"annotations": {OPERATORS_DRAIN: desired}},
                "spec": {"unschedulable": true}}))
        };
        assert_eq!(flagged(&cordoned("drain-rendered-worker-1")), None);
        assert_eq!(flagged(&cordoned("uncordon-rendered-worker-1")), Some(HeldBy::Cordon));
        assert_eq!(flagged(&node(json!({"spec": {"unschedulable": true}}))), Some(HeldBy::Cordon));
        let ours = json!({"metadata": {"annotations":
            {CORDON_ANNOTATION: "00000000000000000000000000000007"}},
            "spec": {"unschedulable": true}});
        assert_eq!(flagged(&node(ours)), None);
        assert_eq!(flagged(&node(json!({}))), None);
        let drained = json!({"metadata": {"annotations": {OPERATORS_DRAIN: "drain-1"}},
            "spec": {"taints": [{"key": MEDIK8S_DRAIN, "effect": "NoSchedule"}]}});
        assert_eq!(flagged(&node(drained)), Some(HeldBy::Drain), "medik8s drains it too");
    }

    #[test]
    fn the_node_that_somebody_maintains_is_known() {
        let of = |node: &str| -> DynamicObject {
            serde_json::from_value(json!({"spec": {"nodeName": node}})).unwrap()
        };
        assert_eq!(maintained(&of("n")).map(|it| it.node).as_deref(), Some("n"));
        assert_eq!(maintained(&of("")), None);
    }

    #[test]
    fn who_holds_a_lease_is_said_alike_however_often_it_is_renewed() {
        let lease = |spec: Value| -> Lease {
            let metadata = json!({"name": "node-a", "namespace": "medik8s-leases"});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
        };
        let at = |text: &str| {
            Time(Duration::from_secs(
                u64::try_from(text.parse::<k8s_openapi::jiff::Timestamp>().unwrap().as_second())
                    .unwrap(),
            ))
        };
        let renewed = |at: &str| {
            lease(json!({"holderIdentity": "node-maintenance", "leaseDurationSeconds": 3600,
                "acquireTime": "2026-10-21T07:00:00.000000Z", "renewTime": at}))
        };
        let terms = Terms::default();
        let now = at("2026-10-21T08:00:00Z");
        let words = "Lease medik8s-leases/node-a held by node-maintenance since \
            2026-10-21T07:00:00Z, for 1h";
        for renewal in ["2026-10-21T07:00:00.000000Z", "2026-10-21T07:50:00.000000Z"] {
            assert_eq!(leased(&renewed(renewal), now, &terms).as_deref(), Some(words));
        }
        let over = at("2026-10-21T12:00:00Z");
        assert_eq!(leased(&renewed("2026-10-21T07:00:00.000000Z"), over, &terms), None);
        let renewals = json!({"renewTime": "2026-10-21T07:50:00.000000Z"});
        assert!(leased(&lease(renewals), over, &terms).unwrap().contains("does not say who"));
        for nobody in [
            json!({"holderIdentity": "tread/1", "renewTime": "2026-10-21T07:50:00.000000Z",
                "leaseDurationSeconds": 3600}),
            json!({"holderIdentity": "", "leaseDurationSeconds": 1,
                "renewTime": "2026-10-21T07:50:00.000000Z"}),
            json!({}),
        ] {
            assert_eq!(leased(&lease(nobody.clone()), now, &terms), None, "{nobody}");
        }
        let odd = json!({"holderIdentity": format!("\u{1b}[2J{}", "x".repeat(500)),
            "leaseDurationSeconds": 90, "renewTime": "2026-10-21T07:50:00.000000Z"});
        let said = leased(&lease(odd), now, &terms).unwrap();
        assert!(said.len() < 200 && !said.contains('\u{1b}') && said.ends_with("90s"), "{said}");
    }
}
