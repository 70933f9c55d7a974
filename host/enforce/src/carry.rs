//! Carrying out one act, onto the versions that it depends on.

use crate::balancers::{self, EXCLUDED_ANNOTATION, Marks};
use crate::namespace;
use crate::order;
use crate::reading::{Aim, Read, Room, is_cordoned_for};
use crate::remediation::{Machine, mark};
use crate::settings::Settings;
use crate::slots;
use crate::still::Still;
use crate::turn::{Change, To};
use k8s_openapi::api::coordination::v1::Lease as LeaseObject;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::api::NodeUpdate;
use tread_kube::asking::{Call, CallOutcome, Failed, PATIENCE, ask, ask_before};
use tread_kube::held::{CORDON_ANNOTATION, STAMP_ANNOTATION, stamp_text};
use tread_kube::node_lease::{OfNode, Writes, operation_text, written};
use tread_model::protocol::{Act, Lease, Operation, Order, Slot, Stamp, Time, retakes};

/// Carries one act out. A conflict means that what was read is old.
pub(crate) async fn carry_out(
    settings: &Settings,
    read: &Read,
    act: Act,
    aim: &Aim,
) -> Result<(), Failed> {
    match act {
        Act::TakeSlot { slot, .. } if retakes(&read.seen, &act) => {
            let (node, pool) = (node_name(read), aim.pool.clone());
            let slots = read.slots.slots.clone().with(node, pool, slot);
            slots::write(settings, &read.slots, &slots).await
        }
        Act::TakeSlot { slot, .. } => take_slot(settings, read, slot, aim).await,
        Act::ReleaseSlot { operation, .. } => release_slot(settings, read, operation).await,
        Act::MakeLease(lease) => make_lease(settings, &read.of_node(), read.seen.now, &lease).await,
        Act::WriteLease { lease, .. } => {
            let before = read.lease.as_ref();
            write_lease(settings, &read.of_node(), read.seen.now, &lease, before).await
        }
        Act::ReleaseLease { .. } => release_lease(settings, read).await,
        Act::WriteOrder { order, .. } => write_order(settings, read, &order, aim).await,
        Act::Cordon { operation, stamp, within } => {
            skip_remediation(settings, aim).await;
            let leaves = aim.drain.leaves_balancers.is_some() && !aim.is_alone_for(&read.update);
            let marks = match leaves {
                true => balancers::leaves(&read.node, operation, read.seen.now),
                false => Marks::default(),
            };
            set_cordon(settings, read, CordonTo::Made(operation, stamp), marks, within).await
        }
        Act::Uncordon { of, within } => {
            give_back(settings, read, CordonTo::Undone, of, within).await
        }
        Act::HandOver { of, within } => {
            tracing::info!(node = node_name(read), held = ?read.seen.held,
                "the node's cordon is left to whoever else has it");
            give_back(settings, read, CordonTo::Others, of, within).await
        }
        // `step` does these.
        Act::Evict { .. } | Act::ReadAfresh | Act::Degrade | Act::Wait(_) => Ok(()),
    }
}

/// Keeps others from replacing the Machine of a node that is about to be disrupted. Where tread may
/// not, or cannot, the node is disrupted all the same: it is counted, and said in the log.
async fn skip_remediation(settings: &Settings, aim: &Aim) {
    if let Some(machine) = &aim.machine
        && let Err(failed) = mark(settings, machine, true).await
    {
        let Machine { namespace, name } = machine;
        tracing::warn!(machine = format!("{namespace}/{name}"), error = %failed,
            "others may replace this Machine while its node is disrupted");
    }
}

fn node_name(read: &Read) -> String {
    read.of_node().name
}

/// When the time ends that is counted from the beginning of the read.
fn ends(read: &Read, within: Duration) -> Instant {
    read.began + within
}

async fn take_slot(settings: &Settings, read: &Read, slot: Slot, aim: &Aim) -> Result<(), Failed> {
    let pool = aim.pool.clone();
    // Only a new operation needs the node's turn: one that has begun goes on without it.
    let still = if slot.operation == read.seen.id { aim.still.clone() } else { Still::default() };
    let Room { limits, unavailable } = read.room.clone();
    let to = To::Take { slot, pool, limits, unavailable };
    slots::change(settings, Change::new(node_name(read), to, &read.slots.slots, still)).await
}

async fn release_slot(
    settings: &Settings,
    read: &Read,
    operation: Operation,
) -> Result<(), Failed> {
    let change = Change::release(node_name(read), operation, &read.slots.slots);
    slots::change(settings, change).await
}

fn writes<'a>(settings: &'a Settings, node: &'a OfNode, now: Time) -> Writes<'a> {
    let Settings { holder, leases, .. } = settings;
    Writes { us: holder, node, namespace: leases, now, reason: None }
}

fn leases(settings: &Settings) -> Api<LeaseObject> {
    Api::namespaced(settings.client.clone(), &settings.leases)
}

/// Makes a node's Lease, and the namespace of all of them where that is missing: then the Lease is
/// made by the next try.
pub(crate) async fn make_lease(
    settings: &Settings,
    node: &OfNode,
    now: Time,
    lease: &Lease,
) -> Result<(), Failed> {
    let object = written(lease, writes(settings, node, now), None);
    let (api, params) = (leases(settings), PostParams::default());
    let call = Call::new("create", "leases").within(&settings.leases);
    match ask(&settings.metrics, call, api.create(&params, &object)).await {
        // It is tried again with what is read then.
        Err(failed) if failed.outcome == CallOutcome::Gone => {
            namespace::make(&settings.client, &settings.metrics, &settings.leases).await
        }
        made => made.map(|_| ()),
    }
}

