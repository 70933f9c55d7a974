//! Time passes, and clocks that only count may be slow.

use crate::state::{Ask, Counter, Node, Of, Part, Replica, World, Write};
use crate::steps::Steps;

/// What ended so long ago has ended for everybody.
const LONG_AGO: i8 = -2;
/// A question that was asked so long ago is given up. A read may be older: how old it is cancels
/// out.
const LONG: i8 = 4;

impl Steps<'_> {
    /// One tick; by each clock of its own, at most one of which is slow.
    pub(crate) fn time(&mut self, world: &World) {
        if !world.may_pass() {
            return;
        }
        self.tick(world, None, None);
        if self.bounds.drift {
            for at in 0..world.nodes.len() {
                self.tick(world, Some(at), None);
            }
            for index in 0..world.replicas.len() {
                self.tick(world, None, Some(index));
            }
        }
    }

    fn tick(&mut self, world: &World, slow_node: Option<usize>, slow_replica: Option<usize>) {
        let mut next = *world;
        for (at, node) in next.nodes.iter_mut().enumerate() {
            node.tick(slow_node == Some(at), self.bounds.leases_end);
        }
        for (index, replica) in next.replicas.iter_mut().enumerate() {
            replica.tick(slow_replica == Some(index), self.bounds.leases_end);
        }
        for at in 0..next.nodes.len() {
            if next.nodes[at].asks.is_none() {
                next.reads_for_nobody(at);
            }
        }
        if next != *world {
            let slow = slow_node.is_some() || slow_replica.is_some();
            self.add(
                !slow,
                || if slow { "time passes, a clock is slow" } else { "time passes" }.to_owned(),
                next,
            );
        }
    }
}

impl World {
    /// What has to end by now has ended, and who holds a Lease has renewed it.
    fn may_pass(&self) -> bool {
        self.nodes.iter().all(|node| {
            let ends = node.doing.is_none_or(|(_, left)| left > 0);
            let lease = node.lease.filter(|it| it.of == Of::Other);
            ends && (!node.others || lease.is_none_or(|it| it.ends >= 0))
        })
    }
}

fn earlier(at: &mut i8) {
    *at = (*at - 1).max(LONG_AGO);
}

impl Counter {
    fn tick(&mut self, slow: bool) {
        if slow && self.lag == 0 {
            self.lag = 1;
        } else {
            self.left = (self.left - 1).max(0);
        }
    }
}

impl Ask {
    fn tick(&mut self, slow: bool) {
        if slow && self.lag == 0 {
            self.lag = 1;
        } else {
            self.ago = (self.ago + 1).min(LONG);
        }
    }
}

impl Node {
    fn tick(&mut self, slow: bool, leases_end: bool) {
        if leases_end {
            self.lease.iter_mut().for_each(|it| earlier(&mut it.ends));
        }
        for order in self.order.iter_mut().chain(&mut self.late) {
            order.hands_on = (order.hands_on - 1).max(0);
        }
        self.permit.iter_mut().for_each(|it| it.tick(slow));
        self.asks.iter_mut().for_each(|it| it.tick(slow));
        if self.asks.is_some_and(|it| it.ago == LONG) {
            self.asks = None;
            self.forget_answers();
        }
        self.doing.iter_mut().for_each(|(_, left)| *left -= 1);
    }
}

impl Replica {
    fn tick(&mut self, slow: bool, leases_end: bool) {
        match self {
            Replica::Idle => {}
            Replica::Reads { part, ago, .. } => {
                // Where Leases stand still, what was read of them does not get old.
                *ago = (*ago + i8::from(leases_end)).min(LONG);
                let (lease, order) = match part {
                    Part::Update(order, _) => (None, order.as_mut()),
                    Part::UpdateAndLease(order, _, lease) => (lease.as_mut(), order.as_mut()),
                    Part::All(_, lease, order, _) => (lease.as_mut(), order.as_mut()),
                };
                lease.into_iter().filter(|_| leases_end).for_each(|it| earlier(&mut it.ends));
                order.into_iter().for_each(|it| it.hands_on -= i8::from(it.hands_on > 0));
            }
            Replica::Writes { write, .. } => match write {
                Write::MakeLease(lease) | Write::HoldLease(lease) if leases_end => {
                    earlier(&mut lease.ends);
                }
                Write::Order(order) => order.hands_on = (order.hands_on - 1).max(0),
                _ => {}
            },
            Replica::Hands { within, .. } => within.tick(slow),
        }
    }
}
