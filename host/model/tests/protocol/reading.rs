//! What a replica sees of a state, and what it makes of it: tread's own functions are asked.

use crate::bounds::{Bounds, NOW, seconds};
use crate::state::{
    Cordon, Hand, Lease, Node, Of, Op, Order, Part, Report, Slot, SlotsSeen, World, Write,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tread_model::digest::Digest;
use tread_model::protocol as p;

thread_local! {
    static VERSION: p::Version = p::Version(Arc::from("1"));
}

/// The stamp of the cordon that stands, and one of a cordon that somebody undid.
const STAMP: p::Stamp = p::Stamp(1);
const GONE: p::Stamp = p::Stamp(0);

/// What a replica is about to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Does {
    /// Whether onto the version that was read, and whether a slot that was lost is taken again.
    Write(Write, bool, bool),
    Hand(Hand, i8),
    Nothing,
}

pub(crate) fn op(op: Op) -> p::Operation {
    p::Operation(u128::from(op))
}

fn back(op: p::Operation) -> Op {
    u8::try_from(op.0).unwrap()
}

fn config(config: u8) -> p::Config {
    p::Config(Digest([config; 32]))
}

fn time(at: i8) -> p::Time {
    p::Time(seconds(NOW + at))
}

fn short(span: Duration) -> i8 {
    i8::try_from(span.as_secs()).unwrap()
}

fn from_now(time: p::Time) -> i8 {
    short(time.0) - NOW
}

impl Lease {
    fn read(self) -> p::Lease {
        let holder = match self.of {
            Of::For(it) => p::Holder::Us(Some(op(it))),
            Of::Unclaimed => p::Holder::Us(None),
            Of::Other => p::Holder::Other,
        };
        let renewed = Some(time(self.ends - 20));
        p::Lease { holder, transitions: self.token.into(), renewed, lasts: Some(seconds(20)) }
    }

    fn written(lease: p::Lease) -> Lease {
        let of = match lease.holder {
            p::Holder::Us(of) => of.map_or(Of::Unclaimed, |of| Of::For(back(of))),
            p::Holder::Other => panic!("{lease:?}"),
        };
        let ends = from_now(lease.ends().unwrap());
        Lease { of, token: u8::try_from(lease.transitions).unwrap(), ends }
    }
}

impl Order {
    pub(crate) fn read(self) -> p::Order {
        p::Order {
            operation: op(self.op),
            config: config(self.config),
            disrupts: self.disrupts,
            token: self.token.into(),
            stage: self.stage,
            given: self.given,
            unwell: self.unwell,
            hands_on: (self.hands_on > 0).then(|| time(self.hands_on)),
            cordon: (self.stage == p::Stage::Go && self.disrupts.drains())
                .then_some(if self.same_cordon { STAMP } else { GONE }),
        }
    }

    fn written(order: p::Order) -> Order {
        Order {
            op: back(order.operation),
            config: order.config.0.0[0],
            disrupts: order.disrupts,
            token: u8::try_from(order.token).unwrap(),
            stage: order.stage,
            given: order.given,
            unwell: order.unwell,
            hands_on: order.hands_on.map_or(0, |at| from_now(at).max(0)),
            same_cordon: order.cordon == Some(STAMP),
        }
    }
}

impl Report {
    fn read(self) -> p::Report {
        p::Report { operation: op(self.op), phase: self.phase, token: self.token.into() }
    }
}

impl Slot {
    fn read(self) -> p::Slot {
        p::Slot { operation: op(self.op), unavailable: self.unavailable }
    }
}

impl World {
    /// What a replica reads of a node; a part of it, if there is one, so long ago.
    pub(crate) fn seen(
        &self,
        bounds: &Bounds,
        at: usize,
        part: Option<(Part, i8)>,
        fresh: bool,
    ) -> p::Seen {
        let node = &self.nodes[at];
        let (mut slot, mut lease) = (node.slot, node.lease);
        let (mut order, mut report, mut ago) = (node.order, node.report, 0);
        if let Some((part, how_long)) = part {
            ago = how_long;
            match part {
                Part::Update(it, said) => (order, report) = (it, said),
                Part::UpdateAndLease(it, said, held) => (order, report, lease) = (it, said, held),
                Part::All(a, b, c, d) => (slot, lease, order, report) = (a, b, c, d),
            }
        }
        let version = || VERSION.with(Clone::clone);
        let room = |softly| self.has_room(bounds, at, softly);
        p::Seen {
            now: time(-ago),
            fresh,
            versions: p::Versions {
                slots: version(),
                lease: lease.is_some().then(version),
                update: version(),
            },
            slot: slot.map(Slot::read),
            soft_room: room(true),
            room: room(false),
            lease: lease.map(Lease::read),
            order: order.map(Order::read),
            report: report.map(Report::read),
            cordon: match node.cordon {
                Cordon::No => p::Cordon::No,
                Cordon::Ours(it) => p::Cordon::Ours(op(it), Some(STAMP)),
                Cordon::Anothers => p::Cordon::Anothers,
            },
            drained: !node.pods,
            proved: node.proved,
            held: node.held.then_some(p::HeldBy::Drain),
            wanted: self.wanted(bounds, node),
            newest: config(self.newest),
            turns_back: false,
            id: op(self.fresh(at)),
        }
    }