/// Writes a node's Lease onto the version that was read.
pub(crate) async fn write_lease(
    settings: &Settings,
    node: &OfNode,
    now: Time,
    lease: &Lease,
    before: Option<&LeaseObject>,
) -> Result<(), Failed> {
    let call = Call::new("update", "leases").within(&settings.leases);
    let Some(before) = before else {
        return Err(call.overtaken("the node's Lease was not there when it was read".to_owned()));
    };
    let object = written(lease, writes(settings, node, now), Some(before));
    let name = before.metadata.name.clone().unwrap_or_default();
    let (api, params) = (leases(settings), PostParams::default());
    ask(&settings.metrics, call, api.replace(&name, &params, &object)).await?;
    Ok(())
}

async fn release_lease(settings: &Settings, read: &Read) -> Result<(), Failed> {
    let Some(lease) = &read.lease else { return Ok(()) };
    let name = lease.metadata.name.clone().unwrap_or_default();
    let preconditions = Preconditions {
        uid: lease.metadata.uid.clone(),
        resource_version: lease.metadata.resource_version.clone(),
    };
    let params = DeleteParams::default().preconditions(preconditions);
    let api = leases(settings);
    let call = Call::new("delete", "leases").within(&settings.leases);
    match ask(&settings.metrics, call, api.delete(&name, &params)).await {
        Err(failed) if failed.outcome != CallOutcome::Gone => Err(failed),
        _ => Ok(()),
    }
}

async fn write_order(
    settings: &Settings,
    read: &Read,
    order: &Order,
    aim: &Aim,
) -> Result<(), Failed> {
    let before = read.update.spec.order.as_ref();
    let mut update = read.update.clone();
    update.spec.pool.clone_from(&aim.pool);
    let (retries, now) = (aim.retries.as_deref(), read.seen.now);
    let mut written = order::written(order, before, &aim.target, retries, now);
    if written.escalated.is_none() {
        written.escalated = order::escalated_by(read.seen.report, order, now);
    }
    written.leaves_pods = order::leaves_pods(&written, before, aim.is_alone);
    written.failed_at = order::failed_at(&read.update, &written, now);
    update.spec.order = Some(written);
    order::set_cordon(&mut update, order.cordon);
    update.metadata.managed_fields = None;
    let api: Api<NodeUpdate> = Api::all(settings.client.clone());
    let (name, params) = (node_name(read), PostParams::default());
    let call = Call::new("update", "nodeupdates");
    ask(&settings.metrics, call, api.replace(&name, &params, &update)).await?;
    Ok(())
}

/// What becomes of a node's cordon.
enum CordonTo {
    /// The node is cordoned and marked with the operation and this stamp.
    Made(Operation, Stamp),
    /// The cordon and its marks are taken away.
    Undone,
    /// Its marks alone are taken away.
    Others,
}

/// Ends what tread's cordon was for, if it is still that of this operation.
async fn give_back(
    settings: &Settings,
    read: &Read,
    to: CordonTo,
    of: Option<Operation>,
    within: Duration,
) -> Result<(), Failed> {
    match of.is_none_or(|of| is_cordoned_for(&read.node, of)) {
        true => set_cordon(settings, read, to, balancers::comes_back(&read.node), within).await,
        false => Ok(()),
    }
}

/// Cordons a node and marks it, or takes its marks away, with the cordon or without, in one patch
/// onto the version that was read.
async fn set_cordon(
    settings: &Settings,
    read: &Read,
    to: CordonTo,
    marks: Marks,
    within: Duration,
) -> Result<(), Failed> {
    let (mark, stamp, unschedulable) = match to {
        CordonTo::Made(of, stamp) => {
            (operation_text(of).into(), stamp_text(of, stamp).into(), Some(true.into()))
        }
        CordonTo::Undone => (Value::Null, Value::Null, Some(Value::Null)),
        CordonTo::Others => (Value::Null, Value::Null, None),
    };
    let mut annotations = json!({CORDON_ANNOTATION: mark, STAMP_ANNOTATION: stamp});
    if let (Some(excluded), Some(all)) = (marks.annotation, annotations.as_object_mut()) {
        all.insert(EXCLUDED_ANNOTATION.to_owned(), excluded);
    }
    let mut metadata = json!({
        "uid": read.node.metadata.uid,
        "resourceVersion": read.node.metadata.resource_version,
        "annotations": annotations,
    });
    if let (Some(labels), Some(all)) = (marks.labels, metadata.as_object_mut()) {
        all.insert("labels".to_owned(), labels);
    }
    let mut patch = json!({"metadata": metadata});
    if let (Some(unschedulable), Some(all)) = (unschedulable, patch.as_object_mut()) {
        all.insert("spec".to_owned(), json!({"unschedulable": unschedulable}));
    }
    let patch = Patch::Merge(patch);
    let api: Api<Node> = Api::all(settings.client.clone());
    let (name, params) = (node_name(read), PatchParams::default());
    let deadline = ends(read, within).min(Instant::now() + PATIENCE);
    let call = Call::new("patch", "nodes");
    ask_before(deadline, &settings.metrics, call, api.patch(&name, &params, &patch)).await?;
    Ok(())
}
