//! From a preview to DisruptionPlans, one for each cause.

use super::causes::Part;
use super::described::Described;
use super::names::plan_name;
use super::preview::{NoPlan, Preview, WayPlanned};
use super::transition::{LONGEST_WORDS, Said, transition};
use super::why::{Why, why};
use super::work::{Way, Work};
use super::{earlier, effects};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use std::borrow::Cow;
use std::collections::BTreeSet;
use tread_kube::api::conditions::{self, Finding};
use tread_kube::api::disruption_plan::{
    Cause, CauseEvent, DisruptionPlanStatus, PlanChange, Transition,
};
use tread_kube::api::shared::Shared;
use tread_kube::clean::clean;
use tread_model::digest::Digest;
use tread_model::effect::Effect;
use tread_model::plan::PlanOutcome;

/// The plans of a preview: one for each cause that makes a difference, and one
/// for all of them together, if there are several.
pub fn describe(preview: &Preview, inputs: Digest, now: Timestamp) -> Vec<Described> {
    let parts = parts(preview);
    let others = parts.len();
    earlier::counted(described(preview, parts, others, (inputs, now)), preview)
}

/// A part of a preview that gets a plan of its own, and the ids of its changes; None: all.
pub(super) type Own<'p> = (Cow<'p, Part>, Option<&'p BTreeSet<String>>);

/// The parts that make a difference, and behind them the whole.
pub(super) fn parts(preview: &Preview) -> Vec<Own<'_>> {
    if !preview.ways.iter().any(is_pending) {
        return Vec::new();
    }
    let parts = preview.work.parts.iter().zip(&preview.ids);
    let mut parts: Vec<Own<'_>> = parts
        .filter(|(_, ids)| ids.as_ref().is_none_or(|ids| !ids.is_empty()))
        .map(|(part, ids)| (Cow::Borrowed(part), ids.as_ref()))
        .collect();
    let has_whole = parts.iter().any(|(_, ids)| ids.is_none());
    let whole = || super::causes::whole(&preview.work.pool, CauseEvent::Rollout);
    match parts.as_mut_slice() {
        // Nothing that is there explains it, so it is told as what it is.
        [] => parts.push((Cow::Owned(whole()), None)),
        [(_, ids)] => *ids = None,
        _ if !has_whole => parts.push((Cow::Owned(whole()), None)),
        _ => {}
    }
    parts
}

/// The plans of some parts, of so many that there are.
pub(super) fn described(
    preview: &Preview,
    parts: Vec<Own<'_>>,
    all: usize,
    made: (Digest, Timestamp),
) -> Vec<Described> {
    let whole = parts.iter().find(|(part, ids)| ids.is_none() && all > 1 && is_pool(part));
    let whole = whole.map(|(part, _)| name(&preview.work, &part.cause));
    let said: Vec<Said> = preview.ways.iter().filter(|way| is_pending(way)).map(Said::of).collect();
    let plans = parts.iter().map(|(part, ids)| {
        let together = whole.as_deref().filter(|_| ids.is_some());
        let together = together.map(|whole| Shared::from(together_with(whole, all)));
        one(preview, (part, *ids), &said, together, made)
    });
    plans.collect()
}

fn is_pending(way: &WayPlanned) -> bool {
    way.plan.as_ref().map_or(true, |plan| plan.plan.outcome != PlanOutcome::Nothing)
}

/// How disruptive a part is, by whoever rolls it out.
pub(super) fn effect(preview: &Preview, ids: Option<&BTreeSet<String>>) -> Effect {
    let pending = preview.ways.iter().filter(|way| is_pending(way));
    let effects = pending.map(|way| match &way.plan {
        Ok(plan) => effects::effect(plan, ids).0,
        Err(_) => Effect::Reboot,
    });
    effects.max().unwrap_or(Effect::None)
}

fn together_with(whole: &str, all: usize) -> String {
    let others = match all.saturating_sub(2) {
        1 => "1 other pending change".to_owned(),
        others => format!("{others} other pending changes"),
    };
    format!("It is rolled out together with {others}: {whole} says what all of them do.")
}

fn is_pool(part: &Part) -> bool {
    part.cause.kind == tread_kube::api::POOL_KIND
}

