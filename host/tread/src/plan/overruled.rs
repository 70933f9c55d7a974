//! What would be planned without the admin layer, so that it can be seen what
//! an admin's rule stands in place of.

use anyhow::Result;
use tread_engine::limits::Limits;
use tread_engine::planner;
use tread_engine::sandbox::Sandbox;
use tread_loading::args::PolicyArgs;
use tread_loading::policies::named_below_admin;
use tread_model::plan::{Overruled, Plan, PlannedChange};
use tread_model::read::Side;
use tread_model::verdict::Layer;

/// Notes on each change that an admin decided what would be decided otherwise,
/// where that differs. The plan itself stays as it is: nobody is asked for it
/// who would not be asked anyway.
pub(super) fn note(
    plan: &mut Plan,
    args: &PolicyArgs,
    limits: &Limits,
    sandbox: &Sandbox,
    (old, new): (&Side<'_>, &Side<'_>),
) -> Result<()> {
    if !plan.changes.iter().any(by_admin) {
        return Ok(());
    }
    let (policies, _) = named_below_admin(args, limits)?;
    let others = planner::plan(sandbox, &policies, &old.config, &new.config, Vec::new())?.plan;
    for change in plan.changes.iter_mut().filter(|change| by_admin(change)) {
        let other = others.changes.binary_search_by(|other| other.id.cmp(&change.id));
        let Some(other) = other.ok().and_then(|index| others.changes.get(index)) else { continue };
        if other.outcome == change.outcome && other.actions == change.actions {
            continue;
        }
        change.instead_of = Some(Overruled {
            outcome: other.outcome,
            actions: other.actions.clone(),
            decided_by: other.decided_by.clone(),
            reason: other.reason.clone(),
        });
    }
    Ok(())
}

fn by_admin(change: &PlannedChange) -> bool {
    change.decided_by.as_ref().is_some_and(|policy| policy.layer == Layer::Admin)
}
