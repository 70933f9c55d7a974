//! Settling what nodes claim that registered as joining, as the leader.

use super::super::facts::{Facts, Registered};
use super::super::marks::is_of;
use super::bound::Bound;
use super::kept::{self, Record};
use super::patch::{Patch, patch};
use super::refused::Refused;
use super::room::ROOM;
use super::secrets::{KEYS_UNREADABLE, keep_tokens, make_keys};
use super::serving::{Joining, one, registered, seconds};
use super::telling::What;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch as Written, PatchParams};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tread_cluster::pools::{Place, Pools, pool_of};
use tread_cluster::previews::Cluster;
use tread_kube::api::NodeUpdate;
use tread_kube::api::rollout::NodeTaint;
use tread_kube::asking::{Backoff, Call, CallOutcome, Failed, ask};
use tread_model::joining::{Id, Joins, Key, Known, Mark, PoolFacts, Settled, Shown, settle};

/// What happens at the same time is settled together.
const TOGETHER: Duration = Duration::from_millis(20);
/// How many nodes are let in at a time.
const AT_ONCE: usize = 16;
/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// The word where no claim can be noted.
const CLAIMS_FULL: &str = "ClaimsFull";
const NO_ROOM: &str = "so many nodes have joined by claims that no other one can be noted. Remove Nodes that \
     are gone for good: their claims make room about a day later; or let this one in: tread pools admit NODE \
     --pool POOL";

/// Runs for as long as it is polled.
pub(super) async fn run(joining: Joining) {
    joining.settings.previewer.ready().await;
    let mut changes = stream::select_all([
        joining.known.nodes().moments().map(drop).boxed(),
        joining.known.rollouts().moments().map(drop).boxed(),
        joining.keys.moments().map(drop).boxed(),
        joining.tokens.moments().map(drop).boxed(),
        joining.record.moments().map(drop).boxed(),
    ]);
    let mut pools = joining.settings.previewer.changes();
    let mut leads = joining.settings.leads.watch();
    let mut backoff = Backoff::new(WAITS);
    let mut done = BTreeMap::new();
    let mut refused = Refused::default();
    let mut has_failed = false;
    let mut prepares = false;
    let mut updates = joining.known.updates().moments();
    let mut due = Some(Instant::now());
    loop {
        // Where all of it failed, nothing that happens meanwhile leads to another look.
        let sooner = |due: Option<Instant>| {
            let soon = Instant::now() + TOGETHER;
            due.map(|due| if has_failed { due } else { due.min(soon) }).or(Some(soon))
        };
        tokio::select! {
            // Agents say there what their nodes have.
            Some(_) = updates.next(), if prepares => due = sooner(due),
            Some(()) = changes.next() => due = sooner(due),
            Ok(()) = pools.changed() => due = sooner(due),
            Ok(()) = leads.changed() => due = sooner(due),
            () = maybe(due) => {
                let begun = Instant::now();
                let looked = look(&joining, &mut done, &mut refused).await;
                has_failed = looked.is_err();
                due = refused.due(begun);
                match looked {
                    Ok(waits) => {
                        prepares = waits;
                        backoff.reset();
                    }
                    Err(failed) => {
                        tracing::warn!(error = %failed, "nodes that registered as joining wait");
                        due = Some(Instant::now() + backoff.next_wait());
                    }
                }
            }
        }
    }
}

pub(super) async fn maybe(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// A node, and what it registered with.
type Found<'f> = (&'f str, &'f Facts, &'f Registered);

