//! The cases of `tests/cases/rollouts/turns.yaml`.

use serde::Deserialize;
use std::time::Duration;
use tread_model::protocol::{Disrupts, Time};
use tread_model::rollout::{
    Budget, First, MaxUnavailable, Node, Order, Pool, State, cap_of_all, turns,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    case: String,
    pool: PoolText,
    nodes: Vec<NodeText>,
    says: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PoolText {
    max_unavailable: MaxUnavailable,
    #[serde(default)]
    paused: bool,
    #[serde(default)]
    control_plane: bool,
    #[serde(default)]
    succeeded: usize,
    halt_after: Option<usize>,
    closed: Option<String>,
    all: Option<usize>,
    #[serde(default)]
    down_elsewhere: usize,
    #[serde(default)]
    zones: Vec<String>,
    #[serde(default)]
    first: FirstText,
    no_canary: Option<String>,
    no_order: Option<String>,
    #[serde(default)]
    left_with_slot: Vec<String>,
}

#[derive(Deserialize, Default)]
enum FirstText {
    #[default]
    Oldest,
    Newest,
    Name,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NodeText {
    name: String,
    #[serde(default)]
    zone: String,
    #[serde(default)]
    age: u64,
    #[serde(default)]
    is: Is,
    plan: Option<Plan>,
    #[serde(default)]
    unready: bool,
    #[serde(default)]
    leads: bool,
    #[serde(default)]
    paused: bool,
    #[serde(default)]
    canary: bool,
    #[serde(default)]
    last: bool,
    #[serde(default)]
    step_failed: bool,
    #[serde(default)]
    went_back: bool,
    #[serde(default)]
    lost: bool,
    #[serde(default)]
    unwell: bool,
    #[serde(default)]
    is_well: bool,
    #[serde(default)]
    has_slot: bool,
    held: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
enum Is {
    #[default]
    Due,
    Updated,
    UnderWay,
    NeedsBoot,
    Failed,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum Plan {
    Nothing,
    Soft,
    Drain,
    Reboot,
}

impl NodeText {
    fn node(self) -> Node {
        let disrupts = self.plan.map(|plan| match plan {
            Plan::Nothing => Disrupts::Nothing,
            Plan::Soft => Disrupts::Softly,
            Plan::Drain => Disrupts::Drain,
            Plan::Reboot => Disrupts::Reboot,
        });
        Node {
            name: self.name,
            zone: self.zone,
            since: Time(Duration::from_secs((1000 - self.age) * 86_400)),
            ready: !self.unready,
            leads: self.leads,
            paused: self.paused,
            canary: self.canary,
            last: self.last,
            held: self.held,
            step_failed: self.step_failed,
            went_back: self.went_back,
            lost: self.lost,
            unwell: self.unwell,
            is_well: self.is_well,
            has_slot: self.has_slot,
            state: match self.is {
                Is::Due => State::Due(disrupts.unwrap()),
                Is::Updated => State::Updated,
                Is::UnderWay => State::UnderWay(disrupts.unwrap()),
                Is::NeedsBoot => State::NeedsBoot,
                Is::Failed => State::Failed,
            },
        }
    }
}

#[test]
fn whose_turn_it_is_is_as_the_cases_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/rollouts/turns.yaml");
    let cases: Vec<Case> = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(cases.len() > 10);
    for Case { case, pool: text, nodes, says } in cases {
        let pool = Pool {
            paused: text.paused,
            control_plane: text.control_plane,
            max_unavailable: text.max_unavailable,
            soft_limit: 100,
            succeeded: text.succeeded,
            halt_after: text.halt_after.unwrap_or(1),
            closed: text.closed,
            order: Order {
                zones: text.zones,
                first: match text.first {
                    FirstText::Oldest => First::Oldest,
                    FirstText::Newest => First::Newest,
                    FirstText::Name => First::Name,
                },
            },
            no_canary: text.no_canary,
            no_order: text.no_order,
            left_with_slot: text.left_with_slot,
        };
        let nodes: Vec<Node> = nodes.into_iter().map(NodeText::node).collect();
        let all = text.all.unwrap_or(100);
        let budget = Budget { all, down_elsewhere: text.down_elsewhere };
        assert_eq!(turns(&pool, &nodes, budget).to_string(), says, "{case}");
    }
}

#[test]
fn a_tenth_of_all_nodes_may_be_down_and_at_least_one() {
    for (nodes, most) in [(0, 1), (1, 1), (9, 1), (10, 1), (19, 1), (20, 2), (2000, 200)] {
        assert_eq!(cap_of_all(nodes), most, "{nodes}");
    }
    for (text, of, most) in
        [("1", 5, 1), ("3", 5, 3), ("0", 5, 1), ("\"30%\"", 10, 3), ("\"1%\"", 10, 1)]
    {
        let limit: MaxUnavailable = serde_json::from_str(text).unwrap();
        assert_eq!(limit.of(of), most, "{text}");
    }
    for text in ["\"101%\"", "\"many\"", "-1", "\"3\""] {
        assert!(serde_json::from_str::<MaxUnavailable>(text).is_err(), "{text}");
    }
}

#[test]
fn of_thousands_of_nodes_that_are_waited_for_a_few_are_named() {
    const EACH: usize = 1500;
    let node = |name: String, ready: bool, state: State| Node {
        name,
        zone: String::new(),
        since: Time(Duration::ZERO),
        ready,
        leads: false,
        paused: false,
        canary: false,
        last: false,
        held: None,
        step_failed: false,
        went_back: false,
        lost: false,
        unwell: false,
        is_well: false,
        has_slot: false,
        state,
    };
    let down = (0..EACH).map(|at| node(format!("down-{at:04}"), false, State::Updated));
    let due = State::Due(Disrupts::Reboot);
    let waiting = (0..EACH).map(|at| node(format!("waits-{at:04}"), true, due));
    let nodes: Vec<Node> = down.chain(waiting).collect();
    let pool = Pool {
        paused: false,
        control_plane: false,
        max_unavailable: MaxUnavailable::Number(1),
        soft_limit: 100,
        succeeded: 0,
        halt_after: 1,
        closed: None,
        order: Order::default(),
        no_canary: None,
        no_order: None,
        left_with_slot: Vec::new(),
    };
    let turns = turns(&pool, &nodes, Budget { all: 100, down_elsewhere: 0 });
    assert_eq!((turns.next.len(), turns.waits.len()), (0, EACH));
    for (_, why) in &turns.waits {
        assert!(format!("{why:?}").len() < 200, "{why:?}");
    }
    let says = turns.waits.first().unwrap().1.to_string();
    assert!(
        says.starts_with("it waits for down-0000, down-0001, down-0002 and 1497 more"),
        "{says}"
    );
}
