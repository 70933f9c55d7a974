//! What it takes to bring nodes from what they have to what their pool is to have.

use super::render::ToHave;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tread_cluster::plans::{NotKnown, Previewer};
use tread_kube::asking::pause;
use tread_model::digest::Digest;
use tread_model::plan::{Plan, PlanOutcome, Step, VerifiablePlan};
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

impl Planned {
    /// The same where it leads to what tread rendered. A MachineConfig that somebody changed since is
    /// refused by every agent, and not before its node is drained.
    pub(crate) fn leading_to(self, made: &ToHave) -> Planned {
        let Planned::Ready(_, Some(plan)) = &self else { return self };
        let to = plan.get("to").and_then(Value::as_str).and_then(Digest::parse);
        match to.is_none_or(|to| to == made.digest) {
            true => self,
            false => Planned::Failed(format!(
                "the MachineConfig {} is another one than tread rendered by this name: it was changed \
                 since, and no agent would take it; delete it, and tread makes it anew",
                made.name
            )),
        }
    }
}

/// The plan that is always allowed.
pub(crate) const ALWAYS_ALLOWED: Planned = Planned::Ready(Disrupts::Reboot, None);

/// The most bytes of a plan that a NodeUpdate holds: each node of a pool has one of its own, and
/// the API server refuses objects of more than a few times as much.
pub(crate) const MOST: usize = 256 * 1024;

/// How long it is before what could not be planned is tried again, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How often a policy that had no time or no room is asked again, before what follows without its
/// answer is carried out: for most changes that is a reboot.
const MOMENTARY: u32 = 3;

/// What is said meanwhile.
const ASKED_AGAIN: &str = "a policy had no time or no room for it, and is asked again";

/// What came of planning.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Made {
    pub(crate) planned: Planned,
    /// Whether the same would be planned at any other moment: no policy lacked time or room.
    pub(crate) lasts: bool,
}

impl From<Planned> for Made {
    fn from(planned: Planned) -> Made {
        Made { planned, lasts: true }
    }
}

/// When something is planned again.
#[derive(Debug, Clone, Copy)]
struct Again {
    at: Instant,
    tries: u32,
    /// How often a policy had no time or no room.
    momentary: u32,
}

/// What was planned so far, by the policies of one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plans {
    policies: Option<Digest>,
    known: BTreeMap<FromTo, Planned>,
    /// When each that could not be planned is tried again, and how often it was tried.
    again: BTreeMap<FromTo, Again>,
}

impl Plans {
    /// Forgets what other policies decided, and what nobody asks for any more. `asked` is in order.
    pub(crate) fn keep(&mut self, policies: Digest, asked: &[FromTo]) {
        if self.policies.replace(policies) != Some(policies) {
            self.known.clear();
            self.again.clear();
        }
        self.known.retain(|from_to, _| asked.binary_search(from_to).is_ok());
        self.again.retain(|from_to, _| asked.binary_search(from_to).is_ok());
    }

    pub(crate) fn of(&self, from_to: &FromTo) -> Planned {
        self.known.get(from_to).cloned().unwrap_or(Planned::NotYet)
    }

    /// The next that is to be planned: one that could not be planned keeps no other waiting, and is
    /// tried again later each time.
    pub(crate) fn missing<'a>(&self, asked: &'a [FromTo], now: Instant) -> Option<&'a FromTo> {
        let is_due = |it: &&FromTo| self.again.get(*it).is_some_and(|again| again.at <= now);
        let new = asked.iter().find(|it| self.of(it) == Planned::NotYet);
        new.or_else(|| asked.iter().find(is_due))
    }

    /// When the next one is tried again that could not be planned.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.again.values().map(|again| again.at).min()
    }

    pub(crate) fn put(&mut self, policies: Digest, from_to: FromTo, made: Made, now: Instant) {
        if self.policies != Some(policies) {
            return;
        }
        let before = self.again.remove(&from_to);
        let (tries, mut momentary) = before.map_or((0, 0), |it| (it.tries, it.momentary));
        let planned = match made.planned {
            _ if !made.lasts && momentary < MOMENTARY => {
                momentary = momentary.saturating_add(1);
                Planned::Failed(ASKED_AGAIN.to_owned())
            }
            planned => planned,
        };
        if matches!(planned, Planned::Failed(_)) {
            let at = now + pause(WAITS, tries);
            let again = Again { at, tries: tries.saturating_add(1), momentary };
            self.again.insert(from_to.clone(), again);
        }
        self.known.insert(from_to, planned);
    }
}

