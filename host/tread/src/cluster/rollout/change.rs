//! What an admin writes into the spec of a Rollout.

use crate::cluster::connect::Cluster;
use crate::cluster::rollouts::{clock, has_failed_for, open_order, updates};
use anyhow::{Result, anyhow};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use tread_console::exit::unless_nobody_reads;
use tread_console::print::{line, warn};
use tread_kube::api::{NodeUpdate, Rollout};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::dated::{shown, time, timestamp};
use tread_kube::metrics::Metrics;
use tread_model::protocol::Time;
use tread_model::text::listed;

/// How many nodes are named.
const NAMED: usize = 5;

/// What is to become of a Rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Pause,
    Resume,
    Retry,
}

/// Makes it, and says what that means: whoever stops reading keeps nothing from being done.
pub(super) async fn make(
    out: &mut impl Write,
    cluster: &Cluster,
    there: &BTreeMap<String, Rollout>,
    pool: &str,
    request: Request,
) -> Result<()> {
    let mut said = Vec::new();
    made(&mut said, cluster, there, pool, request).await?;
    let told = out.write_all(&said).and_then(|()| out.flush());
    unless_nobody_reads(told.map_err(Into::into))
}

async fn made(
    out: &mut impl Write,
    cluster: &Cluster,
    there: &BTreeMap<String, Rollout>,
    pool: &str,
    request: Request,
) -> Result<()> {
    let was_paused = there.get(pool).is_some_and(|rollout| rollout.spec.paused);
    let pool_words = line(pool);
    match request {
        Request::Pause if was_paused => writeln!(out, "{pool_words} is paused already")?,
        Request::Pause => {
            pause(cluster, pool).await?;
            writeln!(out, "{pool_words} is paused: no more nodes are begun")?;
            under_way(out, cluster, pool).await?;
        }
        Request::Resume if !was_paused => writeln!(out, "{pool_words} is not paused")?,
        Request::Resume => {
            patch(cluster, pool, json!({"paused": false})).await?;
            writeln!(out, "{pool_words} goes on")?;
        }
        Request::Retry => retry(out, cluster, (pool, there.get(pool)), was_paused).await?,
    }
    Ok(())
}

/// Begins no more nodes of a pool; gives what is there now.
pub(super) async fn pause(cluster: &Cluster, pool: &str) -> Result<Rollout> {
    patch(cluster, pool, json!({"paused": true})).await
}

async fn under_way(out: &mut impl Write, cluster: &Cluster, pool: &str) -> Result<()> {
    // That it is paused stands, whatever may be listed.
    let updates = updates(cluster).await.unwrap_or_default();
    let of_pool = updates.iter().filter(|(_, it)| it.spec.pool == pool && open_order(it).is_some());
    let names: Vec<String> = of_pool.map(|(name, _)| line(name)).collect();
    match names.as_slice() {
        [] => Ok(()),
        names => Ok(writeln!(out, "  under way, and finished first: {}", listed(names, NAMED))?),
    }
}

async fn retry(
    out: &mut impl Write,
    cluster: &Cluster,
    (pool, before): (&str, Option<&Rollout>),
    is_paused: bool,
) -> Result<()> {
    let now = clock(cluster).await?.asked();
    patch(cluster, pool, json!({"retryFailedBefore": timestamp(now)})).await?;
    let pool_words = line(pool);
    writeln!(
        out,
        "{pool_words}: changes go on that a failed step stopped before {0}, and nodes that failed \
         before {0} are begun again",
        shown(now)
    )?;
    // That stands, whoever may see which ones these are.
    let (before, ahead) = match updates(cluster).await {
        Ok(updates) => failed(&updates, (pool, before), now),
        Err(error) => {
            warn(&format!("which ones is not known: {error}"));
            Default::default()
        }
    };
    if !before.is_empty() {
        writeln!(out, "  {}", listed(&before, NAMED))?;
    }
    for (node, since) in ahead {
        warn(&format!(
            "{node} failed at {since} by its own clock, which is later: it is not begun again by this. If \
             that clock is right, try again in a moment; otherwise set it, and try again after that time"
        ));
    }
    if is_paused {
        writeln!(out, "  {pool_words} is paused: `tread rollout resume {pool_words}`")?;
    }
    Ok(())
}

/// Nodes of a pool that failed before a time, and those that say that it was later, with when.
fn failed(
    updates: &BTreeMap<String, NodeUpdate>,
    (pool, rollout): (&str, Option<&Rollout>),
    now: Time,
) -> (Vec<String>, Vec<(String, String)>) {
    let (mut before, mut ahead) = (Vec::new(), Vec::new());
    for (name, update) in updates.iter().filter(|(_, it)| it.spec.pool == pool) {
        if !rollout.is_some_and(|rollout| has_failed_for(update, rollout, now)) {
            continue;
        }
        match update.failed_at(now).and_then(time) {
            Some(since) if since >= now => ahead.push((line(name), shown(since))),
            _ => before.push(line(name)),
        }
    }
    (before, ahead)
}

async fn patch(cluster: &Cluster, pool: &str, spec: serde_json::Value) -> Result<Rollout> {
    let api: Api<Rollout> = Api::all(cluster.client.clone());
    let (params, patch) = (PatchParams::default(), Patch::Merge(json!({"spec": spec})));
    let asked = api.patch(pool, &params, &patch);
    let done = ask(&Metrics::new(), Call::new("patch", "rollouts"), asked).await;
    done.map_err(|failed| not_written(pool, &failed))
}

fn not_written(pool: &str, failed: &Failed) -> anyhow::Error {
    match (failed.outcome, failed.can_i()) {
        (CallOutcome::Forbidden, Some(asked)) => anyhow!(
            "{failed}: an admin has to grant it to you; `{asked}` says whether it is granted"
        ),
        _ => anyhow!("the Rollout {pool} cannot be changed: {failed}"),
    }
}
