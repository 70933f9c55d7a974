//! What is done next, and on what it depends.

use super::lease::Lease;
use super::order::{Operation, Order};
use super::seen::{HeldBy, Version};
use super::slots::Slot;
use super::stamp::Stamp;
use std::time::Duration;

/// What is done next for a node.
///
/// A version is a precondition: if the object has another version by now, nothing is written and
/// everything is read again. Without a version there is no precondition; tread has no such act. The
/// slots may have another version as long as what the act was decided by still holds: the slot of
/// the node, and whether there is room to take one. That does not hold for a lost slot that is
/// taken again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// The slot is written into the object of all slots.
    TakeSlot {
        /// Onto this version.
        onto: Option<Version>,
        /// The slot.
        slot: Slot,
    },
    /// The slot of this operation is given back.
    ReleaseSlot {
        /// Onto this version.
        onto: Option<Version>,
        /// Of which operation.
        operation: Operation,
    },
    /// The Lease is made, which must not be there. It is claimed by the next act.
    MakeLease(Lease),
    /// The Lease is written.
    WriteLease {
        /// Onto this version.
        onto: Option<Version>,
        /// As it is then.
        lease: Lease,
    },
    /// The Lease is removed.
    ReleaseLease {
        /// In this version.
        onto: Option<Version>,
    },
    /// The order is written into the NodeUpdate.
    WriteOrder {
        /// Onto this version.
        onto: Option<Version>,
        /// The order.
        order: Order,
    },
    /// The node is cordoned and marked with the operation and a stamp of its own, in one patch
    /// that asks that nobody cordoned it. A cordon of this operation that has no stamp gets one.
    Cordon {
        /// The operation.
        operation: Operation,
        /// Which cordon it is.
        stamp: Stamp,
        /// How long it may be tried, from before the read on, by a clock that only counts.
        within: Duration,
    },
    /// Pods are evicted.
    Evict {
        /// How long, from before the read on, by a clock that only counts.
        within: Duration,
    },
    /// The cordon and its mark are taken away, in one patch that asks for the mark.
    Uncordon {
        /// The operation of the mark; without it, nothing is asked.
        of: Option<Operation>,
        /// How long it may be tried, from before the read on, by a clock that only counts.
        within: Duration,
    },
    /// The mark of the cordon is taken away in one patch that asks for it, and the cordon stays:
    /// somebody else has the node by now, and undoes it when they are ready.
    HandOver {
        /// The operation of the mark; without it, nothing is asked.
        of: Option<Operation>,
        /// How long it may be tried, from before the read on, by a clock that only counts.
        within: Duration,
    },
    /// What is known may be old: everything is read from the API server, and asked again.
    ReadAfresh,
    /// The node stays as it is, with its slot, until somebody looks at it.
    Degrade,
    /// Nothing is done until something changes.
    Wait(Waits),
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Waits {
    /// Nothing is to be done.
    Nothing,
    /// Other nodes have all slots.
    Room,
    /// Somebody else holds the node's Lease.
    Lease,
    /// Somebody else has the node.
    Held(HeldBy),
    /// The agent.
    Agent,
    /// The proof that the node is well.
    Proof,
    /// Until no replica may cordon or evict any more.
    HandsOff,
}
