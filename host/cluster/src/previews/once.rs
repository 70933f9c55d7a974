//! What many plans say of the same change is held once: where a change is for many
//! pools, it stands in the plans of each.

use super::object::Described;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use tread_kube::api::disruption_plan::PlanChange;
use tread_kube::api::shared::Shared;

/// What plans say of changes, each once.
#[derive(Debug, Default)]
pub struct Once(Mutex<HashSet<Shared<PlanChange>>>);

impl Once {
    /// Lets plans have what others have already.
    pub fn share(&self, plans: &mut [Described]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ways = plans.iter_mut().flat_map(|plan| &mut plan.status.transitions);
        for change in ways.flat_map(|way| &mut way.changes) {
            match all.get(change) {
                Some(there) => *change = there.clone(),
                None => drop(all.insert(change.clone())),
            }
        }
    }

    /// Forgets what no plan says any more.
    pub fn forget(&self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|change| !change.is_alone());
        all.shrink_to_fit();
    }

    /// How many there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tread_kube::api::DisruptionPlanStatus;
    use tread_kube::api::disruption_plan::{Cause, CauseEvent, Transition};
    use tread_model::effect::Effect;

    fn plan(pool: &str, ids: &[&str]) -> Described {
        let change = |id: &&str| PlanChange {
            id: (*id).to_owned(),
            edit: "added".to_owned(),
            verdict: "fallback".to_owned(),
            actions: Vec::new(),
            policy: None,
            reason: "nobody answers".to_owned(),
            advice: None,
        };
        let way = Transition {
            changes: ids.iter().map(|id| change(id).into()).collect(),
            ..Transition::default()
        };
        let (kind, name) = ("MachineConfig".to_owned(), "a".to_owned());
        Described {
            name: format!("{pool}.mc.a"),
            pool: pool.to_owned(),
            cause: Cause { kind, name, event: CauseEvent::Created },
            effect: Effect::Reboot,
            status: DisruptionPlanStatus {
                transitions: vec![way],
                ..DisruptionPlanStatus::default()
            },
            happens: Vec::new(),
            reasons: Vec::new(),
            left_out: BTreeSet::new(),
        }
    }

    #[test]
    fn a_change_that_many_pools_get_is_held_once_and_goes_with_the_last_of_them() {
        let once = Once::default();
        let mut plans: Vec<Described> =
            (0..50).map(|pool| plan(&format!("pool-{pool}"), &["a", "b"])).collect();
        let before = plans.clone();
        for plan in &mut plans {
            once.share(std::slice::from_mut(plan));
        }
        assert_eq!((once.len(), &plans), (2, &before));
        let at = |plan: &Described| std::ptr::from_ref(&*plan.status.transitions[0].changes[0]);
        assert!(plans.iter().all(|plan| at(plan) == at(&plans[0])));
        drop(before);
        plans.truncate(1);
        once.forget();
        assert_eq!(once.len(), 2);
        plans.clear();
        once.forget();
        assert_eq!(once.len(), 0);
    }
}
