//! What a node's NodeUpdate says of its drain: who asked, what for, and which pods are left.

use crate::drain::{Asked, Blocked};
use crate::reading::{Aim, Read};
use crate::settings::Settings;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::{DrainOfNode, PodLeft};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::clean::{clean, cleaned};
use tread_kube::dated::timestamp;
use tread_model::protocol::{Disrupts, Phase};
use tread_model::text::listed;

/// How many pods are named.
const NAMED: usize = 20;
/// How many nodes that have not joined are: a name is long, and there is room for 1,024 characters.
const NODES: usize = 1;
/// So often it is tried where others write the NodeUpdate at the same time.
const MOST: usize = 3;
/// The longest that is repeated of why one does not move.
const LONGEST: usize = 400;

/// That pods have to move, of which some do not.
pub(crate) async fn drains(settings: &Settings, read: &Read, aim: &Aim, blocked: &[Blocked]) {
    let left = read.left.as_ref().map(|left| left.pods.as_slice()).unwrap_or_default();
    let name = |pod: &k8s_openapi::api::core::v1::Pod| {
        format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
    };
    let all = left.iter().map(|(pod, _)| name(pod));
    let drain = match left.is_empty() && read.has_left {
        true => None,
        false => Some(status_of(settings, read, aim, blocked, all.collect(), true)),
    };
    write(settings, read, drain).await;
}

/// That the node is not begun, because of these pods.
pub(crate) async fn stuck(settings: &Settings, read: &Read, aim: &Aim, blocked: &[Blocked]) {
    let all = blocked.iter().map(|it| it.pod.clone()).collect();
    write(settings, read, Some(status_of(settings, read, aim, blocked, all, false))).await;
}

/// Whether it says of a node that has a slot that it is not drained, and why.
pub(crate) fn is_stuck(read: &Read) -> bool {
    let is_not_begun = |drain: &DrainOfNode| drain.since.is_none() && drain.pods_left > 0;
    read.seen.slot.is_some() && drain_of(&read.update).is_some_and(is_not_begun)
}

/// Writes that nothing is drained, or why the node's own clock keeps it from being given back.
pub(crate) async fn nothing(settings: &Settings, read: &Read, aim: &Aim) {
    let drain = read.clock.as_ref().map(|why| DrainOfNode {
        asked_by: asked_by(settings, aim),
        why: why.clone(),
        ..DrainOfNode::default()
    });
    write(settings, read, drain).await;
}

fn asked_by(settings: &Settings, aim: &Aim) -> String {
    format!("the Rollout {}, by {}", aim.pool, settings.holder)
}

fn status_of(
    settings: &Settings,
    read: &Read,
    aim: &Aim,
    blocked: &[Blocked],
    all: Vec<String>,
    is_begun: bool,
) -> DrainOfNode {
    let order = read.update.spec.order.as_ref().filter(|_| is_begun);
    let since = order.and_then(|order| order.drain_since.clone());
    DrainOfNode {
        asked_by: asked_by(settings, aim),
        why: why(read, aim, is_begun),
        since,
        deadline: deadline(read, &aim.drain).filter(|_| is_begun),
        pods_left: i32::try_from(all.len()).unwrap_or(i32::MAX),
        pods: pods(blocked, &all),
    }
}

fn deadline(read: &Read, asked: &Asked) -> Option<MicroTime> {
    read.deadline(asked).map(|at| MicroTime(timestamp(at)))
}

fn why(read: &Read, aim: &Aim, is_begun: bool) -> String {
    let escalates = read.seen.report.is_some_and(|it| it.phase == Phase::NeedsBoot);
    let order = read.update.spec.order.as_ref().filter(|_| is_begun || escalates);
    let config = order.map_or(&aim.target.name, |order| &order.config.name);
    let disrupts = match is_begun {
        true => read.seen.order.map(|order| order.disrupts),
        // One that has a slot is to boot since something failed.
        false if read.seen.slot.is_some() => Some(Disrupts::Reboot),
        false => read.seen.wanted.map(|wanted| wanted.disrupts),
    };
    let has_plan = order.map_or(aim.target.plan.is_some(), |order| order.plan.is_some());
    let boots = match disrupts == Some(Disrupts::Reboot) {
        true if has_plan => ", and boots for it",
        true => ", and boots for it by the plan that is always allowed",
        false => "",
    };
    let aim_of = format!("it is to get {config}{boots}");
    match () {
        () if !is_begun => format!(
            "{aim_of}; it is not cordoned, since it could not be drained until these pods or \
             their budgets change"
        ),
        () if !read.has_left => {
            format!("{aim_of}; load balancers are given time to leave it out first")
        }
        () if read.late_since(&aim.drain).is_some() && aim.drain.deletes => {
            format!("{aim_of}; its drain took too long, and pods are deleted now")
        }
        () => {
            let late = read.late_since(&aim.drain).map_or("", |_| "; its drain takes too long");
            format!("{aim_of}{late}{}", waits_for(&aim.joining))
        }
    }
}

/// That the pods of a node have no place before others have joined, and what to do where that does not
/// end.
fn waits_for(joining: &[String]) -> String {
    if joining.is_empty() {
        return String::new();
    }
    format!(
        "; its pods have no place before another node has joined ({}): the condition Joined of its NodeUpdate \
         says why it has not. To boot this one with its pods on it: spec.drain.skip in the Rollout",
        listed(joining, NODES)
    )
}

