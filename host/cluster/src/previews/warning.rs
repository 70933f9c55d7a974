//! What `kubectl apply` prints of a change, before anything happens: a line for
//! each pool.

use super::compute::Preview;
use super::effects::{self, effect};
use super::why::{Why, why};
use crate::api::disruption_plan::Cause;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tread_model::effect::Effect;
use tread_model::plan::{Plan, PlanOutcome};
use tread_model::refuse::LOCK_OUT;

/// How many pools are told of.
const MOST_POOLS: usize = 5;

/// A line for each pool that a change concerns: the most disturbed ones first,
/// five at most, and how many others there are.
pub fn warnings(previews: &[Preview], cause: &Cause) -> Vec<String> {
    let mut lines: Vec<(Effect, i64, String)> =
        previews.iter().filter_map(|preview| line(preview, cause)).collect();
    lines.sort_by(|a, b| {
        (Reverse(a.0), Reverse(a.1), &a.2).cmp(&(Reverse(b.0), Reverse(b.1), &b.2))
    });
    let left_out = lines.len().saturating_sub(MOST_POOLS);
    let nodes: i64 = lines.iter().skip(MOST_POOLS).map(|(_, nodes, _)| nodes).sum();
    let mut lines: Vec<String> =
        lines.into_iter().take(MOST_POOLS).map(|(_, _, line)| line).collect();
    if left_out > 0 {
        let pools = if left_out == 1 { "pool" } else { "pools" };
        lines.push(format!("tread: and {left_out} more {pools} with {}", counted(nodes)));
    }
    lines.extend(notes(previews, cause));
    lines
}

/// What there is to know besides of what is applied, and who is locked out by it;
/// each once, with the first pool that it is true of.
fn notes(previews: &[Preview], cause: &Cause) -> Vec<String> {
    let own = format!("{}, ", cause.name);
    let mut seen = BTreeSet::new();
    let mut notes = Vec::new();
    for preview in previews {
        let plans = preview.ways.iter().filter_map(|way| way.plan.as_ref().ok());
        for note in plans.flat_map(|way| &way.plan.warnings) {
            if (note.starts_with(LOCK_OUT) || note.starts_with(&own)) && seen.insert(note) {
                notes.push(format!("tread: pool {}: {note}", preview.work.pool.name));
            }
        }
    }
    notes
}

fn line(preview: &Preview, cause: &Cause) -> Option<(Effect, i64, String)> {
    let parts = preview.work.parts.iter().zip(&preview.ids);
    let mut mine =
        parts.filter(|(part, _)| part.cause.kind == cause.kind && part.cause.name == cause.name);
    let ids = mine.next()?.1.as_ref();
    let pool = &preview.work.pool;
    let nodes: i64 = preview.ways.iter().map(|way| way.way.nodes.count).sum();
    let ways = preview.ways.iter().map(|way| match &way.plan {
        Ok(plan) => (effect(plan, ids).0, Ok(plan)),
        Err(problem) => (Effect::Reboot, Err(problem)),
    });
    let (worst, plan) = ways.max_by_key(|(effect, _)| *effect)?;
    let who = format!("tread: pool {}, {}", pool.name, counted(nodes));
    let plan = match plan {
        Ok(plan) => plan,
        Err(problem) => {
            let first = problem.lines().next().unwrap_or_default();
            return Some((worst, nodes, format!("{who}: count on drain + reboot: {first}")));
        }
    };
    let of_part = |plan: &Plan| plan.changes.iter().any(|change| effects::is_of(ids, &change.id));
    if plan.plan.outcome == PlanOutcome::Nothing || !of_part(&plan.plan) {
        return None;
    }
    let (_, words) = effect(plan, ids);
    let paused = if pool.paused { " (paused: not before it is unpaused)" } else { "" };
    let better = match &plan.operator {
        Some(_) => {
            let (gentler, words) = effects::of_tread(&plan.plan, ids);
            if gentler < worst { format!(" (tread: {words})") } else { String::new() }
        }
        None => String::new(),
    };
    let because = match why(plan, ids) {
        Some(Why::Change(why)) => format!(", because of {why}"),
        Some(Why::Refused(why)) => format!(": {why}"),
        None => String::new(),
    };
    Some((worst, nodes, format!("{who}: {words}{better}{paused}{because}")))
}

fn counted(nodes: i64) -> String {
    match nodes {
        1 => "1 node".to_owned(),
        nodes => format!("{nodes} nodes"),
    }
}

#[cfg(test)]
mod tests;
