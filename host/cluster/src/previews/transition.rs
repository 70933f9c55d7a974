//! What is said of a way that nodes go. What several plans say of it is held once.

use super::effects;
use super::preview::{WayPlan, WayPlanned};
use super::work::Work;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tread_kube::api::conditions::cut;
use tread_kube::api::disruption_plan::{
    PlanBecause, PlanChange, PlanDecider, PlanStep, Transition,
};
use tread_kube::api::shared::Shared;
use tread_kube::clean::{clean, cleaned};
use tread_model::effect::Effect;
use tread_model::operator::{Because, Forecast};
use tread_model::plan::compare::Shadow;
use tread_model::plan::{ChangeOutcome, PlanOutcome, PlannedChange, Step};

/// What a column or a summary may have: steps say it in full.
pub(super) const LONGEST_WORDS: usize = 512;
/// How many warnings a way has, and how long one is.
pub(super) const MOST_WARNINGS: usize = 20;
const LONGEST_WARNING: usize = 1024;

/// What is said of a way, whichever plan says it.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The costliest first.
    changes: Vec<Shared<PlanChange>>,
    /// By the operator, the costliest first.
    because: Vec<Shared<PlanBecause>>,
    /// The gravest first.
    warnings: Vec<Shared<String>>,
    /// How many there are besides.
    more_warnings: usize,
}

impl Said {
    pub(super) fn of(planned: &WayPlanned) -> Said {
        let WayPlan { plan, operator, shadow } = match &planned.plan {
            Ok(plan) => plan,
            Err(problem) => {
                let warnings = vec![warning(problem.to_string())];
                return Said { warnings, ..Said::default() };
            }
        };
        let mut changes: Vec<&PlannedChange> = plan.changes.iter().collect();
        changes.sort_by_key(|change| (Reverse(cost(change)), &change.id));
        let mut because: Vec<_> = operator.iter().flat_map(|forecast| &forecast.because).collect();
        because.sort_by_key(|part| Reverse(part.effect));
        let tried = shadow.as_ref().filter(|it| it.differs()).map(tried);
        let (first, others): (Vec<&String>, Vec<&String>) =
            plan.warnings.iter().partition(|it| is_grave(it));
        let own = others.into_iter().cloned();
        let warnings = first.into_iter().cloned().chain(tried).chain(own);
        let mut warnings: Vec<String> = warnings.collect();
        let more_warnings = warnings.len().saturating_sub(MOST_WARNINGS);
        warnings.truncate(MOST_WARNINGS);
        let said = |change: &PlannedChange| {
            let mut said = PlanChange::from(change);
            if let Some(names) = shadow.as_ref().and_then(|it| claimed_in_shadow(it, change)) {
                said.reason =
                    format!("{} In Shadow, where it decides nothing: {names}.", said.reason);
            }
            if let (Some(advice), Some(forecast)) = (&mut said.advice, operator) {
                advice.push_str(&beside_the_operator(forecast, &change.id));
            }
            cleaned(said).into()
        };
        Said {
            changes: changes.into_iter().map(said).collect(),
            because: because.into_iter().map(|it| cleaned(PlanBecause::from(it)).into()).collect(),
            warnings: warnings.into_iter().map(warning).collect(),
            more_warnings,
        }
    }
}

/// Whether a warning is told before all others.
pub(super) fn is_grave(warning: &str) -> bool {
    warning.starts_with(tread_model::refuse::LOCK_OUT)
}

fn warning(text: String) -> Shared<String> {
    cut(clean(&text), LONGEST_WARNING).into()
}

