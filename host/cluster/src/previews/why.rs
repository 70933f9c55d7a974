//! Why something will happen to nodes, by the rules of whoever does it.

use super::effects;
use super::preview::WayPlan;
use std::collections::BTreeSet;
use tread_model::effect::Effect;
use tread_model::plan::{ChangeOutcome, Plan, causes, in_a_cluster};
use tread_model::text::and_more;

/// Why, in words.
pub(super) enum Why {
    /// The change that costs most, who says so, and who could avoid it.
    Change(String),
    /// What is refused, and for what reason.
    Refused(String),
}

impl Why {
    /// The words alone.
    pub(super) fn text(self) -> String {
        match self {
            Why::Change(text) | Why::Refused(text) => text,
        }
    }
}

/// Why some of a plan's changes cost what they cost; None where they cost nothing.
pub(super) fn why(plan: &WayPlan, ids: Option<&BTreeSet<String>>) -> Option<Why> {
    let (worst, _) = effects::effect(plan, ids);
    if worst == Effect::None {
        return None;
    }
    if let Some(forecast) = &plan.operator {
        let own = effects::operators_own(forecast, ids).filter(|part| part.effect == worst);
        let own: Vec<_> = own.collect();
        let first = own.first()?;
        let more = and_more(own.len(), 1);
        return Some(Why::Change(format!("{}{more} ({})", first.id, first.rule)));
    }
    let mut own = Plan::clone(&plan.plan);
    own.changes.retain(|change| effects::is_of(ids, &change.id));
    let is_refused = |outcome| worst == Effect::Refuse && outcome == ChangeOutcome::Refused;
    if let Some(refused) = own.changes.iter().find(|change| is_refused(change.outcome)) {
        return Some(Why::Refused(format!("{}: {}", refused.id, refused.reason)));
    }
    let causes = causes(&own, |effect| effect >= worst);
    let cause = causes.first()?;
    Some(Why::Change(format!("{cause}: {}", in_a_cluster(&cause.way_out()))))
}
