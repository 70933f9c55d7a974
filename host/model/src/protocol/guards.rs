//! What keeps nodes safe, each by a name, so that a test can take one out and see that the
//! checker finds what it kept away.

/// Which guards stand. In tread all of them do: [`AllGuards`] is the only one of its kind outside
/// of tests, which a test holds.
pub trait Guards {
    /// Slots are written only onto the version that was read, or as long as what was told of them for
    /// the act is still so.
    const SLOTS_BY_VERSION: bool = true;
    /// A Lease is written or removed only in the version that was read.
    const LEASE_BY_VERSION: bool = true;
    /// An order is written only onto the version of the NodeUpdate that was read.
    const ORDER_BY_VERSION: bool = true;
    /// A slot is taken only while there is room.
    const ROOM: bool = true;
    /// An operation that is found is carried on, and no second one is begun.
    const CARRY_ON: bool = true;
    /// Orders need the Lease.
    const LEASE: bool = true;
    /// A Lease that somebody else holds is taken only once it has ended for every clock.
    const OTHERS_LEASE: bool = true;
    /// Permits are given, and acts decided, only after a fresh read.
    const FRESH: bool = true;
    /// What a permit lets begin ends before the Lease, by every clock.
    const ENDS_BEFORE_LEASE: bool = true;
    /// A permit lasts from the question on, not from its arrival.
    const FROM_QUESTION: bool = true;
    /// A permit answers one question, and no later one.
    const ONE_QUESTION: bool = true;
    /// A permit needs the Lease under which the order was given, and the cordon that came before.
    const TOKEN: bool = true;
    /// What was prepared counts only under the cordon under which the node was seen drained.
    const SAME_CORDON: bool = true;
    /// An agent takes no order again that has ended, nor an older one.
    const ONCE: bool = true;
    /// What an agent may have begun is over only when the agent says so.
    const AGENTS_WORD: bool = true;
    /// The Lease is kept until no replica may cordon or evict any more.
    const HANDS_OFF: bool = true;
    /// Only the cordon of the same operation is undone.
    const OWN_CORDON: bool = true;
    /// While somebody else has the node, by marks other than its Lease, its cordon is left to them.
    const OTHERS_MARKS: bool = true;
    /// An order that is older than what its agent took is given up.
    const OUTLIVED: bool = true;
    /// Where the order of an operation that may be under way is lost, its agent is asked before the
    /// node is given back.
    const LOST_ORDER: bool = true;
    /// An order is closed in the spec before its node is given back.
    const CLOSED: bool = true;
    /// A node is given back only after its proof.
    const PROOF: bool = true;
    /// A boot that the plan did not have waits for a slot, the Lease and a drain.
    const ESCALATION: bool = true;
    /// A node that failed keeps its slot.
    const FAILED_KEEPS_SLOT: bool = true;
}

/// All guards stand.
#[derive(Debug, Clone, Copy)]
pub struct AllGuards;

impl Guards for AllGuards {}
