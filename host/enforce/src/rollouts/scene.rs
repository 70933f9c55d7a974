//! Whose turn it is in each pool, by all that is known at one moment.

mod node;
mod pool;
mod why;

pub(crate) use node::OfNode;
pub(crate) use pool::{OfPool, SOFT_LIMIT};

use super::by::By;
use super::facts::Facts;
use super::marks::{gone, is_unavailable};
use super::may_act::halted;
use super::outside::{Outside, outside};
use super::plans::FromTo;
use crate::order::Target;
use crate::reading::{Aim, Room};
use crate::still::Still;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_cluster::index::All;
use tread_model::digest::Digest;
use tread_model::protocol::{Disrupts, Limits};
use tread_model::rollout::{Budget, State, Why, cap_of_all};
use why::{joins_anew, moved, no_rollout};

/// Whose turn it is, in all pools.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scene {
    pub(crate) pools: BTreeMap<String, OfPool>,
    /// The nodes that are in a pool, and those that left it while something of tread is on them.
    pub(crate) nodes: BTreeMap<String, OfNode>,
    /// What has to be planned.
    pub(crate) asked: Vec<FromTo>,
    /// Nodes with a slot that are not there any more.
    pub(crate) gone: Vec<String>,
    /// Why nothing is done on any node.
    pub(crate) halted: Option<String>,
    unavailable: Arc<BTreeMap<String, String>>,
    facts: All<String, Arc<Facts>>,
    /// How many nodes of all pools may be down.
    cap: usize,
}

impl Scene {
    pub(crate) fn of(by: By<'_>) -> Scene {
        let facts = Arc::clone(&by.moment.nodes);
        let mut scene =
            Scene { gone: gone(by), facts, halted: halted(by.moment), ..Scene::default() };
        let mut unavailable = BTreeMap::new();
        for (name, member) in by.cluster.members.all() {
            let Some(pool) = member.place.pool() else { continue };
            if by.moment.nodes.get(name).is_some_and(|facts| is_unavailable(facts)) {
                unavailable.insert(name.to_owned(), pool.to_owned());
            }
        }
        let mut nodes: BTreeMap<&str, Vec<(String, &Facts)>> = BTreeMap::new();
        for (name, member) in by.cluster.members.all() {
            let known = member.place.pool().zip(by.moment.nodes.get(name));
            if let Some((pool, facts)) = known {
                nodes.entry(pool).or_default().push((name.to_owned(), facts));
            }
        }
        let mut asked = BTreeSet::new();
        for (name, pool) in &by.cluster.pools {
            let of_pool = nodes.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
            let of_pool = OfPool::of(pool, of_pool, by, &mut scene.nodes, &mut asked);
            // Also where a cordon of tread was left by an operation that nobody knows.
            let unready = of_pool.nodes.iter().filter(|node| !node.ready);
            unavailable.extend(unready.map(|node| (node.name.clone(), name.clone())));
            scene.pools.insert(name.clone(), of_pool);
        }
        scene.unavailable = Arc::new(unavailable);
        scene.asked = asked.into_iter().collect();
        let in_no_pool = scene.note_left_with_slot(by);
        scene.take_turns(by, in_no_pool);
        for node in outside(by) {
            scene.ends(node, by);
        }
        scene
    }

    /// Notes in each pool which nodes keep a slot of it that are none of its own any more. How many
    /// of them are in no pool.
    fn note_left_with_slot(&mut self, by: By<'_>) -> usize {
        let Ok(slots) = &by.moment.slots else { return 0 };
        let mut in_no_pool = 0;
        for (name, taken) in slots.taken.iter().filter(|(_, taken)| taken.slot.unavailable) {
            let pool = self.nodes.get(name).map(|node| node.pool.as_str());
            in_no_pool += usize::from(pool.is_none());
            if pool == Some(taken.pool.as_str()) {
                continue;
            }
            let why = match pool {
                Some(pool) => Some(moved(pool, self.is_left_unwell(name))),
                // What is said of the others is said where they are brought to their end.
                None => by.cluster.members.get(name).and_then(joins_anew),
            };
            let Some(of_pool) = self.pools.get_mut(&taken.pool) else { continue };
            of_pool.left_with_slot.push(name.clone());
            if let Some(why) = why {
                of_pool.failing.insert(0, (name.clone(), why));
            }
        }
        in_no_pool
    }

    /// Brings to its end what was begun on a node that is in no pool any more.
    fn ends(&mut self, node: Outside, by: By<'_>) {
        let Outside { name, pool, ends_with, is_lost, is_down, why } = node;
        let failure =
            by.stuck.failure(&name).map(str::to_owned).or_else(|| by.stuck.in_vain(&name));
        let failure = failure.map(|why| format!("; {why}")).unwrap_or_default();
        let is_gone = !self.pools.contains_key(&pool);
        // Whatever else keeps the pool, its other nodes wait for this one's slot. Where the pool is gone, the
        // nodes of others may wait for it.
        let waits = |(of, it): (&String, &OfPool)| match is_gone {
            true => is_down && it.turns.waits.iter().any(|(_, why)| matches!(why, Why::All(..))),
            false => *of == pool,
        };
        for (of, it) in &mut self.pools {
            if waits((of, it)) {
                it.failing.insert(0, (name.clone(), format!("{why}{failure}")));
            }
        }
        let node = OfNode {
            pool,
            maintained: by.moment.maintained.get(&name).copied().unwrap_or_default(),
            machine: by.moment.machines.get(&name).map(|it| it.machine.clone()),
            taken: None,
            turn: None,
            others_failed: false,
            plan: None,
            retries: None,
            needs_agent: false,
            is_quiet: false,
            ordered: Some(ends_with),
            is_lost,
            is_outside: true,
        };
        self.nodes.insert(name, node);
    }

