//! What must never be.

use crate::bounds::Bounds;
use crate::state::{Cordon, Node, Of, World};
use tread_model::protocol::{Disrupts, Phase, What};

/// What was broken.
pub(crate) type Broken = &'static str;

pub(crate) fn law(holds: bool, says: &'static str) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(says) }
}

impl Node {
    /// Whether it is unavailable by tread.
    fn is_down(&self) -> bool {
        let failed = matches!(self.agent.op, Some((_, Phase::Degraded)));
        let is_cordoned = matches!(self.cordon, Cordon::Ours(_));
        is_cordoned || matches!(self.doing, Some((What::Boot, _))) || failed
    }

    fn is_disrupted_softly(&self) -> bool {
        matches!(self.doing, Some((What::Unit, _))) && self.cordon == Cordon::No
    }

    fn keeps_the_laws(&self) -> Result<(), Broken> {
        law(self.agent.boots <= 1, "a node boots once in an operation")?;
        let Some((what, _)) = self.doing else { return Ok(()) };
        let op = self.agent.op.map(|(op, _)| op);
        law(self.slot.map(|slot| slot.op) == op, "a node is disrupted only with a slot")?;
        if self.agent.disrupts != Disrupts::Nothing {
            let held = self.lease.filter(|lease| Some(lease.of) == op.map(Of::For));
            law(held.is_some_and(|it| it.ends >= 0), "a node is disrupted only under its Lease")?;
            law(!self.others, "a node is left alone while somebody else works at it")?;
        }
        if what == What::Boot || self.agent.disrupts.drains() {
            law(self.slot.is_some_and(|it| it.unavailable), "a boot needs a slot of its own")?;
            law(matches!(self.cordon, Cordon::Ours(_)), "only a cordoned node boots")?;
            law(!self.pods, "only a drained node boots")?;
        }
        Ok(())
    }
}

impl World {
    pub(crate) fn keeps_the_laws(&self, bounds: &Bounds) -> Result<(), Broken> {
        self.nodes.iter().try_for_each(Node::keeps_the_laws)?;
        // With it the budget holds by the slots alone, for as many nodes as there are.
        let has_slot = |node: &Node| node.slot.is_some_and(|slot| slot.unavailable);
        let is_counted = self.nodes.iter().all(|node| !node.is_down() || has_slot(node));
        law(is_counted, "a node is down only with a slot")?;
        let down = || self.nodes.iter().filter(|node| node.is_down());
        law(down().count() <= bounds.limits.all, "no more nodes are down than all may be")?;
        for pool in 0..2 {
            let of = |node: &&Node| node.pool == pool;
            law(
                down().filter(of).count() <= bounds.limits.pool,
                "no more nodes are down than a pool may have",
            )?;
            let soft = self.nodes.iter().filter(of).filter(|node| node.is_disrupted_softly());
            law(soft.count() <= bounds.limits.soft, "no more nodes are told softly than may be")?;
        }
        Ok(())
    }

    /// Whether the rollout has come to its end: everything is given back but what failed, and
    /// what is not done waits for somebody who looks at that.
    pub(crate) fn is_at_its_end(&self) -> bool {
        let failed = |node: &Node| {
            matches!(node.agent.op, Some((_, Phase::Degraded | Phase::WentBack)))
                && node.agent.to == self.newest
        };
        let stuck = |node: &Node| matches!(node.agent.op, Some((_, Phase::NeedsBoot)));
        let degraded = |node: &Node| node.is_unwell() && (node.report == node.agent.report());
        let any_degraded = self.nodes.iter().any(degraded);
        self.nodes.iter().all(|node| {
            let halted = self.nodes.iter().any(|it| it.pool == node.pool && failed(it));
            let ours = node.lease.is_some_and(|lease| lease.of != Of::Other);
            let free = node.slot.is_none() && node.cordon == Cordon::No && !ours;
            match () {
                () if degraded(node) => node.slot.is_some() && !ours && self.retries == 0,
                () if stuck(node) => any_degraded && node.slot.is_some(),
                () => free && (node.known == self.newest || halted || self.waits_for_room(node)),
            }
        })
    }

    /// Whether nodes that failed have all the slots.
    fn waits_for_room(&self, node: &Node) -> bool {
        self.nodes.iter().any(|it| it.slot.is_some() && !std::ptr::eq(it, node))
    }
}
