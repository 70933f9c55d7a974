//! Rollouts and NodeUpdates: made where they are missing, and told how far everything is.

use super::anew;
use super::findings;
use super::known::Moment;
use super::marks::is_of;
use super::progress::{Counts, sentence, waiting};
use super::scene::{OfPool, Scene};
use super::settings::Settings;
use super::workers::Draining;
use futures::{StreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_cluster::pools::Pool;
use tread_cluster::previews::Cluster;
use tread_kube::api::conditions::set;
use tread_kube::api::node_update::{UPDATED, UpdateDisrupts};
use tread_kube::api::rollout::{DrainingNode, MADE_ANNOTATION, MissingMachine, NAMED};
use tread_kube::api::{MachineConfigPool, NodeUpdate, Rollout, RolloutStatus};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::clean::cleaned;
use tread_kube::dated::timestamp;
use tread_kube::watching::parsed::Parsed;
use tread_model::joining::JOINED;
use tread_model::protocol::Disrupts;
use tread_model::rollout::State;

const ROLLOUTS: &str = "rollouts";
const UPDATES: &str = "nodeupdates";
/// How many are made at the same time.
const AT_ONCE: usize = 8;
/// How many are written by what was known at one moment: later it is old, and each write comes
/// back as a change, after which the others follow.
const AT_MOST: usize = 256;

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// What is there already is as good.
fn made<T>(answer: Result<T, Failed>) -> Result<(), Failed> {
    match answer {
        Err(failed) if failed.outcome != CallOutcome::Conflict => Err(failed),
        _ => Ok(()),
    }
}

/// Makes the Rollout of each pool, and the NodeUpdate of each node, that is not there.
pub(crate) async fn make(
    settings: &Settings,
    cluster: &Cluster,
    moment: &Moment,
    scene: &Scene,
) -> Result<(), Failed> {
    let has_one = |pool: &&Arc<Pool>| moment.rollouts.contains_key(&pool.name);
    // Of one that cannot be read nobody knows whether its Rollout was made once.
    let pools = || cluster.pools.values().filter(|pool| pool.unread.is_none());
    let without = pools().filter(|pool| !has_one(pool));
    let rollouts = all(without.map(|pool| make_rollout(settings, pool))).await;
    let unmarked = pools().filter(has_one).filter(|pool| !pool.had_rollout);
    let rollouts = rollouts.and(all(unmarked.map(|pool| mark_made(settings, pool))).await);
    let missing = scene.nodes.iter().filter(|(name, _)| !moment.updates.contains_key(*name));
    let missing = missing.filter_map(|(name, node)| {
        let uid = moment.nodes.get(name)?.uid.clone();
        Some(make_update(settings, name, uid, &node.pool))
    });
    let updates = all(missing.take(AT_MOST)).await;
    let moved = scene.nodes.iter().filter_map(|(name, node)| {
        let update = moment.updates.get(name)?;
        let facts = moment.nodes.get(name)?;
        let has_moved = update.spec.pool != node.pool && !node.is_busy();
        let is_its = has_moved && is_of(update, &facts.uid);
        is_its.then(|| say_pool(settings, update, &node.pool))
    });
    rollouts.and(updates).and(all(moved.take(AT_MOST)).await)
}

/// A few at a time; all of them also where one fails.
fn all<F, I>(calls: I) -> impl Future<Output = Result<(), Failed>> + use<F, I>
where
    F: Future<Output = Result<(), Failed>>,
    I: Iterator<Item = F>,
{
    let calls: Vec<F> = calls.collect();
    async move {
        let made: Vec<_> = stream::iter(calls).buffer_unordered(AT_ONCE).collect().await;
        made.into_iter().collect()
    }
}

async fn make_rollout(settings: &Settings, pool: &Pool) -> Result<(), Failed> {
    let call = Call::new("create", ROLLOUTS);
    let object: Rollout = serde_json::from_value(anew::rollout(pool))
        .map_err(|error| call.clone().refused(error.to_string()))?;
    let api: Api<Rollout> = Api::all(settings.acts.client.clone());
    let params = PostParams::default();
    made(ask(&settings.acts.metrics, call, api.create(&params, &object)).await)
}

/// Notes on a pool that its Rollout was made, also for whoever leads later.
async fn mark_made(settings: &Settings, pool: &Pool) -> Result<(), Failed> {
    let patch = Patch::Merge(json!({
        "metadata": {"uid": pool.uid, "annotations": {MADE_ANNOTATION: "true"}},
    }));
    let api: Api<MachineConfigPool> = Api::all(settings.acts.client.clone());
    let call = Call::new("patch", "machineconfigpools");
    let params = PatchParams::default();
    made(ask(&settings.acts.metrics, call, api.patch(&pool.name, &params, &patch)).await)
}

async fn make_update(
    settings: &Settings,
    name: &str,
    uid: String,
    pool: &str,
) -> Result<(), Failed> {
    let call = Call::new("create", UPDATES);
    let object = json!({
        "apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
        "metadata": {"name": name, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}]},
        "spec": {"pool": pool},
    });
    let object: NodeUpdate =
        serde_json::from_value(object).map_err(|error| call.clone().refused(error.to_string()))?;
    let api: Api<NodeUpdate> = Api::all(settings.acts.client.clone());
    let params = PostParams::default();
    made(ask(&settings.acts.metrics, call, api.create(&params, &object)).await)
}

