//! Plans that are made together.

use super::answers::{Answers, Unplanned};
use super::asking::CallRecord;
use super::plan::{Planned, plan_compared};
use super::shadow::{Shadows, shadow_remembering};
use super::shared::{Shared, follows_from};
use super::sides::Sides;
use crate::policy::PolicySet;
use crate::sandbox::Sandbox;
use std::sync::Arc;
use tread_model::config_digest::{differences_of_pair, digests_of_pair};
use tread_model::diff::{Comparison, compare_digested};
use tread_model::plan::Plan;
use tread_model::plan::compare::Shadow;

/// One of several plans that are made together.
#[derive(Debug)]
pub struct Together {
    /// The plan.
    pub plan: Arc<Plan>,
    /// What the policies in the shadow would make of it.
    pub shadow: Option<Shadow>,
    /// Each call of a policy, those in the shadow included.
    pub calls: Vec<CallRecord>,
    /// As [`super::Planned::offered_secrets`].
    pub offered_secrets: bool,
}

/// One of several plans that are made together: as [`super::plan()`], or as
/// [`super::plan_with_shadows`] where there are shadows. No policy is asked what it
/// has answered already. It is an error where the plan would have more changes than it
/// may, and where nobody waits for it any more.
pub fn plan_together<'c, 'a: 'c>(
    sandbox: &Sandbox,
    policies: &PolicySet,
    shadows: Option<&Shadows>,
    answers: &Answers,
    sides: impl Into<Sides<'c, 'a>>,
    warnings: Vec<String>,
) -> Result<Together, Unplanned> {
    answers.check(0)?;
    let mut sides: Sides<'c, 'a> = sides.into();
    let (old, new) = (sides.old, sides.new);
    let (from, to) = match (answers.whole(), sides.differences.take()) {
        (true, _) => digests_of_pair(old, new)?,
        (false, Some(known)) => known,
        (false, None) => differences_of_pair(old, new)?,
    };
    let comparison = compare_digested(old, &from, new, &to)?;
    // What the host itself refuses or settles stands in the plan as well.
    let Comparison { changes, refusals, settled, .. } = &comparison;
    answers.check(changes.len() + refusals.len() + settled.len())?;
    let plans = answers
        .plans()
        .and_then(|plans| Some((plans, follows_from(policies, &sides, &comparison, &warnings)?)));
    if let Some(Shared { plan, offered_secrets }) = plans.and_then(|(plans, key)| plans.get(&key)) {
        return Ok(Together { plan, shadow: None, calls: Vec::new(), offered_secrets });
    }
    let remembered = Some(answers);
    let planned = plan_compared(sandbox, policies, remembered, (old, new), comparison, warnings)?;
    let Planned { plan, changes, mut calls, mut offered_secrets, .. } = planned;
    // The shadow compares anew: what they hold is held once.
    drop(changes);
    answers.check(0)?;
    let plan = Arc::new(plan);
    if let Some((plans, key)) = plans {
        plans.put(key, policies, &Shared { plan: Arc::clone(&plan), offered_secrets });
    }
    let Some(shadows) = shadows.filter(|_| answers.whole()) else {
        return Ok(Together { plan, shadow: None, calls, offered_secrets });
    };
    let sides = ((old, &from), (new, &to));
    let shadow = shadow_remembering(sandbox, shadows, remembered, sides.0, sides.1, &plan)?;
    answers.check(0)?;
    calls.extend(shadow.calls);
    offered_secrets |= shadow.offered_secrets;
    Ok(Together { plan, shadow: Some(shadow.made), calls, offered_secrets })
}
