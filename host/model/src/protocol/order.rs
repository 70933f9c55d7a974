//! The order that a NodeUpdate holds, and what the agent reports of it.

use super::stamp::Stamp;
use super::time::Time;
use crate::digest::Digest;

/// The id of one operation on one node: made at random when its slot is taken, and never used
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(pub u128);

/// Which config a node gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Config(pub Digest);

/// How much a plan disrupts a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disrupts {
    /// Not at all: it only writes.
    Nothing,
    /// Units are told; nothing is drained.
    Softly,
    /// The node is drained, and does not boot.
    Drain,
    /// The node is drained, and boots.
    Reboot,
}

impl Disrupts {
    /// Whether the node has to be drained.
    pub fn drains(self) -> bool {
        self >= Disrupts::Drain
    }
}

/// What a NodeUpdate's spec says of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Order {
    /// Which operation.
    pub operation: Operation,
    /// The config that the node gets by it.
    pub config: Config,
    /// How much it disrupts the node.
    pub disrupts: Disrupts,
    /// The transitions of the Lease under which it was given.
    pub token: u32,
    /// How far it is, for the controllers.
    pub stage: Stage,
    /// Whether an agent may have had it.
    pub given: bool,
    /// Whether an operation before it left the node unwell.
    pub unwell: bool,
    /// Until when a replica may cordon the node and evict its pods.
    pub hands_on: Option<Time>,
    /// In the stage `Go`, under which cordon the node was seen drained.
    pub cordon: Option<Stamp>,
}

/// How far an order is, for the controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The node is cordoned and drained. No agent is given the order.
    Prepare,
    /// The agent carries it out.
    Go,
    /// The agent turns back if it has written nothing, and says so.
    Withdrawn,
    /// Nothing more comes of it: it was given up before an agent had it, or has ended and the node
    /// is proved.
    Closed,
}

/// What a NodeUpdate's status says: the agent's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Report {
    /// Of which operation.
    pub operation: Operation,
    /// How far the agent is with it.
    pub phase: Phase,
    /// The highest token of an order that it took, which it keeps where NodeUpdates are lost; zero
    /// where it does not say.
    pub token: u32,
}

/// How far an agent is with an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// It has the order, and has written nothing.
    Waiting,
    /// It has begun to write, or more.
    Begun,
    /// A step failed: the node needs a boot that its plan did not have.
    NeedsBoot,
    /// It has the new config, and is well.
    Done,
    /// Nothing was written, and nothing will be.
    TurnedBack,
    /// It has the old config again, and is well.
    WentBack,
    /// It is not well, and nothing more is done by itself.
    Degraded,
}

impl Phase {
    /// Whether the agent does nothing more in this operation.
    pub fn is_end(self) -> bool {
        matches!(self, Phase::Done | Phase::TurnedBack | Phase::WentBack | Phase::Degraded)
    }
}
