//! What was read of one node before the next act is decided.

use super::lease::Lease;
use super::order::{Config, Disrupts, Operation, Order, Phase, Report};
use super::slots::Slot;
use super::stamp::Stamp;
use super::time::Time;
use std::sync::Arc;

/// The resourceVersion of an object that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(pub Arc<str>);

/// The versions of what was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// Of the object that holds the slots.
    pub slots: Version,
    /// Of the node's Lease, if there is one.
    pub lease: Option<Version>,
    /// Of the NodeUpdate.
    pub update: Version,
}

/// What was read of one node: first the NodeUpdate, then the Lease, then the slots, the node and
/// its pods. A cache is good enough to see that nothing is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The API server's time right before the first of it was read.
    pub now: Time,
    /// Whether all of it was read from the API server for this question, in that order, and none
    /// from a cache.
    pub fresh: bool,
    /// The versions of what was read.
    pub versions: Versions,
    /// The node's slot.
    pub slot: Option<Slot>,
    /// Whether there is room for one more node that is disrupted softly.
    pub soft_room: bool,
    /// Whether there is room for one more node that becomes unavailable.
    pub room: bool,
    /// The node's Lease.
    pub lease: Option<Lease>,
    /// The order in its NodeUpdate.
    pub order: Option<Order>,
    /// What its agent reported.
    pub report: Option<Report>,
    /// Its cordon.
    pub cordon: Cordon,
    /// Whether no pod is left on it that has to move, or none has another node to go to.
    pub drained: bool,
    /// Whether it proved itself since its last step: its agent said so, and it is Ready for as
    /// long as is asked for.
    pub proved: bool,
    /// Who else has it, by marks other than its Lease.
    pub held: Option<HeldBy>,
    /// What the rollout wants of it: nothing where it is not its turn.
    pub wanted: Option<Wanted>,
    /// The newest config of its pool, whether or not it is its turn.
    pub newest: Config,
    /// Whether an order of which nothing was written yet turns back: the window has ended, or
    /// others failed.
    pub turns_back: bool,
    /// An id for what begins now, an operation or a cordon: made at random for this question.
    pub id: Operation,
}

/// What a rollout wants of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The config that it is to have.
    pub config: Config,
    /// How much its plan disrupts it.
    pub disrupts: Disrupts,
}

/// Whether a node is cordoned, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cordon {
    /// It is not.
    No,
    /// By tread, for this operation, as its mark says, and with this stamp. Versions of tread that
    /// knew of no stamps made cordons without.
    Ours(Operation, Option<Stamp>),
    /// By somebody else.
    Anothers,
}

/// Who else has a node, by marks other than its Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeldBy {
    /// Somebody cordoned it.
    Cordon,
    /// Somebody drains it: `DrainInProgress`, or medik8s' taint.
    Drain,
    /// Maintenance is planned or under way: its conditions, a NodeMaintenance, or medik8s' label.
    Maintenance,
    /// An autoscaler is about to remove it.
    Autoscaler,
    /// It, or its Machine, is being deleted or marked for it.
    Deletion,
}

impl Seen {
    /// Whether it has tread's cordon, for this operation.
    pub fn is_cordoned_for(&self, operation: Operation) -> bool {
        matches!(self.cordon, Cordon::Ours(of, _) if of == operation)
    }

    /// What the agent reported of this operation.
    pub(super) fn phase_of(&self, operation: Operation) -> Option<Phase> {
        self.report.filter(|report| report.operation == operation).map(|report| report.phase)
    }
}
