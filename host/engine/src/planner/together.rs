//! Plans that are made together.

use super::answers::{Answers, Unplanned};
use super::plan::{Planned, plan_compared};
use super::shadow::{Shadows, shadow_remembering};
use crate::policy::PolicySet;
use crate::sandbox::Sandbox;
use std::time::Instant;
use tread_model::config::NodeConfig;
use tread_model::config_digest::{differences_of_pair, digests_of_pair};
use tread_model::diff::{Comparison, compare_digested};
use tread_model::plan::compare::Shadow;

/// One of several plans that are made together: as [`super::plan()`], or as
/// [`super::plan_with_shadows`] where there are shadows. No policy is asked what it
/// has answered already. The calls of both plans are in the first one. It is an error
/// where the plan would have more changes than it may, and where nobody waits for it
/// any more.
pub fn plan_together<'a>(
    sandbox: &Sandbox,
    policies: &PolicySet,
    shadows: Option<&Shadows>,
    answers: &Answers,
    (old, new): (&NodeConfig<'a>, &NodeConfig<'a>),
    warnings: Vec<String>,
) -> Result<(Planned<'a>, Option<Shadow>), Unplanned> {
    let start = Instant::now();
    answers.check(0)?;
    let (from, to) = match answers.digests() {
        true => digests_of_pair(old, new)?,
        false => differences_of_pair(old, new)?,
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
