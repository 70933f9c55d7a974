//! Machines that fetched a config to boot with it, and registered no node: the leader tells of
//! those of which nothing was seen for long.

use super::super::events::about;
use super::super::facts::Facts;
use super::fetches::Missing;
use super::kept::{self, Fetched};
use super::run::maybe;
use super::serving::{Joining, one};
use futures::StreamExt as _;
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::api::POOL_KIND;
use tread_kube::api::rollout::{MISSING, MissingMachine};
use tread_kube::api::words::MACHINE_CONFIG_GROUP;
use tread_kube::asking::{Backoff, Failed};
use tread_kube::events::{Note, Reason};
use tread_model::joining::{Claim, Mark};
use tread_model::text::listed;

/// Nodes are not known yet: so long until that is looked at again.
const AGAIN: Duration = Duration::from_secs(1);
/// Nodes that register at the same time are looked at together: those that join are bound by then,
/// which forgets that they were served.
const TOGETHER: Duration = Duration::from_secs(2);
/// How many machines an Event names.
const NAMED: usize = 5;
/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Reports machines that are missing, as the leader, for as long as it is polled.
pub(super) async fn run(joining: Joining) {
    let mut records = joining.record.moments();
    let mut nodes = joining.known.nodes().moments();
    let mut claims = BTreeSet::new();
    let mut leads = joining.settings.leads.watch();
    let mut backoff = Backoff::new(WAITS);
    let mut reported = BTreeSet::new();
    let mut due = Some(Instant::now());
    loop {
        tokio::select! {
            Some(_) = records.next() => due = Some(Instant::now()),
            Some(nodes) = nodes.next() => {
                let now = shown(&joining, &nodes);
                let is_new = now.difference(&claims).next().is_some();
                claims = now;
                if is_new {
                    let soon = Instant::now() + TOGETHER;
                    due = Some(due.map_or(soon, |due| due.min(soon)));
                }
            }
            Ok(()) = leads.changed() => due = Some(Instant::now()),
            () = maybe(due) => {
                due = match look(&joining, &mut reported).await {
                    Ok(next) => {
                        backoff.reset();
                        next.map(|wait| Instant::now() + wait)
                    }
                    Err(failed) => {
                        tracing::warn!(error = %failed, "missing machines cannot be told of");
                        Some(Instant::now() + backoff.next_wait())
                    }
                };
            }
        }
    }
}

/// Reports those that were not reported yet; when the next one will be missing.
async fn look(
    joining: &Joining,
    reported: &mut BTreeSet<String>,
) -> Result<Option<Duration>, Failed> {
    let settings = &joining.settings;
    if !settings.leads.now() {
        reported.clear();
        return Ok(None);
    }
    let Some(record) = joining.record().flatten() else { return Ok(None) };
    let Some(moment) = joining.known.now() else { return Ok(Some(AGAIN)) };
    let now = joining.seconds();
    let lasts = settings.joining.lasts.as_secs();
    let ended = record.fetched().filter(|(_, it)| it.at.saturating_add(lasts) <= now);
    // One that is held has registered: it may be let in by hand, and show its claim no more.
    let shown = shown(joining, &moment.nodes);
    let ended: BTreeSet<&String> = ended.map(|(id, _)| id).chain(record.came(&shown)).collect();
    if !ended.is_empty() {
        kept::forget_fetched(&settings.acts, &ended).await?;
    }
    let patience = settings.joining.registers_within.as_secs();
    let (missing, next) = record.missing(now, patience, &shown);
    let cluster = settings.previewer.snapshot();
    let mut of_pools = Missing::new();
    for pool in cluster.pools.values() {
        let mark = Mark::of_pool(&pool.uid).to_string();
        let of_pool = missing.iter().filter(|(_, it)| it.pool == mark);
        let mut of_pool: Vec<(&String, &Fetched)> = of_pool.copied().collect();
        // The newest first.
        of_pool.sort_by_key(|(id, it)| (std::cmp::Reverse(it.at), *id));
        let new: Vec<_> =
            of_pool.iter().filter(|(id, _)| !reported.contains(*id)).copied().collect();
        if let Some((first, _)) = new.first() {
            let note = Note { reason: Reason::MachinesMissing, warns: true, text: says(&new) };
            tracing::warn!(pool = pool.name, "{}", note.text);
            let version = format!("{MACHINE_CONFIG_GROUP}/v1");
            let about = about(POOL_KIND, &version, &pool.name, &pool.uid);
            settings.events.report_each(&about, &note, first).await?;
            reported.extend(new.iter().map(|(id, _)| (*id).clone()));
        }
        if !of_pool.is_empty() {
            let named = of_pool
                .iter()
                .take(MISSING)
                .map(|(_, it)| MissingMachine { address: it.from.clone(), fetched: time(it.at) });
            of_pools.insert(pool.name.clone(), named.collect());
        }
    }
    reported.retain(|id| missing.iter().any(|(known, _)| *known == id));
    joining.missing.send_if_modified(|known| {
        let is_new = *known != of_pools;
        *known = of_pools;
        is_new
    });
    Ok(next.map(Duration::from_secs))
}

/// The claims of nodes that have not joined, as far as tread signed them.
fn shown(joining: &Joining, nodes: &BTreeMap<String, Arc<Facts>>) -> BTreeSet<String> {
    let keys = joining.keys.now().and_then(|all| one(&all));
    let keys = keys.as_ref().and_then(|held| held.read.as_deref().ok()).unwrap_or_default();
    let claims = nodes.values().filter_map(|facts| {
        let claim = &facts.joins.as_ref()?.claim;
        Claim::read(claim, keys).ok()
    });
    claims.map(|claim| claim.id.to_string()).collect()
}

fn says(missing: &[(&String, &Fetched)]) -> String {
    let each = |(_, it): &(&String, &Fetched)| format!("{} at {}", it.from, time(it.at));
    let each: Vec<String> = missing.iter().map(each).collect();
    let machines = if missing.len() == 1 { "a machine" } else { "machines" };
    format!(
        "{machines} fetched its config to boot with it, and registered no node since: from {}. See their \
         consoles, and kubectl get csr for certificates that wait for somebody's approval",
        listed(&each, NAMED)
    )
}

/// The time, for a person.
fn time(seconds: u64) -> String {
    let at = i64::try_from(seconds).ok().and_then(|it| Timestamp::from_second(it).ok());
    at.map_or_else(String::new, |at| at.to_string())
}
