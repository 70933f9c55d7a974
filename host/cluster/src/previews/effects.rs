//! What a plan does, in the words of the columns: `none`, `reload crio.service`,
//! `drain + reboot`.

use super::preview::WayPlan;
use std::collections::BTreeSet;
use tread_model::effect::Effect;
use tread_model::operator::{Because, Forecast};
use tread_model::plan::{ChangeOutcome, Plan, PlanOutcome, Step};

/// Whether a change belongs to a part.
pub(super) fn is_of(ids: Option<&BTreeSet<String>>, id: &str) -> bool {
    ids.is_none_or(|ids| ids.contains(id))
}

/// The steps that some of a plan's changes cost by themselves; of all of them
/// those of the plan.
pub(super) fn steps(plan: &Plan, ids: Option<&BTreeSet<String>>) -> Vec<Step> {
    match ids {
        None => plan.steps.clone(),
        Some(ids) => plan.steps_of(ids),
    }
}

/// What steps do, for a column.
pub(super) fn words(steps: &[Step]) -> String {
    let words: Vec<String> = steps
        .iter()
        .filter(|step| !matches!(step, Step::Write | Step::Uncordon))
        .map(Step::to_string)
        .collect();
    if words.is_empty() { "none".to_owned() } else { words.join(" + ") }
}

/// What tread does, for a column.
pub(super) fn of_tread(plan: &Plan, ids: Option<&BTreeSet<String>>) -> (Effect, String) {
    let refused = plan
        .changes
        .iter()
        .any(|change| change.outcome == ChangeOutcome::Refused && is_of(ids, &change.id));
    if plan.outcome == PlanOutcome::Refuse && refused {
        return (Effect::Refuse, Effect::Refuse.to_string());
    }
    let steps = steps(plan, ids);
    let effect = steps.iter().map(Step::effect).max().unwrap_or(Effect::None);
    (effect, words(&steps))
}

/// What will happen by whoever rolls it out.
pub(super) fn effect(plan: &WayPlan, ids: Option<&BTreeSet<String>>) -> (Effect, String) {
    match &plan.operator {
        Some(forecast) => of_operator(forecast, ids),
        None => of_tread(&plan.plan, ids),
    }
}

/// What OpenShift's operator does, for a column. What some of the changes cost
/// by themselves is told by its kind.
pub(super) fn of_operator(forecast: &Forecast, ids: Option<&BTreeSet<String>>) -> (Effect, String) {
    // What it rejects it rejects as a whole.
    if ids.is_none() || forecast.effect == Effect::Refuse {
        return (forecast.effect, forecast.summary.clone());
    }
    let effect = operators_own(forecast, ids).map(|part| part.effect).max();
    let effect = effect.unwrap_or(Effect::None);
    let words = match effect {
        Effect::Reboot if forecast.drain => "drain + reboot".to_owned(),
        effect => effect.to_string(),
    };
    (effect, words)
}

/// What the operator counts of some changes.
pub(super) fn operators_own<'f>(
    forecast: &'f Forecast,
    ids: Option<&'f BTreeSet<String>>,
) -> impl Iterator<Item = &'f Because> {
    forecast.because.iter().filter(move |part| is_operators(forecast, ids, &part.id))
}

/// Whether something that the operator counts belongs to these changes. If the operator rejects the
/// config, all that it rejects belongs to them, whichever change is the cause.
pub(super) fn is_operators(forecast: &Forecast, ids: Option<&BTreeSet<String>>, id: &str) -> bool {
    let of_users =
        |id: &str| ["ssh-keys:", "password:", "users:"].iter().any(|kind| id.starts_with(kind));
    match ids {
        _ if forecast.effect == Effect::Refuse => true,
        None => true,
        // The operator looks at all users at once.
        Some(ids) if id == "passwd" => ids.iter().any(|id| of_users(id)),
        Some(ids) => ids.contains(id),
    }
}

#[cfg(test)]
mod tests;
