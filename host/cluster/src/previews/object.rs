//! From a preview to DisruptionPlans, one for each cause.

use super::compute::{Preview, WayPlan, WayPlanned};
use super::effects;
use super::why::{Why, why};
use super::work::{Part, Way, Work};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeSet;
use tread_kube::api::conditions::{self, Finding};
use tread_kube::api::disruption_plan::{
    Cause, CauseEvent, DisruptionPlanStatus, PlanBecause, PlanChange, PlanStep, Transition,
};
use tread_kube::api::shared::Shared;
use tread_model::digest::{Digest, Fields};
use tread_model::effect::Effect;
use tread_model::operator::Because;
use tread_model::plan::compare::Shadow;
use tread_model::plan::{ChangeOutcome, PlanOutcome, PlannedChange, Step};

/// An object has to stay below 1 MiB, with what others add to it.
const LARGEST: usize = 768 << 10;
/// How many ways an object lists.
const MOST_TRANSITIONS: usize = 20;
/// How many changes a way lists at most.
const MOST_CHANGES: usize = 400;
/// What a column or a summary may have: steps say it in full.
const LONGEST_WORDS: usize = 512;
/// What a warning may have.
const LONGEST_WARNING: usize = 2048;
/// What a name may have before its digest.
const LONGEST_NAME: usize = 200;

/// A DisruptionPlan as it has to be.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Of which pool.
    pub pool: String,
    /// What it is for.
    pub cause: Cause,
    /// The most disruptive thing that will happen.
    pub effect: Effect,
    /// Everything that is known of it; nothing is cut.
    pub status: DisruptionPlanStatus,
    /// The most disruptive thing that will happen on each way, by whoever rolls it
    /// out, and to how many nodes.
    #[serde(skip)]
    pub happens: Vec<(Effect, i64)>,
    /// Why it is not less, on each of these ways.
    #[serde(skip)]
    pub reasons: Vec<Option<String>>,
    /// The names of plans that there are too many of: this one says so.
    #[serde(skip)]
    pub left_out: BTreeSet<String>,
}

/// The plans of a preview: one for each cause that makes a difference, and one
/// for all of them together, if there are several.
pub fn describe(preview: &Preview, inputs: Digest, now: Timestamp) -> Vec<Described> {
    let is_pending = preview.ways.iter().any(|way| match &way.plan {
        Ok(plan) => plan.plan.outcome != PlanOutcome::Nothing,
        Err(_) => true,
    });
    if !is_pending {
        return Vec::new();
    }
    let parts = preview.work.parts.iter().zip(&preview.ids);
    let mut parts: Vec<(Part, Option<&BTreeSet<String>>)> = parts
        .filter(|(_, ids)| ids.as_ref().is_none_or(|ids| !ids.is_empty()))
        .map(|(part, ids)| (part.clone(), ids.as_ref()))
        .collect();
    let has_whole = parts.iter().any(|(_, ids)| ids.is_none());
    match parts.as_mut_slice() {
        // Nothing that is there explains it, so it is told as what it is.
        [] => parts.push((super::causes::whole(&preview.work.pool, CauseEvent::Rollout), None)),
        [(_, ids)] => *ids = None,
        _ if !has_whole => {
            parts.push((super::causes::whole(&preview.work.pool, CauseEvent::Rollout), None));
        }
        _ => {}
    }
    let whole = parts.iter().find(|(part, ids)| ids.is_none() && parts.len() > 1 && is_pool(part));
    let whole = whole.map(|(part, _)| name(&preview.work, &part.cause));
    let others = parts.len();
    let plans = parts.iter().map(|(part, ids)| {
        let together = whole.as_deref().filter(|_| ids.is_some()).map(|whole| (whole, others));
        one(preview, part, *ids, together, inputs, now)
    });
    plans.collect()
}

fn is_pool(part: &Part) -> bool {
    part.cause.kind == tread_kube::api::POOL_KIND
}

