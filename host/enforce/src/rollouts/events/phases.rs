//! What a node went through between two looks at it. Much may happen in between: what counts is
//! how far its order is, and not how the node stood when somebody looked.

use std::sync::Arc;
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::{UpdateDisrupts, UpdateOrder, UpdatePhase, UpdateStage};
use tread_model::rollout::State;

/// How far a node is.
#[derive(Debug, Clone)]
pub(super) struct Far {
    pub(super) state: State,
    /// Its own NodeUpdate, and not that of a node that had its name before.
    pub(super) update: Option<Arc<NodeUpdate>>,
}

/// What a node went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    /// A step failed, and it needs a boot that its plan did not have.
    NeedsBoot,
    /// It is being drained.
    Begun,
    /// No pod has to move any more: its agent has the order.
    Drained,
    /// It booted.
    Booted,
    /// It failed, or went back.
    Failed,
    /// It was given up before the node had the config.
    TurnedBack,
    /// It has the config.
    Ended,
}

/// How far an order is that drains a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Got {
    Nowhere,
    Begun,
    Drained,
    Over,
}

impl Far {
    pub(super) fn order(&self) -> Option<&UpdateOrder> {
        self.update.as_ref()?.spec.order.as_ref()
    }

    /// How far its agent is with its order.
    fn phase(&self) -> Option<UpdatePhase> {
        let status = self.update.as_ref()?.status.as_ref()?;
        let is_its = status.operation.as_ref() == Some(&self.order()?.operation);
        status.phase.filter(|_| is_its)
    }

    /// Which boot of the node this is.
    pub(super) fn boot(&self) -> Option<&str> {
        self.update.as_ref()?.status.as_ref()?.boot_id.as_deref()
    }

    /// What its agent says.
    pub(super) fn says(&self) -> Option<&str> {
        self.update.as_ref()?.status.as_ref()?.message.as_deref()
    }

    fn is_closed(&self) -> bool {
        self.order().is_some_and(|order| order.stage == UpdateStage::Closed)
    }

    /// Whether its order does not drain it.
    fn is_soft(&self) -> bool {
        self.order().is_some_and(|order| !drains(order.disrupts))
    }

    /// Whether it was begun softly for this config, and has it or may get it so.
    pub(super) fn gets_softly(&self, config: &str) -> bool {
        let is_for_it = self.order().is_some_and(|order| order.config.name == config);
        let is_left = self.is_closed() && self.phase() != Some(UpdatePhase::Done);
        is_for_it && self.is_soft() && !is_left
    }

    fn got(&self) -> Got {
        let Some(order) = self.order().filter(|order| drains(order.disrupts)) else {
            return Got::Nowhere;
        };
        match order.stage {
            UpdateStage::Closed => Got::Over,
            UpdateStage::Go | UpdateStage::Withdrawn if order.given => Got::Drained,
            UpdateStage::Prepare | UpdateStage::Go | UpdateStage::Withdrawn => Got::Begun,
        }
    }
}

fn drains(disrupts: UpdateDisrupts) -> bool {
    matches!(disrupts, UpdateDisrupts::Drain | UpdateDisrupts::Reboot)
}

/// Whether its order is the same as before.
pub(super) fn is_same(before: &Far, now: &Far) -> bool {
    fn operation(far: &Far) -> Option<&str> {
        far.order().map(|order| order.operation.as_str())
    }
    operation(before) == operation(now)
}

/// What a node went through, in its order.
pub(super) fn passed(before: &Far, now: &Far) -> Vec<Passed> {
    let is_same = is_same(before, now);
    let was = if is_same { before.got() } else { Got::Nowhere };
    let is = now.got();
    let is_given = now.order().is_some_and(|order| order.given);
    let mut passed = Vec::new();
    let is_new = |state: State| now.state == state && !(is_same && before.state == state);
    // It had its turn to boot before anybody looked.
    let escalated = is_same
        && before.state != State::NeedsBoot
        && before.is_soft()
        && before.order().is_some_and(|order| order.given)
        && is > Got::Nowhere;
    if is_new(State::NeedsBoot) || escalated {
        passed.push(Passed::NeedsBoot);
    }
    if is >= Got::Begun && was < Got::Begun {
        passed.push(Passed::Begun);
    }
    let is_drained = is == Got::Drained || (is == Got::Over && is_given);
    if is_drained && was < Got::Drained {
        passed.push(Passed::Drained);
    }
    if is_drained && was < Got::Over && has_booted(before, now) {
        passed.push(Passed::Booted);
    }
    if is_new(State::Failed) {
        passed.push(Passed::Failed);
    } else if is == Got::Over && was < Got::Over && now.state != State::Failed {
        passed.push(match now.phase() {
            Some(UpdatePhase::Done) => Passed::Ended,
            _ => Passed::TurnedBack,
        });
    }
    passed
}

/// Where somebody boots a node that failed, it is no boot of tread's.
fn has_booted(before: &Far, now: &Far) -> bool {
    let boots = before.boot().zip(now.boot());
    before.state != State::Failed && boots.is_some_and(|(before, now)| before != now)
}

