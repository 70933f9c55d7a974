//! Whose turn it is in each pool, by all that is known at one moment.

use super::anew;
use super::by::By;
use super::facts::Facts;
use super::limits::{max_unavailable, order, retry as retry_of, windows};
use super::marks::{gone, held, is_of, is_quiet, is_unavailable, stray_cordon};
use super::may_act::halted;
use super::outside::{Outside, outside};
use super::plans::{FromTo, Planned};
use super::state::{Against, Lost, standing, standing_without};
use super::stuck::By as StuckBy;
use crate::drain::Asked;
use crate::order::Target;
use crate::reading::{Aim, Room};
use crate::remediation::Machine;
use crate::still::Still;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as At;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tread_cluster::index::All;
use tread_cluster::pools::{MASTER, Member, Place, Pool, Selects};
use tread_kube::api::Rollout;
use tread_kube::api::node_update::{ConfigName, UpdateStage};
use tread_kube::api::rollout::NewNodes;
use tread_kube::dated::timestamp;
use tread_kube::held::Maintained;
use tread_model::digest::Digest;
use tread_model::protocol::{Disrupts, Limits, Time};
use tread_model::rollout::{
    self, Budget, Node, Opening, State, Turns, Why, cap_of_all, opening, soft_limit, waits_to_boot,
};

/// How many nodes may get a soft plan at a time, unless an admin says otherwise.
pub(crate) const SOFT_LIMIT: usize = 100;

/// What to do with labels that select no nodes.
const REMEDY: &str = "correct it, or take it away";

/// Whose turn it is, in all pools.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scene {
    pub(crate) pools: BTreeMap<String, OfPool>,
    /// The nodes that are in a pool, and those that left it while something of tread is on them.
    pub(crate) nodes: BTreeMap<String, OfNode>,
    /// What has to be planned.
    pub(crate) asked: Vec<FromTo>,
    /// Nodes with a slot that are not there any more.
    pub(crate) gone: Vec<String>,
    /// Why nothing is done on any node.
    pub(crate) halted: Option<String>,
    unavailable: Arc<BTreeMap<String, String>>,
    facts: All<String, Arc<Facts>>,
    /// How many nodes of all pools may be down.
    cap: usize,
}

/// A pool, and its nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfPool {
    /// What its nodes are to have.
    pub(crate) target: Option<ConfigName>,
    digest: Option<Digest>,
    /// Why its config could not be made: a word and a sentence.
    pub(crate) not_made: Option<(&'static str, String)>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) turns: Turns,
    limits: Option<Limits>,
    /// How many nodes got it by a plan that did not drain them.
    soft_ones: usize,
    /// How many have it, and are not uncordoned yet.
    pub(crate) still_cordoned: usize,
    /// Why nobody knows which of its nodes are the canaries.
    no_canary: Option<String>,
    /// Why nobody knows which of its nodes come last.
    no_order: Option<String>,
    /// Nodes that are none of its own any more, and keep one of its slots of nodes that are down.
    left_with_slot: Vec<String>,
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
    boot_later: BTreeSet<String>,
    /// Whether nodes that have written nothing turn back: its window has ended.
    turns_back: bool,
    /// Why nothing is done on its nodes.
    pub(crate) halted: Option<String>,
    /// That its Rollout takes the place of one that somebody removed, and what to do.
    pub(crate) anew: Option<String>,
    /// How its nodes are drained.
    pub(crate) drain: Arc<Asked>,
    /// The generation of its Rollout.
    pub(crate) generation: Option<i64>,
}

/// A node.
#[derive(Debug, Clone)]
pub(crate) struct OfNode {
    pub(crate) pool: String,
    pub(crate) maintained: Maintained,
    machine: Option<Machine>,
    /// Who else has it, in words, where it is to get a change.
    pub(crate) taken: Option<String>,
    /// How much it is to be disrupted now, if it is its turn.
    turn: Option<Disrupts>,
    /// Whether it turns back if it has written nothing, since others of its pool failed.
    others_failed: bool,
    plan: Option<Arc<serde_json::Value>>,
    /// What an admin asked to try again.
    retries: Option<String>,
    /// Whether its agent has to be upgraded before it gets an order.
    pub(crate) needs_agent: bool,
    /// Whether nothing is under way on it, or nobody knows yet what is wanted of it.
    is_quiet: bool,
    /// The config that it was ordered to get, if the config of its pool cannot be made or is not
    /// delivered yet, or if it is in no pool any more: then it ends with that one.
    ordered: Option<(ConfigName, Digest)>,
    /// Whether its agent has not ended its order for so long that it is taken for lost.
    pub(crate) is_lost: bool,
    /// Whether it is in no pool any more. Its slot still counts in its former pool, which gives it
    /// no newer config.
    is_outside: bool,
}

