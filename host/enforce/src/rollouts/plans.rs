//! What it takes to bring nodes from what they have to what their pool is to have.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_cluster::plans::Previewer;
use tread_model::digest::Digest;
use tread_model::plan::{PlanOutcome, Step, VerifiablePlan};
use tread_model::protocol::Disrupts;

/// Two rendered configs: what nodes have, and what they are to get.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FromTo {
    pub(crate) from: String,
    pub(crate) pool: String,
    pub(crate) to: String,
}

/// What it takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Planned {
    /// It is being planned.
    NotYet,
    /// It cannot be planned now, and why.
    Failed(String),
    /// The change must not be applied, and why.
    Refused(String),
    /// This plan. Without one, the plan that is always allowed: drain, write, reboot, uncordon.
    Ready(Disrupts, Option<Arc<Value>>),
    /// The plan that is always allowed: the one that was made takes so many bytes, which is more
    /// than a NodeUpdate holds.
    TooLarge(usize),
}

/// The plan that is always allowed.
pub(crate) const ALWAYS_ALLOWED: Planned = Planned::Ready(Disrupts::Reboot, None);

/// The most bytes of a plan that a NodeUpdate holds: each node of a pool has one of its own, and
/// the API server refuses objects of more than a few times as much.
pub(crate) const MOST: usize = 256 * 1024;

/// What was planned so far, by the policies of one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plans {
    policies: Option<Digest>,
    known: BTreeMap<FromTo, Planned>,
}

impl Plans {
    /// Forgets what other policies decided, and what nobody asks for any more. `asked` is in order.
    pub(crate) fn keep(&mut self, policies: Digest, asked: &[FromTo]) {
        if self.policies.replace(policies) != Some(policies) {
            self.known.clear();
        }
        self.known.retain(|from_to, _| asked.binary_search(from_to).is_ok());
    }

    pub(crate) fn of(&self, from_to: &FromTo) -> Planned {
        self.known.get(from_to).cloned().unwrap_or(Planned::NotYet)
    }

    /// The next that is to be planned: one that could not be planned keeps no other waiting.
    pub(crate) fn missing<'a>(&self, asked: &'a [FromTo]) -> Option<&'a FromTo> {
        let first = |wanted: fn(&Planned) -> bool| asked.iter().find(|it| wanted(&self.of(it)));
        first(|it| matches!(it, Planned::NotYet))
            .or_else(|| first(|it| matches!(it, Planned::Failed(_))))
    }

    pub(crate) fn put(&mut self, policies: Digest, from_to: FromTo, planned: Planned) {
        if self.policies == Some(policies) {
            self.known.insert(from_to, planned);
        }
    }
}

/// Plans, by the policies as they are now.
pub(crate) async fn plan(previewer: &Previewer, from_to: &FromTo) -> Planned {
    let FromTo { from, pool, to } = from_to;
    let cluster = previewer.snapshot();
    let target = cluster.pools.get(pool).and_then(|pool| pool.target.as_ref());
    if target.is_none_or(|target| target.name != *to) || !cluster.configs.contains_key(to) {
        return Planned::NotYet;
    }
    if !cluster.configs.contains_key(from) {
        // Nobody can say what differs.
        return ALWAYS_ALLOWED;
    }
    match previewer.plan(from, pool).await {
        Err(why) => Planned::Failed(why.to_string()),
        Ok(plan) if plan.outcome == PlanOutcome::Refuse => {
            let why = plan.changes.iter().find(|it| it.outcome == REFUSED);
            Planned::Refused(why.map_or_else(String::new, |it| it.id.clone()))
        }
        Ok(plan) => ready(&VerifiablePlan::from(&*plan)),
    }
}

/// The plan as a NodeUpdate has it, if it fits there.
fn ready(plan: &VerifiablePlan) -> Planned {
    match (serde_json::to_string(plan), serde_json::to_value(plan)) {
        (Ok(text), _) if text.len() > MOST => Planned::TooLarge(text.len()),
        (Ok(_), Ok(value)) => Planned::Ready(disrupts(&plan.steps), Some(Arc::new(value))),
        _ => ALWAYS_ALLOWED,
    }
}

const REFUSED: tread_model::plan::ChangeOutcome = tread_model::plan::ChangeOutcome::Refused;

