//! The cases of `tests/cases/rollouts/turns.yaml`.

use serde::Deserialize;
use std::time::Duration;
use tread_model::protocol::{Disrupts, Time};
use tread_model::rollout::{Budget, MaxUnavailable, Node, Pool, State, cap_of_all, turns};

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
            held: self.held,
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
