//! What `kubectl apply` prints of a change, before anything happens: a line for
//! each pool.

use super::compute::{Preview, WayPlan};
use super::effects;
use crate::api::disruption_plan::Cause;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tread_model::effect::Effect;
use tread_model::plan::{Plan, PlanOutcome, causes, in_a_cluster};

/// How many pools are told of.
const MOST_POOLS: usize = 5;

/// What a change does to a pool, in a line.
#[derive(Debug)]
pub struct Line {
    effect: Effect,
    nodes: i64,
    text: String,
    /// What is a secret, and counts as changed.
    secrets: BTreeSet<String>,
}

/// A line for each pool that a change concerns: the most disturbed ones first,
/// five at most, and how many others there are.
pub fn warnings(previews: &[Preview], cause: &Cause) -> Vec<String> {
    lines(previews.iter().filter_map(|preview| line(preview, cause)))
}

/// As [`warnings`], of lines that were made one by one.
pub fn lines(lines: impl IntoIterator<Item = Line>) -> Vec<String> {
    let mut lines: Vec<Line> = lines.into_iter().collect();
    lines.sort_by(|a, b| {
        (Reverse(a.effect), Reverse(a.nodes), &a.text).cmp(&(
            Reverse(b.effect),
            Reverse(b.nodes),
            &b.text,
        ))
    });
    let secrets: BTreeSet<&str> =
        lines.iter().flat_map(|line| &line.secrets).map(String::as_str).collect();
    let secrets = of_secrets(&secrets);
    let left_out = lines.len().saturating_sub(MOST_POOLS);
    let nodes: i64 = lines.iter().skip(MOST_POOLS).map(|line| line.nodes).sum();
    let mut lines: Vec<String> = lines.into_iter().take(MOST_POOLS).map(|line| line.text).collect();
    if left_out > 0 {
        let pools = if left_out == 1 { "pool" } else { "pools" };
        lines.push(format!("tread: and {left_out} more {pools} with {}", counted(nodes)));
    }
    lines.extend(secrets);
    lines
}

/// That secrets count as changed.
fn of_secrets(secrets: &BTreeSet<&str>) -> Option<String> {
    let first = secrets.first()?;
    let more = match secrets.len().saturating_sub(1) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "tread: whether {first}{more} changes is not told, since it is a secret: it counts as new"
    ))
}

/// What a change does to the pool of a preview; None: nothing.
pub fn line(preview: &Preview, cause: &Cause) -> Option<Line> {
    let (effect, nodes, text) = of_pool(preview, cause)?;
    Some(Line { effect, nodes, text, secrets: preview.secrets.clone() })
}

fn of_pool(preview: &Preview, cause: &Cause) -> Option<(Effect, i64, String)> {
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
    let because = because(plan, ids, worst);
    Some((worst, nodes, format!("{who}: {words}{better}{paused}{because}")))
}

/// What will happen by whoever rolls it out.
fn effect(plan: &WayPlan, ids: Option<&BTreeSet<String>>) -> (Effect, String) {
    match &plan.operator {
        Some(forecast) => effects::of_operator(forecast, ids),
        None => effects::of_tread(&plan.plan, ids),
    }
}

/// The change that costs most, who says so, and who could avoid it.
fn because(plan: &WayPlan, ids: Option<&BTreeSet<String>>, worst: Effect) -> String {
    if worst == Effect::None {
        return String::new();
    }
    if let Some(forecast) = &plan.operator {
        let own = forecast.because.iter().filter(|part| {
            part.effect == worst && (part.id == "passwd" || effects::is_of(ids, &part.id))
        });
        let own: Vec<_> = own.collect();
        let Some(first) = own.first() else { return String::new() };
        let more = match own.len().saturating_sub(1) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return format!(", because of {}{more} ({})", first.id, first.rule);
    }
    let mut own = plan.plan.clone();
    own.changes.retain(|change| effects::is_of(ids, &change.id));
    let refused = own.changes.iter().find(|change| {
        worst == Effect::Refuse && change.outcome == tread_model::plan::ChangeOutcome::Refused
    });
    if let Some(refused) = refused {
        return format!(": {}: {}", refused.id, refused.reason);
    }
    match causes(&own, |effect| effect >= worst).first() {
        Some(cause) => format!(", because of {cause}: {}", in_a_cluster(&cause.way_out())),
        None => String::new(),
    }
}

fn counted(nodes: i64) -> String {
    match nodes {
        1 => "1 node".to_owned(),
        nodes => format!("{nodes} nodes"),
    }
}

#[cfg(test)]
mod tests;
