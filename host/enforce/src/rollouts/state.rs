//! How a node stands to the config of its pool.

use super::plans::Planned;
use crate::order;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as At;
use std::time::Duration;
use tread_kube::api::node_update::{LOST, NodeUpdateStatus, UPDATED, UpdateOrder, UpdateStage};
use tread_kube::api::{NodeUpdate, Rollout};
use tread_kube::clean::clean;
use tread_kube::dated::time;
use tread_kube::node_lease::operation_text;
use tread_model::digest::Digest;
use tread_model::protocol::{Disrupts, Order, Phase, Report, Stage, Time};
use tread_model::rollout::{Retry, State};
use tread_model::text::one_line_within;

/// How a node stands to the config of its pool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Standing {
    pub(crate) state: State,
    /// Why it cannot be begun, whoever's turn it is.
    pub(crate) not_yet: Option<String>,
    /// Whether it has the config by a plan that did not drain it.
    pub(crate) came_softly: bool,
    /// Whether an order of it is not closed.
    pub(crate) is_under_way: bool,
    /// The operation that left it unwell, where an admin asked to try again.
    pub(crate) retries: Option<String>,
    /// When it is begun again by itself, where it failed.
    pub(crate) again: Option<Time>,
    /// Whether its agent has to be upgraded before it gets an order.
    pub(crate) needs_agent: bool,
    /// Whether a step failed on its way to this config, so that it had to boot, and nobody asked
    /// to try again after that.
    pub(crate) step_failed: bool,
    /// Where it is taken for lost, why. Such a node counts as failed, unless its order only writes.
    pub(crate) lost: Option<Lost>,
    /// Whether it went back from this config, and nobody asked to try again after that.
    pub(crate) went_back: bool,
    /// Whether it failed and is well: it went back, or its agent refused the order.
    pub(crate) is_well: bool,
    /// Whether it is begun again by itself after an operation left it unwell, and has not got there.
    pub(crate) unwell: bool,
}

/// Why a node is taken for lost, and since when its agent may carry its order out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Its agent has not ended the order.
    NotEnded(Time),
    /// Its agent has, and the node is not Ready.
    NotReady(Time),
}

/// What a node is held against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Against<'a> {
    pub(crate) target: Digest,
    /// The MachineConfig of that.
    pub(crate) name: &'a str,
    /// What failed before this is begun again.
    pub(crate) retry_before: Option<&'a At>,
    /// How often it is begun again by itself.
    pub(crate) retry: Option<Retry>,
    /// By this clock.
    pub(crate) now: Time,
    /// How long an agent may take to carry an order out.
    pub(crate) lost_after: Duration,
    /// Since when the replica that leads may act on the node: nothing where it may not.
    pub(crate) acts_since: Option<Time>,
    /// Since when nothing is heard of the node, where nobody else has it, or had it meanwhile.
    pub(crate) unheard_since: Option<Time>,
    /// Whether a node is brought to its config that joins with another disk.
    pub(crate) overwrites: bool,
    /// The form of orders: an agent that knows only older ones gets none.
    pub(crate) form: u32,
}

impl Against<'_> {
    /// Whether an order is for the config that is wanted.
    fn is_of(&self, order: &UpdateOrder) -> bool {
        order::is_for(&order.config, self.name, self.target)
    }
}

/// On its way by an order that only writes.
const WRITES: State = State::UnderWay(Disrupts::Nothing);

/// What every agent knows.
const FIRST_FORM: u32 = 1;

/// How a node stands: one that would be begun waits for its agent to be upgraded, if that would
/// not understand the order.
pub(crate) fn standing(
    update: Option<&NodeUpdate>,
    against: Against<'_>,
    planned: impl FnOnce(&str) -> Planned,
) -> Standing {
    let mut standing = by_order(update, against, planned);
    let Against { retry_before, now, lost_after, acts_since, unheard_since, .. } = against;
    let since = (acts_since, unheard_since);
    standing.lost = lost(update, retry_before, (now, lost_after), since, standing.state);
    if standing.lost.is_some() && standing.state != WRITES {
        standing.state = State::Failed;
    }
    standing.step_failed = step_failed(update, against, &standing);
    let status = update.and_then(|update| update.status.as_ref());
    let knows = status.filter(has_spoken).map(|status| status.form.unwrap_or(FIRST_FORM));
    if let (State::Due(_), Some(knows)) = (standing.state, knows)
        && knows < against.form
    {
        standing.needs_agent = true;
        standing.not_yet = Some(format!(
            "NeedsAgent: its agent knows orders of form {knows}, and these are of form {}; it goes \
             on once the DaemonSet has upgraded the agent",
            against.form
        ));
    }
    standing
}