fn one(
    preview: &Preview,
    part: &Part,
    ids: Option<&BTreeSet<String>>,
    together: Option<(&str, usize)>,
    inputs: Digest,
    now: Timestamp,
) -> Described {
    let work = &preview.work;
    let together = together.map(|(whole, others)| {
        let others = match others.saturating_sub(2) {
            1 => "1 other pending change".to_owned(),
            others => format!("{others} other pending changes"),
        };
        format!("It is rolled out together with {others}: {whole} says what all of them do.")
    });
    let transitions: Vec<Gone> = preview
        .ways
        .iter()
        .filter(|way| {
            let nothing = |plan: &WayPlan| plan.plan.outcome == PlanOutcome::Nothing;
            !way.plan.as_ref().is_ok_and(nothing)
        })
        .map(|way| {
            let (effect, transition) = transition(work, way, ids, together.as_deref());
            let because = way.plan.as_ref().ok().and_then(|plan| why(plan, ids)).map(Why::text);
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
        cause: Some(part.cause.to_string()),
        effect: None,
        tread: None,
        because: None,
        nodes: None,
        fallbacks: Some(i64::try_from(fallbacks.len()).unwrap_or(i64::MAX)),
        stale: false,
        inputs: Some(inputs.to_string()),
        planned_at: Some(Time(now)),
        transitions_left_out: 0,
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
    /// By whoever rolls it out.
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
        let (words, tread) = match worst.map(|way| &way.transition) {
            Some(way) => match &way.operator {
                Some(operator) => (operator.clone(), Some(way.summary.clone())),
                None => (way.summary.clone(), None),
            },
            None => (Effect::None.to_string(), None),
        };
        self.status.effect = Some(words);
        self.status.tread = tread;
        self.status.because = worst.and_then(|way| way.because.clone());
        self.status.nodes = Some(ways.iter().map(|way| way.transition.nodes.count).sum());
        self.happens = ways.iter().map(|way| (way.effect, way.transition.nodes.count)).collect();
        (self.reasons, self.status.transitions) =
            ways.into_iter().map(|way| (way.because, way.transition)).unzip();
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
            if let Some(way) = ways.iter().find(|way| way.from_name == transition.from) {
                transition.nodes = way.nodes.clone();
            }
        }
        self.goes(gone);
    }
}

fn findings(work: &Work, problem: Option<&String>) -> [Finding; 2] {
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
            message: problem.clone(),
        },
    };
    let (reason, message) = match (work.pool.paused, work.to_name.is_empty()) {
        (true, _) => ("Paused", "The pool is paused: nothing happens until somebody unpauses it."),
        (false, true) => ("NotRendered", "The pool's new config is not rendered yet."),
        (false, false) => ("NotRolledOut", "Its nodes are on their way."),
    };
    let pending = Finding {
        type_: "Pending",
        status: Some(true),
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    [planned, pending]
}

/// A way, and how disruptive it is by whoever rolls it out.
fn transition(
    work: &Work,
    planned: &WayPlanned,
    ids: Option<&BTreeSet<String>>,
    together: Option<&str>,
) -> (Effect, Transition) {
    let mut way = Transition {
        from: planned.way.from_name.clone(),
        to: work.to_name.clone(),
        nodes: planned.way.nodes.clone(),
        ..Transition::default()
    };
    way.warnings.extend(together.map(str::to_owned));
    let WayPlan { plan, operator, shadow } = match &planned.plan {
        Ok(plan) => plan,
        Err(problem) => {
            let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
            way.outcome = "unknown".to_owned();
            way.summary = effects::words(&steps);
            way.operator = work.operated.then(|| "not known".to_owned());
            way.steps = steps.iter().map(PlanStep::from).collect();
            way.effect = Some(Effect::Reboot);
            way.warnings.push(conditions::cut(problem.clone(), LONGEST_WARNING));
            return (Effect::Reboot, way);
        }
    };
    let (effect, words) = effects::of_tread(plan, ids);
    way.outcome = match plan.outcome {
        PlanOutcome::Nothing => "nothing",
        PlanOutcome::Refuse if effect == Effect::Refuse => "refuse",
        PlanOutcome::Refuse | PlanOutcome::Apply => "apply",
    }
    .to_owned();
    way.summary = words;
    way.from_digest = Some(plan.from.to_string());
    way.to_digest = Some(plan.to.to_string());
    way.steps = effects::steps(plan, ids).iter().map(PlanStep::from).collect();
    way.effect = Some(effect);
    // The digest covers all that is rolled out together.
    way.digest = Some(plan.digest.to_string());
    way.reproducible = plan.reproducible;
    let mut own: Vec<&PlannedChange> =
        plan.changes.iter().filter(|change| effects::is_of(ids, &change.id)).collect();
    own.sort_by_cached_key(|change| (std::cmp::Reverse(cost(change)), change.id.clone()));
    way.changes = own.into_iter().map(|change| PlanChange::from(change).into()).collect();
    way.warnings.extend(plan.warnings.iter().cloned());
    if let Some(shadow) = shadow.as_ref().filter(|it| it.differs()) {
        way.warnings.push(conditions::cut(tried(shadow), LONGEST_WARNING));
    }
    let Some(forecast) = operator else { return (effect, way) };
    let (effect, words) = effects::of_operator(forecast, ids);
    way.operator = Some(words);
    let mut because: Vec<&Because> = effects::operators_own(forecast, ids).collect();
    because.sort_by_key(|part| std::cmp::Reverse(part.effect));
    way.operator_because = because.into_iter().map(PlanBecause::from).collect();
    (effect, way)
}

