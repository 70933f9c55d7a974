//! States that mean the same are made one: ids and tokens by their order only, replicas and the
//! nodes of a pool in any order, and no write that is sure to be refused.

use crate::state::{Cordon, Hand, Node, Of, Op, Order, Part, Replica, Report, World, Write};
use tread_model::protocol::Stage;

impl World {
    /// This state, as it is kept.
    pub(crate) fn small(mut self) -> World {
        self.replicas.sort_unstable();
        for node in 0..self.nodes.len() {
            self.rename(node);
            // Of an order in another stage nobody asks it, and no agent does.
            self.each_order(node, &mut |order| order.same_cordon &= order.stage == Stage::Go);
            self.nodes[node].late.iter_mut().for_each(|order| order.same_cordon = false);
            self.renumber(node);
        }
        self.sort_nodes();
        self.replicas.sort_unstable();
        self
    }

    fn rename(&mut self, node: usize) {
        let mut names: [u8; 16] = [u8::MAX; 16];
        let mut next = 0;
        self.each_op(node, &mut |op: &mut Op| {
            let name = &mut names[usize::from(*op)];
            if *name == u8::MAX {
                *name = next;
                next += 1;
            }
            *op = *name;
        });
    }

    /// An id that nothing in this state has.
    pub(crate) fn fresh(&self, node: usize) -> Op {
        let (mut it, mut used) = (*self, 0u32);
        it.each_op(node, &mut |op: &mut Op| used |= 1 << *op);
        u8::try_from(used.trailing_ones()).unwrap()
    }

    fn each_op(&mut self, node: usize, f: &mut impl FnMut(&mut Op)) {
        self.nodes[node].each_op(f);
        for replica in self.replicas.iter_mut().filter(|it| it.node() == Some(node)) {
            replica.each_op(f);
        }
    }

    /// Tokens are compared, and one more is added to them: what else they are does not count, but
    /// for zero, which is none.
    fn renumber(&mut self, node: usize) {
        let mut all = [0u8; 16];
        let mut count = 0;
        self.each_token(node, &mut |token: &mut u8| {
            all[count] = *token;
            count += 1;
        });
        all[..count].sort_unstable();
        let mut new = [0u8; 64];
        let (mut before, mut last) = (0, 0);
        for token in &all[..count] {
            last += (token - before).min(2);
            before = *token;
            new[usize::from(*token)] = last;
        }
        let base = new[usize::from(all[0])] - all[0].min(1);
        self.each_token(node, &mut |token: &mut u8| *token = new[usize::from(*token)] - base);
    }

    fn each_token(&mut self, node: usize, f: &mut impl FnMut(&mut u8)) {
        let it = &mut self.nodes[node];
        it.lease.iter_mut().for_each(|lease| f(&mut lease.token));
        it.order.iter_mut().chain(&mut it.late).for_each(|order| f(&mut order.token));
        it.report.iter_mut().for_each(|report| f(&mut report.token));
        f(&mut it.agent.token);
        for replica in self.replicas.iter_mut().filter(|it| it.node() == Some(node)) {
            match replica {
                Replica::Writes { write: Write::Order(order), .. } => f(&mut order.token),
                Replica::Writes {
                    write: Write::MakeLease(lease) | Write::HoldLease(lease),
                    ..
                } => f(&mut lease.token),
                Replica::Reads { part, .. } => {
                    let (_, lease, order) = part.holds_mut();
                    lease.into_iter().for_each(|lease| f(&mut lease.token));
                    order.into_iter().for_each(|order| f(&mut order.token));
                    part.reported_mut().into_iter().for_each(|report| f(&mut report.token));
                }
                _ => {}
            }
        }
    }

    /// All orders for a node that controllers read or write.
    pub(crate) fn each_order(&mut self, node: usize, f: &mut impl FnMut(&mut Order)) {
        self.nodes[node].order.iter_mut().for_each(&mut *f);
        for replica in self.replicas.iter_mut().filter(|it| it.node() == Some(node)) {
            match replica {
                Replica::Writes { write: Write::Order(order), .. } => f(order),
                Replica::Reads { part, .. } => part.holds_mut().2.into_iter().for_each(&mut *f),
                _ => {}
            }
        }
    }