/// Says in a NodeUpdate which pool the node counts in, onto the version that is known.
async fn say_pool(settings: &Settings, update: &NodeUpdate, pool: &str) -> Result<(), Failed> {
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": update.metadata.resource_version},
        "spec": {"pool": pool},
    }));
    let api: Api<NodeUpdate> = Api::all(settings.acts.client.clone());
    let name = update.metadata.name.clone().unwrap_or_default();
    let call = Call::new("patch", UPDATES);
    let params = PatchParams::default();
    made(ask(&settings.acts.metrics, call, api.patch(&name, &params, &patch)).await)
}

/// Says in each NodeUpdate whether its node has the newest config of its pool: its agent cannot
/// know that. One that says that its node does not join is no longer true of a node in a pool.
pub(crate) async fn write_node_conditions(
    settings: &Settings,
    moment: &Moment,
    scene: &Scene,
) -> Result<(), Failed> {
    let nodes = scene.pools.iter().flat_map(|(name, pool)| {
        pool.nodes.iter().map(move |node| (name.as_str(), pool.target.as_ref(), node))
    });
    let writes = nodes.filter_map(|(pool, target, node)| {
        let facts = moment.nodes.get(&node.name)?;
        let update = moment.updates.get(&node.name).filter(|it| is_of(it, &facts.uid))?;
        let known = update.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let mut conditions = own_conditions(known);
        let generation = update.metadata.generation.unwrap_or_default();
        let needs_agent = scene.nodes.get(&node.name).is_some_and(|node| node.needs_agent);
        let updated = target.map(|target| findings::updated(target, node, facts, needs_agent));
        let joined = known.iter().any(|it| it.type_ == JOINED && it.status == "False");
        let joined = joined.then(|| findings::joined(pool));
        for finding in updated.into_iter().chain(joined) {
            set(&mut conditions, finding, generation, Timestamp::now());
        }
        let is_same = |a: &Condition, b: &Condition| {
            (&a.type_, &a.status, &a.message) == (&b.type_, &b.status, &b.message)
        };
        let is_same_list = known.len() == conditions.len()
            && known.iter().zip(&conditions).all(|(known, now)| is_same(known, now));
        if is_same_list {
            return None;
        }
        let wanted = json!({ "conditions": conditions });
        let standing = json!({ "conditions": known });
        let stands = settings.watches.stands(UPDATES, &node.name, &wanted, &standing);
        (!stands).then(|| write_conditions(settings, update, wanted))
    });
    all(writes.take(AT_MOST)).await
}

/// The conditions of a NodeUpdate that are tread's. Its agent may write others there: so many that
/// the API server would take no more.
pub(super) fn own_conditions(known: &[Condition]) -> Vec<Condition> {
    known.iter().filter(|it| [UPDATED, JOINED].contains(&it.type_.as_str())).cloned().collect()
}