/// What the policies in the mode Shadow would make of a way, and who they are.
fn tried(shadow: &Shadow) -> String {
    let makers: Vec<&str> = shadow.makers().into_iter().collect();
    let who = match makers.as_slice() {
        [] => "the policies in Shadow".to_owned(),
        makers => format!("{}, in Shadow,", makers.join(", ")),
    };
    format!("If {who} decided: {}.", shadow.summary)
}

fn cost(change: &PlannedChange) -> Effect {
    match change.outcome {
        ChangeOutcome::Refused => Effect::Refuse,
        _ => change.actions.iter().map(Step::effect).max().unwrap_or(Effect::None),
    }
}

/// The name of a plan: of its pool and cause, and never that of an earlier plan
/// for the same.
fn name(work: &Work, cause: &Cause) -> String {
    let mut fields = Fields::new("tread plan name 1");
    for text in [&work.pool.uid, &cause.kind, &cause.name, &work.since] {
        fields.field(text.as_bytes());
    }
    fields.field(cause.event.as_str().as_bytes());
    let digest = fields.finish().hex().get(..8).unwrap_or_default().to_owned();
    let kind = match cause.kind.as_str() {
        "MachineConfig" => "mc".to_owned(),
        "MachineConfigPool" => "mcp".to_owned(),
        "ImageContentSourcePolicy" => "icsp".to_owned(),
        "ImageDigestMirrorSet" => "idms".to_owned(),
        "ImageTagMirrorSet" => "itms".to_owned(),
        other => other.to_lowercase(),
    };
    let mut name = format!("{}.{kind}.{}", work.pool.name, cause.name);
    name.truncate(name.floor_char_boundary(LONGEST_NAME));
    let name = name.trim_end_matches(['.', '-']);
    format!("{name}.{digest}")
}

/// The status as it fits into an object: long lists are cut, and say how much is
/// left out. Steps never are: where those of a way are too many for an object,
/// the way as a whole is left out.
pub fn cut(mut status: DisruptionPlanStatus) -> DisruptionPlanStatus {
    let shorten = |words: &mut Option<String>| {
        *words = words.take().map(|words| conditions::cut(words, LONGEST_WORDS));
    };
    shorten(&mut status.effect);
    shorten(&mut status.tread);
    shorten(&mut status.because);
    for way in &mut status.transitions {
        way.summary = conditions::cut(std::mem::take(&mut way.summary), LONGEST_WORDS);
        shorten(&mut way.operator);
        for warning in &mut way.warnings {
            *warning = conditions::cut(std::mem::take(warning), LONGEST_WARNING);
        }
    }
    let left_out = status.transitions.len().saturating_sub(MOST_TRANSITIONS);
    status.transitions.truncate(MOST_TRANSITIONS);
    status.transitions_left_out = i64::try_from(left_out).unwrap_or(i64::MAX);
    let mut most = MOST_CHANGES;
    loop {
        for way in &mut status.transitions {
            let left_out = way.changes.len().saturating_sub(most);
            way.changes.truncate(most);
            way.changes_left_out += i64::try_from(left_out).unwrap_or(i64::MAX);
            let left_out = way.operator_because.len().saturating_sub(most);
            way.operator_because.truncate(most);
            way.operator_because_left_out += i64::try_from(left_out).unwrap_or(i64::MAX);
        }
        let size = serde_json::to_vec(&status).map_or(0, |text| text.len());
        if size <= LARGEST {
            return status;
        }
        match most {
            0 if status.transitions.pop().is_none() => return status,
            0 => status.transitions_left_out = status.transitions_left_out.saturating_add(1),
            _ => most /= 2,
        }
    }
}

#[cfg(test)]
mod tests;