/// Whether an agent said any of it: the service writes conditions before an agent is there.
fn has_spoken(status: &&NodeUpdateStatus) -> bool {
    let NodeUpdateStatus { form, boot_id, current, operation, .. } = status;
    form.is_some() || boot_id.is_some() || current.is_some() || operation.is_some()
}

/// Whether, on a node's way to this config, a step of a plan without a boot failed. While it is on
/// its way to boot for that, nobody can say that it is well: an admin's retry ends this only after
/// that.
fn step_failed(update: Option<&NodeUpdate>, against: Against<'_>, standing: &Standing) -> bool {
    let order = update.and_then(|update| update.spec.order.as_ref());
    let Some(order) = order.filter(|order| against.is_of(order)) else { return false };
    let is_unwell = standing.state == State::Failed || standing.retries.is_some();
    let failed_softly = is_unwell && order::failed_without_boot(order);
    let report = update.and_then(|update| order::report(update.status.as_ref()?));
    // The order says so only from its next write on: until then the agent's report counts.
    let needs_boot = report.is_some_and(|it| {
        it.phase == Phase::NeedsBoot && operation_text(it.operation) == order.operation
    });
    if order.escalated.is_none() && !failed_softly && !needs_boot {
        return false;
    }
    let given = order.go_since.as_ref().filter(|_| order.stage == UpdateStage::Go);
    let at = order.escalated.as_ref().or(given);
    let is_retried =
        at.is_some_and(|at| against.retry_before.is_some_and(|before| at.0 < before.0));
    let boots = matches!(standing.state, State::NeedsBoot | State::UnderWay(_));
    boots || standing.retries.is_some() || !is_retried
}

/// Whether the agent of a node did not end its order in time, nor turned back where the order is
/// withdrawn, or ended it and the node is not proved: it may never come back. It is waited for once
/// more after an admin asked to try again. While nobody may act on the node its agent can do nothing,
/// and that time does not count, unless whoever led before had waited for long enough, or nothing was
/// heard of the node for as long: no agent waits for a permit there.
fn lost(
    update: Option<&NodeUpdate>,
    retry_before: Option<&At>,
    (now, lost_after): (Time, Duration),
    (acts_since, unheard_since): (Option<Time>, Option<Time>),
    state: State,
) -> Option<Lost> {
    let order = update?.spec.order.as_ref()?;
    let is_given = matches!(order.stage, UpdateStage::Go | UpdateStage::Withdrawn);
    let since =
        order.go_since.as_ref().filter(|_| is_given && matches!(state, State::UnderWay(_)))?;
    let waited_from = retry_before.map_or(since.0, |before| since.0.max(before.0));
    if now.since(time(waited_from)?) <= lost_after {
        return None;
    }
    let is_waited_for = acts_since.is_none_or(|since| now.since(since) <= lost_after);
    // Whoever led before may not have known how to say that it is lost.
    let unheard = acts_since.and(unheard_since).map(|since| now.since(since));
    let is_gone = unheard.is_some_and(|unheard| unheard > lost_after);
    if is_waited_for && !is_gone && !update.is_some_and(is_said_to_be_lost) {
        return None;
    }
    let report = update.and_then(|update| order::report(update.status.as_ref()?));
    let of_order = report.filter(|it| operation_text(it.operation) == order.operation);
    let since = time(since.0)?;
    match of_order.map(|report| report.phase) {
        Some(Phase::TurnedBack) => None,
        Some(Phase::Done | Phase::WentBack) => Some(Lost::NotReady(since)),
        _ => Some(Lost::NotEnded(since)),
    }
}

/// Whether a node was taken for lost when that was looked at last, by whoever led then.
fn is_said_to_be_lost(update: &NodeUpdate) -> bool {
    let conditions = update.status.as_ref().map_or(&[][..], |status| &status.conditions);
    conditions.iter().any(|it| it.type_ == UPDATED && it.reason == LOST)
}

