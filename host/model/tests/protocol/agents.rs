//! What agents do, and what comes to them: in time, late, or again.

use crate::reading::op;
use crate::state::{Agent, Ask, Counter, Node, Report, Wire, World};
use crate::steps::Steps;
use crate::writing::Object;
use tread_model::protocol as p;
use tread_model::protocol::{Disrupts, Phase, What};

impl Steps<'_> {
    pub(crate) fn agents<G: p::Guards>(&mut self, world: &World, at: usize) {
        let node = world.nodes[at];
        let with = |change: &dyn Fn(&mut Node)| {
            let mut next = *world;
            change(&mut next.nodes[at]);
            next
        };
        let busy = node.doing.is_some();
        if self.bounds.late_orders && node.late.is_none() && node.order.is_some() {
            self.add(
                false,
                || format!("an order for node {at} comes later"),
                with(&|it| it.late = it.order),
            );
        }
        if !busy {
            if let Some(order) = node.order {
                self.hears::<G>(true, world, at, order);
            }
            if let Some(late) = node.late {
                self.hears::<G>(false, world, at, late);
                self.add(
                    false,
                    || format!("a late order is lost at node {at}"),
                    with(&|it| it.late = None),
                );
            }
        }
        if node.agent.report() != node.report || node.agent.config != node.known {
            let mut next = with(&|it| (it.report, it.known) = (it.agent.report(), it.agent.config));
            next.touched(Object::Update, at);
            self.add(true, || format!("node {at} reports {:?}", node.agent.op), next);
        }
        if world.reports_lost > 0 && node.report.is_some() {
            let mut next = with(&|it| it.report = None);
            next.touched(Object::Update, at);
            next.reports_lost -= 1;
            self.add(false, || format!("what node {at} reported is lost"), next);
        }
        let is_quiet = node.slot.is_none() && node.agent.is_quiet();
        let may_be_lost = is_quiet || self.bounds.updates_lost_under_way;
        if world.updates_lost > 0 && may_be_lost && node.order.is_some() {
            let mut next = with(&|it| (it.order, it.report, it.known) = (None, None, 0));
            next.touched(Object::Update, at);
            next.updates_lost -= 1;
            self.add(false, || format!("the NodeUpdate of node {at} is made anew"), next);
        }
        let wants = (!busy && node.permit.is_none_or(|it| it.left <= 0))
            .then(|| node.agent.wants())
            .flatten();
        let may_ask = node.asks.is_none_or(|it| it.ago >= 2 || Some(it.what) != wants);
        if let Some(what) = wants.filter(|_| may_ask) {
            let mut asked = with(&|it| {
                it.asks = Some(Ask { what, ago: 0, lag: 0 });
                it.permit = None;
                it.forget_answers();
            });
            asked.reads_for_nobody(at);
            self.add(true, || format!("node {at} asks for {what:?}"), asked);
        }
        if let (Some(ask), Some(wire)) = (node.asks, node.wire) {
            self.arrives::<G>(world, at, ask, wire);
        }
        if node.wire.is_some() {
            self.add(
                false,
                || format!("a permit for node {at} is lost"),
                with(&|it| it.wire = None),
            );
        }
        if let Some(what) = node.agent.wants()
            && node.permit.is_some_and(|it| it.left > 0)
            && !busy
        {
            self.add(true, || format!("node {at} begins {what:?}"), with(&|it| it.begins(what)));
        }
        if let Some((what, _)) = node.doing {
            self.ends(world, at, what);
        }
        let is_well = matches!(node.agent.op, Some((_, Phase::Done | Phase::WentBack)));
        if is_well && !node.proved {
            self.add(true, || format!("node {at} is proved"), with(&|it| it.proved = true));
        }
        if world.agent_crashes > 0 && (node.asks.is_some() || node.permit.is_some()) {
            let mut next = with(&|it| {
                (it.asks, it.permit) = (None, None);
                it.forget_answers();
            });
            next.agent_crashes -= 1;
            self.add(false, || format!("the agent of node {at} dies"), next);
        }
    }

    fn hears<G: p::Guards>(
        &mut self,
        fair: bool,
        world: &World,
        at: usize,
        order: crate::state::Order,
    ) {
        let mut next = *world;
        let node = &mut next.nodes[at];
        let before = node.agent;
        let local = p::Local {
            operation: before.op.map(|(of, phase)| (op(of), phase)),
            token: before.token.into(),
        };
        let now = local.hears_with::<G>(&order.read());
        if now == local {
            return;
        }
        let of = now.operation.map(|(of, phase)| (u8::try_from(of.0).unwrap(), phase));
        let is_new = of.map(|it| it.0) != before.op.map(|it| it.0);
        node.agent = Agent {
            op: of,
            token: u8::try_from(now.token).unwrap(),
            config: before.config,
            to: if is_new { order.config } else { before.to },
            disrupts: if is_new { order.disrupts } else { before.disrupts },
            boots: if is_new { 0 } else { before.boots },
        };
        if of.is_some_and(|(_, phase)| phase.is_end()) || is_new {
            (node.asks, node.permit) = (None, None);
            node.forget_answers();
        }
        self.add(fair, || format!("node {at} hears {order:?}"), next);
    }

    fn arrives<G: p::Guards>(&mut self, world: &World, at: usize, ask: Ask, wire: Wire) {
        let Some((of, _)) = world.nodes[at].agent.op else { return };
        let question = p::Question { operation: op(of), what: ask.what, number: 1 };
        let number = if wire.answers { 1 } else { 0 };
        let lasts = crate::bounds::seconds(wire.lasts);
        let permit = p::Permit { operation: op(wire.op), number, lasts };
        let (asked, came) = (crate::bounds::seconds(0), crate::bounds::seconds(ask.ago));
        let Some(ends) = permit.ends_with::<G>(&question, asked, came) else { return };
        let left = i8::try_from(ends.as_secs()).unwrap() - ask.ago;
        if left > 0 {
            let mut next = *world;
            next.nodes[at].permit = Some(Counter { left, lag: ask.lag });
            next.nodes[at].asks = None;
            if !self.bounds.late_orders {
                next.nodes[at].wire = None;
            }
            self.add(true, || format!("the permit comes to node {at}: {left} are left"), next);
        }
    }

    fn ends(&mut self, world: &World, at: usize, what: What) {
        let mut ends = |phase: Phase, fails: bool| {
            let mut next = *world;
            let node = &mut next.nodes[at];
            node.doing = None;
            let of = node.agent.op.map(|(of, _)| (of, phase));
            node.agent.op = of;
            if phase == Phase::Done {
                node.agent.config = node.agent.to;
            }
            if fails {
                next.failures -= 1;
            }
            self.add(!fails, || format!("node {at} ended {what:?}: {phase:?}"), next);
        };
        let only_writes = world.nodes[at].agent.disrupts == Disrupts::Nothing;
        if what == What::Write && !only_writes {
            return ends(Phase::Begun, false);
        }
        ends(Phase::Done, false);
        if world.failures > 0 {
            match what {
                What::Write => ends(Phase::WentBack, true),
                What::Unit => ends(Phase::NeedsBoot, true),
                What::Boot => {
                    ends(Phase::WentBack, true);
                    ends(Phase::Degraded, true);
                }
            }
        }
    }
}

