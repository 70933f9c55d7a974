//! The standard conditions of a node (KEP-5683), by which everybody sees what is done to it.

use crate::reading::Read;
use crate::settings::Settings;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tread_kube::asking::{Call, Failed, ask};
use tread_kube::dated::timestamp;
use tread_kube::held::OWN_REASON;
use tread_model::protocol::{Order, Phase, Seen, Stage};

/// What a strategic merge patch does with an entry of a list.
const PATCH: &str = "$patch";
const PLANNED: &str = "MaintenancePlanned";
const IN_PROGRESS: &str = "MaintenanceInProgress";
const DRAINS: &str = "DrainInProgress";
const DRAINED: &str = "Drained";

/// What a node's conditions are to be, by type: those that tread sets, and whether each is true.
type Wanted = BTreeMap<&'static str, bool>;

/// Sets a node's conditions as they are to be; says whether any was another one.
/// `moves` is whether pods have to leave it.
pub(crate) async fn set(settings: &Settings, read: &Read, moves: bool) -> Result<bool, Failed> {
    let was_drained = own(&read.node).any(|it| it.type_ == DRAINED);
    let wanted = wanted(&read.seen, moves, was_drained);
    let now = timestamp(read.seen.now);
    let mut changes = changes(&read.node, &wanted, now);
    if !is_ours(&read.seen) || read.seen.held.is_some() {
        // Whoever holds the node says what is done to it: of each type there is one entry only.
        changes.retain(|change| change.get(PATCH).is_some());
    }
    if changes.is_empty() {
        return Ok(false);
    }
    let patch = Patch::Strategic(json!({
        "metadata": {
            "uid": read.node.metadata.uid,
            // Somebody else may set one of them meanwhile.
            "resourceVersion": read.node.metadata.resource_version,
        },
        "status": {"conditions": changes},
    }));
    let api: Api<Node> = Api::all(settings.client.clone());
    let (name, params) = (read.of_node().name, PatchParams::default());
    let call = Call::new("patch", "nodes").of_status();
    ask(&settings.metrics, call, api.patch_status(&name, &params, &patch)).await?;
    Ok(true)
}

/// Whether the node is held for its order.
fn is_ours(seen: &Seen) -> bool {
    let held = |order: Order| seen.lease.map(|it| it.is_held_for(order.operation, seen.now));
    seen.order.and_then(held) == Some(true)
}

/// The conditions to set: none, unless the node is drained for an order. It is called drained only
/// if tread said before that it drains it: where no pod moves, there is no drain.
fn wanted(seen: &Seen, moves: bool, was_drained: bool) -> Wanted {
    let Some(order) = seen.order.filter(|order| order.disrupts.drains()) else {
        return Wanted::new();
    };
    let has_slot = seen.slot.is_some_and(|slot| slot.operation == order.operation);
    let is_cordoned = seen.is_cordoned_for(order.operation);
    match order.stage {
        _ if !has_slot => Wanted::new(),
        // Somebody else may mend it: it is only said that no pod is on it.
        _ if has_failed(seen, &order) && was_drained => Wanted::from([(DRAINED, is_cordoned)]),
        _ if has_failed(seen, &order) => Wanted::new(),
        Stage::Prepare if is_cordoned && moves => Wanted::from([(DRAINS, true), (DRAINED, false)]),
        Stage::Prepare => Wanted::from([(PLANNED, true)]),
        Stage::Go if was_drained => {
            Wanted::from([(DRAINS, false), (DRAINED, true), (IN_PROGRESS, true)])
        }
        Stage::Go => Wanted::from([(IN_PROGRESS, true)]),
        Stage::Withdrawn | Stage::Closed => Wanted::new(),
    }
}

fn has_failed(seen: &Seen, order: &Order) -> bool {
    let report = seen.report.filter(|report| report.operation == order.operation);
    report.is_some_and(|report| report.phase == Phase::Degraded)
}

/// What has to be written: those that are not as they are to be, and those of tread's own that
/// are not to be there.
fn changes(node: &Node, wanted: &Wanted, now: Timestamp) -> Vec<Value> {
    let is_wanted = |it: &NodeCondition| wanted.contains_key(it.type_.as_str());
    let gone = own(node).filter(|it| !is_wanted(it));
    let gone = gone.map(|it| json!({PATCH: "delete", "type": it.type_}));
    let others = wanted.iter().filter_map(|(type_, is_true)| {
        let status = if *is_true { "True" } else { "False" };
        let known = own(node).find(|it| it.type_ == *type_);
        if known.is_some_and(|it| it.status == status) {
            return None;
        }
        Some(json!({
            "type": type_,
            "status": status,
            "reason": OWN_REASON,
            "message": "tread updates the node's configuration; see its NodeUpdate",
            "lastTransitionTime": now,
            "lastHeartbeatTime": now,
        }))
    });
    gone.chain(others).collect()
}

