//! What holds for any pool.

use proptest::prelude::*;
use std::time::Duration;
use tread_model::protocol::{Disrupts, Time};
use tread_model::rollout::{
    Budget, First, MaxUnavailable, Node, Order, Pool, State, Why, soft_limit, turns,
};

fn disrupts() -> impl Strategy<Value = Disrupts> {
    use Disrupts::{Drain, Nothing, Reboot, Softly};
    prop_oneof![Just(Nothing), Just(Softly), Just(Drain), Just(Reboot)]
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        6 => disrupts().prop_map(State::Due),
        3 => Just(State::Updated),
        2 => disrupts().prop_map(State::UnderWay),
        1 => prop_oneof![Just(State::NeedsBoot), Just(State::Failed)],
    ]
}

prop_compose! {
    fn node()(
        zone in 0..3u8,
        age in 0..5u64,
        marks in prop::array::uniform8(prop::bool::weighted(0.1)),
        state in state(),
    ) -> Node {
        let [unready, leads, paused, canary, last, held, step_failed, lost] = marks;
        Node {
            name: String::new(),
            zone: zone.to_string(),
            since: Time(Duration::from_secs(age)),
            ready: !unready,
            leads,
            paused,
            canary,
            last,
            held: held.then(|| "somebody has it".to_owned()),
            step_failed,
            went_back: false,
            lost,
            unwell: false,
            is_well: false,
            has_slot: false,
            state,
        }
    }
}

fn order() -> impl Strategy<Value = Order> {
    let first = prop_oneof![Just(First::Oldest), Just(First::Newest), Just(First::Name)];
    let zones = prop::collection::vec((0..4u8).prop_map(|zone| zone.to_string()), 0..3);
    (zones, first).prop_map(|(zones, first)| Order { zones, first })
}

prop_compose! {
    fn pool()(
        paused in prop::bool::weighted(0.1),
        control_plane in prop::bool::weighted(0.2),
        most in 0..6usize,
        soft_limit in 1..8usize,
        succeeded in 0..6usize,
        halt_after in 1..3usize,
        order in order(),
        left in 0..2usize,
    ) -> Pool {
        Pool {
            paused,
            control_plane,
            max_unavailable: MaxUnavailable::Number(most),
            soft_limit,
            succeeded,
            halt_after,
            closed: None,
            order,
            no_canary: None,
            no_order: None,
            left_with_slot: (0..left).map(|at| format!("left-{at}")).collect(),
        }
    }
}

fn named(nodes: Vec<Node>) -> Vec<Node> {
    let name = |(at, node): (usize, Node)| Node { name: format!("node-{at:02}"), ..node };
    nodes.into_iter().enumerate().map(name).collect()
}

fn drains(state: State) -> bool {
    matches!(state, State::Due(it) | State::UnderWay(it) if it >= Disrupts::Drain)
}

proptest! {
    #[test]
    fn no_turn_breaks_a_limit_and_every_node_that_waits_has_a_reason(
        pool in pool(),
        nodes in prop::collection::vec(node(), 0..14).prop_map(named),
        elsewhere in 0..4usize,
        all in 1..8usize,
    ) {
        let turns = turns(&pool, &nodes, Budget { all, down_elsewhere: elsewhere });
        let find = |name: &String| nodes.iter().find(|node| node.name == *name).unwrap();
        let due = nodes.iter().filter(|node| matches!(node.state, State::Due(_))).count();
        prop_assert_eq!(turns.next.len() + turns.waits.len(), due);

        let next: Vec<&Node> = turns.next.iter().map(find).collect();
        for node in &next {
            prop_assert!(!node.paused && node.held.is_none() && !pool.paused);
        }
        let begins = |node: &Node| turns.next.contains(&node.name);
        let is_down = |node: &Node| {
            let drained = matches!(node.state, State::UnderWay(_)) || begins(node);
            !node.ready || node.state == State::Failed || (drained && drains(node.state))
        };
        let down = nodes.iter().filter(|node| is_down(node)).count() + pool.left_with_slot.len();
        if next.iter().any(|node| drains(node.state)) {
            prop_assert!(down <= pool.max_unavailable.of(nodes.len()));
            prop_assert!(down + elsewhere <= all);
        }
        let is_soft = |node: &Node| {
            let counts = matches!(node.state, State::UnderWay(_)) && !node.lost;
            (counts || begins(node)) && !drains(node.state) && node.state != State::NeedsBoot
        };
        if next.iter().any(|node| !drains(node.state)) {
            let softly = nodes.iter().filter(|node| is_soft(node)).count();
            prop_assert!(softly <= soft_limit(pool.succeeded, pool.soft_limit));
        }
        if pool.control_plane {
            prop_assert!(next.is_empty() || (next.len() == 1 && pool.left_with_slot.is_empty()));
            let others = nodes.iter().filter(|node| next.iter().all(|it| it.name != node.name));
            prop_assert!(next.is_empty() || others.clone().all(|node| node.ready));
        }
        let failed = |node: &&Node| matches!(node.state, State::Failed | State::NeedsBoot);
        prop_assert!(next.is_empty() || nodes.iter().filter(failed).count() < pool.halt_after);
        let stops = |node: &Node| node.state == State::NeedsBoot || node.step_failed;
        for node in next.iter().filter(|node| !drains(node.state)) {
            prop_assert!(nodes.iter().all(|it| it.name == node.name || !stops(it)));
        }
        let has_failed = |it: &Node| failed(&it) || stops(it);
        for (name, _) in &turns.turn_back {
            let node = find(name);
            let boots_nobody = |it: Disrupts| it < Disrupts::Reboot;
            prop_assert!(matches!(node.state, State::UnderWay(it) if boots_nobody(it)));
            prop_assert!(nodes.iter().any(|it| it.name != *name && has_failed(it)));
        }
        for (_, why) in &turns.waits {
            prop_assert!(!why.to_string().is_empty());
            if let Why::Pool(names, _) | Why::Wave(names) | Why::ControlPlane(names) = why {
                prop_assert!(names.count() > 0, "{why:?}");
            }
        }
    }

    #[test]
    fn the_order_does_not_depend_on_how_nodes_are_listed(
        pool in pool(),
        nodes in prop::collection::vec(node(), 0..10).prop_map(named),
    ) {
        let budget = Budget { all: 9, down_elsewhere: 0 };
        let mut other = nodes.clone();
        other.reverse();
        prop_assert_eq!(turns(&pool, &nodes, budget).next, turns(&pool, &other, budget).next);
    }

    #[test]
    fn waves_grow_until_their_limit(succeeded in 0..500usize, limit in 0..200usize) {
        let wave = soft_limit(succeeded, limit);
        prop_assert!(wave >= 1 && wave <= limit.max(1) && wave <= (2 * succeeded).max(1));
        prop_assert!(soft_limit(succeeded + 1, limit) >= wave);
    }
}
