//! Changes that are alike stand together, so that what is to be said of forty
//! of them is said once.

use tread_model::effect::Effect;
use tread_model::plan::{ChangeOutcome, Plan, PlannedChange, Step};

/// Changes of which everything but their names is the same.
#[derive(Debug)]
pub(super) struct Group<'p> {
    /// In order of their ids; never empty.
    pub(super) changes: Vec<&'p PlannedChange>,
    /// What to do about them, unless that was said before.
    pub(super) advice: Option<String>,
}

/// All changes of a plan, the most disruptive first.
pub(super) fn groups(plan: &Plan) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for change in &plan.changes {
        let same =
            |group: &&mut Group<'_>| group.changes.first().is_some_and(|it| alike(it, change));
        match groups.iter_mut().find(same) {
            Some(group) => group.changes.push(change),
            None => groups.push(Group { changes: vec![change], advice: None }),
        }
    }
    // Of equal ones those stay in front whose first id comes first.
    groups.sort_by_key(|group| std::cmp::Reverse(group.changes.first().map(|it| weight(it))));
    let mut said: Vec<String> = Vec::new();
    for group in &mut groups {
        let Some(advice) = advice(&group.changes) else { continue };
        let key = group.changes.first().map(|it| generic(it)).unwrap_or_default();
        if !said.contains(&key) {
            said.push(key);
            group.advice = Some(advice);
        }
    }
    groups
}

fn alike(one: &PlannedChange, other: &PlannedChange) -> bool {
    one.outcome == other.outcome
        && one.actions == other.actions
        && one.decided_by == other.decided_by
        && one.reason == other.reason
        && one.instead_of == other.instead_of
        && generic(one) == generic(other)
        && one.answers == other.answers
}

/// A change's advice without its name.
fn generic(change: &PlannedChange) -> String {
    change.advice.as_deref().unwrap_or_default().replace(&change.id, "{}")
}

/// What to do about all of them.
fn advice(changes: &[&PlannedChange]) -> Option<String> {
    let first = changes.first()?;
    let advice = first.advice.as_ref()?;
    match changes.len() {
        1 => Some(advice.clone()),
        _ => Some(advice.replace(&first.id, "each of them")),
    }
}

fn weight(change: &PlannedChange) -> (Effect, u8) {
    let effect = match change.outcome {
        ChangeOutcome::Refused => Effect::Refuse,
        _ => change.actions.iter().map(Step::effect).max().unwrap_or(Effect::None),
    };
    let urgent = match change.outcome {
        ChangeOutcome::Refused | ChangeOutcome::Failed => 2,
        ChangeOutcome::Fallback => 1,
        ChangeOutcome::Decided => 0,
    };
    (effect, urgent)
}