impl OfNode {
    /// Whether something is to be done for it.
    pub(crate) fn is_busy(&self) -> bool {
        self.turn.is_some() || !self.is_quiet
    }

    pub(crate) fn turn(&self) -> Option<Disrupts> {
        self.turn
    }
}

impl Scene {
    pub(crate) fn of(by: By<'_>) -> Scene {
        let facts = Arc::clone(&by.moment.nodes);
        let mut scene =
            Scene { gone: gone(by), facts, halted: halted(by.moment), ..Scene::default() };
        let mut unavailable = BTreeMap::new();
        for (name, member) in by.cluster.members.all() {
            let Some(pool) = member.place.pool() else { continue };
            if by.moment.nodes.get(name).is_some_and(|facts| is_unavailable(facts)) {
                unavailable.insert(name.to_owned(), pool.to_owned());
            }
        }
        let mut nodes: BTreeMap<&str, Vec<(String, &Facts)>> = BTreeMap::new();
        for (name, member) in by.cluster.members.all() {
            let known = member.place.pool().zip(by.moment.nodes.get(name));
            if let Some((pool, facts)) = known {
                nodes.entry(pool).or_default().push((name.to_owned(), facts));
            }
        }
        let mut asked = BTreeSet::new();
        for (name, pool) in &by.cluster.pools {
            let of_pool = nodes.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
            let of_pool = OfPool::of(pool, of_pool, by, &mut scene.nodes, &mut asked);
            // Also where a cordon of tread was left by an operation that nobody knows.
            let unready = of_pool.nodes.iter().filter(|node| !node.ready);
            unavailable.extend(unready.map(|node| (node.name.clone(), name.clone())));
            scene.pools.insert(name.clone(), of_pool);
        }
        scene.unavailable = Arc::new(unavailable);
        scene.asked = asked.into_iter().collect();
        let in_no_pool = scene.note_left_with_slot(by);
        scene.take_turns(by, in_no_pool);
        for node in outside(by) {
            scene.ends(node, by);
        }
        scene
    }

    /// Notes in each pool which nodes keep a slot of it that are none of its own any more. How many
    /// of them are in no pool.
    fn note_left_with_slot(&mut self, by: By<'_>) -> usize {
        let Ok(slots) = &by.moment.slots else { return 0 };
        let mut in_no_pool = 0;
        for (name, taken) in slots.taken.iter().filter(|(_, taken)| taken.slot.unavailable) {
            let pool = self.nodes.get(name).map(|node| node.pool.as_str());
            in_no_pool += usize::from(pool.is_none());
            if pool == Some(taken.pool.as_str()) {
                continue;
            }
            let why = match pool {
                Some(pool) => Some(moved(pool, self.is_left_unwell(name))),
                // What is said of the others is said where they are brought to their end.
                None => by.cluster.members.get(name).and_then(joins_anew),
            };
            let Some(of_pool) = self.pools.get_mut(&taken.pool) else { continue };
            of_pool.left_with_slot.push(name.clone());
            if let Some(why) = why {
                of_pool.failing.insert(0, (name.clone(), why));
            }
        }
        in_no_pool
    }

    /// Brings to its end what was begun on a node that is in no pool any more.
    fn ends(&mut self, node: Outside, by: By<'_>) {
        let Outside { name, pool, ends_with, is_lost, is_down, why } = node;
        let failure = by.stuck.failure(&name).map(|why| format!("; {why}")).unwrap_or_default();
        let is_gone = !self.pools.contains_key(&pool);
        // Whatever else keeps the pool, its other nodes wait for this one's slot. Where the pool is gone, the
        // nodes of others may wait for it.
        let waits = |(of, it): (&String, &OfPool)| match is_gone {
            true => is_down && it.turns.waits.iter().any(|(_, why)| matches!(why, Why::All(..))),
            false => *of == pool,
        };
        for (of, it) in &mut self.pools {
            if waits((of, it)) {
                it.failing.insert(0, (name.clone(), format!("{why}{failure}")));
            }
        }
        let node = OfNode {
            pool,
            maintained: by.moment.maintained.get(&name).copied().unwrap_or_default(),
            machine: by.moment.machines.get(&name).map(|it| it.machine.clone()),
            taken: None,
            turn: None,
            others_failed: false,
            plan: None,
            retries: None,
            needs_agent: false,
            is_quiet: false,
            ordered: Some(ends_with),
            is_lost,
            is_outside: true,
        };
        self.nodes.insert(name, node);
    }

