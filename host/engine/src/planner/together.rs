//! Plans that are made together.

use super::answers::{Answers, Unplanned};
use super::plan::{Planned, plan_compared};
use super::shadow::{Shadows, shadow_remembering};
use crate::policy::PolicySet;
use crate::sandbox::Sandbox;
use std::time::Instant;
use tread_model::config::NodeConfig;
use tread_model::config_digest::{Digests, differences_of_pair, digests_of_pair};
use tread_model::diff::{Comparison, compare_digested};
use tread_model::plan::compare::Shadow;

/// The two configs of a plan.
#[derive(Debug)]
pub struct Sides<'c, 'a> {
    /// What nodes have.
    pub old: &'c NodeConfig<'a>,
    /// What they are to get.
    pub new: &'c NodeConfig<'a>,
    /// What tells their entries apart, where that is known already: as
    /// [`differences_of_pair`] gives it.
    pub differences: Option<(Digests, Digests)>,
}

impl<'c, 'a> From<(&'c NodeConfig<'a>, &'c NodeConfig<'a>)> for Sides<'c, 'a> {
    fn from((old, new): (&'c NodeConfig<'a>, &'c NodeConfig<'a>)) -> Sides<'c, 'a> {
        Sides { old, new, differences: None }
    }
}

/// One of several plans that are made together: as [`super::plan()`], or as
/// [`super::plan_with_shadows`] where there are shadows. No policy is asked what it
/// has answered already. The calls of both plans are in the first one. It is an error
/// where the plan would have more changes than it may, and where nobody waits for it
/// any more.
pub fn plan_together<'c, 'a: 'c>(
    sandbox: &Sandbox,
    policies: &PolicySet,
    shadows: Option<&Shadows>,
    answers: &Answers,
    sides: impl Into<Sides<'c, 'a>>,
    warnings: Vec<String>,
) -> Result<(Planned<'a>, Option<Shadow>), Unplanned> {
    let start = Instant::now();
    answers.check(0)?;
    let Sides { old, new, differences } = sides.into();
    let (from, to) = match (answers.digests(), differences) {
        (true, _) => digests_of_pair(old, new)?,
        (false, Some(known)) => known,
        (false, None) => differences_of_pair(old, new)?,
    };
    let comparison = compare_digested(old, &from, new, &to)?;
    // What the host itself refuses or settles stands in the plan as well.
    let Comparison { changes, refusals, settled, .. } = &comparison;
    answers.check(changes.len() + refusals.len() + settled.len())?;
    let (remembered, sides) = (Some(answers), (old, new));
    let mut planned = plan_compared(sandbox, policies, remembered, sides, comparison, warnings)?;
    planned.comparing = start.elapsed().saturating_sub(planned.asking);
    answers.check(0)?;
    let Some(shadows) = shadows else { return Ok((planned, None)) };
    let sides = ((old, &from), (new, &to));
    let shadow = shadow_remembering(sandbox, shadows, remembered, sides.0, sides.1, &planned.plan)?;
    answers.check(0)?;
    planned.calls.extend(shadow.calls);
    planned.offered_secrets |= shadow.offered_secrets;
    Ok((planned, Some(shadow.made)))
}