fn one(
    preview: &Preview,
    (part, ids): (&Part, Option<&BTreeSet<String>>),
    said: &[Said],
    together: Option<Shared<String>>,
    (inputs, now): (Digest, Timestamp),
) -> Described {
    let work = &preview.work;
    let pending = preview.ways.iter().filter(|way| is_pending(way));
    let transitions: Vec<Gone> = pending
        .zip(said)
        .map(|(way, said)| {
            let (effect, transition) = transition(work, way, said, ids, together.clone());
            let because = match &way.plan {
                Ok(plan) => why(plan, ids).map(Why::text),
                Err(problem) => problem.why().lines().next().map(str::to_owned),
            };
            let because = because.map(|because| conditions::cut(clean(&because), LONGEST_WORDS));
            Gone { effect, because, transition }
        })
        .collect();
    let fallback =
        |change: &&Shared<PlanChange>| ["fallback", "failed"].contains(&change.verdict.as_str());
    let fallbacks: BTreeSet<&str> = transitions
        .iter()
        .flat_map(|way| &way.transition.changes)
        .filter(fallback)
        .map(|change| change.id.as_str())
        .collect();
    let mut status = DisruptionPlanStatus {
        observed_generation: Some(1),
        cause: Some(clean(&part.cause.to_string())),
        effect: None,
        tread: None,
        because: None,
        nodes: None,
        fallbacks: Some(i64::try_from(fallbacks.len()).unwrap_or(i64::MAX)),
        stale: false,
        inputs: Some(inputs.to_string()),
        planned_at: Some(Time(now)),
        transitions_left_out: 0,
        drain_blockers: Vec::new(),
        drain_blockers_left_out: 0,
        drain_skipped: None,
        flagged: Vec::new(),
        flagged_left_out: 0,
        conditions: Vec::new(),
        transitions: Vec::new(),
    };
    let problem = preview.ways.iter().find_map(|way| way.plan.as_ref().err());
    for finding in findings(work, problem) {
        conditions::set(&mut status.conditions, finding, 1, now);
    }
    let (name, pool) = (name(work, &part.cause), work.pool.name.clone());
    let mut described = Described {
        name,
        pool,
        cause: part.cause.clone(),
        effect: Effect::None,
        status,
        happens: Vec::new(),
        reasons: Vec::new(),
        left_out: BTreeSet::new(),
    };
    described.goes(transitions);
    described
}

/// A way that nodes go.
struct Gone {
    /// What it costs, by the rules of whoever rolls it out.
    effect: Effect,
    /// Why it is not less.
    because: Option<String>,
    transition: Transition,
}

impl Described {
    /// Takes the ways that nodes go, the most disruptive first.
    fn goes(&mut self, mut ways: Vec<Gone>) {
        ways.sort_by(|one, other| {
            let (a, b) = (&one.transition, &other.transition);
            (other.effect, b.nodes.count, &a.from).cmp(&(one.effect, a.nodes.count, &b.from))
        });
        let worst = ways.first();
        self.effect = worst.map_or(Effect::None, |way| way.effect);
        let beside = worst.map(|way| &way.transition).filter(|way| way.operator.is_some());
        self.status.tread = beside.map(|way| way.summary.clone());
        self.status.because = worst.and_then(|way| way.because.clone());
        self.status.nodes = Some(ways.iter().map(|way| way.transition.nodes.count).sum());
        self.happens = ways.iter().map(|way| (way.effect, way.transition.nodes.count)).collect();
        (self.reasons, self.status.transitions) =
            ways.into_iter().map(|way| (way.because, way.transition)).unzip();
        self.status.effect = Some(self.planned_effect());
    }

    /// What happens to the nodes to which most happens, for a column, as its steps say.
    pub(crate) fn planned_effect(&self) -> String {
        let worst = self.status.transitions.first();
        worst.map_or_else(
            || Effect::None.to_string(),
            |way| way.operator.as_ref().unwrap_or(&way.summary).clone(),
        )
    }

    /// Nodes came, went or moved on; nothing else is another.
    pub fn moved(&mut self, ways: &[Way]) {
        let effects = std::mem::take(&mut self.happens).into_iter().map(|(effect, _)| effect);
        let reasons = std::mem::take(&mut self.reasons);
        let transitions = std::mem::take(&mut self.status.transitions);
        let mut gone: Vec<Gone> = effects
            .zip(reasons)
            .zip(transitions)
            .map(|((effect, because), transition)| Gone { effect, because, transition })
            .collect();
        for Gone { transition, .. } in &mut gone {
            if let Some(way) = ways.iter().find(|way| clean(&way.from_name) == transition.from) {
                transition.nodes = way.nodes.clone();
            }
        }
        self.goes(gone);
    }
}

fn findings(work: &Work, problem: Option<&NoPlan>) -> [Finding; 2] {
    let planned = match problem {
        None => Finding {
            type_: "Planned",
            status: Some(true),
            reason: "Planned".to_owned(),
            message: "Every change was offered to the policies that claim it.".to_owned(),
        },
        Some(problem) => Finding {
            type_: "Planned",
            status: Some(false),
            reason: "CannotBeRead".to_owned(),
            message: clean(problem.why()),
        },
    };
    let (reason, message) = match work.to_name.is_empty() {
        _ if work.pool.paused => {
            ("Paused", "The pool is paused: nothing happens until somebody unpauses it.")
        }
        // Not as above: that a Rollout goes on makes no plan.
        _ if work.rollout_paused => (
            "RolloutPaused",
            "The pool's Rollout is paused: no more nodes are begun until somebody resumes it.",
        ),
        true => ("NotRendered", "The pool's new config is not rendered yet."),
        false => ("NotRolledOut", "Its nodes are on their way."),
    };
    let pending = Finding {
        type_: "Pending",
        status: Some(true),
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    [planned, pending]
}

/// The name of a plan: of its pool and cause, and never that of an earlier plan
/// for the same.
pub(super) fn name(work: &Work, cause: &Cause) -> String {
    plan_name(&work.pool, cause, &work.since)
}

#[cfg(test)]
mod tests;