/// Plans, by the policies as they are now.
pub(crate) async fn plan(previewer: &Previewer, from_to: &FromTo) -> Made {
    let FromTo { from, pool, to } = from_to;
    let cluster = previewer.snapshot();
    let target = cluster.pools.get(pool).and_then(|pool| pool.target.as_ref());
    if target.is_none_or(|target| target.name != *to) || !cluster.configs.contains_key(to) {
        return Planned::NotYet.into();
    }
    if !cluster.configs.contains_key(from) {
        // Nobody can say what differs.
        return ALWAYS_ALLOWED.into();
    }
    planned(previewer.plan(from, pool).await)
}

/// What follows of what was planned. What is too much to be looked at is the plan that is always
/// allowed: its DisruptionPlan says that it is a reboot, and why.
fn planned(plan: Result<Option<Arc<Plan>>, NotKnown>) -> Made {
    let lasts = !matches!(&plan, Ok(Some(plan)) if !plan.reproducible);
    let planned = match plan {
        Err(why) => Planned::Failed(why.to_string()),
        Ok(None) => ALWAYS_ALLOWED,
        Ok(Some(plan)) if plan.outcome == PlanOutcome::Refuse => {
            let why = plan.changes.iter().find(|it| it.outcome == REFUSED);
            Planned::Refused(why.map_or_else(String::new, |it| it.id.clone()))
        }
        Ok(Some(plan)) => ready(&VerifiablePlan::from(&*plan)),
    };
    Made { planned, lasts }
}

