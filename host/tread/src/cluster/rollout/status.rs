//! How far rollouts are, for a person and for a script.

use crate::cluster::rollouts::{Known, chosen, has_failed_for, open_order, phase_word};
use crate::render::output::ListOutput;
use anyhow::Result;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::io::{self, Write};
use tread_console::print::{json, line, yaml};
use tread_console::table;
use tread_kube::api::rollout::{DrainingNode, NAMED, RolloutStatus};
use tread_kube::api::{NodeUpdate, Rollout};
use tread_kube::dated::time;
use tread_model::protocol::Time;
use tread_model::text::listed;

const HEADS: [&str; 8] =
    ["POOL", "CONFIG", "NODES", "UPDATED", "UNDERWAY", "FAILED", "PAUSED", "MESSAGE"];
/// So many nodes are named in a line.
const IN_A_LINE: usize = 10;

/// Prints the Rollout of a pool, or a line for each.
pub(super) fn print(
    out: &mut impl Write,
    known: &Known,
    pool: Option<&str>,
    output: ListOutput,
) -> Result<()> {
    let asked: Vec<String> = pool.iter().map(|&pool| pool.to_owned()).collect();
    let pools = chosen(&known.rollouts, &asked)?;
    let rollouts = pools.iter().filter_map(|name| known.rollouts.get_key_value(name));
    let rollouts: Vec<(&String, &Rollout)> = rollouts.collect();
    let value = || match (pool, rollouts.as_slice()) {
        (Some(_), [(name, rollout)]) => item(name, rollout),
        (_, all) => {
            json!({"items": all.iter().map(|(name, it)| item(name, it)).collect::<Vec<_>>()})
        }
    };
    match output {
        ListOutput::Json => json(out, &value()),
        ListOutput::Yaml => yaml(out, &value()),
        ListOutput::Human | ListOutput::Wide => match (pool, rollouts.as_slice()) {
            (Some(_), [(name, rollout)]) => Ok(describe(out, known, name, rollout)?),
            (_, all) => {
                let rows = all.iter().map(|(name, rollout)| cells(name, rollout));
                Ok(table::print(out, &table::with_heads(&HEADS, rows))?)
            }
        },
    }
}

fn item(name: &str, rollout: &Rollout) -> Value {
    json!({"pool": name, "isSeen": is_seen(rollout), "spec": rollout.spec, "status": rollout.status})
}

/// Whether the status is of the spec as it is now.
pub(super) fn is_seen(rollout: &Rollout) -> bool {
    let seen = rollout.status.as_ref().and_then(|status| status.observed_generation);
    seen >= rollout.metadata.generation
}

fn cells(name: &str, rollout: &Rollout) -> Vec<String> {
    let status = rollout.status.clone().unwrap_or_default();
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        name.to_owned(),
        or_none(status.target.map(|target| target.name)),
        status.nodes.to_string(),
        status.updated.to_string(),
        status.under_way.to_string(),
        status.failed.to_string(),
        if rollout.spec.paused { "yes" } else { "no" }.to_owned(),
        or_none(status.message),
    ]
}

/// All of it, in words.
fn describe(out: &mut impl Write, known: &Known, name: &str, rollout: &Rollout) -> io::Result<()> {
    let status = rollout.status.clone().unwrap_or_default();
    let pool = line(name);
    let RolloutStatus { nodes, updated, under_way, failed, .. } = status;
    let message = status.message.as_deref().map(line);
    writeln!(
        out,
        "{pool}: {}",
        message.unwrap_or_else(|| "tread says nothing of it yet".to_owned())
    )?;
    if !is_seen(rollout) {
        writeln!(
            out,
            "  not seen yet: what was changed last; if that stays so, see whether `tread serve` runs: \
             `kubectl get pods -A -l app.kubernetes.io/name=tread`"
        )?;
    }
    if let Some(target) = &status.target {
        writeln!(out, "  config: {}", line(&target.name))?;
    }
    writeln!(
        out,
        "  nodes: {nodes}, of which {updated} have it, {under_way} are under way, {failed} failed"
    )?;
    if rollout.spec.paused {
        writeln!(out, "  paused: no node is begun; `tread rollout resume {pool}` goes on")?;
    }
    let now = time(Timestamp::now()).unwrap_or_default();
    for (node, update) in known.updates.iter().filter(|(_, it)| it.spec.pool == name) {
        describe_node(out, (node, update), rollout, now)?;
    }
    if failed > 0 {
        writeln!(out, "  once you saw why: `tread rollout retry {pool}` begins them again")?;
    }
    if !status.next.is_empty() {
        let next: Vec<String> = status.next.iter().map(|node| line(node)).collect();
        writeln!(out, "  next: {}", listed(&next, IN_A_LINE))?;
    }
    for draining in status.draining.iter().take(NAMED) {
        describe_drain(out, draining)?;
    }
    for waiting in status.waiting.iter().take(NAMED) {
        let since = waiting.since.as_ref();
        let since = since.map(|at| format!("; its change waits since {:.0}", at.0));
        let (node, why) = (line(&waiting.node), line(&waiting.why));
        writeln!(out, "  waits: {node}: {why}{}", since.unwrap_or_default())?;
    }
    if status.more_waiting > 0 {
        writeln!(out, "  and {} more wait", status.more_waiting)?;
    }
    for it in &status.missing {
        let (from, at) = (line(&it.address), line(&it.fetched));
        writeln!(
            out,
            "  missing: a machine at {from} fetched the config at {at}, and registered no node"
        )?;
    }
    for condition in &status.conditions {
        let (type_, is) = (line(&condition.type_), line(&condition.status));
        writeln!(out, "  {type_} is {is}: {}", line(&condition.message))?;
    }
    Ok(())
}

/// One that is under way, or failed.
fn describe_node(
    out: &mut impl Write,
    (node, update): (&str, &NodeUpdate),
    rollout: &Rollout,
    now: Time,
) -> io::Result<()> {
    let has_failed = has_failed_for(update, rollout, now);
    if open_order(update).is_none() && !has_failed {
        return Ok(());
    }
    let what = if has_failed { "failed" } else { "under way" };
    writeln!(out, "  {what}: {}: {}", line(node), doing(update))
}

/// One that is being drained, and what keeps it.
fn describe_drain(out: &mut impl Write, draining: &DrainingNode) -> io::Result<()> {
    let (node, left) = (line(&draining.node), draining.pods_left);
    let pods = match left {
        1 => "1 pod has".to_owned(),
        left => format!("{left} pods have"),
    };
    let late = draining.late_since.as_ref();
    let late = late.map(|at| format!("; it takes too long since {:.0}", at.0));
    writeln!(out, "  drains: {node}: {pods} to move{}", late.unwrap_or_default())?;
    for blocked in &draining.blocked {
        writeln!(out, "    {}", line(blocked))?;
    }
    Ok(())
}

/// What a node does now, or why it failed.
pub(super) fn doing(update: &NodeUpdate) -> String {
    let status = update.status.as_ref();
    let said = |text: Option<&String>| text.filter(|text| !text.is_empty()).map(|text| line(text));
    let order = open_order(update);
    let is_said = order.is_none_or(|order| {
        status.and_then(|status| status.operation.as_ref()) == Some(&order.operation)
    });
    let status = status.filter(|_| is_said);
    let parts = [
        phase_word(update),
        said(status.and_then(|status| status.step.as_ref())),
        said(status.and_then(|status| status.message.as_ref())),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
