//! Settling what nodes claim that registered as joining, as the leader.

use super::super::known::Moment;
use super::binding::{Binding, Wanted};
use super::bound::Bound;
use super::kept::{self, Record};
use super::letting::{Ended, Letting};
use super::refused::Refused;
use super::report::What;
use super::room::ROOM;
use super::secrets::{Held, KEYS_UNREADABLE, keep_tokens, make_keys};
use super::serving::{Joining, one};
use super::sorting::{Found, Sorted, Sorting};
use super::unwritten;
use futures::{StreamExt as _, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tread_cluster::previews::Cluster;
use tread_kube::asking::{Backoff, CallOutcome, Failed};
use tread_model::joining::{Id, KEYS_SECRET, Key, TOKENS_SECRET};

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
        let UnderWay { binding, letting, refused, .. } = &mut under_way;
        tokio::select! {
            // Agents say there what their nodes have.
            Some(_) = updates.next(), if prepares => due = sooner(due),
            Some(()) = changes.next() => due = sooner(due),
            Ok(()) = pools.changed() => due = sooner(due),
            Ok(()) = leads.changed() => due = sooner(due),
            (wanted, bound) = binding.ended() => match bound {
                Ok(()) => {
                    backoff.reset();
                    wanted.entries.into_iter().for_each(|entry| letting.begin(&joining, entry));
                    for (name, uid, what) in wanted.held {
                        joining.news.report(&name, uid, what);
                    }
                    // Others may have come meanwhile.
                    due = sooner(due);
                }
                // Somebody else wrote it: the watch has brought that, or brings it.
                Err(failed) if failed.outcome == CallOutcome::Conflict => due = sooner(due),
                Err(failed) => {
                    tell_unbound(&joining, wanted, &failed);
                    has_failed = true;
                    due = Some(after(&failed, &mut backoff));
                }
            },
            Some(ended) = letting.ended() => match ended {
                Ended::Joined(node) => {
                    joining.news.report(&node.name, node.uid, What::Joined(node.pool));
                }
                // The watch may have brought what is newer before that.
                Ended::Left => due = sooner(due),
                // The others join without it.
                Ended::Failed(node, failed) => {
                    let (name, now) = (node.name, Instant::now());
                    tracing::warn!(node = name, error = %failed, "the node cannot join; it is tried again");
                    refused.again(&name, now);
                    if let Some(what) = unwritten::of_node(&failed, &node.pool) {
                        joining.news.report(&name, node.uid, what);
                    }
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
    /// Of the Secret with tokens alone: no node waits for it.
    tokens: Refused,
}

impl UnderWay {
    /// When more is to be done after a look that began then, whatever else happens.
    fn due(&self, begun: Instant) -> Option<Instant> {
        let record = self.binding.due().filter(|due| *due > begun);
        let others = self.tokens.due(begun).into_iter().chain(record);
        self.refused.due(begun).into_iter().chain(others).min()
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

/// Begins what is to be done. Whether nodes wait for their agents.
async fn look(joining: &Joining, under_way: &mut UnderWay) -> Result<bool, Failed> {
    let UnderWay { binding, letting, refused, tokens } = under_way;
    let settings = &joining.settings;
    let Some(moment) = joining.known.now() else { return Ok(false) };
    if !settings.leads.now() || moment.has_operators_daemon {
        return Ok(false);
    }
    let cluster = settings.previewer.snapshot();
    tokens_of(joining, &cluster, tokens).await;
    let Some(keys) = keys(joining, &moment).await? else { return Ok(false) };
    let Some(record) = joining.record().and_then(|record| binding.newest(record)) else {
        return Ok(false);
    };
    let keys = match &keys.read {
        Ok(keys) => keys,
        Err(why) => {
            nobody_joins(joining, &moment, &What::Waits(KEYS_UNREADABLE, why.clone()));
            return Ok(false);
        }
    };
    letting.keep(|node| moment.nodes.get(node).map(|it| &*it.version));
    refused.keep(|node| moment.nodes.get(node).is_some_and(|it| it.joins.is_some()));
    let now = Instant::now();
    let found = found(&moment, |node| letting.has(node) || refused.waits(node, now));
    if found.is_empty() {
        return Ok(false);
    }
    let sorting = Sorting {
        joining,
        moment: &moment,
        cluster: &cluster,
        keys,
        record: record.as_deref(),
        binding,
    };
    let Sorted { bind, join, prepares } = sorting.all(found);
    join.into_iter().for_each(|entry| letting.begin(joining, entry));
    begin_to_bind(joining, binding, &moment, record, bind);
    Ok(prepares)
}

/// The keys of claims. They are made where there are none yet: then nobody joins before the watch
/// shows them.
async fn keys(joining: &Joining, moment: &Moment) -> Result<Option<Arc<Held<Vec<Key>>>>, Failed> {
    let Some(keys) = joining.keys.now() else { return Ok(None) };
    let keys = one(&keys);
    if keys.is_none() {
        let made = make_keys(&joining.settings.acts).await;
        let object = format!("the Secret {KEYS_SECRET}");
        let told = made.as_ref().err().and_then(|failed| unwritten::of_object(failed, &object));
        if let Some(what) = told {
            nobody_joins(joining, moment, &what);
        }
        made?;
    }
    Ok(keys)
}

/// Keeps the tokens of pools. Where that fails no node waits for it: it is tried again later.
async fn tokens_of(joining: &Joining, cluster: &Cluster, failed: &mut Refused) {
    let Some(tokens) = joining.tokens.now() else { return };
    if failed.waits(TOKENS_SECRET, Instant::now()) {
        return;
    }
    let acts = &joining.settings.acts;
    match keep_tokens(acts, one(&tokens).as_deref(), &cluster.pools).await {
        Ok(()) => failed.keep(|_| false),
        Err(error) => {
            tracing::warn!(%error, "the tokens of pools cannot be written; it is tried again");
            failed.again(TOKENS_SECRET, Instant::now());
        }
    }
}

/// Tells all nodes that register as joining why nobody joins. Of keys that cannot be read the Rollouts
/// tell too, and the log.
fn nobody_joins(joining: &Joining, moment: &Moment, what: &What) {
    for (name, facts) in moment.nodes.iter().filter(|(_, facts)| facts.joins.is_some()) {
        joining.news.report(name, facts.uid.clone(), what.clone());
    }
}

/// Tells nodes whose claims could not be bound why they wait.
fn tell_unbound(joining: &Joining, wanted: Wanted, failed: &Failed) {
    let object = format!("the ConfigMap {}", kept::NAME);
    let Some(what) = unwritten::of_object(failed, &object) else { return };
    let joins = wanted.entries.into_iter().map(|entry| (entry.name, entry.uid));
    let held = wanted.held.into_iter().map(|(name, uid, _)| (name, uid));
    for (name, uid) in joins.chain(held) {
        joining.news.report(&name, uid, what.clone());
    }
}

/// The nodes that registered as joining, but for those that wait: of two with the same claim the first
/// one has it.
fn found(moment: &Moment, waits: impl Fn(&str) -> bool) -> Vec<Found<'_>> {
    let found = moment.nodes.iter().filter_map(|(name, facts)| {
        let registered = facts.joins.as_deref()?;
        (!waits(name)).then_some(Found { name, facts, registered })
    });
    let mut found: Vec<Found<'_>> = found.collect();
    found.sort_by_key(|it| (it.facts.created, it.name));
    found
}

/// Begins to bind claims, as many as there is room for. That comes before their nodes join, or are
/// reported as held and may be let in by hand, so that the next leader knows of it.
fn begin_to_bind(
    joining: &Joining,
    binding: &mut Binding,
    moment: &Moment,
    record: Option<Arc<Record>>,
    mut bind: Wanted,
) {
    if bind.claims.is_empty() {
        return;
    }
    let times = (joining.seconds(), joining.settings.joining.lasts.as_secs());
    let nodes = Arc::clone(&moment.nodes);
    let is_there = move |node: &str| nodes.contains_key(node);
    let room = record.as_deref().map(|it| it.room(&bind.claims, &is_there, times).taken);
    if let Some(record) = record.as_deref().filter(|_| room > Some(ROOM)) {
        for name in without_room(record, &mut bind) {
            let uid = moment.nodes.get(&name).map(|it| it.uid.clone()).unwrap_or_default();
            joining.news.report(&name, uid, What::Waits(CLAIMS_FULL, NO_ROOM.to_owned()));
        }
    }
    if !bind.claims.is_empty() {
        binding.begin(&joining.settings.acts, record, bind, is_there, times);
    }
}

/// Removes the claims that are not in the record yet, and returns the nodes that they are of.
fn without_room(record: &Record, new: &mut Wanted) -> BTreeSet<String> {
    let (known, wait): (_, BTreeMap<Id, Bound>) =
        std::mem::take(&mut new.claims).into_iter().partition(|(id, _)| record.by(*id).is_some());
    new.claims = known;
    let wait: BTreeSet<String> = wait.into_values().map(|bound| bound.node).collect();
    new.entries.retain(|entry| !wait.contains(&entry.name));
    new.held.retain(|(name, ..)| !wait.contains(name));
    wait
}