/// The plan as a NodeUpdate has it, if it fits there. What no agent would carry out is the plan that
/// is always allowed.
fn ready(plan: &VerifiablePlan) -> Planned {
    if let Err(fault) = plan.verify() {
        tracing::error!(%fault, "a plan was made that no node carries out: nodes are drained and booted instead; please report it");
        return ALWAYS_ALLOWED;
    }
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
    use serde_json::json;

    #[test]
    fn a_plan_that_leads_to_another_config_than_was_rendered_begins_no_node() {
        let made = ToHave::named("rendered-new");
        let plan = |to: &Digest| {
            Planned::Ready(Disrupts::Reboot, Some(Arc::new(json!({"to": to.to_string()}))))
        };
        let same = plan(&made.digest);
        assert_eq!(same.clone().leading_to(&made), same);
        let Planned::Failed(why) = plan(&Digest([7; 32])).leading_to(&made) else { panic!() };
        assert!(why.contains("rendered-new") && why.contains("delete it"), "{why}");
        for other in [ALWAYS_ALLOWED, Planned::NotYet, Planned::Refused("a".to_owned())] {
            assert_eq!(other.clone().leading_to(&made), other);
        }
    }

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
    fn a_plan_that_a_node_update_cannot_hold_or_that_no_agent_carries_out_is_always_another() {
        let plan = |steps: Vec<Step>| {
            let plan = VerifiablePlan {
                outcome: PlanOutcome::Apply,
                from: Digest([1; 32]),
                to: Digest([2; 32]),
                deciders: Vec::new(),
                steps,
                digest: Digest([3; 32]),
            };
            VerifiablePlan { digest: plan.computed_digest(), ..plan }
        };
        let with = |units: usize| {
            let reload = |at| Step::Reload { unit: format!("unit-{at:05}.service") };
            plan([Step::Write].into_iter().chain((0..units).map(reload)).collect())
        };
        let own = Step::Restart { unit: "tread-watch.service".to_owned() };
        assert_eq!(ready(&plan(vec![Step::Write, own])), ALWAYS_ALLOWED);
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
    fn what_is_too_much_to_plan_is_the_plan_that_is_always_allowed_and_no_failure() {
        assert_eq!(planned(Ok(None)), ALWAYS_ALLOWED.into());
        let busy = NotKnown::from("the API server does not answer".to_owned());
        let failed = Planned::Failed("the API server does not answer".to_owned());
        assert_eq!(planned(Err(busy)), failed.into());
    }

    #[test]
    fn what_a_policy_had_no_time_for_is_planned_again_before_anything_is_done() {
        let (policies, asked, mut now) = (Digest([1; 32]), two_ways(), Instant::now());
        let made = || Made { planned: ALWAYS_ALLOWED, lasts: false };
        let mut plans = Plans::default();
        plans.keep(policies, &asked[..1]);
        // That it could not be planned at all before counts for nothing.
        for _ in 0..MOMENTARY {
            let failed = Planned::Failed("it cannot be read".to_owned());
            plans.put(policies, asked[0].clone(), failed.into(), now);
            now = plans.due().unwrap();
        }
        for _ in 0..MOMENTARY {
            plans.put(policies, asked[0].clone(), made(), now);
            assert_eq!(plans.of(&asked[0]), Planned::Failed(ASKED_AGAIN.to_owned()));
            assert_eq!(plans.missing(&asked[..1], now), None);
            now = plans.due().unwrap();
            assert_eq!(plans.missing(&asked[..1], now), Some(&asked[0]));
        }
        let mut in_time = plans.clone();
        // It may never have enough: then the node is booted.
        plans.put(policies, asked[0].clone(), made(), now);
        assert_eq!((plans.of(&asked[0]), plans.due()), (ALWAYS_ALLOWED, None));
        let gentle = Planned::Ready(Disrupts::Nothing, None);
        in_time.put(policies, asked[0].clone(), gentle.clone().into(), now);
        assert_eq!((in_time.of(&asked[0]), in_time.due()), (gentle, None));
    }

    #[test]
    fn what_other_policies_decided_is_forgotten() {
        let from_to = |from: &str| FromTo {
            from: from.to_owned(),
            pool: "worker".to_owned(),
            to: "b".to_owned(),
        };
        let (one, two, now) = (Digest([1; 32]), Digest([2; 32]), Instant::now());
        let mut plans = Plans::default();
        let asked = [from_to("a"), from_to("c")];
        plans.keep(one, &asked);
        plans.put(one, from_to("a"), ALWAYS_ALLOWED.into(), now);
        // It was planned by policies that were replaced meanwhile.
        plans.put(two, from_to("c"), ALWAYS_ALLOWED.into(), now);
        assert_eq!(plans.missing(&asked, now), Some(&from_to("c")));
        plans.keep(one, &asked[1..]);
        assert_eq!(plans.of(&from_to("a")), Planned::NotYet);
        plans.put(one, from_to("c"), ALWAYS_ALLOWED.into(), now);
        plans.keep(two, &asked);
        assert_eq!(plans.missing(&asked, now), Some(&from_to("a")));
        assert_eq!(plans.of(&from_to("c")), Planned::NotYet);
    }

    /// Two ways of a pool.
    fn two_ways() -> [FromTo; 2] {
        ["a", "b"].map(|from| FromTo {
            from: from.to_owned(),
            pool: "worker".to_owned(),
            to: "c".to_owned(),
        })
    }

    #[test]
    fn what_cannot_be_planned_keeps_nothing_else_waiting() {
        let (policies, asked, now) = (Digest([1; 32]), two_ways(), Instant::now());
        let mut plans = Plans::default();
        plans.keep(policies, &asked);
        let failed = Planned::Failed("it cannot be read".to_owned());
        plans.put(policies, asked[0].clone(), failed.into(), now);
        let due = plans.due().unwrap();
        assert_eq!(plans.missing(&asked, due), Some(&asked[1]));
        plans.put(policies, asked[1].clone(), ALWAYS_ALLOWED.into(), now);
        assert_eq!(plans.missing(&asked, now), None);
        assert_eq!(plans.missing(&asked, due), Some(&asked[0]), "it is tried again");
    }

    #[test]
    fn what_cannot_be_planned_is_tried_again_later_each_time_until_policies_change() {
        let (one, two, asked) = (Digest([1; 32]), Digest([2; 32]), two_ways());
        let failed = || Planned::Failed("it cannot be read".to_owned());
        let mut plans = Plans::default();
        plans.keep(one, &asked);
        let (mut last, mut now) = (Duration::ZERO, Instant::now());
        plans.put(one, asked[1].clone(), ALWAYS_ALLOWED.into(), now);
        for _ in 0..10 {
            plans.put(one, asked[0].clone(), failed().into(), now);
            assert_eq!(plans.missing(&asked, now), None);
            let due = plans.due().unwrap();
            last = due - now;
            assert!(last <= WAITS.1, "{last:?}");
            assert_eq!(plans.missing(&asked, due), Some(&asked[0]));
            now = due;
            plans.keep(one, &asked);
        }
        assert!(last >= WAITS.1 / 2, "{last:?}");
        // Others may be able to.
        plans.keep(two, &asked);
        assert_eq!(plans.due(), None);
        assert_eq!(plans.missing(&asked, now), Some(&asked[0]));
        plans.put(two, asked[0].clone(), failed().into(), now);
        assert!(plans.due().unwrap() - now <= WAITS.0);
        // Nor does a plan that was made wait for anything, or one that nobody asks for.
        plans.put(two, asked[0].clone(), ALWAYS_ALLOWED.into(), now);
        assert_eq!(plans.due(), None);
        plans.put(two, asked[0].clone(), failed().into(), now);
        plans.keep(two, &asked[1..]);
        assert_eq!(plans.due(), None);
    }
}
