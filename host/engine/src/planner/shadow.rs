//! Policies in the shadow: asked like all others, for a plan that nobody
//! carries out.

use super::answers::Answers;
use super::asking::CallRecord;
use super::plan::{Planned, decided, plan_digested};
use super::round::Round;
use crate::policy::PolicySet;
use crate::sandbox::Sandbox;
use std::time::Instant;
use tread_model::config::NodeConfig;
use tread_model::config_digest::{Digests, digests_of_pair};
use tread_model::diff::compare_digested;
use tread_model::plan::compare::{Heard, NOT_ASKED, Shadow, ShadowPolicy, compare};
use tread_model::plan::{GivenAnswer, Plan, build, given_answers};
use tread_model::problem::Problems;

/// Policies to try, beside those that decide.
#[derive(Debug)]
pub struct Shadows {
    /// All policies as if the tried ones decided too.
    pub with: PolicySet,
    /// The tried ones, those that cannot be loaded included.
    pub policies: Vec<ShadowPolicy>,
    /// What an admin should know of them.
    pub warnings: Vec<String>,
}

/// As [`super::plan()`], and what some policies in the shadow would make of it,
/// with the calls that this took. The plan is the same as without them.
pub fn plan_with_shadows<'a>(
    sandbox: &Sandbox,
    policies: &PolicySet,
    shadows: &Shadows,
    old: &NodeConfig<'a>,
    new: &NodeConfig<'a>,
    warnings: Vec<String>,
) -> Result<(Planned<'a>, Shadow, Vec<CallRecord>), Problems> {
    let start = Instant::now();
    let (from, to) = digests_of_pair(old, new)?;
    let mut planned = plan_digested(sandbox, policies, (old, &from), (new, &to), warnings)?;
    planned.comparing = start.elapsed().saturating_sub(planned.asking);
    let (shadow, calls) = shadow(sandbox, shadows, (old, &from), (new, &to), &planned.plan)?;
    Ok((planned, shadow, calls))
}

/// What policies in the shadow would make of `today`, which is the plan
/// without them for the same two configs; and the calls that this took, those
/// of policies that decide today included, because all are asked again.
pub fn shadow(
    sandbox: &Sandbox,
    shadows: &Shadows,
    old: (&NodeConfig<'_>, &Digests),
    new: (&NodeConfig<'_>, &Digests),
    today: &Plan,
) -> Result<(Shadow, Vec<CallRecord>), Problems> {
    let InShadow { made, calls, .. } = shadow_remembering(sandbox, shadows, None, old, new, today)?;
    Ok((made, calls))
}

/// What came of asking for the shadow.
pub(super) struct InShadow {
    pub(super) made: Shadow,
    pub(super) calls: Vec<CallRecord>,
    pub(super) offered_secrets: bool,
}

/// As [`shadow`], and asks nothing that is answered already.
pub(super) fn shadow_remembering(
    sandbox: &Sandbox,
    shadows: &Shadows,
    answers: Option<&Answers>,
    (old, from): (&NodeConfig<'_>, &Digests),
    (new, to): (&NodeConfig<'_>, &Digests),
    today: &Plan,
) -> Result<InShadow, Problems> {
    let Shadows { with, policies, warnings } = shadows;
    let comparison = compare_digested(old, from, new, to)?;
    let round = Round::new(sandbox, with, (old, new), &comparison).remembering(answers);
    let round = round.finished()?;
    let mut heard =
        Heard { policies: policies.clone(), warnings: warnings.clone(), ..Heard::default() };
    for (change, statements) in comparison.changes.iter().zip(&round.statements) {
        let mut answers = given_answers(&change.id, statements);
        answers.retain(|answer| tried(policies, answer));
        answers.extend(not_asked(with, &change.id, policies, &answers));
        answers.sort_by(|a, b| (a.layer, &a.policy).cmp(&(b.layer, &b.policy)));
        if !answers.is_empty() {
            heard.answers.insert(change.id.clone(), answers);
        }
    }
    let Round { statements, reproducible, calls, offered_secrets, .. } = round;
    let changes = decided(&comparison, statements);
    let configs = (comparison.from, comparison.to);
    let would = build(configs, changes, &comparison.refusals, Vec::new(), reproducible);
    Ok(InShadow { made: compare(today, &would, heard), calls, offered_secrets })
}

fn tried(policies: &[ShadowPolicy], answer: &GivenAnswer) -> bool {
    policies.iter().any(|it| it.layer == answer.layer && it.policy == answer.policy)
}

/// Those that claim a change, and are not asked because the admin layer
/// decides on it.
fn not_asked(
    with: &PolicySet,
    id: &str,
    policies: &[ShadowPolicy],
    answers: &[GivenAnswer],
) -> Vec<GivenAnswer> {
    let mut claimants: Vec<usize> = with.router().claimants(id).map(|(policy, _)| policy).collect();
    claimants.dedup();
    let claimants = claimants.into_iter().filter_map(|index| with.policies().get(index));
    let silent = claimants.map(|policy| GivenAnswer {
        policy: policy.identity.policy.clone(),
        layer: policy.identity.layer,
        answer: NOT_ASKED.to_owned(),
        actions: Vec::new(),
        reason: "The admin layer decides on this.".to_owned(),
        counted: false,
    });
    let spoke = |it: &GivenAnswer| {
        answers.iter().any(|other| (other.layer, &other.policy) == (it.layer, &it.policy))
    };
    silent.filter(|it| tried(policies, it) && !spoke(it)).collect()
}