    fn sort_nodes(&mut self) {
        for right in 1..self.nodes.len() {
            let mut at = right;
            while at > 0
                && self.nodes[at - 1].pool == self.nodes[at].pool
                && self.nodes[at - 1] > self.nodes[at]
            {
                self.nodes.swap(at - 1, at);
                for replica in self.replicas.iter_mut() {
                    replica.swap_nodes(at - 1, at);
                }
                at -= 1;
            }
        }
    }
}

impl Node {
    fn each_op(&mut self, f: &mut impl FnMut(&mut Op)) {
        self.slot.iter_mut().for_each(|slot| f(&mut slot.op));
        self.lease.iter_mut().for_each(|lease| lease.of.each_op(f));
        self.order.iter_mut().for_each(|order| f(&mut order.op));
        self.report.iter_mut().for_each(|report| f(&mut report.op));
        if let Cordon::Ours(op) = &mut self.cordon {
            f(op);
        }
        self.agent.op.iter_mut().for_each(|(op, _)| f(op));
        self.late.iter_mut().for_each(|order| f(&mut order.op));
        self.wire.iter_mut().for_each(|wire| f(&mut wire.op));
    }
}

impl Of {
    fn each_op(&mut self, f: &mut impl FnMut(&mut Op)) {
        if let Of::For(op) = self {
            f(op);
        }
    }
}

impl Part {
    fn holds_mut(
        &mut self,
    ) -> (Option<&mut Op>, Option<&mut crate::state::Lease>, Option<&mut Order>) {
        match self {
            Part::Update(order, _) => (None, None, order.as_mut()),
            Part::UpdateAndLease(order, _, lease) => (None, lease.as_mut(), order.as_mut()),
            Part::All(slot, lease, order, _) => {
                (slot.as_mut().map(|it| &mut it.op), lease.as_mut(), order.as_mut())
            }
        }
    }

    fn reported_mut(&mut self) -> Option<&mut Report> {
        match self {
            Part::Update(_, report)
            | Part::UpdateAndLease(_, report, _)
            | Part::All(.., report) => report.as_mut(),
        }
    }
}

impl Replica {
    /// The node that it is at.
    pub(crate) fn node(&self) -> Option<usize> {
        match self {
            Replica::Idle => None,
            Replica::Reads { node, .. }
            | Replica::Writes { node, .. }
            | Replica::Hands { node, .. } => Some(usize::from(*node)),
        }
    }

    fn swap_nodes(&mut self, one: usize, other: usize) {
        if let Replica::Reads { node, .. }
        | Replica::Writes { node, .. }
        | Replica::Hands { node, .. } = self
        {
            let (one, other) = (u8::try_from(one).unwrap(), u8::try_from(other).unwrap());
            *node = match *node {
                it if it == one => other,
                it if it == other => one,
                it => it,
            };
        }
    }

    fn each_op(&mut self, f: &mut impl FnMut(&mut Op)) {
        match self {
            Replica::Idle => {}
            Replica::Reads { part, .. } => {
                let (op, lease, order) = part.holds_mut();
                op.into_iter().for_each(&mut *f);
                lease.into_iter().for_each(|lease| lease.of.each_op(f));
                order.into_iter().for_each(|it| f(&mut it.op));
                part.reported_mut().into_iter().for_each(|report| f(&mut report.op));
            }
            Replica::Writes { write, slots_seen, .. } => {
                let slot = slots_seen.as_mut().and_then(|seen| seen.slot.as_mut());
                slot.into_iter().for_each(|slot| f(&mut slot.op));
                match write {
                    Write::TakeSlot(slot) => f(&mut slot.op),
                    Write::ReleaseSlot(op) => f(op),
                    Write::MakeLease(lease) | Write::HoldLease(lease) => {
                        lease.of.each_op(f);
                    }
                    Write::ReleaseLease => {}
                    Write::Order(order) => f(&mut order.op),
                }
            }
            Replica::Hands { hand, .. } => match hand {
                Hand::Cordon(op) | Hand::Evict(op) => f(op),
                Hand::Uncordon(op) | Hand::Leave(op) => op.iter_mut().for_each(f),
            },
        }
    }
}