    /// Says whose turn it is. Each pool also counts the nodes that are down in others, and those in
    /// no pool that keep a slot.
    fn take_turns(&mut self, by: By<'_>, in_no_pool: usize) {
        let all: usize = self.pools.values().map(|pool| pool.nodes.len()).sum();
        self.cap = cap_of_all(all);
        let down: BTreeMap<String, usize> =
            self.pools.iter().map(|(name, pool)| (name.clone(), pool.down())).collect();
        let all_down = down.values().sum::<usize>() + in_no_pool;
        for (name, of_pool) in &mut self.pools {
            let Some(pool) = by.cluster.pools.get(name) else { continue };
            let own = down.get(name).copied().unwrap_or_default() + of_pool.left_with_slot.len();
            let budget = Budget { all: self.cap, down_elsewhere: all_down.saturating_sub(own) };
            let rollout = by.moment.rollouts.get(name).map(|it| &**it);
            of_pool.halted = self.halted.clone().or_else(|| no_rollout(rollout));
            of_pool.turns(pool, rollout, by, budget, &mut self.nodes);
        }
    }

    /// Whether with time alone it may be another node's turn.
    pub(crate) fn goes_by_time(&self) -> bool {
        self.pools.values().any(|pool| pool.has_windows || pool.again.is_some())
            || self.nodes.values().any(|node| node.taken.is_some())
    }

    /// The config that a node is to have.
    pub(crate) fn digest(&self, name: &str) -> Option<Digest> {
        self.pools.get(&self.nodes.get(name)?.pool)?.digest
    }

    /// Whether it is a node's turn, to be disrupted so much for this config.
    pub(crate) fn is_turn_of(&self, name: &str, turn: Option<Disrupts>, config: Digest) -> bool {
        let is_turn = self.nodes.get(name).is_some_and(|node| turn.is_some() && node.turn == turn);
        is_turn && self.digest(name) == Some(config)
    }

    /// Whether a node failed, and nobody tries it again now.
    pub(crate) fn is_left_unwell(&self, name: &str) -> bool {
        let nodes = self.pool_of(name).map(|pool| pool.nodes.as_slice()).unwrap_or_default();
        nodes.iter().any(|node| node.name == name && node.state == State::Failed)
    }

    /// The pool that a node is in.
    pub(crate) fn pool_of(&self, name: &str) -> Option<&OfPool> {
        let node = self.nodes.get(name).filter(|node| !node.is_outside)?;
        self.pools.get(&node.pool)
    }

    /// Whether a node turns back if it has written nothing yet.
    pub(crate) fn turns_back(&self, name: &str) -> bool {
        let Some(node) = self.nodes.get(name) else { return false };
        let has_ended = |pool: &OfPool| pool.turns_back;
        node.is_outside || node.others_failed || self.pools.get(&node.pool).is_some_and(has_ended)
    }

    /// The other nodes that take the pods of this one.
    fn others_for<'s>(
        &'s self,
        name: &'s str,
    ) -> Option<impl Iterator<Item = (&'s str, &'s Facts)>> {
        let facts = self.facts.get(name)?;
        let others = self.facts.iter().filter(move |(other, _)| *other != name);
        let takes = others.filter(move |(_, other)| other.takes_pods_of(facts));
        Some(takes.map(|(other, facts)| (other.as_str(), &**facts)))
    }

    /// Whether no other node takes the pods of this one.
    pub(crate) fn is_alone(&self, name: &str) -> bool {
        self.others_for(name).is_some_and(|mut others| others.next().is_none())
    }

    /// The nodes that take the pods of this one once they have joined, where no other one does.
    fn joining_for(&self, name: &str) -> Vec<String> {
        let joining = self.others_for(name).and_then(|others| {
            let name_of =
                |(other, facts): (&str, &Facts)| facts.joins.is_some().then(|| other.to_owned());
            others.map(name_of).collect()
        });
        joining.unwrap_or_default()
    }

    /// What is wanted of a node, and what room there is for it.
    pub(crate) fn aim(&self, name: &str) -> Option<(Aim, Room)> {
        let node = self.nodes.get(name)?;
        let pool = self.pools.get(&node.pool);
        let of_pool = || pool.and_then(|pool| pool.target.clone().zip(pool.digest));
        let (target, digest) = node.ordered.clone().or_else(of_pool)?;
        let limits = match pool {
            Some(pool) if pool.boot_later.contains(name) => Limits { pool: 0, ..pool.limits? },
            Some(pool) => pool.limits?,
            // It is gone, and counts no more: what it had under way ends one by one.
            None if node.is_outside => {
                Limits { pool: 1, all: self.cap, soft: 1, one_by_one: false }
            }
            None => return None,
        };
        let aim = Aim {
            pool: node.pool.clone(),
            target: Target { name: target.name, digest, plan: node.plan.clone() },
            turns_back: self.turns_back(name),
            turn: node.turn,
            still: Still::default(),
            maintained: node.maintained,
            is_lost: node.is_lost,
            is_alone: self.is_alone(name),
            joining: self.joining_for(name),
            retries: node.retries.clone(),
            drain: pool.map(|pool| Arc::clone(&pool.drain)).unwrap_or_default(),
            machine: node.machine.clone(),
        };
        let unavailable = Arc::clone(&self.unavailable);
        Some((aim, Room { limits, unavailable }))
    }
}

#[cfg(test)]
pub(crate) mod tests;