impl Agent {
    /// What it reports.
    pub(crate) fn report(&self) -> Option<Report> {
        self.op.map(|(op, phase)| Report { op, phase, token: self.token })
    }

    /// Whether it does nothing, and has nothing to go on with.
    fn is_quiet(&self) -> bool {
        self.op.is_none_or(|(_, phase)| matches!(phase, Phase::Done | Phase::TurnedBack))
    }

    /// What it asks a permit for.
    fn wants(&self) -> Option<What> {
        match self.op?.1 {
            Phase::Waiting => Some(What::Write),
            Phase::Begun if self.disrupts == Disrupts::Reboot => Some(What::Boot),
            Phase::Begun => Some(What::Unit),
            Phase::NeedsBoot => Some(What::Boot),
            _ => None,
        }
    }
}

impl Node {
    /// It asks anew, or not at all: what is on its way answers another question.
    pub(crate) fn forget_answers(&mut self) {
        self.wire.iter_mut().for_each(|wire| wire.answers = false);
    }

    fn begins(&mut self, what: What) {
        self.permit = None;
        self.asks = None;
        self.forget_answers();
        self.proved = false;
        let Some((op, _)) = self.agent.op else { return };
        match what {
            What::Write => self.agent.op = Some((op, Phase::Begun)),
            What::Unit => {}
            What::Boot => self.agent.boots += 1,
        }
        self.doing = Some((what, if what == What::Boot { 2 } else { 1 }));
    }
}