/// Does what is to be done. `done` has the versions of nodes that were written: the watch brings
/// newer ones.
/// Whether nodes wait for their agents.
async fn look(
    joining: &Joining,
    done: &mut BTreeMap<String, String>,
    refused: &mut Refused,
) -> Result<bool, Failed> {
    let settings = &joining.settings;
    let Some(moment) = joining.known.now() else { return Ok(false) };
    if !settings.leads.now() || moment.has_operators_daemon {
        return Ok(false);
    }
    let cluster = settings.previewer.snapshot();
    let (Some(keys), Some(tokens)) = (joining.keys.now(), joining.tokens.now()) else {
        return Ok(false);
    };
    let keys = one(&keys);
    if keys.is_none() {
        make_keys(&settings.acts).await?;
    }
    keep_tokens(&settings.acts, one(&tokens).as_deref(), &cluster.pools).await?;
    let (Some(keys), Some(record)) = (keys, joining.record()) else { return Ok(false) };
    let keys: &[Key] = match &keys.read {
        Ok(keys) => keys,
        // The Rollouts say so too, and the log.
        Err(why) => {
            for (name, facts) in moment.nodes.iter().filter(|(_, facts)| facts.joins.is_some()) {
                joining.news.tell(
                    name,
                    facts.uid.clone(),
                    What::Waits(KEYS_UNREADABLE, why.clone()),
                );
            }
            return Ok(false);
        }
    };
    done.retain(|node, version| moment.nodes.get(node).is_some_and(|it| it.version == *version));
    let now = Instant::now();
    refused.keep(|node| moment.nodes.get(node).is_some_and(|it| it.joins.is_some()));
    let found = moment.nodes.iter().filter_map(|(name, facts)| {
        let is_done = done.contains_key(name) || refused.waits(name, now);
        Some((name.as_str(), &**facts, facts.joins.as_deref()?)).filter(|_| !is_done)
    });
    let mut found: Vec<Found<'_>> = found.collect();
    if found.is_empty() {
        return Ok(false);
    }
    // Of two with the same claim the first one has it.
    found.sort_by_key(|(name, facts, _)| (facts.created, *name));

    let mut new: BTreeMap<Id, Bound> = BTreeMap::new();
    let mut join = Vec::new();
    let mut prepares = false;
    let mut held = Vec::new();
    for (name, facts, node) in found {
        let by = |id: Id| {
            let bound = record.as_ref().and_then(|record| record.bound_by(id)).or(new.get(&id))?;
            let (pool, config) = (bound.pool, bound.config());
            Some(Known { node: bound.node.clone(), pool, config })
        };
        match settled(name, facts, node, keys, by, (&cluster, settings.joining.lasts)) {
            Settled::Joins(joins) => {
                let is_new = record.as_ref().and_then(|it| it.by(joins.claim)).is_none();
                let was_held = record.as_ref().and_then(|it| it.held(joins.claim)).cloned();
                if is_new || was_held.is_some() {
                    let bound = Bound::new(name, &facts.uid, joins.config, joins.mark);
                    new.insert(joins.claim, was_held.unwrap_or(bound).held(false));
                }
                let update = moment.updates.get(name).filter(|it| is_of(it, &facts.uid));
                // One that registers again may have had other configs since, and its agent is asked
                // for its pool's once it is there.
                let of_claim = record.as_ref();
                let of_claim = of_claim.filter(|it| is_new || it.is_first(joins.claim, &facts.uid));
                let lacks = of_claim.and_then(|it| it.needs_agent(joins.config));
                if lacks.is_some_and(|config| !has(update.map(|it| &**it), config)) {
                    prepares = true;
                    let what = What::Prepares(joins.pool);
                    joining.news.tell(name, facts.uid.clone(), what);
                } else {
                    join.push((name, facts, node, joins));
                }
            }
            Settled::Held(why, shown) => {
                let is_known =
                    |it: &Shown| record.as_ref().is_some_and(|r| r.by(it.claim).is_some());
                if let Some(Shown { claim, config, pool }) = shown.filter(|it| !is_known(it)) {
                    let bound = Bound::new(name, &facts.uid, config, pool).held(true);
                    new.entry(claim).or_insert(bound);
                }
                held.push((name, &facts.uid, why));
            }
        }
    }
    let is_there = |node: &str| moment.nodes.contains_key(node);
    let times = (seconds(), settings.joining.lasts.as_secs());
    if let Some(record) = record.as_deref().filter(|it| it.room(&new, is_there, times).taken > ROOM)
    {
        let wait = without_room(record, &mut new);
        join.retain(|(name, ..)| !wait.contains(*name));
        held.retain(|(name, ..)| !wait.contains(*name));
        for name in wait {
            let uid = moment.nodes.get(&name).map(|it| it.uid.clone()).unwrap_or_default();
            joining.news.tell(&name, uid, What::Waits(CLAIMS_FULL, NO_ROOM.to_owned()));
        }
    }
    // Before any of them joins, or is told of and let in by hand: whoever leads next knows it.
    if !new.is_empty() {
        let bound = kept::bind(&settings.acts, record.as_deref(), &new, is_there, times).await;
        match bound {
            Ok(_) => {}
            // Somebody else wrote it: the watch brings it.
            Err(failed) if failed.outcome == CallOutcome::Conflict => return Ok(prepares),
            Err(failed) => return Err(failed),
        }
    }
    for (name, uid, why) in held {
        joining.news.tell(name, uid.clone(), What::Held(why));
    }
    let rollout = |pool: &str| moment.rollouts.get(pool).map(|it| it.spec.node_taints.as_slice());
    let mut failed = None;
    let letting = join.iter().map(|(name, facts, node, joins)| async {
        let taints = rollout(&joins.pool).unwrap_or_default();
        (
            *name,
            &facts.version,
            &joins.pool,
            let_in(joining, name, facts, node, joins, taints).await,
        )
    });
    let letting: Vec<_> = letting.collect();
    let mut ended = stream::iter(letting).buffer_unordered(AT_ONCE);
    while let Some((name, version, pool, answer)) = ended.next().await {
        match answer {
            // Whoever leads lets it in: this replica too, when it leads again.
            Ok(false) => {}
            Ok(true) => {
                done.insert(name.to_owned(), version.clone());
                let uid = moment.nodes.get(name).map(|it| it.uid.clone()).unwrap_or_default();
                joining.news.tell(name, uid, What::Joined(pool.clone()));
            }
            // Whatever changed it is looked at, as soon as the watch brings it.
            Err(it) if matches!(it.outcome, CallOutcome::Conflict | CallOutcome::Gone) => {
                done.insert(name.to_owned(), version.clone());
            }
            // Somebody does not want this one: the others join without it.
            Err(it) if matches!(it.outcome, CallOutcome::Refused | CallOutcome::Forbidden) => {
                tracing::warn!(node = name, error = %it, "the node cannot join; it is tried again");
                refused.again(name, Instant::now());
            }
            Err(it) => failed = Some(it),
        }
    }
    drop(ended);
    failed.map_or(Ok(prepares), Err)
}

