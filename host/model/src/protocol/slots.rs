//! Which nodes may be under way: the slots of all pools, in one object that is written by
//! compare-and-swap. Budgets hold by it alone, whoever leads.

use super::order::Operation;
use std::collections::BTreeMap;

/// The slot of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The operation that it was taken for.
    pub operation: Operation,
    /// Whether the node may become unavailable; otherwise its plan is soft.
    pub unavailable: bool,
}

/// The slots of all pools.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slots<N, P> {
    /// By node.
    pub taken: BTreeMap<N, Taken<P>>,
}

/// A slot that is taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Taken<P> {
    /// The pool that it counts for.
    pub pool: P,
    /// The slot.
    pub slot: Slot,
}

/// How many nodes may have a slot at a time, where one more is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Nodes of the pool that may be unavailable.
    pub pool: usize,
    /// Nodes of all pools that may be unavailable.
    pub all: usize,
    /// Nodes of the pool that may be under way softly.
    pub soft: usize,
    /// Whether one node of the pool has a slot at a time, of whichever kind, while no other one is
    /// unavailable.
    pub one_by_one: bool,
}

impl<N, P> Default for Slots<N, P> {
    fn default() -> Slots<N, P> {
        Slots { taken: BTreeMap::new() }
    }
}

impl<N: Ord + Clone, P: PartialEq + Clone> Slots<N, P> {
    /// The slot of a node.
    pub fn of(&self, node: &N) -> Option<Slot> {
        self.taken.get(node).map(|taken| taken.slot)
    }

    /// Whether one more node of a pool may be taken. `unavailable` are nodes that are so for any
    /// other reason, with their pools: each counts once.
    pub fn has_room(
        &self,
        node: &N,
        pool: &P,
        softly: bool,
        limits: Limits,
        unavailable: &BTreeMap<N, P>,
    ) -> bool {
        let others = || self.taken.iter().filter(|(other, _)| *other != node);
        // One that has a slot and needs another kind would wait for ever for one that waits for it.
        if limits.one_by_one && self.of(node).is_none() {
            let is_down = |(other, of): (&N, &P)| other != node && of == pool;
            if others().any(|(_, it)| it.pool == *pool) || unavailable.iter().any(is_down) {
                return false;
            }
        }
        if softly {
            let soft = others().filter(|(_, it)| it.pool == *pool && !it.slot.unavailable);
            return soft.count() < limits.soft;
        }
        let taken = others().filter(|(_, it)| it.slot.unavailable).map(|(it, of)| (it, &of.pool));
        let down: BTreeMap<&N, &P> =
            unavailable.iter().filter(|(other, _)| *other != node).chain(taken).collect();
        down.len() < limits.all && down.values().filter(|of| **of == pool).count() < limits.pool
    }

    /// With this slot.
    #[must_use]
    pub fn with(mut self, node: N, pool: P, slot: Slot) -> Slots<N, P> {
        self.taken.insert(node, Taken { pool, slot });
        self
    }

    /// Without the slot of a node, if it is this operation's.
    #[must_use]
    pub fn without(mut self, node: &N, operation: Operation) -> Slots<N, P> {
        if self.of(node).is_some_and(|slot| slot.operation == operation) {
            self.taken.remove(node);
        }
        self
    }
}