/// A way, and how disruptive it is by whoever rolls it out.
pub(super) fn transition(
    work: &Work,
    planned: &WayPlanned,
    said: &Said,
    ids: Option<&BTreeSet<String>>,
    together: Option<Shared<String>>,
) -> (Effect, Transition) {
    let mut way = Transition {
        from: clean(&planned.way.from_name),
        to: clean(&work.to_name),
        nodes: planned.way.nodes.clone(),
        warnings: together.into_iter().chain(said.warnings.iter().cloned()).collect(),
        warnings_left_out: i64::try_from(said.more_warnings).unwrap_or(i64::MAX),
        ..Transition::default()
    };
    let shared =
        |steps: &[Step]| steps.iter().map(|it| cleaned(PlanStep::from(it)).into()).collect();
    let WayPlan { plan, operator, .. } = match &planned.plan {
        Ok(plan) => plan,
        Err(_) => {
            let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
            way.outcome = "unknown".to_owned();
            way.summary = effects::words(&steps);
            way.operator = work.operated.then(|| "not known".to_owned());
            way.steps = shared(&steps);
            way.effect = Some(Effect::Reboot);
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
    way.summary = cut(clean(&words), LONGEST_WORDS);
    way.from_digest = Some(plan.from.to_string());
    way.to_digest = Some(plan.to.to_string());
    way.steps = shared(&effects::steps(plan, ids));
    way.effect = Some(effect);
    // The digest covers all that is rolled out together.
    way.digest = Some(plan.digest.to_string());
    way.deciders = plan.deciders.iter().map(|it| cleaned(PlanDecider::from(it)).into()).collect();
    way.reproducible = plan.reproducible;
    let changes = said.changes.iter().filter(|change| effects::is_of(ids, &change.id));
    way.changes = changes.cloned().collect();
    let Some(forecast) = operator else { return (effect, way) };
    let (effect, words) = effects::of_operator(forecast, ids);
    way.operator = Some(cut(clean(&words), LONGEST_WORDS));
    let because = said.because.iter().filter(|it| effects::is_operators(forecast, ids, &it.id));
    way.operator_because = because.cloned().collect();
    (effect, way)
}

/// Who claims a change in the mode Shadow that nobody else claims.
fn claimed_in_shadow(shadow: &Shadow, change: &PlannedChange) -> Option<String> {
    if change.outcome != ChangeOutcome::Fallback {
        return None;
    }
    let tried = shadow.changes.iter().find(|it| it.id == change.id)?;
    let names: BTreeSet<&str> = tried.answers.iter().map(|it| it.policy.as_str()).collect();
    let claims = |name: &&str| format!("{name} claims this");
    (!names.is_empty()).then(|| names.iter().map(claims).collect::<Vec<_>>().join(", "))
}

/// A sentence on what advice for tread's policies does not change, and on what would change it.
fn beside_the_operator(forecast: &Forecast, id: &str) -> String {
    let reboots = |it: &Because| it.id == id && it.effect >= Effect::Drain;
    let is_its = ["file:", "unit:"].iter().any(|kind| id.starts_with(kind));
    match is_its && forecast.because.iter().any(reboots) {
        true => {
            " That changes what tread would do (TREAD). What OpenShift's operator does (EFFECT) \
                 is changed by an entry of nodeDisruptionPolicy: `tread policy rules \
                 --to-openshift` makes one of rules."
                .to_owned()
        }
        false => " That changes what tread would do (TREAD), not what OpenShift's operator does \
                  (EFFECT)."
            .to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::previews::warning::tests::preview;
    use std::sync::Arc;
    use tread_model::refuse::LOCK_OUT;

    #[test]
    fn of_many_warnings_the_gravest_come_first_and_the_others_are_counted() {
        let mut preview = preview("worker", 3, true, None);
        let planned = &mut preview.ways[0];
        let plan = Arc::make_mut(&mut planned.plan.as_mut().unwrap().plan);
        plan.warnings = (0..50).map(|n| format!("99-a, note {n}: {}", "x".repeat(5000))).collect();
        plan.warnings.push(format!("{LOCK_OUT}core"));
        let said = Said::of(planned);
        assert_eq!(said.warnings[0].as_str(), "lock-out: core");
        assert!(said.warnings[1].starts_with("99-a, note 0"), "{:?}", said.warnings);
        assert!(said.warnings.iter().all(|it| it.len() <= LONGEST_WARNING));
        assert_eq!((said.warnings.len(), said.more_warnings), (MOST_WARNINGS, 31));
    }
}