/// Takes the claims away that are not in the record yet: the nodes of these.
fn without_room(record: &Record, new: &mut BTreeMap<Id, Bound>) -> BTreeSet<String> {
    let (known, wait) =
        std::mem::take(new).into_iter().partition(|(id, _)| record.by(*id).is_some());
    *new = known;
    let wait: BTreeMap<Id, Bound> = wait;
    wait.into_values().map(|bound| bound.node).collect()
}

/// Whether a node's agent says that it has a config.
fn has(update: Option<&NodeUpdate>, config: &str) -> bool {
    let current = update.and_then(|it| it.status.as_ref()?.current.as_ref());
    current.is_some_and(|it| it.name == config)
}

fn settled(
    name: &str,
    facts: &Facts,
    node: &Registered,
    keys: &[Key],
    by: impl FnOnce(Id) -> Option<Known>,
    (cluster, lasts): (&Cluster, Duration),
) -> Settled {
    let says = tread_model::joining::Facts {
        node: name,
        registered: registered(facts),
        claim: &node.claim,
        labels: &facts.labels,
    };
    let pool = |mark: Mark| {
        let pool = cluster.pools.values().find(|pool| Mark::of_pool(&pool.uid) == mark)?;
        Some(PoolFacts { name: pool.name.clone(), labels: pool.gives() })
    };
    settle(&says, keys, lasts, by, pool, |labels| place(labels, &cluster.pools))
}

/// The pools that a node with these labels is in; or those that cannot be read, for which no node
/// is in any.
fn place(labels: &BTreeMap<String, String>, pools: &Pools) -> Result<Vec<String>, Vec<String>> {
    match pool_of(labels, pools) {
        Place::Several(all) => Ok(all),
        Place::Unplaced(all) => Err(all),
        place => Ok(place.pool().map(str::to_owned).into_iter().collect()),
    }
}

/// Lets a node in: one patch, onto the version that was settled. Whether it was: not where this
/// replica does not lead any more, as another leader may have begun by other rules.
async fn let_in(
    joining: &Joining,
    name: &str,
    facts: &Facts,
    node: &Registered,
    joins: &Joins,
    taints: &[NodeTaint],
) -> Result<bool, Failed> {
    if !joining.settings.leads.now() {
        return Ok(false);
    }
    let of = Patch {
        uid: &facts.uid,
        version: &facts.version,
        taints: &node.taints,
        labels: &joins.labels,
        pool_taints: taints,
    };
    let acts = &joining.settings.acts;
    let call = Call::new("patch", "nodes");
    let api: Api<Node> = Api::all(acts.client.clone());
    let (params, patch) = (PatchParams::default(), Written::Merge(patch(of)));
    ask(&acts.metrics, call, api.patch(name, &params, &patch)).await?;
    tracing::info!(node = name, pool = joins.pool, "a node has joined");
    Ok(true)
}
