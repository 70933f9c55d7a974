//! Plans that are made together, each once: pools that get the same change, and have the
//! same around it, get the same plan.

use super::question::digests;
use super::sides::Sides;
use crate::policy::{Policy, PolicySet};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use tread_model::diff::{Comparison, unchanged};
use tread_model::digest::Digest;
use tread_model::plan::{Plan, PlannedChange};

/// How many answers all plans together have that are kept, and actions in these.
const ROOM: usize = 20_000;

/// A plan, and what whoever gets it has to know besides.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) plan: Arc<Plan>,
    pub(super) offered_secrets: bool,
}

/// Plans, by what they follow from.
#[derive(Debug, Default)]
pub(super) struct Plans(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    plans: HashMap<Digest, Shared>,
    /// Held, so that no other policy comes to the place of one in memory.
    policies: Vec<Vec<Arc<Policy>>>,
    answers: usize,
}

impl Plans {
    pub(super) fn get(&self, follows_from: &Digest) -> Option<Shared> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.plans.get(follows_from).cloned()
    }

    pub(super) fn put(&self, follows_from: Digest, policies: &PolicySet, shared: &Shared) {
        let answers = shared.plan.changes.iter().map(said_of).sum::<usize>().saturating_add(1);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = kept.answers.saturating_add(answers);
        // On another machine what failed for lack of time may have been in time.
        if taken > ROOM || !shared.plan.reproducible {
            return;
        }
        kept.answers = taken;
        let all = policies.policies();
        let are_all = |held: &Vec<Arc<Policy>>| {
            held.len() == all.len() && held.iter().zip(all).all(|(one, it)| Arc::ptr_eq(one, it))
        };
        if !kept.policies.iter().any(are_all) {
            kept.policies.push(all.to_vec());
        }
        kept.plans.insert(follows_from, shared.clone());
    }
}

/// How many answers to a change are kept with a plan, and actions in these.
fn said_of(change: &PlannedChange) -> usize {
    let given = change.answers.iter().map(|answer| 1 + answer.actions.len());
    1 + change.actions.len() + change.decided.len() + given.sum::<usize>()
}

/// Tells plans apart by all that they are made of, their configs' digests aside. None:
/// that is not known.
pub(super) fn follows_from(
    policies: &PolicySet,
    sides: &Sides<'_, '_>,
    comparison: &Comparison<'_>,
    warnings: &[String],
) -> Option<Digest> {
    let Comparison { changes, refusals, settled, warnings: own, from: _, to: _ } = comparison;
    let all = policies.policies();
    let places: Vec<usize> = all.iter().map(|policy| Arc::as_ptr(policy).addr()).collect();
    // What did not change is offered to those who claim something that did.
    let mut claimants = HashSet::new();
    if all.iter().any(|policy| policy.sees_unchanged()) {
        for change in changes {
            claimants.extend(policies.router().claimants(&change.id).map(|(policy, _)| policy));
        }
    }
    let mut offered = Vec::new();
    for (place, policy) in all.iter().enumerate() {
        if policy.sees_unchanged() && claimants.contains(&place) {
            let entries = unchanged(sides.old, sides.new, |id| policy.wants_unchanged(id));
            offered.push((place, entries.ok()?));
        }
    }
    let made_of = (sides.units.as_ref()?, places, digests(changes), offered);
    Some(Digest::of_value(&(made_of, refusals, settled, own, warnings)))
}
