//! Settling what nodes claim that registered as joining, as the leader.

use super::super::facts::{Facts, Registered};
use super::super::marks::is_of;
use super::binding::{Binding, Wanted};
use super::bound::Bound;
use super::kept::Record;
use super::letting::{Ended, Entry, Letting};
use super::patch::Patch;
use super::refused::Refused;
use super::room::ROOM;
use super::secrets::{KEYS_UNREADABLE, keep_tokens, make_keys};
use super::serving::{Joining, one, registered, seconds};
use super::telling::What;
use futures::{StreamExt as _, stream};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tread_cluster::pools::{Place, Pools, pool_of};
use tread_cluster::previews::Cluster;
use tread_kube::api::NodeUpdate;
use tread_kube::asking::{Backoff, CallOutcome, Failed};
use tread_model::joining::{Id, Joins, Key, Known, Mark, PoolFacts, Settled, Shown, settle};

/// What happens at the same time is settled together.
const TOGETHER: Duration = Duration::from_millis(20);
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
    let mut under_way = UnderWay::default();
    let mut has_failed = false;
    let mut prepares = false;
    let mut updates = joining.known.updates().moments();
    let mut due = Some(Instant::now());
    loop {
        // After a failure nothing that happens meanwhile leads to another look.
        let sooner = |due: Option<Instant>| {
            let soon = Instant::now() + TOGETHER;
            due.map(|due| if has_failed { due } else { due.min(soon) }).or(Some(soon))
        };
        let UnderWay { binding, letting, refused } = &mut under_way;
        tokio::select! {
            // Agents say there what their nodes have.
            Some(_) = updates.next(), if prepares => due = sooner(due),
            Some(()) = changes.next() => due = sooner(due),
            Ok(()) = pools.changed() => due = sooner(due),
            Ok(()) = leads.changed() => due = sooner(due),
            bound = binding.ended() => match bound {
                Ok(wanted) => {
                    backoff.reset();
                    wanted.entries.into_iter().for_each(|entry| letting.begin(&joining, entry));
                    for (name, uid, why) in wanted.held {
                        joining.news.tell(&name, uid, What::Held(why));
                    }
                    // Others may have come meanwhile.
                    due = sooner(due);
                }
                // Somebody else wrote it: the watch has brought that, or brings it.
                Err(failed) if failed.outcome == CallOutcome::Conflict => due = sooner(due),
                Err(failed) => {
                    has_failed = true;
                    due = Some(after(&failed, &mut backoff));
                }
            },
            Some(ended) = letting.ended() => match ended {
                Ended::Joined(node) => {
                    joining.news.tell(&node.name, node.uid, What::Joined(node.pool));
                }
                // The watch may have brought what is newer before that.
                Ended::Left => due = sooner(due),
                // The others join without it.
                Ended::Failed(node, failed) => {
                    let (node, now) = (node.name, Instant::now());
                    tracing::warn!(node, error = %failed, "the node cannot join; it is tried again");
                    refused.again(&node, now);
                    due = due.into_iter().chain(refused.due(now)).min();
                }
            },
            () = maybe(due) => {
                let begun = Instant::now();
                let looked = look(&joining, &mut under_way).await;
                has_failed = looked.is_err();
                due = under_way.due(begun);
                match looked {
                    Ok(waits) => {
                        prepares = waits;
                        if under_way.binding.is_idle() {
                            backoff.reset();
                        }
                    }
                    Err(failed) => due = Some(after(&failed, &mut backoff)),
                }
            }
        }
    }
}

/// What is done for nodes that was begun, and who is tried again.
#[derive(Default)]
struct UnderWay {
    binding: Binding,
    letting: Letting,
    refused: Refused,
}

impl UnderWay {
    /// When more is to be done after a look that began then, whatever else happens.
    fn due(&self, begun: Instant) -> Option<Instant> {
        let record = self.binding.due().filter(|due| *due > begun);
        self.refused.due(begun).into_iter().chain(record).min()
    }
}

/// When the next look is due after a failure.
fn after(failed: &Failed, backoff: &mut Backoff) -> Instant {
    tracing::warn!(error = %failed, "nodes that registered as joining wait");
    Instant::now() + backoff.next_wait()
}

pub(super) async fn maybe(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// A node, and what it registered with.
type Found<'f> = (&'f str, &'f Facts, &'f Registered);

