//! Whether a plan is more disruptive than `--max` allows, and because of what.

use tread_model::effect::Effect;
use tread_model::plan::{Plan, PlanOutcome, causes};

/// That a plan is more disruptive than `--max`.
#[derive(Debug)]
pub(crate) struct TooDisruptive {
    /// How much it is, and how much was allowed.
    pub(crate) what: String,
    /// Which changes are the cause, and who could make them cost less.
    pub(crate) causes: Vec<String>,
}

impl TooDisruptive {
    pub(super) fn sentence(&self) -> String {
        format!("{}, because of {}", self.what, self.causes.join("; "))
    }
}

pub(super) fn too_disruptive(plan: &Plan, max: Option<Effect>) -> Option<TooDisruptive> {
    let max = max.filter(|max| plan.outcome != PlanOutcome::Refuse && plan.effect > *max)?;
    let causes = causes(plan, |effect| effect > max);
    Some(TooDisruptive {
        what: format!("more disruptive than --max {max}: this plan is a {}", plan.effect),
        causes: causes.iter().map(|cause| format!("{cause}: {}", cause.way_out())).collect(),
    })
}