    /// Says whose turn it is. Each pool also counts the nodes that are down in others, and those in
    /// no pool that keep a slot.
    fn take_turns(&mut self, by: By<'_>, in_no_pool: usize) {
        let all: usize = self.pools.values().map(|pool| pool.nodes.len()).sum();
        self.cap = cap_of_all(all);
        let down: BTreeMap<String, usize> =
            self.pools.iter().map(|(name, pool)| (name.clone(), pool.down())).collect();
        let all_down = down.values().sum::<usize>() + in_no_pool;
        for (name, of_pool) in &mut self.pools {
            let Some(pool) = by.cluster.pools.get(name) else { continue };
            let own = down.get(name).copied().unwrap_or_default() + of_pool.left_with_slot.len();
            let budget = Budget { all: self.cap, down_elsewhere: all_down.saturating_sub(own) };
            let rollout = by.moment.rollouts.get(name).map(|it| &**it);
            of_pool.halted = self.halted.clone().or_else(|| no_rollout(rollout));
            of_pool.turns(pool, rollout, by, budget, &mut self.nodes);
        }
    }

    /// Whether with time alone it may be another node's turn.
    pub(crate) fn goes_by_time(&self) -> bool {
        self.pools.values().any(|pool| pool.has_windows || pool.again.is_some())
            || self.nodes.values().any(|node| node.taken.is_some())
    }

    /// The config that a node is to have.
    pub(crate) fn digest(&self, name: &str) -> Option<Digest> {
        self.pools.get(&self.nodes.get(name)?.pool)?.digest
    }

    /// Whether it is a node's turn, to be disrupted so much for this config.
    pub(crate) fn is_turn_of(&self, name: &str, turn: Option<Disrupts>, config: Digest) -> bool {
        let is_turn = self.nodes.get(name).is_some_and(|node| turn.is_some() && node.turn == turn);
        is_turn && self.digest(name) == Some(config)
    }

    /// Whether a node failed, and nobody tries it again now.
    pub(crate) fn is_left_unwell(&self, name: &str) -> bool {
        let nodes = self.pool_of(name).map(|pool| pool.nodes.as_slice()).unwrap_or_default();
        nodes.iter().any(|node| node.name == name && node.state == State::Failed)
    }

    /// The pool that a node is in.
    pub(crate) fn pool_of(&self, name: &str) -> Option<&OfPool> {
        let node = self.nodes.get(name).filter(|node| !node.is_outside)?;
        self.pools.get(&node.pool)
    }

    /// Whether a node turns back if it has written nothing yet.
    pub(crate) fn turns_back(&self, name: &str) -> bool {
        let Some(node) = self.nodes.get(name) else { return false };
        let has_ended = |pool: &OfPool| pool.turns_back;
        node.is_outside || node.others_failed || self.pools.get(&node.pool).is_some_and(has_ended)
    }

    /// Whether no other node takes the pods of this one.
    pub(crate) fn is_alone(&self, name: &str) -> bool {
        let Some(facts) = self.facts.get(name) else { return false };
        let mut others = self.facts.iter().filter(|(other, _)| *other != name);
        !others.any(|(_, other)| other.takes_pods_of(facts))
    }

    /// What is wanted of a node, and what room there is for it.
    pub(crate) fn aim(&self, name: &str) -> Option<(Aim, Room)> {
        let node = self.nodes.get(name)?;
        let pool = self.pools.get(&node.pool);
        let of_pool = || pool.and_then(|pool| pool.target.clone().zip(pool.digest));
        let (target, digest) = node.ordered.clone().or_else(of_pool)?;
        let limits = match pool {
            Some(pool) if pool.boot_later.contains(name) => Limits { pool: 0, ..pool.limits? },
            Some(pool) => pool.limits?,
            // It is gone, and counts no more: what it had under way ends one by one.
            None if node.is_outside => {
                Limits { pool: 1, all: self.cap, soft: 1, one_by_one: false }
            }
            None => return None,
        };
        let aim = Aim {
            pool: node.pool.clone(),
            target: Target { name: target.name, digest, plan: node.plan.clone() },
            turns_back: self.turns_back(name),
            turn: node.turn,
            still: Still::default(),
            maintained: node.maintained,
            is_lost: node.is_lost,
            is_alone: self.is_alone(name),
            retries: node.retries.clone(),
            drain: pool.map(|pool| Arc::clone(&pool.drain)).unwrap_or_default(),
            machine: node.machine.clone(),
        };
        let unavailable = Arc::clone(&self.unavailable);
        Some((aim, Room { limits, unavailable }))
    }
}

