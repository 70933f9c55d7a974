//! What a search covers: how many of what, and what may go wrong how often.

use crate::state::{Agent, Cordon, List, Node, Replica, World};
use std::time::Duration;
use tread_model::protocol::{Disrupts, Limits, Terms};

/// The present, in seconds, so that there are times before it.
pub(crate) const NOW: i8 = 50;

pub(crate) fn seconds(count: i8) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap())
}

/// What a search covers.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// The pool of each node.
    pub(crate) pools: &'static [u8],
    pub(crate) replicas: usize,
    pub(crate) disrupts: Disrupts,
    pub(crate) limits: Limits,
    pub(crate) terms: Terms,
    /// Whether Leases end by time, or are always renewed.
    pub(crate) leases_end: bool,
    /// Whether clocks that only count may be slow.
    pub(crate) drift: bool,
    /// How many newer configs come.
    pub(crate) newer: u8,
    /// How often the newest config is taken back, for the one before.
    pub(crate) taken_back: u8,
    /// How often somebody else takes a Lease.
    pub(crate) others: u8,
    /// How often a step, a boot or a proof fails.
    pub(crate) failures: u8,
    /// How often a node that failed is tried again.
    pub(crate) retries: u8,
    /// How often an agent dies.
    pub(crate) agent_crashes: u8,
    /// How often a NodeUpdate loses its status, as one that is restored from a backup does.
    pub(crate) reports_lost: u8,
    /// How often a NodeUpdate is removed and made anew, while nothing is under way on its node.
    pub(crate) updates_lost: u8,
    /// Whether that comes at any time.
    pub(crate) updates_lost_under_way: bool,
    /// How often somebody else takes a node by a mark, as who drains it sets one.
    pub(crate) marks: u8,
    /// How often somebody uncordons a node, but for what was permitted and is not over yet.
    pub(crate) uncordons: u8,
    /// Whether room is refused at any time, as where other nodes have all slots.
    pub(crate) room_is_refused: bool,
    /// Whether an order comes late to an agent, or again, and a permit again.
    pub(crate) late_orders: bool,
    /// Whether a replica may read one object long before the others.
    pub(crate) torn_reads: bool,
    /// Whether a replica may go by a cache that holds all of it as it was.
    pub(crate) cached: bool,
}

impl Bounds {
    /// One pool, one replica, nothing goes wrong.
    pub(crate) fn quiet(pools: &'static [u8], disrupts: Disrupts) -> Bounds {
        let terms = Terms {
            lease: seconds(3),
            skew: seconds(1),
            drift: seconds(1),
            step: seconds(1),
            boot: seconds(2),
            pass: seconds(2),
        };
        Bounds {
            pools,
            replicas: 1,
            disrupts,
            limits: Limits { pool: 1, all: 1, soft: 1, one_by_one: false },
            terms,
            leases_end: true,
            drift: false,
            newer: 0,
            taken_back: 0,
            others: 0,
            failures: 0,
            retries: 0,
            agent_crashes: 0,
            reports_lost: 0,
            updates_lost: 0,
            updates_lost_under_way: false,
            marks: 0,
            uncordons: 0,
            room_is_refused: false,
            late_orders: false,
            torn_reads: false,
            cached: false,
        }
    }

    /// The newest config at the beginning: every node has an older one.
    pub(crate) fn start(&self) -> World {
        let node = |pool: &u8| Node {
            pool: *pool,
            slot: None,
            lease: None,
            order: None,
            report: None,
            known: 0,
            cordon: Cordon::No,
            pods: true,
            proved: true,
            agent: Agent {
                op: None,
                token: 0,
                config: 0,
                to: 0,
                disrupts: Disrupts::Nothing,
                boots: 0,
            },
            late: None,
            asks: None,
            wire: None,
            permit: None,
            doing: None,
            others: false,
            held: false,
        };
        World {
            nodes: List::of(self.pools.iter().map(node)),
            replicas: List::of(std::iter::repeat_n(Replica::Idle, self.replicas)),
            newest: 1,
            taken_back: self.taken_back,
            others_come: self.others,
            failures: self.failures,
            retries: self.retries,
            agent_crashes: self.agent_crashes,
            reports_lost: self.reports_lost,
            updates_lost: self.updates_lost,
            marks_come: self.marks,
            uncordons: self.uncordons,
        }
    }
}
