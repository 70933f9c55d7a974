//! A pool, how each of its nodes stands, and whose turn it is there.

use super::super::anew;
use super::super::by::By;
use super::super::facts::Facts;
use super::super::limits::{max_unavailable, order, retry as retry_of, windows};
use super::super::marks::{held, is_of, is_quiet, stray_cordon};
use super::super::plans::{FromTo, Planned};
use super::super::state::{Against, standing, standing_without};
use super::super::stuck::By as StuckBy;
use super::node::OfNode;
use super::why::{down_in_its_drain, is_to_come, lost, no_canary, no_order, not_retried};
use crate::drain::Asked;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::time::Instant;
use tread_cluster::pools::{MASTER, Pool, Selects};
use tread_kube::api::Rollout;
use tread_kube::api::node_update::{ConfigName, UpdateStage};
use tread_kube::api::rollout::NewNodes;
use tread_model::digest::Digest;
use tread_model::protocol::{Disrupts, Limits, Time};
use tread_model::rollout::{
    self, Budget, Node, Opening, State, Turns, Why, opening, soft_limit, waits_to_boot,
};

/// How many nodes may get a soft plan at a time, unless an admin says otherwise.
pub(crate) const SOFT_LIMIT: usize = 100;

/// A pool, and its nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfPool {
    /// What its nodes are to have.
    pub(crate) target: Option<ConfigName>,
    pub(super) digest: Option<Digest>,
    /// Why its config could not be made: a word and a sentence.
    pub(crate) not_made: Option<(&'static str, String)>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) turns: Turns,
    pub(super) limits: Option<Limits>,
    /// How many nodes got it by a plan that did not drain them.
    pub(super) soft_ones: usize,
    /// How many have it, and are not uncordoned yet.
    pub(crate) still_cordoned: usize,
    /// Why nobody knows which of its nodes are the canaries.
    pub(super) no_canary: Option<String>,
    /// Why nobody knows which of its nodes come last.
    pub(super) no_order: Option<String>,
    /// Nodes that are none of its own any more, and keep one of its slots of nodes that are down.
    pub(super) left_with_slot: Vec<String>,
    /// Whether it has windows: with time alone it may be another node's turn.
    pub(crate) has_windows: bool,
    /// The node that is begun again first, of those that failed, and when.
    pub(crate) again: Option<(Time, String)>,
    /// Nodes under way that do not get further, and why.
    pub(crate) failing: Vec<(String, String)>,
    /// Nodes whose plan a NodeUpdate cannot hold, and how many bytes it takes.
    pub(crate) too_large: Vec<(String, usize)>,
    /// Nodes that are being cordoned and drained.
    pub(crate) preparing: BTreeSet<String>,
    /// Nodes on which a step failed, and which are not drained yet to boot for that.
    pub(super) boot_later: BTreeSet<String>,
    /// Whether nodes that have written nothing turn back: its window has ended.
    pub(super) turns_back: bool,
    /// Why nothing is done on its nodes.
    pub(crate) halted: Option<String>,
    /// That its Rollout takes the place of one that somebody removed, and what to do.
    pub(crate) anew: Option<String>,
    /// How its nodes are drained.
    pub(crate) drain: Arc<Asked>,
    /// The generation of its Rollout.
    pub(crate) generation: Option<i64>,
}

