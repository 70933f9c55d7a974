//! Not more plans than somebody reads: of hundreds of changes that are pending
//! together, those that cost most have plans of their own.

use super::object::Described;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tread_kube::api::POOL_KIND;

/// So many causes of a pool have plans of their own.
pub const MOST_CAUSES: usize = 20;

/// The plans of a pool without those that are too many. The last one, which is
/// that for all changes together, says how many these are.
pub fn few(mut plans: Vec<Described>) -> Vec<Described> {
    let is_whole = plans.last().is_some_and(|plan| plan.cause.kind == POOL_KIND);
    let own = plans.len().saturating_sub(usize::from(is_whole));
    let more = own.saturating_sub(MOST_CAUSES);
    if more == 0 {
        return plans;
    }
    let mut order: Vec<_> =
        plans.iter().take(own).map(|plan| (Reverse(plan.effect), plan.name.clone())).collect();
    order.sort_unstable();
    let left_out: BTreeSet<String> =
        order.into_iter().skip(MOST_CAUSES).map(|(_, name)| name).collect();
    plans.retain(|plan| !left_out.contains(&plan.name));
    if let Some(last) = plans.last_mut() {
        let covered = if is_whole { ": this one says what all of them do" } else { "" };
        let changes = if more == 1 { "change has" } else { "changes have" };
        let said = format!(
            "{more} more pending {changes} no plan of their own, the {MOST_CAUSES} that cost most \
             have{covered}."
        );
        for way in &mut last.status.transitions {
            way.warnings.insert(0, said.clone());
        }
        last.left_out = left_out;
    }
    plans
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_kube::api::DisruptionPlanStatus;
    use tread_kube::api::disruption_plan::{Cause, CauseEvent, Transition};
    use tread_model::effect::Effect;

    fn plan(kind: &str, name: &str, effect: Effect) -> Described {
        Described {
            name: name.to_owned(),
            pool: "worker".to_owned(),
            cause: Cause {
                kind: kind.to_owned(),
                name: name.to_owned(),
                event: CauseEvent::Created,
            },
            effect,
            status: DisruptionPlanStatus {
                transitions: vec![Transition::default()],
                ..DisruptionPlanStatus::default()
            },
            happens: Vec::new(),
            reasons: Vec::new(),
            left_out: BTreeSet::new(),
        }
    }

    fn plans(count: usize) -> Vec<Described> {
        (0..count).map(|n| plan("MachineConfig", &format!("{n:03}"), Effect::None)).collect()
    }

    #[test]
    fn as_many_as_there_is_room_for_stay_as_they_are() {
        let mut all = plans(MOST_CAUSES);
        assert_eq!(few(all.clone()), all);
        all.push(plan(POOL_KIND, "worker", Effect::None));
        assert_eq!(few(all.clone()), all);
    }

    #[test]
    fn those_that_cost_most_stay_and_the_last_one_counts_the_others() {
        let mut all = plans(MOST_CAUSES + 3);
        all.push(plan("MachineConfig", "reboots", Effect::Reboot));
        all.push(plan(POOL_KIND, "worker", Effect::Reboot));
        let left = few(all);
        assert_eq!(left.len(), MOST_CAUSES + 1);
        assert!(left.iter().any(|plan| plan.name == "reboots"));
        let last = left.last().unwrap();
        assert_eq!(last.name, "worker");
        let said = &last.status.transitions[0].warnings[0];
        assert!(said.starts_with("4 more pending changes have no plan of their own"), "{said}");
        assert!(said.ends_with("this one says what all of them do."), "{said}");
        let names: Vec<&str> = last.left_out.iter().map(String::as_str).collect();
        assert_eq!(names, ["019", "020", "021", "022"]);
    }

    #[test]
    fn where_nothing_can_be_told_there_are_no_more_either() {
        let left = few(plans(MOST_CAUSES + 1));
        assert_eq!(left.len(), MOST_CAUSES);
        let said = &left.last().unwrap().status.transitions[0].warnings[0];
        assert!(said.starts_with("1 more pending change has no plan"), "{said}");
    }
}