/// Those that do not move, and then others.
fn pods(blocked: &[Blocked], all: &[String]) -> Vec<PodLeft> {
    let short = |text: String| -> String { clean(&text).chars().take(LONGEST).collect() };
    let stay = blocked
        .iter()
        .map(|it| PodLeft { pod: it.pod.clone(), why: Some(short(it.by.to_string())) });
    let known: BTreeSet<&str> = blocked.iter().map(|it| it.pod.as_str()).collect();
    let others = all.iter().filter(|pod| !known.contains(pod.as_str()));
    let others = others.map(|pod| PodLeft { pod: pod.clone(), why: None });
    stay.chain(others).take(NAMED).collect()
}

/// Writes it onto the version that was read, unless it stands there. What cannot be written keeps
/// nothing from going on: it is counted, and written after the next look.
async fn write(settings: &Settings, read: &Read, drain: Option<DrainOfNode>) {
    let drain = drain.map(cleaned);
    if drain_of(&read.update) == drain.as_ref() {
        return;
    }
    let (mut update, name) = (read.update.clone(), read.of_node().name);
    for _ in 0..MOST {
        let Err(failed) = put(settings, &name, onto(&update, drain.clone())).await else { return };
        if failed.outcome != CallOutcome::Conflict {
            tracing::debug!(node = name, error = %failed, "its drain is not told of");
            return;
        }
        // Its agent may have written it, which changes nothing of this.
        match fresh(settings, &name).await {
            Ok(now) if is_same(&read.update, &now) => update = now,
            _ => return,
        }
    }
}

async fn put(settings: &Settings, name: &str, patch: Value) -> Result<(), Failed> {
    let api: Api<NodeUpdate> = Api::all(settings.client.clone());
    let call = Call::new("patch", "nodeupdates").of_status();
    let params = PatchParams::default();
    let patch = Patch::Merge(patch);
    ask(&settings.metrics, call, api.patch_status(name, &params, &patch)).await.map(drop)
}

async fn fresh(settings: &Settings, name: &str) -> Result<NodeUpdate, Failed> {
    let api: Api<NodeUpdate> = Api::all(settings.client.clone());
    ask(&settings.metrics, Call::new("get", "nodeupdates"), api.get(name)).await
}

fn drain_of(update: &NodeUpdate) -> Option<&DrainOfNode> {
    update.status.as_ref().and_then(|status| status.drain.as_ref())
}

/// Whether the NodeUpdate still says what the new status was made from: another replica that knows
/// more may have written it.
fn is_same(read: &NodeUpdate, now: &NodeUpdate) -> bool {
    let ordered = |update: &NodeUpdate| {
        update.spec.order.as_ref().map(|order| (order.operation.clone(), order.stage))
    };
    read.metadata.uid == now.metadata.uid
        && ordered(read) == ordered(now)
        && drain_of(read) == drain_of(now)
}

/// What is to be written, onto this version.
fn onto(update: &NodeUpdate, drain: Option<DrainOfNode>) -> Value {
    let drain = drain.map_or(Value::Null, |drain| {
        let mut value = json!(drain);
        // What it does not say is taken away.
        if let Some(fields) = value.as_object_mut() {
            for field in ["since", "deadline", "pods"] {
                fields.entry(field).or_insert(Value::Null);
            }
        }
        value
    });
    json!({
        "metadata": {
            "uid": update.metadata.uid,
            "resourceVersion": update.metadata.resource_version,
        },
        "status": {"drain": drain},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_that_waits_for_a_node_to_join_says_which_and_the_way_out() {
        assert_eq!(waits_for(&[]), "");
        let said = waits_for(&["m".to_owned()]);
        assert!(said.starts_with("; its pods have no place before another node has joined (m): "));
        assert!(said.contains("the condition Joined") && said.contains("drain.skip"), "{said}");
    }

    #[test]
    fn a_drain_is_told_of_onto_the_version_that_was_read() {
        let update = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
            "metadata": {"name": "n", "uid": "1", "resourceVersion": "41"},
            "spec": {"pool": "worker"}});
        let update: NodeUpdate = serde_json::from_value(update).unwrap();
        let drain = DrainOfNode { why: "it is to get a".to_owned(), ..DrainOfNode::default() };
        let written = onto(&update, Some(drain));
        assert_eq!(written["metadata"], json!({"uid": "1", "resourceVersion": "41"}));
        assert_eq!(written["status"]["drain"]["why"], "it is to get a");
        assert_eq!(written["status"]["drain"]["since"], Value::Null);
        let nothing = onto(&update, None);
        assert_eq!(nothing["metadata"], written["metadata"]);
        assert_eq!(nothing["status"], json!({"drain": null}));
    }

    #[test]
    fn a_drain_is_told_of_again_unless_somebody_else_ordered_or_told_meanwhile() {
        let update = |stage: &str, phase: &str, why: Option<&str>| -> NodeUpdate {
            let drain = why.map(|why| json!({"askedBy": "a", "why": why, "podsLeft": 0}));
            let order = json!({"operation": "7", "config": {"name": "c", "digest": "d"},
                "disrupts": "Reboot", "token": 1, "stage": stage});
            serde_json::from_value(json!({"apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
                "metadata": {"name": "n", "uid": "1"}, "spec": {"pool": "worker", "order": order},
                "status": {"phase": phase, "drain": drain}}))
            .unwrap()
        };
        let read = update("Go", "Waiting", Some("it drains"));
        for (now, expected) in [
            (update("Go", "Begun", Some("it drains")), true),
            (update("Closed", "Begun", Some("it drains")), false),
            (update("Go", "Waiting", None), false),
            (update("Go", "Waiting", Some("somebody drains it")), false),
        ] {
            assert_eq!(is_same(&read, &now), expected, "{now:?}");
        }
    }
}