/// How much steps disrupt a node.
pub(crate) fn disrupts(steps: &[Step]) -> Disrupts {
    let of = |step: &Step| match step {
        Step::Reboot => Disrupts::Reboot,
        Step::Drain => Disrupts::Drain,
        Step::UpdateCaTrust | Step::DaemonReload | Step::Reload { .. } | Step::Restart { .. } => {
            Disrupts::Softly
        }
        Step::Write | Step::Uncordon => Disrupts::Nothing,
    };
    steps.iter().map(of).max().unwrap_or(Disrupts::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_disrupts_as_its_gravest_step() {
        let reload = Step::Reload { unit: "crio.service".to_owned() };
        for (steps, expected) in [
            (vec![], Disrupts::Nothing),
            (vec![Step::Write], Disrupts::Nothing),
            (vec![Step::Write, Step::DaemonReload], Disrupts::Softly),
            (vec![Step::Write, reload.clone()], Disrupts::Softly),
            (vec![Step::Drain, Step::Write, reload, Step::Uncordon], Disrupts::Drain),
            (vec![Step::Drain, Step::Write, Step::Reboot, Step::Uncordon], Disrupts::Reboot),
            // An admin's rule may leave the drain out.
            (vec![Step::Write, Step::Reboot], Disrupts::Reboot),
        ] {
            assert_eq!(disrupts(&steps), expected, "{steps:?}");
        }
    }

    #[test]
    fn a_plan_that_a_node_update_cannot_hold_is_the_one_that_is_always_allowed() {
        let with = |units: usize| VerifiablePlan {
            outcome: PlanOutcome::Apply,
            from: Digest([1; 32]),
            to: Digest([2; 32]),
            deciders: Vec::new(),
            steps: (0..units)
                .map(|at| Step::Reload { unit: format!("unit-{at:05}.service") })
                .collect(),
            digest: Digest([3; 32]),
        };
        let fits = with(1000);
        let Planned::Ready(Disrupts::Softly, Some(value)) = ready(&fits) else {
            panic!("it fits");
        };
        assert_eq!(*value, serde_json::to_value(&fits).unwrap());
        let large = with(MOST / 20);
        let bytes = serde_json::to_vec(&large).unwrap().len();
        assert!(bytes > MOST, "{bytes}");
        assert_eq!(ready(&large), Planned::TooLarge(bytes));
    }

    #[test]
    fn what_other_policies_decided_is_forgotten() {
        let from_to = |from: &str| FromTo {
            from: from.to_owned(),
            pool: "worker".to_owned(),
            to: "b".to_owned(),
        };
        let (one, two) = (Digest([1; 32]), Digest([2; 32]));
        let mut plans = Plans::default();
        let asked = [from_to("a"), from_to("c")];
        plans.keep(one, &asked);
        plans.put(one, from_to("a"), ALWAYS_ALLOWED);
        // It was planned by policies that were replaced meanwhile.
        plans.put(two, from_to("c"), ALWAYS_ALLOWED);
        assert_eq!(plans.missing(&asked), Some(&from_to("c")));
        plans.keep(one, &asked[1..]);
        assert_eq!(plans.of(&from_to("a")), Planned::NotYet);
        plans.put(one, from_to("c"), ALWAYS_ALLOWED);
        plans.keep(two, &asked);
        assert_eq!(plans.missing(&asked), Some(&from_to("a")));
        assert_eq!(plans.of(&from_to("c")), Planned::NotYet);
    }

    #[test]
    fn what_cannot_be_planned_keeps_nothing_else_waiting() {
        let policies = Digest([1; 32]);
        let asked = ["a", "b"].map(|from| FromTo {
            from: from.to_owned(),
            pool: "worker".to_owned(),
            to: "c".to_owned(),
        });
        let mut plans = Plans::default();
        plans.keep(policies, &asked);
        plans.put(policies, asked[0].clone(), Planned::Failed("it cannot be read".to_owned()));
        assert_eq!(plans.missing(&asked), Some(&asked[1]));
        plans.put(policies, asked[1].clone(), ALWAYS_ALLOWED);
        assert_eq!(plans.missing(&asked), Some(&asked[0]), "it is tried again");
    }
}