/// Whether the agent of a node that is in no pool is taken for lost: nobody retries it there. `since`
/// is since when somebody may act on the node, and since when nothing is heard of it.
pub(crate) fn is_lost(
    update: Option<&NodeUpdate>,
    (now, lost_after): (Time, Duration),
    since: (Option<Time>, Option<Time>),
) -> bool {
    let order = update.and_then(|update| order::read(update.spec.order.as_ref()?).ok());
    let report = update.and_then(|update| order::report(update.status.as_ref()?));
    let state = order.and_then(|order| under_way(&order, report));
    let lost = |state| lost(update, None, (now, lost_after), since, state);
    state.and_then(lost).is_some()
}

/// The same by what was ordered. `planned` says what it takes to get there from what it has.
fn by_order(
    update: Option<&NodeUpdate>,
    against: Against<'_>,
    planned: impl FnOnce(&str) -> Planned,
) -> Standing {
    let due = |disrupts, not_yet: Option<String>| Standing {
        state: State::Due(disrupts),
        not_yet,
        came_softly: false,
        is_under_way: false,
        retries: None,
        again: None,
        needs_agent: false,
        step_failed: false,
        lost: None,
        went_back: false,
        is_well: false,
        unwell: false,
    };
    let Some(update) = update else {
        return due(Disrupts::Reboot, Some("its NodeUpdate is not there yet".to_owned()));
    };
    let order = match update.spec.order.as_ref().map(order::read).transpose() {
        Ok(order) => order,
        Err(why) => {
            let why = format!("its NodeUpdate cannot be followed: {why}; remove it");
            return due(Disrupts::Reboot, Some(why));
        }
    };
    let status = update.status.as_ref();
    let report = status.and_then(order::report);
    let current = status.and_then(|status| status.current.as_ref());
    let is_of_it = update.spec.order.as_ref().is_some_and(|order| against.is_of(order));
    let is = |state, is_under_way| Standing {
        state,
        not_yet: None,
        came_softly: state == State::Updated
            && order.is_some_and(|it| is_of_it && !it.disrupts.drains()),
        is_under_way,
        retries: None,
        again: None,
        needs_agent: false,
        step_failed: false,
        lost: None,
        went_back: false,
        is_well: false,
        unwell: false,
    };
    let retried = || {
        let failed_at = update.failed_at(against.now);
        failed_at.zip(against.retry_before).is_some_and(|(at, before)| at < before.0)
    };
    if let Some(order) = order
        && let Some(state) = under_way(&order, report)
    {
        let again = (state == State::Failed).then(|| again(update, &order, against)).flatten();
        return match state {
            // It keeps its slot: whatever is tried next drains it.
            State::Failed if retried() || again.is_some_and(|at| at <= against.now) => Standing {
                state: State::Due(Disrupts::Reboot),
                retries: status.and_then(|status| status.operation.clone()),
                unwell: !retried(),
                ..is(state, true)
            },
            state => {
                let unwell = is_of_it && retries_by_itself(update, against);
                Standing { again, unwell, ..is(state, true) }
            }
        };
    }
    let has = current.is_some_and(|it| Digest::parse(&it.digest) == Some(against.target));
    if has {
        return is(State::Updated, false);
    }
    // One that was withdrawn failed at nothing, whatever its agent says then.
    let was_withdrawn = update.spec.order.as_ref().is_some_and(|order| order.withdrawn);
    let failed = order.is_some_and(|order| match phase_of(&order, report) {
        Some(Phase::WentBack | Phase::Degraded) => is_of_it,
        // Its agent refused the order.
        Some(Phase::TurnedBack) => is_of_it && !was_withdrawn,
        _ => false,
    });
    if failed && !retried() {
        let phase = order.and_then(|order| phase_of(&order, report));
        let went_back = phase == Some(Phase::WentBack);
        let is_well = went_back || phase == Some(Phase::TurnedBack);
        return Standing { went_back, is_well, ..is(State::Failed, false) };
    }
    let Some(current) = current else {
        let differs = status.and_then(|status| status.message.as_ref());
        return match differs {
            Some(_) if against.overwrites => due(Disrupts::Reboot, None),
            Some(why) => due(Disrupts::Reboot, Some(format!("{HAS_NONE}: {}", shown(why)))),
            None => {
                let why = "its agent has not said which config it has".to_owned();
                due(Disrupts::Reboot, Some(why))
            }
        };
    };
    match planned(&current.name) {
        Planned::NotYet => due(Disrupts::Reboot, Some("its plan is being made".to_owned())),
        Planned::Failed(why) => {
            due(Disrupts::Reboot, Some(format!("its plan cannot be made: {why}")))
        }
        Planned::Refused(what) => {
            let why = format!("this change is refused ({what}); see its DisruptionPlan");
            due(Disrupts::Reboot, Some(why))
        }
        Planned::Ready(disrupts, _) => due(disrupts, None),
        Planned::TooLarge(_) => due(Disrupts::Reboot, None),
    }
}