/// Onto the version that is known: the list is replaced as a whole.
async fn write_conditions(
    settings: &Settings,
    update: &NodeUpdate,
    wanted: Value,
) -> Result<(), Failed> {
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": update.metadata.resource_version},
        "status": wanted,
    }));
    let name = update.metadata.name.as_deref().unwrap_or_default();
    let api: Api<NodeUpdate> = Api::all(settings.acts.client.clone());
    let call = Call::new("patch", UPDATES).of_status();
    let params = PatchParams::default();
    match ask(&settings.acts.metrics, call, api.patch_status(name, &params, &patch)).await {
        Ok(there) => {
            let kept = json!({"conditions": there.status.unwrap_or_default().conditions});
            settings.watches.wrote(UPDATES, name, &wanted, &kept);
            Ok(())
        }
        Err(failed) if failed.outcome == CallOutcome::Gone => Ok(()),
        answer => made(answer),
    }
}

/// Writes how far a pool is, if that is something else than what stands there; says whether it
/// was.
pub(crate) async fn write_rollout_status(
    settings: &Settings,
    rollout: &Rollout,
    pool: &OfPool,
    (draining, missing): (&BTreeMap<String, Draining>, &[MissingMachine]),
    since: Option<&Time>,
) -> Result<bool, Failed> {
    let status = status(rollout, pool, (draining, missing, since), Timestamp::now());
    if rollout.status.as_ref() == Some(&status) {
        return Ok(false);
    }
    let name = rollout.metadata.name.clone().unwrap_or_default();
    let (wanted, standing) = (json!(status), json!(rollout.status));
    if settings.watches.stands(ROLLOUTS, &name, &wanted, &standing) {
        return Ok(false);
    }
    let mut next = rollout.clone();
    next.status = Some(status);
    next.metadata.managed_fields = None;
    let api: Api<Rollout> = Api::all(settings.acts.client.clone());
    let call = Call::new("update", ROLLOUTS).of_status();
    let params = PostParams::default();
    match ask(&settings.acts.metrics, call, api.replace_status(&name, &params, &next)).await {
        Ok(there) => settings.watches.wrote(ROLLOUTS, &name, &wanted, &json!(there.status)),
        answer => made(answer)?,
    }
    Ok(true)
}

/// What a Rollout is to say; nothing in it drives a terminal, whoever wrote it first.
fn status(
    rollout: &Rollout,
    pool: &OfPool,
    (draining, missing, since): (&BTreeMap<String, Draining>, &[MissingMachine], Option<&Time>),
    now: Timestamp,
) -> RolloutStatus {
    let before = rollout.status.clone().unwrap_or_default();
    let counts = Counts::of(pool);
    let due = pool.nodes.iter().filter_map(|node| match node.state {
        State::Due(disrupts) | State::UnderWay(disrupts) => Some(disrupts),
        _ => None,
    });
    let under_way = pool.nodes.iter().filter(|node| matches!(node.state, State::UnderWay(_)));
    let under_way = under_way.map(|node| &node.name);
    let draining = pool.nodes.iter().filter_map(|node| {
        let it = draining.get(&node.name)?;
        Some(DrainingNode {
            node: node.name.clone(),
            pods_left: number(it.left),
            late_since: it.late_since.map(|at| Time(timestamp(at))),
            blocked: it.blocked.clone(),
        })
    });
    let mut status = RolloutStatus {
        observed_generation: rollout.metadata.generation,
        target: pool.target.clone().or(before.target),
        disrupts: due.max().map(|disrupts| match disrupts {
            Disrupts::Nothing => UpdateDisrupts::Nothing,
            Disrupts::Softly => UpdateDisrupts::Softly,
            Disrupts::Drain => UpdateDisrupts::Drain,
            Disrupts::Reboot => UpdateDisrupts::Reboot,
        }),
        nodes: number(counts.nodes),
        updated: number(counts.updated),
        under_way: number(counts.under_way),
        failed: number(counts.failed),
        next: under_way.chain(&pool.turns.next).take(NAMED).cloned().collect(),
        waiting: waiting(pool, since),
        more_waiting: number(pool.turns.waits.len().saturating_sub(NAMED)),
        draining: draining.take(NAMED).collect(),
        missing: missing.to_vec(),
        made_anew: pool.anew.is_some(),
        message: Some(sentence(pool)),
        conditions: before.conditions,
    };
    let generation = rollout.metadata.generation.unwrap_or_default();
    for finding in findings::of_pool(pool, counts) {
        set(&mut status.conditions, finding, generation, now);
    }
    cleaned(status)
}

