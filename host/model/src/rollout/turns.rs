//! Whose turn it is in a pool.

use super::budget::{Budget, MaxUnavailable};
use super::node::{Node, State};
use super::order::Order;
use super::wave::soft_limit;
use super::why::{Few, Why};
use crate::protocol::Disrupts;
use std::fmt;

/// A pool, and what its Rollout says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Whether it is paused.
    pub paused: bool,
    /// Whether its nodes are those of the control plane.
    pub control_plane: bool,
    /// How many of its nodes may be down.
    pub max_unavailable: MaxUnavailable,
    /// How many of its nodes may get a soft plan at a time.
    pub soft_limit: usize,
    /// How many of them got this config with a soft plan, and are well.
    pub succeeded: usize,
    /// After how many failed nodes it halts.
    pub halt_after: usize,
    /// When its window opens, in words, where none is open.
    pub closed: Option<String>,
    /// Which of its nodes come first.
    pub order: Order,
    /// Why nobody knows which nodes are its canaries, in a sentence, where it is to have some.
    pub no_canary: Option<String>,
    /// Why nobody knows which of its nodes come last, in a sentence.
    pub no_order: Option<String>,
    /// Nodes that are none of its own any more, and keep one of its slots of nodes that are down.
    pub left_with_slot: Vec<String>,
}

/// Whose turn it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turns {
    /// Nodes that may begin now, in their order.
    pub next: Vec<String>,
    /// Nodes that wait, in their order, and why.
    pub waits: Vec<(String, Why)>,
    /// Nodes under way that turn back if they have written nothing yet, since others failed, and why.
    pub turn_back: Vec<(String, Why)>,
}

/// Says whose turn it is.
pub fn turns(pool: &Pool, nodes: &[Node], budget: Budget) -> Turns {
    let mut now = Now::new(pool, nodes, budget);
    let mut due: Vec<(&Node, Disrupts)> = nodes.iter().filter_map(due).collect();
    due.sort_by(|one, other| {
        let by_answer = may_not_answer(one).cmp(&may_not_answer(other));
        by_answer.then_with(|| pool.order.compare(one.0, other.0))
    });
    let mut turns = Turns { turn_back: now.turn_back(), ..Turns::default() };
    for (node, disrupts) in due {
        match now.waits(node, disrupts) {
            Some(why) => turns.waits.push((node.name.clone(), why)),
            None => {
                now.begins(node, disrupts);
                turns.next.push(node.name.clone());
            }
        }
    }
    turns
}

fn due(node: &Node) -> Option<(&Node, Disrupts)> {
    match node.state {
        State::Due(disrupts) => Some((node, disrupts)),
        _ => None,
    }
}

/// Whether a node gets its change after all others: one that is not Ready may be dead, and the others
/// wait for the first nodes of a wave. This is about changes without a drain: a node that is down
/// already takes no other node's place when it is drained.
fn may_not_answer((node, disrupts): &(&Node, Disrupts)) -> bool {
    !disrupts.drains() && !node.ready
}

/// What is so far, with those that may begin.
struct Now<'n> {
    pool: &'n Pool,
    nodes: &'n [Node],
    budget: Budget,
    down: Vec<&'n str>,
    softly: Vec<&'n str>,
    begun: Vec<&'n str>,
}

