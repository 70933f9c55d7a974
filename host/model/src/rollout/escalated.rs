//! When a node boots on which a step failed of a plan without a boot.

use super::node::{Node, State};
use super::turns::Pool;
use super::why::Why;

/// Why the node is not drained for that boot yet, even if there is room. Nobody planned this
/// disruption, so it waits for all that a planned one waits for. `held` then says why the node
/// cannot be drained.
pub fn waits_to_boot(pool: &Pool, node: &Node) -> Option<Why> {
    match () {
        () if node.state != State::NeedsBoot => None,
        () if pool.paused => Some(Why::PoolPaused),
        () if node.paused => Some(Why::NodePaused),
        () if let Some(opens) = &pool.closed => Some(Why::Window(opens.clone())),
        () => node.held.clone().map(Why::Held),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Disrupts, Time};
    use crate::rollout::{MaxUnavailable, Order};

    #[test]
    fn a_boot_that_nobody_planned_waits_for_a_window_and_for_the_end_of_a_pause() {
        let open = Pool {
            paused: false,
            control_plane: false,
            max_unavailable: MaxUnavailable::Number(1),
            soft_limit: 1,
            succeeded: 0,
            halt_after: 1,
            closed: None,
            order: Order::default(),
            no_canary: None,
            no_order: None,
            left_with_slot: Vec::new(),
        };
        let node = |state, paused| Node {
            name: "a".to_owned(),
            zone: String::new(),
            since: Time::default(),
            ready: true,
            leads: false,
            paused,
            canary: false,
            last: false,
            held: None,
            step_failed: true,
            went_back: false,
            lost: false,
            unwell: false,
            is_well: false,
            has_slot: false,
            state,
        };
        let needs = node(State::NeedsBoot, false);
        let paused = Pool { paused: true, ..open.clone() };
        let closed = Pool { closed: Some("at 22:00".to_owned()), ..open.clone() };
        assert_eq!(waits_to_boot(&open, &needs), None);
        assert_eq!(waits_to_boot(&paused, &needs), Some(Why::PoolPaused));
        let held = node(State::NeedsBoot, true);
        assert_eq!(waits_to_boot(&open, &held), Some(Why::NodePaused));
        let window = waits_to_boot(&closed, &needs).unwrap();
        assert_eq!(window.to_string(), "the window opens at 22:00");
        let blocked = Node { held: Some("it could not be drained".to_owned()), ..needs.clone() };
        let why = waits_to_boot(&open, &blocked).unwrap();
        assert_eq!((why.word(), why.to_string().as_str()), ("held", "it could not be drained"));
        // It is drained by now, and finishes.
        let boots = node(State::UnderWay(Disrupts::Reboot), true);
        assert_eq!(waits_to_boot(&closed, &boots), None);
    }
}