/// What the status of a MachineConfigPool says.
pub(crate) fn known_of(settings: &Settings, pool: &str) -> Value {
    let pools = settings.index.pools.now();
    let object = pools.as_ref().and_then(|pools| pools.get(pool));
    let status = object.and_then(|object| match &**object {
        Parsed::Read(object) => object.data.get("status").cloned(),
        Parsed::Unreadable(..) => None,
    });
    status.unwrap_or_default()
}

/// Says in a MachineConfigPool's status how many of its nodes have what it names, as OpenShift's own
/// operator does; says whether that was something else.
pub(crate) async fn write_pool_status(
    settings: &Settings,
    known: &Value,
    pool: &Pool,
    of_pool: &OfPool,
) -> Result<bool, Failed> {
    let Some(target) = &pool.target else { return Ok(false) };
    let counts = Counts::of(of_pool);
    let ready = of_pool.nodes.iter().filter(|it| it.state == State::Updated && it.ready).count();
    let mut status = json!({
        "machineCount": counts.nodes,
        "updatedMachineCount": counts.updated,
        "readyMachineCount": ready,
        "unavailableMachineCount": counts.down,
        "degradedMachineCount": counts.failed,
    });
    let is_whole = of_pool.target.as_ref().is_some_and(|it| it.name == target.name)
        && counts.updated == counts.nodes;
    if is_whole && let Some(fields) = status.as_object_mut() {
        let source: Vec<Value> = target.sources.iter().map(|name| json!({"name": name})).collect();
        let configuration = json!({"name": target.name, "source": source});
        fields.insert("configuration".to_owned(), configuration);
    }
    let stands = status.as_object().is_some_and(|fields| {
        fields.iter().all(|(field, value)| match (known.get(field), field.as_str()) {
            (Some(known), "configuration") => known.get("name") == value.get("name"),
            (known, _) => known == Some(value),
        })
    });
    if stands {
        return Ok(false);
    }
    let patch = Patch::Merge(json!({"metadata": {"uid": pool.uid}, "status": status}));
    let api: Api<MachineConfigPool> = Api::all(settings.acts.client.clone());
    let call = Call::new("patch", "machineconfigpools").of_status();
    let params = PatchParams::default();
    made(ask(&settings.acts.metrics, call, api.patch_status(&pool.name, &params, &patch)).await)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::text::is_unfit;

    #[test]
    fn no_text_of_a_rollout_drives_a_terminal_and_all_of_it_is_told_once() {
        const ODD: &str = "x\u{1b}[31mred\u{7}\nforged: line\u{202e}turned\u{200b}";
        let mut rollout = Rollout::new("worker", Default::default());
        let mut pool = OfPool::default();
        let draining = BTreeMap::new();
        let missing = [MissingMachine { address: ODD.to_owned(), fetched: String::new() }];
        let now = Timestamp::UNIX_EPOCH;
        let shown = |rollout: &Rollout, pool: &OfPool| {
            let status = status(rollout, pool, (&draining, &missing, None), now);
            let text = serde_json::to_value(&status).unwrap();
            assert!(!texts(&text).chars().any(is_unfit), "{text}");
            assert!(texts(&text).contains("red"), "{text}");
            status
        };
        pool.failing = vec![("node".to_owned(), ODD.to_owned())];
        shown(&rollout, &pool);
        pool.halted = Some(ODD.to_owned());
        shown(&rollout, &pool);
        pool.not_made = Some(("NotRead", ODD.to_owned()));
        let status = shown(&rollout, &pool);
        let rendered = status.conditions.iter().find(|it| it.type_ == "Rendered").unwrap();
        assert!(rendered.message.contains("; forged: line"), "{}", rendered.message);
        // What was cleaned and stands there is not written again.
        rollout.status = Some(status.clone());
        assert_eq!(shown(&rollout, &pool), status);
    }

    /// All texts of a value.
    fn texts(value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            Value::Array(all) => all.iter().map(texts).collect(),
            Value::Object(all) => all.values().map(texts).collect(),
            _ => String::new(),
        }
    }
}