/// How much a node was disrupted to be brought to a config, where that is done since.
pub(super) fn brought(before: &Far, now: &Far) -> Option<UpdateDisrupts> {
    let was_over = is_same(before, now) && before.is_closed();
    let is_done = now.is_closed() && now.phase() == Some(UpdatePhase::Done);
    now.order().filter(|_| is_done && !was_over).map(|order| order.disrupts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Passed::{Begun, Booted, Drained, Ended, Failed, NeedsBoot, TurnedBack};
    use serde_json::{Value, json};
    use tread_model::protocol::Disrupts;

    /// A node with an operation: what was ordered, how far the order is, and what its agent says.
    fn far(state: State, (id, disrupts, stage): (u8, &str, &str), phase: &str, boot: &str) -> Far {
        let operation = format!("{id:032x}");
        let given = stage == "Go" || !["", "Waiting"].contains(&phase);
        let update = json!({
            "metadata": {"name": "n"},
            "spec": {"pool": "worker", "order": {"operation": operation, "token": 1,
                "config": {"name": "r-1", "digest": "d"}, "disrupts": disrupts, "stage": stage,
                "given": given}},
            "status": {"operation": operation, "bootId": boot,
                "phase": (!phase.is_empty()).then_some(phase)},
        });
        with(state, update)
    }

    fn with(state: State, update: Value) -> Far {
        Far { state, update: Some(Arc::new(serde_json::from_value(update).unwrap())) }
    }

    const DUE: State = State::Due(Disrupts::Reboot);
    const BOOTS: State = State::UnderWay(Disrupts::Reboot);
    const SOFT: State = State::UnderWay(Disrupts::Softly);

    #[test]
    fn each_phase_of_an_operation_is_told_once_however_often_somebody_looks() {
        let old = || far(DUE, (1, "Nothing", "Closed"), "Done", "a");
        let reboot = |state, stage: &str, phase: &str, boot: &str| {
            far(state, (2, "Reboot", stage), phase, boot)
        };
        let all = [
            (old(), vec![]),
            (reboot(BOOTS, "Prepare", "", "a"), vec![Begun]),
            (reboot(BOOTS, "Prepare", "", "a"), vec![]),
            (reboot(BOOTS, "Go", "Waiting", "a"), vec![Drained]),
            (reboot(BOOTS, "Go", "Begun", "a"), vec![]),
            (reboot(BOOTS, "Go", "Begun", "b"), vec![Booted]),
            (reboot(BOOTS, "Go", "Done", "b"), vec![]),
            (reboot(State::Updated, "Closed", "Done", "b"), vec![Ended]),
            (reboot(State::Updated, "Closed", "Done", "c"), vec![]),
        ];
        for pair in all.windows(2) {
            assert_eq!(passed(&pair[0].0, &pair[1].0), pair[1].1, "{:?}", pair[1].0);
        }
        // Whoever looks only before and after tells the same.
        let (first, last) = (&all[0].0, &all[7].0);
        assert_eq!(passed(first, last), [Begun, Drained, Booted, Ended]);
        assert_eq!(brought(first, last), Some(UpdateDisrupts::Reboot));
        assert_eq!(brought(last, &all[8].0), None);
    }

    #[test]
    fn what_fails_or_is_given_up_is_told_and_counts_as_brought_nowhere() {
        let due = far(DUE, (1, "Nothing", "Closed"), "Done", "a");
        let soft = far(SOFT, (2, "Softly", "Go"), "Begun", "a");
        let needs = far(State::NeedsBoot, (2, "Softly", "Go"), "NeedsBoot", "a");
        let escalated = far(BOOTS, (2, "Reboot", "Prepare"), "NeedsBoot", "a");
        let booted = far(State::Updated, (2, "Reboot", "Closed"), "Done", "b");
        let unwell = far(State::Failed, (3, "Reboot", "Go"), "Degraded", "b");
        let closed = far(State::Failed, (3, "Reboot", "Closed"), "Degraded", "c");
        let again = far(State::Failed, (4, "Reboot", "Closed"), "Degraded", "d");
        let prepared = far(BOOTS, (3, "Reboot", "Prepare"), "", "a");
        let left = far(DUE, (3, "Reboot", "Closed"), "", "a");
        for (before, now, expected) in [
            (&due, &soft, vec![]),
            (&soft, &needs, vec![NeedsBoot]),
            (&needs, &needs, vec![]),
            (&needs, &escalated, vec![Begun]),
            (&soft, &escalated, vec![NeedsBoot, Begun]),
            (&escalated, &booted, vec![Drained, Booted, Ended]),
            (&due, &unwell, vec![Begun, Drained, Booted, Failed]),
            // Somebody boots it to mend it.
            (&unwell, &closed, vec![]),
            (&closed, &again, vec![Begun, Drained, Failed]),
            (&prepared, &left, vec![TurnedBack]),
        ] {
            assert_eq!(passed(before, now), expected, "{before:?}\n{now:?}");
            let ends = now.state == State::Updated;
            assert_eq!(brought(before, now).is_some(), ends, "{before:?}\n{now:?}");
        }
    }

    #[test]
    fn a_soft_change_that_nobody_saw_under_way_has_brought_its_node_to_the_config() {
        let due = with(DUE, json!({"metadata": {"name": "n"}, "spec": {"pool": "worker"}}));
        let done = far(State::Updated, (2, "Softly", "Closed"), "Done", "a");
        assert_eq!(passed(&due, &done), []);
        assert_eq!(brought(&due, &done), Some(UpdateDisrupts::Softly));
        assert!(done.gets_softly("r-1") && !done.gets_softly("r-2"));
        let left = far(DUE, (2, "Softly", "Closed"), "TurnedBack", "a");
        assert!(!left.gets_softly("r-1"));
        assert_eq!(brought(&due, &left), None);
    }
}