impl<'n> Now<'n> {
    fn new(pool: &'n Pool, nodes: &'n [Node], budget: Budget) -> Now<'n> {
        let of = |which: &dyn Fn(&Node) -> bool| {
            nodes.iter().filter(|node| which(node)).map(|node| node.name.as_str()).collect()
        };
        let softly =
            |node: &Node| matches!(node.state, State::UnderWay(it) if !it.drains() && !node.lost);
        let mut down: Vec<&str> = of(&Node::is_down);
        down.extend(pool.left_with_slot.iter().map(String::as_str));
        Now { pool, nodes, budget, down, softly: of(&softly), begun: of(&Node::is_under_way) }
    }

    fn begins(&mut self, node: &'n Node, disrupts: Disrupts) {
        let name = node.name.as_str();
        self.begun.push(name);
        if !disrupts.drains() {
            self.softly.push(name);
        } else if !self.down.contains(&name) {
            self.down.push(name);
        }
    }

    /// Why it is not this node's turn.
    fn waits(&self, node: &Node, disrupts: Disrupts) -> Option<Why> {
        let pool = self.pool;
        let canaries = self.all_but(node, |it| it.canary && it.state != State::Updated);
        match () {
            () if pool.paused => Some(Why::PoolPaused),
            () if node.paused => Some(Why::NodePaused),
            () if let Some(failed) = self.others_failed(node, disrupts) => Some(failed),
            () if let Some(by) = &node.held => Some(Why::Held(by.clone())),
            () if let Some(opens) = &pool.closed => Some(Why::Window(opens.clone())),
            () if let Some(why) = &pool.no_canary => Some(Why::NoCanary(why.clone())),
            () if let Some(why) = &pool.no_order => Some(Why::NoOrder(why.clone())),
            () if !node.canary && canaries.count() > 0 => Some(Why::Canary(canaries)),
            () if pool.control_plane => self.control_plane(node),
            () => None,
        }
        .or_else(|| self.no_room(node, disrupts))
    }

    /// That so many others failed that this node does not go the same way.
    fn others_failed(&self, node: &Node, disrupts: Disrupts) -> Option<Why> {
        let failed = self.all_but(node, Node::has_failed);
        let went_back = self.all_but(node, |it| it.went_back);
        let step_failed = self.all_but(node, Node::stops_its_plan);
        let halts = failed.count() >= self.pool.halt_after.max(1);
        match () {
            // One that is begun again by itself failed too: each of several would wait for the others.
            () if halts && !node.unwell => Some(Why::Halted(failed)),
            // However many may fail.
            () if went_back.count() > 0 => Some(Why::WentBack(went_back)),
            // What boots anyway runs no such step.
            () if disrupts != Disrupts::Reboot && step_failed.count() > 0 => {
                Some(Why::StepFailed(step_failed))
            }
            () => None,
        }
    }

    /// Who is under way by a plan without a boot, and would not be begun any more since others
    /// failed. Those with a boot are as few as may be down, and finish.
    fn turn_back(&self) -> Vec<(String, Why)> {
        let under_way = self.nodes.iter().filter_map(|node| match node.state {
            State::UnderWay(disrupts) if disrupts != Disrupts::Reboot => Some((node, disrupts)),
            _ => None,
        });
        let turn_back =
            under_way.filter_map(|(node, it)| Some((node, self.others_failed(node, it)?)));
        turn_back.map(|(node, why)| (node.name.clone(), why)).collect()
    }

    /// The control plane goes one at a time, while all its others are Ready. One that failed keeps
    /// its slot.
    fn control_plane(&self, node: &Node) -> Option<Why> {
        let is_waited_for = |it: &Node| {
            !it.ready || it.state == State::Failed || self.begun.contains(&it.name.as_str())
        };
        let others = self.nodes.iter().filter(|it| it.name != node.name && is_waited_for(it));
        let others = others.map(|it| &it.name).chain(&self.pool.left_with_slot);
        let others = Few::of(others.map(String::as_str));
        (others.count() > 0).then_some(Why::ControlPlane(others))
    }

    fn no_room(&self, node: &Node, disrupts: Disrupts) -> Option<Why> {
        if !disrupts.drains() {
            let most = soft_limit(self.pool.succeeded, self.pool.soft_limit);
            return (self.softly.len() >= most)
                .then(|| Why::Wave(Few::of(self.softly.iter().copied())));
        }
        // It is down already, and begins in its slot.
        if node.has_slot && node.unwell {
            return None;
        }
        let name = node.name.as_str();
        let down: Vec<&str> = self.down.iter().copied().filter(|other| *other != name).collect();
        let most = self.pool.max_unavailable.of(self.nodes.len());
        let all = self.budget.down_elsewhere.saturating_add(down.len());
        match () {
            () if down.len() >= most => Some(Why::Pool(Few::of(down), most)),
            () if all >= self.budget.all => Some(Why::All(all, self.budget.all)),
            () => None,
        }
    }

    fn all_but(&self, node: &Node, which: impl Fn(&Node) -> bool) -> Few {
        let others = self.nodes.iter().filter(|it| it.name != node.name && which(it));
        Few::of(others.map(|it| it.name.as_str()))
    }
}

impl fmt::Display for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.next.iter().try_for_each(|node| writeln!(f, "{node}: next"))?;
        self.waits.iter().try_for_each(|(node, why)| writeln!(f, "{node}: {why}"))?;
        let mut turn_back = self.turn_back.iter();
        turn_back.try_for_each(|(node, why)| {
            writeln!(f, "{node}: turns back if it has written nothing: {why}")
        })
    }
}
