//! What the API server does with writes, and what replicas do to nodes.

use crate::laws::{Broken, law};
use crate::state::{Cordon, Hand, Lease, Of, Replica, Slot, World, Write};
use tread_model::protocol::Phase;

/// An object that has a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    Slots,
    Lease,
    Update,
}

impl Write {
    pub(crate) fn object(&self) -> Object {
        match self {
            Write::TakeSlot(_) | Write::ReleaseSlot(_) => Object::Slots,
            Write::MakeLease(_) | Write::HoldLease(_) | Write::ReleaseLease => Object::Lease,
            Write::Order(_) => Object::Update,
        }
    }
}

impl World {
    /// An object has another version now: writes onto the one before will be refused.
    pub(crate) fn touched(&mut self, object: Object, at: usize) {
        for replica in self.replicas.iter_mut() {
            let is_here = replica.node() == Some(at) || object == Object::Slots;
            match replica {
                // It asks for no version but that there is none.
                Replica::Writes { write: Write::MakeLease(_), .. } => {}
                // It reads the slots again right before it writes.
                Replica::Writes { slots_seen: Some(_), .. } => {}
                Replica::Writes { write, onto: true, .. }
                    if is_here && write.object() == object =>
                {
                    *replica = Replica::Idle;
                }
                Replica::Reads { update, lease, .. } if is_here => {
                    *update &= object != Object::Update;
                    *lease &= object != Object::Lease;
                }
                _ => {}
            }
        }
    }

    /// A write arrives; nothing, if it is refused.
    pub(crate) fn written(mut self, at: usize, write: Write) -> Option<World> {
        let node = &mut self.nodes[at];
        match write {
            Write::TakeSlot(slot) => node.slot = Some(slot),
            Write::ReleaseSlot(op) => match node.slot {
                Some(Slot { op: of, .. }) if of == op => node.slot = None,
                _ => return None,
            },
            Write::MakeLease(_) if node.lease.is_some() => return None,
            Write::MakeLease(lease) | Write::HoldLease(lease) => node.lease = Some(lease),
            Write::ReleaseLease => node.lease = None,
            Write::Order(order) => node.order = Some(order),
        }
        self.touched(write.object(), at);
        Some(self)
    }

    /// A replica touches a node.
    pub(crate) fn touches(mut self, at: usize, hand: Hand) -> Result<World, Broken> {
        let node = &mut self.nodes[at];
        let lease = node.lease;
        let held = lease.is_some_and(|it| it.of != Of::Other && it.ends > 0) && !node.others;
        let begun = match node.agent.op {
            Some((op, Phase::Begun | Phase::NeedsBoot)) => Some(op),
            _ => None,
        };
        match hand {
            Hand::Cordon(_) if node.cordon == Cordon::Anothers => {}
            Hand::Cordon(op) | Hand::Evict(op) => {
                law(held, "a node is cordoned and drained only under its Lease")?;
                law(
                    lease.is_some_and(|it| it.of == Of::For(op)),
                    "a node is drained for the operation that has its Lease",
                )?;
                law(
                    node.slot.is_some_and(|it| it.op == op && it.unavailable),
                    "a node is drained only with a slot",
                )?;
                law(begun.is_none_or(|it| it == op), "a node is in one operation at a time")?;
                match hand {
                    Hand::Evict(_) => node.pods = false,
                    // It asks that nobody cordoned the node.
                    _ if node.cordon == Cordon::Ours(op) => {}
                    _ => self.cordoned(at, Cordon::Ours(op)),
                }
            }
            Hand::Uncordon(of) => {
                let Cordon::Ours(mark) = node.cordon else { return Ok(self) };
                if of.is_some_and(|of| of != mark) {
                    return Ok(self);
                }
                law(held, "a cordon is undone only under the Lease")?;
                law(begun.is_none(), "no cordon is undone while the agent is at it")?;
                law(!node.held, "no cordon is undone while somebody else has the node")?;
                law(node.proved, "no cordon is undone before the proof")?;
                let failed = matches!(node.agent.op, Some((_, Phase::Degraded)));
                law(!failed, "a node that failed stays cordoned")?;
                self.uncordoned(at);
            }
            Hand::Leave(of) => {
                let Cordon::Ours(mark) = node.cordon else { return Ok(self) };
                if of.is_some_and(|of| of != mark) {
                    return Ok(self);
                }
                law(begun.is_none(), "no cordon is left to others while the agent is at it")?;
                self.cordoned(at, Cordon::Anothers);
            }
        }
        Ok(self)
    }

    /// A node's cordon is another one now, or none: no order was given under that one.
    fn cordoned(&mut self, at: usize, cordon: Cordon) {
        self.nodes[at].cordon = cordon;
        self.each_order(at, &mut |order| order.same_cordon = false);
    }

    /// A node is uncordoned, by whoever: pods come.
    pub(crate) fn uncordoned(&mut self, at: usize) {
        self.cordoned(at, Cordon::No);
        self.nodes[at].pods = true;
    }

    /// Somebody else takes the node by a mark, or is gone: whatever was to be patched of it is
    /// refused, since the Node has another version.
    pub(crate) fn marked(mut self, at: usize, held: bool) -> World {
        self.nodes[at].held = held;
        for replica in self.replicas.iter_mut().filter(|it| it.node() == Some(at)) {
            if let Replica::Hands { hand, .. } = replica
                && !matches!(hand, Hand::Evict(_))
            {
                *replica = Replica::Idle;
            }
        }
        self
    }

    /// Somebody else takes the Lease and works at the node.
    pub(crate) fn taken_by_others(mut self, at: usize, lasts: i8) -> World {
        let node = &mut self.nodes[at];
        let token = node.lease.map_or(0, |lease| lease.token + 1);
        node.lease = Some(Lease { of: Of::Other, token, ends: lasts });
        node.others = true;
        self.others_come -= 1;
        self.touched(Object::Lease, at);
        self
    }
}