impl OfPool {
    pub(super) fn of(
        pool: &Pool,
        nodes: &[(String, &Facts)],
        by: By<'_>,
        all: &mut BTreeMap<String, OfNode>,
        asked: &mut BTreeSet<FromTo>,
    ) -> OfPool {
        let mut of_pool = OfPool::default();
        let rollout = by.moment.rollouts.get(&pool.name).map(|it| &**it);
        let made = by.made.get(&pool.name);
        let not_written = by.not_written.get(&pool.name);
        match made {
            Some(Err(not_made)) => of_pool.not_made = Some((not_made.word, not_made.why.clone())),
            Some(Ok(made)) if pool.target.as_ref().is_none_or(|it| it.name != made.name) => {
                of_pool.not_made = not_written.map(|why| ("NotWritten", why.clone()));
            }
            _ => {}
        }
        // Until the pool names it, nobody can plan for it.
        let is_named = |name: &str| {
            pool.target.as_ref().is_some_and(|it| it.name == name)
                && by.cluster.configs.contains_key(name)
        };
        let made = made.and_then(|made| made.as_ref().ok()).filter(|made| is_named(&made.name));
        of_pool.target = made
            .map(|made| ConfigName { name: made.name.clone(), digest: made.digest.to_string() });
        of_pool.digest = made.map(|made| made.digest);
        of_pool.anew = rollout.and_then(anew::said);
        of_pool.generation = rollout.and_then(|rollout| rollout.metadata.generation);
        let drain = Asked::of(rollout.and_then(|rollout| rollout.spec.drain.as_ref()));
        let not_drained = drain.as_ref().err().map(|why| format!("nothing is drained: {why}"));
        of_pool.drain = Arc::new(drain.unwrap_or_else(|_| Asked::unreadable()));
        let stuck =
            StuckBy { budgets: Arc::clone(&by.moment.budgets), generation: of_pool.generation };
        // Whoever begins to lead and has not rendered yet says nothing about orders.
        let is_without = of_pool.target.is_none() && by.made.contains_key(&pool.name);
        let canary = rollout.and_then(|rollout| rollout.spec.canary.as_ref());
        let canary = Selects::of(canary);
        let last = rollout.and_then(|rollout| rollout.spec.order.as_ref()?.last.as_ref());
        let last = Selects::of(last);
        let retry = rollout.and_then(|it| it.spec.retry_failed_before.as_ref());
        let (retry_before, not_yet) = match retry {
            Some(at) if is_to_come(at, by.now) => (None, Some(not_retried(at, &pool.name))),
            retry => (retry, None),
        };
        for (name, facts) in nodes {
            let update = by.moment.updates.get(name).map(|it| &**it);
            let update = update.filter(|update| is_of(update, &facts.uid));
            let maintained = by.moment.maintained.get(name).copied().unwrap_or_default();
            let (mut plan, mut is_planned) = (None, true);
            let against = |target| Against {
                target,
                name: made.map_or("", |made| made.name.as_str()),
                retry_before,
                retry: rollout.and_then(|rollout| retry_of(&rollout.spec)),
                now: by.now,
                lost_after: by.lost_after,
                acts_since: by.may_act.since(name, by.lost_after),
                unheard_since: by.may_act.unheard_since(name, facts),
                overwrites: rollout.is_some_and(|it| it.spec.new_nodes == NewNodes::Overwrite),
                form: by.form,
            };
            let standing = match made {
                Some(made) => standing(update, against(made.digest), |from| {
                    let from_to = FromTo {
                        from: from.to_owned(),
                        pool: pool.name.clone(),
                        to: made.name.clone(),
                    };
                    let planned = by.plans.of(&from_to).leading_to(made);
                    asked.insert(from_to);
                    match &planned {
                        Planned::Ready(_, of) => plan.clone_from(of),
                        Planned::TooLarge(bytes) => {
                            of_pool.too_large.push((name.clone(), *bytes));
                        }
                        Planned::NotYet | Planned::Failed(_) | Planned::Refused(_) => {}
                    }
                    is_planned = planned != Planned::NotYet;
                    planned
                }),
                None => standing_without(update, rollout, against),
            };
            let is_due = matches!(standing.state, State::Due(_)) && standing.not_yet.is_none();
            let taken = is_due.then(|| held(name, facts, by)).flatten();
            let taken_meanwhile = standing.is_under_way.then(|| held(name, facts, by)).flatten();
            let stray = (!standing.is_under_way).then(|| stray_cordon(name, facts, update, by));
            let stray = stray.flatten();
            let held = match &standing.state {
                State::Due(disrupts) => stray
                    .clone()
                    .or_else(|| standing.not_yet.clone())
                    .or_else(|| taken.clone())
                    .or_else(|| not_drained.clone().filter(|_| disrupts.drains()))
                    .or_else(|| {
                        let now = Instant::now();
                        let why = by.stuck.why(name, disrupts.drains(), &stuck, now)?;
                        let goes_on = standing.is_under_way && by.stuck.failure(name).is_some();
                        (!goes_on).then(|| why.to_owned())
                    }),
                // It has its slot for what it did, and is drained to boot.
                State::NeedsBoot if by.stuck.failure(name).is_none() => {
                    by.stuck.why(name, true, &stuck, Instant::now()).map(str::to_owned)
                }
                _ => None,
            };
            // A new leader that does not know the plan yet gives nothing back: it may still be
            // wanted.
            let is_quiet = !is_planned || is_quiet(name, facts, update, standing.is_under_way, by);
            let machine = by.moment.machines.get(name).map(|it| it.machine.clone());
            let (pool, retries, turn) = (pool.name.clone(), standing.retries.clone(), None);
            let needs_agent = standing.needs_agent;
            let order = update.and_then(|update| update.spec.order.as_ref());
            let ordered = order.filter(|_| is_without).and_then(|order| {
                Some((order.config.clone(), Digest::parse(&order.config.digest)?))
            });
            let node = OfNode {
                pool,
                maintained,
                machine,
                taken,
                turn,
                others_failed: false,
                plan,
                retries,
                needs_agent,
                is_quiet,
                ordered,
                is_lost: standing.lost.is_some(),
                is_outside: false,
            };
            if let Some(why) = standing.lost {
                of_pool.failing.push((name.clone(), lost(why, standing.state)));
            }
            let prepares = order.is_some_and(|order| order.stage == UpdateStage::Prepare);
            let gone_since = facts.unheard_since.filter(|_| prepares);
            if let Some(since) = gone_since.filter(|at| by.now.since(*at) > by.lost_after) {
                of_pool.failing.push((name.clone(), down_in_its_drain(since)));
            }
            if let Some(why) = by.stuck.failure(name).filter(|_| standing.is_under_way) {
                of_pool.failing.push((name.clone(), why.to_owned()));
            }
            if let Some(why) = by.stuck.in_vain(name) {
                of_pool.failing.push((name.clone(), why));
            }
            if let Some(why) = not_yet.clone().filter(|_| standing.state == State::Failed) {
                of_pool.failing.push((name.clone(), why));
            }
            if let Some(why) = taken_meanwhile {
                of_pool.failing.push((name.clone(), why));
            }
            if let Some(why) = stray.clone().filter(|_| standing.state == State::Updated) {
                of_pool.failing.push((name.clone(), why));
            }
            let again = standing.again.map(|at| (at, name.clone()));
            of_pool.again = of_pool.again.into_iter().chain(again).min();
            all.insert(name.clone(), node);
            of_pool.soft_ones += usize::from(standing.came_softly);
            let has_it = standing.state == State::Updated;
            of_pool.still_cordoned += usize::from(has_it && facts.is_cordoned_by_tread());
            if prepares {
                of_pool.preparing.insert(name.clone());
            }
            of_pool.nodes.push(Node {
                name: name.clone(),
                zone: facts.zone().to_owned(),
                since: facts.created,
                ready: facts.is_ready && !facts.is_cordoned_by_others() && stray.is_none(),
                leads: by.own_node == Some(name.as_str()),
                paused: facts.is_paused,
                canary: canary.matches(&facts.labels),
                last: last.matches(&facts.labels),
                held,
                step_failed: standing.step_failed,
                went_back: standing.went_back,
                lost: standing.lost.is_some(),
                unwell: standing.unwell,
                is_well: standing.is_well,
                has_slot: has_slot(name, by),
                state: standing.state,
            });
        }
        of_pool.no_canary = no_canary(&canary, &of_pool.nodes);
        of_pool.no_order = no_order(&last);
        of_pool
    }