impl OfPool {
    fn of(
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
                retry_before,
                retry: rollout.and_then(|rollout| retry_of(&rollout.spec)),
                now: by.now,
                lost_after: by.lost_after,
                acts_since: by.may_act.since(name),
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
    fn down(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_down()).count()
    }

    fn turns(
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

/// Why a node of another pool keeps a slot of this one, and what to do.
fn moved(pool: &str, is_left_unwell: bool) -> String {
    let until = match is_left_unwell {
        true => format!(
            "it has ended well there: see to it, then tread rollout retry {pool}, which waits while \
             that pool is paused"
        ),
        false => format!(
            "what was begun on it has ended; tread rollout status {pool} says how far it is"
        ),
    };
    format!("it is in pool {pool} by now, and keeps its slot here until {until}")
}

/// Why a node that registered anew keeps a slot, and what to do: it has not joined.
fn joins_anew(member: &Member) -> Option<String> {
    (member.place == Place::Joining).then(|| {
        "it registered anew, and the slot of the one before stays here until it has joined: the condition \
         Joined of its NodeUpdate says why it is held; or delete its Node"
            .to_owned()
    })
}

/// Why a node is taken for lost, and what that means.
fn lost(why: Lost, state: State) -> String {
    let what = match (why, state) {
        (Lost::NotEnded(since), State::Failed) => format!(
            "its agent was to carry its order out at {}, and has not ended it since",
            timestamp(since)
        ),
        (Lost::NotEnded(since), _) => format!(
            "its agent was to write its config at {}, and has not ended that since",
            timestamp(since)
        ),
        (Lost::NotReady(since), _) => format!(
            "its agent has ended the order of {}, and the node is not Ready, or not for long enough",
            timestamp(since)
        ),
    };
    let means = match state {
        State::Failed => {
            "look at the node; its Lease is not renewed any more, so that others can mend it, and \
             `tread rollout retry` waits for it once more"
        }
        _ => {
            "look at the node, or delete its Node if it does not come back; the other nodes do not \
             wait for it, unless it is a canary or of the control plane"
        }
    };
    format!("{what}: {means}")
}

/// So far ahead a right time may be: what is known of the API server's clock lags behind.
const AHEAD: Duration = Duration::from_secs(60);

/// Whether what an admin wrote is yet to come. A failure is before it, whenever it happens: nothing
/// would halt a pool until then.
fn is_to_come(at: &At, now: Time) -> bool {
    at.0 > timestamp(now.after(AHEAD))
}

fn not_retried(at: &At, pool: &str) -> String {
    format!(
        "its Rollout's spec.retryFailedBefore is {}, which is yet to come, and counts from then on; to try \
         again now: tread rollout retry {pool}",
        at.0
    )
}

/// Nobody says that the pods of a node end whose kubelet is gone.
fn down_in_its_drain(since: Time) -> String {
    format!(
        "nothing has been heard of its kubelet since {}, so that its pods do not end: mend it, or delete its \
         Node if it does not come back",
        timestamp(since)
    )
}

/// Without its Rollout nobody knows whether a pool is paused, and how many of its nodes may be down.
fn no_rollout(rollout: Option<&Rollout>) -> Option<String> {
    let why = "its Rollout is not there yet: tread makes it, and begins no node before that";
    rollout.is_none().then(|| why.to_owned())
}

/// Why nobody knows which of these nodes are the canaries, where a Rollout wants some.
fn no_canary(canary: &Selects, nodes: &[Node]) -> Option<String> {
    match canary {
        Selects::Unreadable(why) => {
            Some(format!("its Rollout's spec.canary cannot be read: {why}; {REMEDY}"))
        }
        Selects::Labels(_) if !nodes.iter().any(|node| node.canary) => {
            Some(format!("its Rollout's spec.canary selects no node of the pool; {REMEDY}"))
        }
        Selects::Labels(_) | Selects::Nothing => None,
    }
}

/// Why nobody knows which nodes come last, where a Rollout names some. Where it selects none, there
/// is none to come last.
fn no_order(last: &Selects) -> Option<String> {
    match last {
        Selects::Unreadable(why) => {
            Some(format!("its Rollout's spec.order.last cannot be read: {why}; {REMEDY}"))
        }
        Selects::Labels(_) | Selects::Nothing => None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