/// Begins what is to be done. Whether nodes wait for their agents.
async fn look(joining: &Joining, under_way: &mut UnderWay) -> Result<bool, Failed> {
    let UnderWay { binding, letting, refused } = under_way;
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
    let Some(record) = binding.newest(record) else { return Ok(false) };
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
    letting.keep(|node| moment.nodes.get(node).map(|it| &*it.version));
    let now = Instant::now();
    refused.keep(|node| moment.nodes.get(node).is_some_and(|it| it.joins.is_some()));
    let found = moment.nodes.iter().filter_map(|(name, facts)| {
        let waits = letting.has(name) || refused.waits(name, now);
        Some((name.as_str(), &**facts, facts.joins.as_deref()?)).filter(|_| !waits)
    });
    let mut found: Vec<Found<'_>> = found.collect();
    if found.is_empty() {
        return Ok(false);
    }
    // Of two with the same claim the first one has it.
    found.sort_by_key(|(name, facts, _)| (facts.created, *name));

    let pool_taints = |pool: &str| moment.rollouts.get(pool).map(|it| &*it.spec.node_taints);
    let entry = |(name, facts, node): Found<'_>, joins: &Joins| {
        let of = Patch {
            uid: &facts.uid,
            version: &facts.version,
            taints: &node.taints,
            labels: &joins.labels,
            pool_taints: pool_taints(&joins.pool).unwrap_or_default(),
        };
        Entry::new(name, &joins.pool, of)
    };
    let is_busy = !binding.is_idle();
    let mut new = Wanted::default();
    let mut prepares = false;
    for (name, facts, node) in found {
        let (is_bound_now, is_new_anothers) = (Cell::new(false), Cell::new(false));
        let by = |id: Id| {
            is_bound_now.set(binding.has(id));
            let known = record.as_ref().and_then(|record| record.bound_by(id));
            is_new_anothers.set(known.is_none() && new.claims.contains_key(&id));
            let bound = known.or(new.claims.get(&id))?;
            let (pool, config) = (bound.pool, bound.config());
            Some(Known { node: bound.node.clone(), pool, config })
        };
        let settled = settled(name, facts, node, keys, by, (&cluster, settings.joining.lasts));
        if is_bound_now.get() {
            continue;
        }
        match settled {
            Settled::Joins(joins) => {
                let is_new = record.as_ref().and_then(|it| it.by(joins.claim)).is_none();
                let was_held = record.as_ref().and_then(|it| it.held(joins.claim)).cloned();
                let has_to_be_bound = is_new || was_held.is_some();
                if has_to_be_bound && is_busy {
                    continue;
                }
                if has_to_be_bound {
                    let bound = Bound::new(name, &facts.uid, joins.config, joins.mark);
                    new.claims.insert(joins.claim, was_held.unwrap_or(bound).held(false));
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
                } else if has_to_be_bound {
                    new.entries.push(entry((name, facts, node), &joins));
                } else {
                    letting.begin(joining, entry((name, facts, node), &joins));
                }
            }
            Settled::Held(why, shown) => {
                let is_known =
                    |it: &Shown| record.as_ref().is_some_and(|r| r.by(it.claim).is_some());
                let shown = shown.filter(|it| !is_known(it));
                if shown.is_none() && !is_new_anothers.get() {
                    joining.news.tell(name, facts.uid.clone(), What::Held(why));
                    continue;
                }
                if is_busy {
                    continue;
                }
                if let Some(Shown { claim, config, pool }) = shown {
                    let bound = Bound::new(name, &facts.uid, config, pool).held(true);
                    new.claims.entry(claim).or_insert(bound);
                }
                new.held.push((name.to_owned(), facts.uid.clone(), why));
            }
        }
    }
    if new.claims.is_empty() {
        return Ok(prepares);
    }
    let times = (seconds(), settings.joining.lasts.as_secs());
    let nodes = Arc::clone(&moment.nodes);
    let is_there = move |node: &str| nodes.contains_key(node);
    let room = record.as_deref().map(|it| it.room(&new.claims, &is_there, times).taken);
    if let Some(record) = record.as_deref().filter(|_| room > Some(ROOM)) {
        for name in without_room(record, &mut new) {
            let uid = moment.nodes.get(&name).map(|it| it.uid.clone()).unwrap_or_default();
            joining.news.tell(&name, uid, What::Waits(CLAIMS_FULL, NO_ROOM.to_owned()));
        }
    }
    // Before any of them joins, or is told of and let in by hand: whoever leads next knows it.
    if !new.claims.is_empty() {
        binding.begin(&settings.acts, record, new, is_there, times);
    }
    Ok(prepares)
}

/// Takes the claims away that are not in the record yet: the nodes of these.
fn without_room(record: &Record, new: &mut Wanted) -> BTreeSet<String> {
    let (known, wait): (_, BTreeMap<Id, Bound>) =
        std::mem::take(&mut new.claims).into_iter().partition(|(id, _)| record.by(*id).is_some());
    new.claims = known;
    let wait: BTreeSet<String> = wait.into_values().map(|bound| bound.node).collect();
    new.entries.retain(|entry| !wait.contains(&entry.name));
    new.held.retain(|(name, ..)| !wait.contains(name));
    wait
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