    /// How many of its nodes did not end in time what only writes.
    fn lost_softly(&self) -> usize {
        let is_lost = |node: &&Node| node.lost && matches!(node.state, State::UnderWay(_));
        self.nodes.iter().filter(is_lost).count()
    }

    /// How many of its nodes are down, for any reason.
    pub(super) fn down(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_down()).count()
    }

    pub(super) fn turns(
        &mut self,
        pool: &Pool,
        rollout: Option<&Rollout>,
        by: By<'_>,
        budget: Budget,
        nodes: &mut BTreeMap<String, OfNode>,
    ) {
        let spec = rollout.map(|rollout| &rollout.spec);
        let number = |given: Option<i32>| given.and_then(|it| usize::try_from(it).ok());
        let max_unavailable = max_unavailable(rollout, pool);
        let limit = number(spec.and_then(|it| it.soft_limit)).unwrap_or(SOFT_LIMIT);
        let windows = spec.map(windows).unwrap_or_else(|| Ok(Vec::new()));
        self.has_windows = windows.as_ref().is_ok_and(|windows| !windows.is_empty());
        let closed = match &windows {
            Err(why) => Some(format!("never: {why}")),
            Ok(windows) => match opening(windows, by.now) {
                Opening::Closed { opens, turns_back } => {
                    self.turns_back = turns_back;
                    Some(opens)
                }
                Opening::Open { begins: false, ends } => {
                    Some(format!("again after this one, which ends {ends}"))
                }
                Opening::Always | Opening::Open { .. } => None,
            },
        };
        let of = rollout::Pool {
            paused: pool.paused || spec.is_some_and(|spec| spec.paused),
            control_plane: pool.name == MASTER,
            max_unavailable,
            soft_limit: limit,
            succeeded: self.soft_ones,
            halt_after: number(spec.and_then(|it| it.halt_after)).unwrap_or(1),
            closed,
            order: spec.map(order).unwrap_or_default(),
            no_canary: self.no_canary.take(),
            no_order: self.no_order.take(),
            left_with_slot: std::mem::take(&mut self.left_with_slot),
        };
        self.limits = Some(match of.control_plane {
            // One at a time also where a replica does not know yet of another one's.
            true => Limits { pool: 1, all: budget.all, soft: 1, one_by_one: true },
            false => Limits {
                pool: max_unavailable.of(self.nodes.len()),
                all: budget.all,
                // Nobody waits for the slots of nodes that are lost.
                soft: soft_limit(self.soft_ones, limit).saturating_add(self.lost_softly()),
                one_by_one: false,
            },
        });
        self.turns = rollout::turns(&of, &self.nodes, budget);
        for node in &self.nodes {
            if let Some(why) = waits_to_boot(&of, node) {
                self.turns.waits.push((node.name.clone(), why));
                self.boot_later.insert(node.name.clone());
            }
        }
        if let Some(why) = &self.halted {
            self.turns.next.clear();
            let needs_boot = self.nodes.iter().filter(|node| node.state == State::NeedsBoot);
            for node in needs_boot {
                if self.boot_later.insert(node.name.clone()) {
                    self.turns.waits.push((node.name.clone(), Why::Held(why.clone())));
                }
            }
        }
        let due = self.nodes.iter().filter_map(|node| match node.state {
            State::Due(disrupts) => Some((node.name.as_str(), disrupts)),
            _ => None,
        });
        let due: BTreeMap<&str, Disrupts> = due.collect();
        for (name, _) in &self.turns.turn_back {
            if let Some(node) = nodes.get_mut(name) {
                node.others_failed = true;
            }
        }
        for name in &self.turns.next {
            if let Some(node) = nodes.get_mut(name) {
                node.turn = due.get(name.as_str()).copied();
            }
        }
    }
}

/// Whether a node has a slot as one that is down.
fn has_slot(name: &str, by: By<'_>) -> bool {
    let slots = by.moment.slots.as_ref().ok();
    slots.and_then(|slots| slots.taken.get(name)).is_some_and(|taken| taken.slot.unavailable)
}
