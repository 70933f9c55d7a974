//! What many plans say is held once: where a change is for many pools, it stands in
//! the plans of each, and a warning in those of each cause.

use super::described::Described;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use tread_kube::api::disruption_plan::{PlanBecause, PlanChange, PlanDecider, PlanStep};
use tread_kube::api::shared::Shared;

/// What plans say, each part of it once.
#[derive(Debug, Default)]
pub struct Once(Mutex<Parts>);

#[derive(Debug, Default)]
struct Parts {
    changes: Each<PlanChange>,
    because: Each<PlanBecause>,
    deciders: Each<PlanDecider>,
    steps: Each<PlanStep>,
    warnings: Each<String>,
}

#[derive(Debug)]
struct Each<T>(HashSet<Shared<T>>);

impl<T> Default for Each<T> {
    fn default() -> Each<T> {
        Each(HashSet::new())
    }
}

impl<T: Eq + Hash> Each<T> {
    fn share(&mut self, parts: &mut [Shared<T>]) {
        for part in parts {
            match self.0.get(part) {
                Some(there) => *part = there.clone(),
                None => drop(self.0.insert(part.clone())),
            }
        }
    }

    fn forget(&mut self) {
        self.0.retain(|part| !part.is_alone());
        self.0.shrink_to_fit();
    }
}

impl Once {
    /// Lets plans have what others have already.
    pub fn share(&self, plans: &mut [Described]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for way in plans.iter_mut().flat_map(|plan| &mut plan.status.transitions) {
            all.changes.share(&mut way.changes);
            all.because.share(&mut way.operator_because);
            all.deciders.share(&mut way.deciders);
            all.steps.share(&mut way.steps);
            all.warnings.share(&mut way.warnings);
        }
    }

    /// Forgets what no plan says any more.
    pub fn forget(&self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.changes.forget();
        all.because.forget();
        all.deciders.forget();
        all.steps.forget();
        all.warnings.forget();
    }

    /// How many parts there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        let all = self.0.lock().unwrap();
        all.changes.0.len() + all.because.0.len() + all.steps.0.len() + all.warnings.0.len()
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
            warnings: vec!["lock-out".to_owned().into()],
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
        assert_eq!((once.len(), &plans), (3, &before));
        let at = |plan: &Described| std::ptr::from_ref(&*plan.status.transitions[0].changes[0]);
        assert!(plans.iter().all(|plan| at(plan) == at(&plans[0])));
        let warning =
            |plan: &Described| std::ptr::from_ref(&*plan.status.transitions[0].warnings[0]);
        assert!(plans.iter().all(|plan| warning(plan) == warning(&plans[0])));
        drop(before);
        plans.truncate(1);
        once.forget();
        assert_eq!(once.len(), 3);
        plans.clear();
        once.forget();
        assert_eq!(once.len(), 0);
    }
}
