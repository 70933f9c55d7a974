//! One plan: compare, ask, merge.

use super::answers::Answers;
use super::asking::CallRecord;
use super::heard::warnings_of_rules;
use super::round::Round;
use crate::policy::PolicySet;
use crate::sandbox::Sandbox;
use std::time::{Duration, Instant};
use tread_model::change::Change;
use tread_model::config::NodeConfig;
use tread_model::config_digest::{Digests, digests_of_pair};
use tread_model::diff::{Comparison, compare_digested};
use tread_model::plan::{Decided, Plan, Statement, build, warnings_of_units};
use tread_model::problem::Problems;
use tread_model::touch::OwnUnits;

/// A plan, and what making it took.
#[derive(Debug)]
pub struct Planned<'a> {
    /// The plan.
    pub plan: Plan,
    /// The changes that it is for, with contents: for a local terminal only.
    pub changes: Vec<Change<'a>>,
    /// How long digesting and comparing took.
    pub comparing: Duration,
    /// Each call of a policy, in the order in which they were made.
    pub calls: Vec<CallRecord>,
    /// Whether a policy was offered a secret, which it could tell by how long it
    /// took: nobody is told how long this plan took.
    pub offered_secrets: bool,
    pub(super) asking: Duration,
}

/// Plans the way from one config to another.
pub fn plan<'a>(
    sandbox: &Sandbox,
    policies: &PolicySet,
    old: &NodeConfig<'a>,
    new: &NodeConfig<'a>,
    warnings: Vec<String>,
) -> Result<Planned<'a>, Problems> {
    let start = Instant::now();
    let (from, to) = digests_of_pair(old, new)?;
    let mut planned = plan_digested(sandbox, policies, (old, &from), (new, &to), warnings)?;
    planned.comparing = start.elapsed().saturating_sub(planned.asking);
    Ok(planned)
}

/// As [`plan`], for configs whose digests are known: the cost follows the
/// changes, not what the configs hold.
pub fn plan_digested<'a>(
    sandbox: &Sandbox,
    policies: &PolicySet,
    old: (&NodeConfig<'a>, &Digests),
    new: (&NodeConfig<'a>, &Digests),
    warnings: Vec<String>,
) -> Result<Planned<'a>, Problems> {
    let start = Instant::now();
    let comparison = compare_digested(old.0, old.1, new.0, new.1)?;
    let comparing = start.elapsed();
    let sides = (old.0, new.0);
    let planned = plan_compared(sandbox, policies, None, sides, comparison, warnings)?;
    Ok(Planned { comparing, ..planned })
}

/// Plans what differs, and asks nothing that is answered already.
pub(super) fn plan_compared<'a>(
    sandbox: &Sandbox,
    policies: &PolicySet,
    answers: Option<&Answers>,
    sides: (&NodeConfig<'a>, &NodeConfig<'a>),
    comparison: Comparison<'a>,
    warnings: Vec<String>,
) -> Result<Planned<'a>, Problems> {
    let warnings = [warnings, comparison.warnings.clone()].concat();
    let round = Round::new(sandbox, policies, sides, &comparison).remembering(answers);
    let Round { statements, reproducible, calls, offered_secrets, asking, units, .. } =
        round.finished()?;
    let units = || units.get_or_init(|| OwnUnits::of(sides.0, sides.1));
    let of_rules = warnings_of_rules(&comparison, &statements, units);
    let warnings = [warnings, of_rules].concat();
    let decided = decided(&comparison, statements);
    let mut plan = build(
        (comparison.from, comparison.to),
        decided,
        &comparison.refusals,
        warnings,
        reproducible,
    );
    let of_units = warnings_of_units(&plan, &comparison.changes);
    plan.warnings.extend(of_units);
    let (changes, comparing) = (comparison.changes, Duration::ZERO);
    Ok(Planned { plan, changes, comparing, calls, offered_secrets, asking })
}

/// Each change with what was said of it.
pub(super) fn decided<'p>(
    comparison: &Comparison<'_>,
    statements: Vec<Vec<Statement<'p>>>,
) -> Vec<Decided<'p>> {
    let changes = comparison.changes.iter().zip(statements);
    let changes = changes.map(|(change, statements)| Decided {
        id: change.id.clone(),
        edit: change.edit(),
        statements,
        settled: None,
    });
    let settled = comparison.settled.iter().map(|settled| Decided {
        id: settled.id.clone(),
        edit: settled.edit,
        statements: Vec::new(),
        settled: Some(settled.reason.clone()),
    });
    changes.chain(settled).collect()
}