/// How a node stands while the config of its pool is not made: it is on its way to what it was
/// ordered, has what the Rollout names, the last one that was, or waits.
pub(crate) fn standing_without<'a>(
    update: Option<&NodeUpdate>,
    rollout: Option<&Rollout>,
    against: impl FnOnce(Digest) -> Against<'a>,
) -> Standing {
    let order = update.and_then(|update| order::read(update.spec.order.as_ref()?).ok());
    let report = update.and_then(|update| order::report(update.status.as_ref()?));
    if let Some(order) = order
        && let Some(state) = under_way(&order, report)
    {
        let Against { retry_before, now, lost_after, acts_since, unheard_since, .. } =
            against(order.config.0);
        let since = (acts_since, unheard_since);
        let lost = lost(update, retry_before, (now, lost_after), since, state);
        let failed = lost.is_some() && state != WRITES;
        return Standing {
            state: if failed { State::Failed } else { state },
            is_under_way: true,
            lost,
            ..without(None)
        };
    }
    let current = update.and_then(|update| update.status.as_ref()?.current.as_ref());
    let last = rollout.and_then(|rollout| rollout.status.as_ref()?.target.as_ref());
    let has_it = current.zip(last).is_some_and(|(current, last)| current.digest == last.digest);
    without((!has_it).then(|| "the config of its pool is not made".to_owned()))
}

fn without(not_yet: Option<String>) -> Standing {
    Standing {
        state: if not_yet.is_none() { State::Updated } else { State::Due(Disrupts::Reboot) },
        not_yet,
        came_softly: false,
        is_under_way: false,
        retries: None,
        again: None,
        needs_agent: false,
        step_failed: false,
        lost: None,
        went_back: false,
        is_well: false,
        unwell: false,
    }
}

/// What is said of a node that does not have its config, and how it gets that.
const HAS_NONE: &str =
    "it has none of its config (newNodes: Overwrite in its Rollout brings that by a boot)";

/// What an agent says: it is repeated for each of many nodes.
fn shown(why: &str) -> String {
    one_line_within(&clean(why), 1024).0
}

/// When a node that an operation left unwell is begun again by itself. Each config is tried as
/// often as is said.
fn again(update: &NodeUpdate, order: &Order, against: Against<'_>) -> Option<Time> {
    let since = update.status.as_ref()?.since.as_ref().and_then(|since| time(since.0))?;
    let of_it = update.spec.order.as_ref().filter(|order| against.is_of(order));
    let tried = of_it.map_or(0, |order| order.tried);
    // What no agent was given was not tried.
    against.retry?.at(since, tried.saturating_sub(u32::from(!order.given)))
}

/// Whether a node's order tries again what failed, and nobody asked for that since.
fn retries_by_itself(update: &NodeUpdate, against: Against<'_>) -> bool {
    let order = update.spec.order.as_ref().filter(|order| order.retries.is_some());
    let failed = order.and_then(|order| order.failed_at.as_ref());
    failed.is_some_and(|at| against.retry_before.is_none_or(|before| at.0 >= before.0))
}

fn phase_of(order: &Order, report: Option<Report>) -> Option<Phase> {
    report.filter(|report| report.operation == order.operation).map(|report| report.phase)
}

/// How a node stands whose order is not closed, or closed with the node unwell.
fn under_way(order: &Order, report: Option<Report>) -> Option<State> {
    let phase = phase_of(order, report);
    match (order.stage, phase) {
        (Stage::Closed, _) if order.unwell => Some(State::Failed),
        (Stage::Closed, _) => None,
        (_, Some(Phase::Degraded)) => Some(State::Failed),
        (_, Some(Phase::NeedsBoot)) if order.disrupts != Disrupts::Reboot => Some(State::NeedsBoot),
        _ => Some(State::UnderWay(order.disrupts)),
    }
}

#[cfg(test)]
mod tests;
