//! What `kubectl apply` prints of a change, before anything happens: a line for
//! each pool.

use super::effects::{self, effect};
use super::preview::Preview;
use super::transition::is_grave;
use super::why::{Why, why};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tread_kube::api::disruption_plan::Cause;
use tread_model::effect::Effect;
use tread_model::plan::{Plan, PlanOutcome};
use tread_model::text::and_more;

/// How many pools are named.
const MOST_POOLS: usize = 5;

/// How much there is to know besides: more is in the plan.
const MOST_NOTES: usize = 10;

/// What a change does to a pool, and what there is to know besides.
#[derive(Debug)]
pub struct Line {
    pool: String,
    happens: Option<Happens>,
    /// What is a secret, and counts as changed.
    secrets: BTreeSet<String>,
    /// The gravest first, each once.
    notes: Vec<String>,
}

/// What happens to the nodes of a pool.
#[derive(Debug)]
struct Happens {
    effect: Effect,
    nodes: i64,
    /// Which pool, and how many nodes.
    who: String,
    /// What happens to them, as in a column.
    words: String,
    /// When, and why.
    why: String,
}

impl Happens {
    fn text(&self) -> String {
        format!("{}{}{}", self.who, self.words, self.why)
    }
}

impl Line {
    /// The pool, if something happens to its nodes.
    pub fn concerns(&self) -> Option<&str> {
        self.happens.is_some().then_some(self.pool.as_str())
    }

    /// The pool, if its nodes are drained for it.
    pub fn drains(&self) -> Option<&str> {
        let effect = self.happens.as_ref()?.effect;
        matches!(effect, Effect::Drain | Effect::Reboot).then_some(self.pool.as_str())
    }

    /// Says what happens in other words.
    pub fn reword(&mut self, words: impl FnOnce(&str) -> String) {
        if let Some(happens) = &mut self.happens {
            happens.words = words(&happens.words);
        }
    }
}

/// A line for each pool that a change concerns: the most disturbed ones first,
/// five at most, and how many others there are.
pub fn warnings(previews: &[Preview], cause: &Cause) -> Vec<String> {
    lines(previews.iter().filter_map(|preview| line(preview, cause)))
}

/// As [`warnings`], of lines that were made one by one.
pub fn lines(lines: impl IntoIterator<Item = Line>) -> Vec<String> {
    let lines: Vec<Line> = lines.into_iter().collect();
    let secrets: BTreeSet<&str> =
        lines.iter().flat_map(|line| &line.secrets).map(String::as_str).collect();
    let secrets = of_secrets(&secrets);
    // Each once, with the first pool that it is true of.
    let mut seen = BTreeSet::new();
    let notes = lines.iter().flat_map(|line| line.notes.iter().map(move |note| (note, &line.pool)));
    let (grave, others): (Vec<_>, Vec<_>) =
        notes.filter(|(note, _)| seen.insert(*note)).partition(|(note, _)| is_grave(note));
    let sentences = |notes: Vec<(&String, &String)>| -> Vec<String> {
        notes.iter().map(|(note, pool)| format!("tread: pool {pool}: {note}")).collect()
    };
    let (grave, others) = (sentences(grave), sentences(others));
    let mut happens: Vec<Happens> = lines.into_iter().filter_map(|line| line.happens).collect();
    happens.sort_by_cached_key(|it| (Reverse(it.effect), Reverse(it.nodes), it.text()));
    let left_out = happens.len().saturating_sub(MOST_POOLS);
    let nodes: i64 = happens.iter().skip(MOST_POOLS).map(|it| it.nodes).sum();
    let mut lines: Vec<String> = happens.iter().take(MOST_POOLS).map(Happens::text).collect();
    if left_out > 0 {
        let pools = if left_out == 1 { "pool" } else { "pools" };
        lines.push(format!("tread: and {left_out} more {pools} with {}", counted(nodes)));
    }
    // The API server cuts what is more than it passes on.
    lines.extend(grave);
    lines.extend(secrets);
    lines.extend(others);
    lines
}

/// What there is to know besides of what is applied, and who is locked out by it.
fn notes(preview: &Preview, cause: &Cause) -> Vec<String> {
    let own = format!("{}, ", cause.name);
    let plans = preview.ways.iter().filter_map(|way| way.plan.as_ref().ok());
    let mut seen = BTreeSet::new();
    let notes = plans.flat_map(|way| &way.plan.warnings);
    let notes = notes.filter(|note| is_grave(note) || note.starts_with(&own));
    let mut notes: Vec<&String> = notes.filter(|note| seen.insert(*note)).collect();
    notes.sort_by_key(|note| !is_grave(note));
    notes.into_iter().take(MOST_NOTES).cloned().collect()
}

/// That secrets count as changed.
fn of_secrets(secrets: &BTreeSet<&str>) -> Option<String> {
    let first = secrets.first()?;
    let more = and_more(secrets.len(), 1);
    Some(format!(
        "tread: whether {first}{more} changes is not told, since it is a secret: it counts as new"
    ))
}

/// What a change does to the pool of a preview; None: nothing, and there is
/// nothing to know besides.
pub fn line(preview: &Preview, cause: &Cause) -> Option<Line> {
    let happens = of_pool(preview, cause);
    let notes = notes(preview, cause);
    if happens.is_none() && notes.is_empty() {
        return None;
    }
    let secrets = if happens.is_some() { preview.secrets.clone() } else { BTreeSet::new() };
    Some(Line { pool: preview.work.pool.name.clone(), happens, secrets, notes })
}

fn of_pool(preview: &Preview, cause: &Cause) -> Option<Happens> {
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
            let first = problem.why().lines().next().unwrap_or_default();
            return Some(Happens {
                effect: worst,
                nodes,
                who: format!("{who}: count on "),
                words: "drain + reboot".to_owned(),
                why: format!(": {first}"),
            });
        }
    };
    let of_part = |plan: &Plan| plan.changes.iter().any(|change| effects::is_of(ids, &change.id));
    if plan.plan.outcome == PlanOutcome::Nothing || !of_part(&plan.plan) {
        return None;
    }
    let (_, words) = effect(plan, ids);
    let paused = match (pool.paused, preview.work.rollout_paused) {
        (true, _) => " (paused: not before it is unpaused)",
        (false, true) => " (its Rollout is paused: not before it is resumed)",
        (false, false) => "",
    };
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
    let why = format!("{better}{paused}{because}");
    Some(Happens { effect: worst, nodes, who: format!("{who}: "), words, why })
}

fn counted(nodes: i64) -> String {
    match nodes {
        1 => "1 node".to_owned(),
        nodes => format!("{nodes} nodes"),
    }
}

#[cfg(test)]
pub(super) mod tests;