    fn has_room(&self, bounds: &Bounds, at: usize, softly: bool) -> bool {
        let mut slots = p::Slots::default();
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(slot) = node.slot {
                slots = slots.with(index, node.pool, slot.read());
            }
        }
        let pool = self.nodes[at].pool;
        let left = |node: &Node| node.cordon == Cordon::Anothers;
        let down = self.nodes.iter().enumerate().filter(|(_, node)| left(node));
        let down: BTreeMap<usize, u8> = down.map(|(at, node)| (at, node.pool)).collect();
        slots.has_room(&at, &pool, softly, bounds.limits, &down)
    }

    /// What is seen of the slots now, for this write: giving one back does not depend on the room.
    pub(crate) fn slots_seen(&self, bounds: &Bounds, at: usize, write: &Write) -> SlotsSeen {
        let room = match write {
            Write::TakeSlot(slot) => self.has_room(bounds, at, !slot.unavailable),
            _ => false,
        };
        SlotsSeen { slot: self.nodes[at].slot, room }
    }

    /// A rollout wants the newest config, and halts in a pool where a node failed.
    fn wanted(&self, bounds: &Bounds, node: &Node) -> Option<p::Wanted> {
        let failed = |it: &Node| {
            let phase = it.report.map(|report| report.phase);
            matches!(phase, Some(p::Phase::Degraded | p::Phase::WentBack))
                && it.order.is_some_and(|order| order.config == self.newest)
        };
        let degraded = node.is_unwell();
        let halted = self.nodes.iter().any(|it| it.pool == node.pool && failed(it));
        let again = node.slot.map(|slot| slot.op) != node.order.map(|order| order.op);
        let may = if degraded { self.retries > 0 || again } else { !halted };
        let disrupts = if degraded { p::Disrupts::Reboot } else { bounds.disrupts };
        let has_it = node.known == self.newest;
        let (order, report) = (node.order.map(Order::read), node.report.map(Report::read));
        let of_order = (order.as_ref(), report);
        p::wanted(may.then_some(disrupts), config(self.newest), has_it, of_order)
    }

    /// What tread does next, by what was seen.
    pub(crate) fn does<G: p::Guards>(bounds: &Bounds, seen: &p::Seen) -> Does {
        let current = |onto: &Option<p::Version>| {
            onto.as_ref().is_none_or(|onto| VERSION.with(|it| it == onto)) && onto.is_some()
        };
        let act = p::next_with::<G>(seen, &bounds.terms);
        let retakes = p::retakes(seen, &act);
        match act {
            p::Act::TakeSlot { onto, slot } => {
                let slot = Slot { op: back(slot.operation), unavailable: slot.unavailable };
                Does::Write(Write::TakeSlot(slot), current(&onto), retakes)
            }
            p::Act::ReleaseSlot { onto, operation } => {
                Does::Write(Write::ReleaseSlot(back(operation)), current(&onto), false)
            }
            p::Act::MakeLease(lease) => {
                Does::Write(Write::MakeLease(Lease::written(lease)), true, false)
            }
            p::Act::WriteLease { onto, lease } => {
                Does::Write(Write::HoldLease(Lease::written(lease)), current(&onto), false)
            }
            p::Act::ReleaseLease { onto } => {
                Does::Write(Write::ReleaseLease, current(&onto), false)
            }
            p::Act::WriteOrder { onto, order } => {
                Does::Write(Write::Order(Order::written(order)), current(&onto), false)
            }
            p::Act::Cordon { operation, within, .. } => {
                Does::Hand(Hand::Cordon(back(operation)), short(within))
            }
            p::Act::Evict { within } => {
                let of = seen.order.map_or(0, |order| back(order.operation));
                Does::Hand(Hand::Evict(of), short(within))
            }
            p::Act::Uncordon { of, within } => {
                Does::Hand(Hand::Uncordon(of.map(back)), short(within))
            }
            p::Act::HandOver { of, within } => Does::Hand(Hand::Leave(of.map(back)), short(within)),
            p::Act::ReadAfresh | p::Act::Degrade | p::Act::Wait(_) => Does::Nothing,
        }
    }
}

impl Node {
    /// Whether what stands in the cluster says that an operation failed, and none mended it.
    pub(crate) fn is_unwell(&self) -> bool {
        let of_order = self.order.zip(self.report).is_some_and(|(order, it)| order.op == it.op);
        match self.report.map(|report| report.phase) {
            Some(p::Phase::Degraded) => true,
            Some(p::Phase::Done | p::Phase::WentBack) if of_order => false,
            _ => self.order.is_some_and(|order| order.unwell),
        }
    }
}
