//! A cluster as small as it can be: what stands in it, who is about to write, what is on its way.
//!
//! Times count from now: the present is always 0, and what is long past is all the same.

use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use tread_model::protocol::{Disrupts, Phase, Stage, What};

/// What the API server and a node hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node {
    pub(crate) pool: u8,
    pub(crate) slot: Option<Slot>,
    pub(crate) lease: Option<Lease>,
    pub(crate) order: Option<Order>,
    pub(crate) report: Option<Report>,
    /// The config that was reported.
    pub(crate) known: u8,
    pub(crate) cordon: Cordon,
    /// Whether pods are on it.
    pub(crate) pods: bool,
    pub(crate) proved: bool,
    pub(crate) agent: Agent,
    /// An earlier order that is still on its way to the agent.
    pub(crate) late: Option<Order>,
    pub(crate) asks: Option<Ask>,
    /// A permit on its way.
    pub(crate) wire: Option<Wire>,
    /// For how long the agent may begin, by its own clock.
    pub(crate) permit: Option<Counter>,
    pub(crate) doing: Option<(What, i8)>,
    /// Whether somebody else, who holds the Lease, works at it.
    pub(crate) others: bool,
    /// Whether somebody else has it by a mark, as who drains it sets one.
    pub(crate) held: bool,
}

/// An operation's id: made small again wherever that changes nothing.
pub(crate) type Op = u8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot {
    pub(crate) op: Op,
    pub(crate) unavailable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lease {
    pub(crate) of: Of,
    pub(crate) token: u8,
    pub(crate) ends: i8,
}

/// Who holds a Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Of {
    Other,
    Unclaimed,
    For(Op),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Order {
    pub(crate) op: Op,
    pub(crate) config: u8,
    pub(crate) disrupts: Disrupts,
    pub(crate) token: u8,
    pub(crate) stage: Stage,
    pub(crate) given: bool,
    pub(crate) unwell: bool,
    pub(crate) hands_on: i8,
    /// Whether the node still has the cordon under which it was seen drained. Only that is asked of
    /// a stamp, and no stamp comes again.
    pub(crate) same_cordon: bool,
}

/// What an agent said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Report {
    pub(crate) op: Op,
    pub(crate) phase: Phase,
    pub(crate) token: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Cordon {
    No,
    Ours(Op),
    /// Left to somebody else.
    Anothers,
}

/// What the agent's journal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Agent {
    pub(crate) op: Option<(Op, Phase)>,
    pub(crate) token: u8,
    pub(crate) config: u8,
    /// Of the order that it took last.
    pub(crate) to: u8,
    pub(crate) disrupts: Disrupts,
    /// How often it booted in this operation.
    pub(crate) boots: u8,
}

/// What counts down on a clock of its own, which may be slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Counter {
    pub(crate) left: i8,
    pub(crate) lag: i8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ask {
    pub(crate) what: What,
    /// How long ago, by the agent's clock.
    pub(crate) ago: i8,
    pub(crate) lag: i8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Wire {
    pub(crate) op: Op,
    pub(crate) lasts: i8,
    /// Whether it answers the question that is open.
    pub(crate) answers: bool,
}

/// What is seen of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SlotsSeen {
    /// The slot of the node.
    pub(crate) slot: Option<Slot>,
    /// Whether there is room for one as the node takes.
    pub(crate) room: bool,
}

/// A replica of the controllers: nothing but what it is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Replica {
    Idle,
    /// It read a part of what it has to read, so long ago.
    Reads {
        node: u8,
        part: Part,
        ago: i8,
        /// Whether it reads for the question that is open.
        fresh: bool,
        /// Whether the NodeUpdate, and the Lease, that it read are still so.
        update: bool,
        lease: bool,
    },
    /// It is about to write.
    Writes {
        node: u8,
        write: Write,
        onto: bool,
        /// What it saw of the slots, where it writes onto a newer version of them as long as
        /// that is still so.
        slots_seen: Option<SlotsSeen>,
    },
    /// It is about to touch the node.
    Hands {
        node: u8,
        hand: Hand,
        within: Counter,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    Update(Option<Order>, Option<Report>),
    /// That, and the Lease later.
    UpdateAndLease(Option<Order>, Option<Report>, Option<Lease>),
    /// All of it, as a cache has it.
    All(Option<Slot>, Option<Lease>, Option<Order>, Option<Report>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Write {
    TakeSlot(Slot),
    ReleaseSlot(Op),
    MakeLease(Lease),
    HoldLease(Lease),
    ReleaseLease,
    Order(Order),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Hand {
    Cordon(Op),
    Evict(Op),
    Uncordon(Option<Op>),
    Leave(Option<Op>),
}

/// All of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) nodes: List<Node>,
    pub(crate) replicas: List<Replica>,
    /// The newest config.
    pub(crate) newest: u8,
    /// How often what may still happen.
    pub(crate) taken_back: u8,
    pub(crate) others_come: u8,
    pub(crate) failures: u8,
    pub(crate) retries: u8,
    pub(crate) agent_crashes: u8,
    pub(crate) reports_lost: u8,
    pub(crate) updates_lost: u8,
    pub(crate) marks_come: u8,
    pub(crate) uncordons: u8,
}

/// Three at most, in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct List<T>([T; 3], usize);

impl<T: Copy> List<T> {
    pub(crate) fn of(all: impl IntoIterator<Item = T>) -> List<T> {
        let all: Vec<T> = all.into_iter().collect();
        List([all[0], all[all.len().min(2) - 1], all[all.len() - 1]], all.len())
    }
}

impl<T: Hash> Hash for List<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.iter().for_each(|it| it.hash(state));
    }
}

impl<T> Deref for List<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0[..self.1]
    }
}

impl<T> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0[..self.1]
    }
}
