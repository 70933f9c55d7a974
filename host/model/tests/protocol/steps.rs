//! Everything that can happen next.

use crate::bounds::Bounds;
use crate::laws::Broken;
use crate::reading::{Does, op};
use crate::state::{Cordon, Counter, Node, Of, Part, Replica, Wire, World, Write};
use crate::writing::Object;
use tread_model::protocol as p;
use tread_model::protocol::Phase;

/// One thing that happens, and what is then.
pub(crate) struct Next {
    pub(crate) what: String,
    /// Whether it is no fault: it happens at some time, if it can.
    pub(crate) fair: bool,
    pub(crate) world: World,
}

/// Collects what can happen next.
pub(crate) struct Steps<'b> {
    pub(crate) bounds: &'b Bounds,
    /// Whether what happens is said in words.
    pub(crate) traced: bool,
    pub(crate) found: Vec<Next>,
}

/// What was broken, and by what.
pub(crate) type Failed = (String, Broken);

impl Steps<'_> {
    pub(crate) fn add(&mut self, fair: bool, what: impl FnOnce() -> String, world: World) {
        let what = if self.traced { what() } else { String::new() };
        self.found.push(Next { what, fair, world });
    }

    /// All that can happen next.
    pub(crate) fn of<G: p::Guards>(&mut self, world: &World) -> Result<(), Failed> {
        self.found.clear();
        self.time(world);
        for at in 0..world.nodes.len() {
            self.agents::<G>(world, at);
            self.permits::<G>(world, at);
            self.others(world, at);
            self.marks(world, at);
            self.uncordons(world, at);
        }
        for index in 0..world.replicas.len() {
            // Replicas that are about to do the same are one.
            if index == 0 || world.replicas[index] != world.replicas[index - 1] {
                self.replica::<G>(world, index)?;
            }
        }
        if world.newest <= self.bounds.newer {
            let mut next = *world;
            next.newest += 1;
            self.add(false, || "a newer config comes".to_owned(), next);
        }
        if world.taken_back > 0 && world.newest > 0 {
            let mut next = *world;
            next.newest -= 1;
            next.taken_back -= 1;
            self.add(false, || "the newest config is taken back".to_owned(), next);
        }
        Ok(())
    }

    fn replica<G: p::Guards>(&mut self, world: &World, index: usize) -> Result<(), Failed> {
        let with = |replica: Replica| {
            let mut next = *world;
            next.replicas[index] = replica;
            next
        };
        match world.replicas[index] {
            Replica::Idle => {
                for at in 0..world.nodes.len() {
                    let mut seen = world.seen(self.bounds, at, None, true);
                    self.decides::<G>(&with(Replica::Idle), index, at, &seen, |_| true, 0);
                    if self.bounds.room_is_refused {
                        (seen.room, seen.soft_room) = (false, false);
                        self.decides::<G>(&with(Replica::Idle), index, at, &seen, |_| true, 0);
                    }
                    self.reads(world, index, at);
                }
            }
            Replica::Reads { node, part, ago, fresh, update, lease } => {
                let at = usize::from(node);
                self.add(false, || format!("replica {index} dies"), with(Replica::Idle));
                let is_cache = matches!(part, Part::All(..));
                let mut seen = world.seen(self.bounds, at, Some((part, ago)), !is_cache);
                let sure = |write: &Write| match write.object() {
                    Object::Slots => true,
                    Object::Update => update,
                    Object::Lease => lease || matches!(part, Part::Update(..)),
                };
                self.decides::<G>(&with(Replica::Idle), index, at, &seen, sure, ago);
                seen.fresh = fresh;
                self.permit::<G>(&with(Replica::Idle), at, &seen);
                if let Part::Update(order, report) = part {
                    let part = Part::UpdateAndLease(order, report, world.nodes[at].lease);
                    let next = Replica::Reads { node, part, ago, fresh, update, lease: true };
                    self.add(true, || format!("replica {index} reads the Lease too"), with(next));
                }
            }
            Replica::Writes { node, write, slots_seen, .. } => {
                let at = usize::from(node);
                self.add(
                    false,
                    || format!("replica {index} dies, or its write is lost"),
                    with(Replica::Idle),
                );
                let is_so =
                    slots_seen.is_none_or(|seen| world.slots_seen(self.bounds, at, &write) == seen);
                let next = with(Replica::Idle).written(at, write).filter(|_| is_so);
                let next = next.unwrap_or_else(|| with(Replica::Idle));
                self.add(true, || format!("replica {index} on node {at}: {write:?} arrives"), next);
                if matches!(write, Write::MakeLease(_))
                    && let Some(next) = world.written(at, write)
                {
                    self.add(
                        false,
                        || format!("{write:?} on node {at} arrives, and will again"),
                        next,
                    );
                }
            }
            Replica::Hands { node, hand, within } => {
                let at = usize::from(node);
                self.add(
                    within.left <= 0,
                    || format!("replica {index} dies, or is too late"),
                    with(Replica::Idle),
                );
                if within.left > 0 {
                    let next = with(Replica::Idle).touches(at, hand);
                    let what = || format!("replica {index} on node {at}: {hand:?}");
                    match next {
                        Ok(next) => self.add(true, what, next),
                        Err(broken) => return Err((what(), broken)),
                    }
                }
            }
        }
        Ok(())
    }

    fn decides<G: p::Guards>(
        &mut self,
        world: &World,
        index: usize,
        at: usize,
        seen: &p::Seen,
        sure: impl Fn(&Write) -> bool,
        ago: i8,
    ) {
        let mut next = *world;
        let node = u8::try_from(at).unwrap();
        next.replicas[index] = match World::does::<G>(self.bounds, seen) {
            Does::Nothing => Replica::Idle,
            // Its version is gone already.
            Does::Write(write, true, _) if !sure(&write) => Replica::Idle,
            Does::Write(write, onto, retakes) => {
                let phase = world.nodes[at].report.map(|report| report.phase);
                if let (Write::TakeSlot(_), Some(Phase::Degraded), true) =
                    (write, phase, next.retries > 0)
                {
                    next.retries -= 1;
                }
                let again = onto && write.object() == Object::Slots && !retakes;
                let slots_seen = again.then(|| world.slots_seen(self.bounds, at, &write));
                Replica::Writes { node, write, onto, slots_seen }
            }
            Does::Hand(hand, left) => {
                let left = (left - ago).max(0);
                Replica::Hands { node, hand, within: Counter { left, lag: 0 } }
            }
        };
        let does = next.replicas[index];
        self.add(true, || format!("replica {index} decides: {does:?}"), next);
    }

    /// A replica reads one object, and the others later.
    fn reads(&mut self, world: &World, index: usize, at: usize) {
        if !self.bounds.torn_reads {
            return;
        }
        let it = &world.nodes[at];
        let part = match self.bounds.cached {
            true => Part::All(it.slot, it.lease, it.order, it.report),
            false => Part::Update(it.order, it.report),
        };
        let mut next = *world;
        let node = u8::try_from(at).unwrap();
        let fresh = it.asks.is_some() && !self.bounds.cached;
        next.replicas[index] =
            Replica::Reads { node, part, ago: 0, fresh, update: true, lease: true };
        self.add(true, || format!("replica {index} reads of node {at}: {part:?}"), next);
    }

    /// Some replica answers the agent's question by what it reads now.
    fn permits<G: p::Guards>(&mut self, world: &World, at: usize) {
        let seen = world.seen(self.bounds, at, None, true);
        self.permit::<G>(world, at, &seen);
    }

    fn permit<G: p::Guards>(&mut self, world: &World, at: usize, seen: &p::Seen) {
        let node = &world.nodes[at];
        let (Some(ask), Some((of, _))) = (node.asks, node.agent.op) else { return };
        let question = p::Question { operation: op(of), what: ask.what, number: 1 };
        if let Ok(permit) = p::permit_with::<G>(seen, &question, &self.bounds.terms) {
            let lasts = i8::try_from(permit.lasts.as_secs()).unwrap();
            let mut next = *world;
            next.nodes[at].wire = Some(Wire { op: of, lasts, answers: true });
            self.add(true, || format!("node {at} is permitted {:?} for {lasts}", ask.what), next);
        }
    }

    /// Somebody else has the node by a mark for a while.
    fn marks(&mut self, world: &World, at: usize) {
        let node = &world.nodes[at];
        if world.marks_come > 0 && !node.held {
            let mut next = world.marked(at, true);
            next.marks_come -= 1;
            self.add(false, || format!("somebody else marks node {at}"), next);
        }
        if !node.held {
            return;
        }
        let goes = |uncordons: bool| {
            let mut next = world.marked(at, false);
            if uncordons {
                next.uncordoned(at);
            }
            next
        };
        if node.cordon == Cordon::Anothers {
            self.add(true, || format!("the other one gives node {at} back"), goes(true));
        } else {
            self.add(true, || format!("node {at} is nobody else's"), goes(false));
        }
    }

    /// Somebody uncordons a node that tread cordoned, whatever replicas are about to do. Nothing
    /// helps who does so in the middle of what was permitted.
    fn uncordons(&mut self, world: &World, at: usize) {
        let node = &world.nodes[at];
        let is_permitted = node.doing.is_some()
            || node.permit.is_some_and(|it| it.left > 0)
            || node.wire.is_some_and(|it| it.answers);
        let is_ours = matches!(node.cordon, Cordon::Ours(_));
        if world.uncordons > 0 && is_ours && !is_permitted {
            let mut next = *world;
            next.uncordoned(at);
            next.uncordons -= 1;
            self.add(false, || format!("somebody uncordons node {at}"), next);
        }
    }

    fn others(&mut self, world: &World, at: usize) {
        const LASTS: i8 = 3;
        let node = &world.nodes[at];
        let skew = i8::try_from(self.bounds.terms.skew.as_secs()).unwrap();
        // Its clock may be ahead.
        if world.others_come > 0 && node.lease.is_none_or(|it| it.ends <= skew) && !node.others {
            let next = world.taken_by_others(at, LASTS);
            self.add(false, || format!("somebody else takes the Lease of node {at}"), next);
        }
        if !node.others {
            return;
        }
        let is_theirs = node.lease.is_some_and(|it| it.of == Of::Other);
        let with = |change: &dyn Fn(&mut Node)| {
            let mut next = *world;
            change(&mut next.nodes[at]);
            next.touched(Object::Lease, at);
            next
        };
        if is_theirs {
            let renewed = with(&|it| it.lease.iter_mut().for_each(|it| it.ends = LASTS));
            self.add(true, || format!("the other one renews the Lease of node {at}"), renewed);
            let removed = with(&|it| (it.others, it.lease) = (false, None));
            self.add(true, || format!("the other one releases node {at}"), removed);
        }
        let left = with(&|it| it.others = false);
        self.add(true, || format!("the other one is gone from node {at}"), left);
        if node.cordon != Cordon::No || !node.pods {
            let mut next = *world;
            next.uncordoned(at);
            self.add(false, || format!("the other one uncordons node {at}"), next);
        }
    }
}

impl World {
    /// The question is another one now: what was read was read for none.
    pub(crate) fn reads_for_nobody(&mut self, at: usize) {
        for replica in self.replicas.iter_mut().filter(|it| it.node() == Some(at)) {
            if let Replica::Reads { fresh, .. } = replica {
                *fresh = false;
            }
        }
    }
}