/// Those of a node that tread set.
fn own(node: &Node) -> impl Iterator<Item = &NodeCondition> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    let all = conditions.unwrap_or_default().iter();
    all.filter(|it| it.reason.as_deref() == Some(OWN_REASON))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::digest::Digest;
    use tread_model::protocol::{
        Config, Cordon, Disrupts, Operation, Report, Slot, Time, Version, Versions,
    };

    /// A node that is at this stage of a boot, cordoned or not yet.
    fn seen(stage: Stage, is_cordoned: bool, phase: Option<Phase>) -> Seen {
        let (operation, config) = (Operation(7), Config(Digest([1; 32])));
        let cordon = if is_cordoned { Cordon::Ours(operation, None) } else { Cordon::No };
        Seen {
            now: Time::default(),
            fresh: true,
            versions: Versions {
                slots: Version("1".into()),
                lease: None,
                update: Version("1".into()),
            },
            slot: Some(Slot { operation, unavailable: true }),
            soft_room: false,
            room: false,
            lease: None,
            order: Some(Order {
                operation,
                config,
                disrupts: Disrupts::Reboot,
                token: 1,
                stage,
                given: stage != Stage::Prepare,
                unwell: false,
                hands_on: None,
                cordon: None,
            }),
            report: phase.map(|phase| Report { operation, phase, token: 1 }),
            cordon,
            drained: true,
            proved: false,
            held: None,
            wanted: None,
            newest: config,
            turns_back: false,
            id: Operation(8),
        }
    }

    #[test]
    fn a_node_is_said_to_be_drained_only_where_pods_moved() {
        let prepares = |is_cordoned| seen(Stage::Prepare, is_cordoned, None);
        let (goes, failed) = (
            seen(Stage::Go, true, Some(Phase::Begun)),
            seen(Stage::Go, true, Some(Phase::Degraded)),
        );
        let drains = Wanted::from([(DRAINS, true), (DRAINED, false)]);
        assert_eq!(wanted(&prepares(true), true, false), drains);
        let drained = Wanted::from([(DRAINS, false), (DRAINED, true), (IN_PROGRESS, true)]);
        assert_eq!(wanted(&goes, true, true), drained);
        assert_eq!(wanted(&failed, true, true), Wanted::from([(DRAINED, true)]));
        let planned = Wanted::from([(PLANNED, true)]);
        assert_eq!(wanted(&prepares(false), false, false), planned);
        assert_eq!(wanted(&prepares(true), false, false), planned, "it boots with its pods");
        // Another node may have come meanwhile that would take its pods.
        for moves in [false, true] {
            assert_eq!(wanted(&goes, moves, false), Wanted::from([(IN_PROGRESS, true)]));
            assert_eq!(wanted(&failed, moves, false), Wanted::new());
        }
    }

    fn node(conditions: &[(&str, &str, &str)]) -> Node {
        let one = |(type_, status, reason): &(&str, &str, &str)| json!({"type": type_, "status": status, "reason": reason});
        let conditions: Vec<Value> = conditions.iter().map(one).collect();
        serde_json::from_value(json!({"status": {"conditions": conditions}})).unwrap()
    }

    #[test]
    fn only_what_differs_is_written_and_only_treads_own_is_removed() {
        let says = |node: &Node, wanted: &Wanted| -> Vec<String> {
            let changes = changes(node, wanted, Timestamp::UNIX_EPOCH);
            let say = |it: &Value| match it.get(PATCH) {
                Some(_) => format!("-{}", it["type"].as_str().unwrap()),
                None => {
                    format!("{}={}", it["type"].as_str().unwrap(), it["status"].as_str().unwrap())
                }
            };
            changes.iter().map(say).collect()
        };
        let drains = Wanted::from([(DRAINS, true), (DRAINED, false)]);
        assert_eq!(says(&node(&[]), &drains), ["DrainInProgress=True", "Drained=False"]);
        let own = node(&[(DRAINS, "True", OWN_REASON), (DRAINED, "False", OWN_REASON)]);
        assert!(says(&own, &drains).is_empty());
        assert_eq!(says(&own, &Wanted::new()), ["-DrainInProgress", "-Drained"]);
        let drained = Wanted::from([(DRAINED, true)]);
        assert_eq!(says(&own, &drained), ["-DrainInProgress", "Drained=True"]);
        // kubectl says that the node is not drained any more: it is what tread says from now on.
        let others =
            node(&[(DRAINED, "False", "AdminRequested"), ("Ready", "True", "KubeletReady")]);
        assert!(says(&others, &Wanted::new()).is_empty());
        assert_eq!(says(&others, &drained), ["Drained=True"]);
    }
}
