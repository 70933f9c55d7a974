//! One look after the other at each node for which something is to be done: many nodes at the
//! same time, and never two looks at one.

use super::glance;
use super::known::Moment;
use super::scene::Scene;
use super::settings::Settings;
use super::stuck::{AllStuck, By};
use crate::drain::Blocked;
use crate::reading::Aim;
use crate::step::{Ended, forget, step};
use crate::still::Still;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::Instant;
use tread_kube::asking::Backoff;
use tread_kube::held::Maintained;
use tread_kube::node_lease;
use tread_model::digest::Digest;
use tread_model::protocol::{Disrupts, Slot, Time, Waits};
use tread_model::text::one_line_within;

/// What was seen last, also while a look is under way.
pub(crate) type Newest = watch::Receiver<Option<Arc<Scene>>>;

/// How many nodes are looked at at the same time.
const AT_ONCE: usize = 32;
/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// How long others go first, who were faster again and again, at first and at most.
const OTHERS_FIRST: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// How many pods are named that do not move.
const NAMED: usize = 10;
/// What is said of one of them is no longer: the names of a pod, its namespace and three budgets.
const LONGEST: usize = 1500;

/// What is known of a node that is being drained.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Draining {
    pub(crate) left: usize,
    pub(crate) blocked: Vec<String>,
    /// Since when it takes too long.
    pub(crate) late_since: Option<Time>,
}

/// What a look depends on: with another one it is worth another look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Stamp {
    update: String,
    node: String,
    lease: String,
    slot: Option<Slot>,
    turn: Option<Disrupts>,
    turns_back: bool,
    target: Option<Digest>,
    maintained: Maintained,
}

#[derive(Debug)]
struct Work {
    is_looking: bool,
    stamp: Stamp,
    due: Option<Instant>,
    backoff: Backoff,
    /// How long others go first.
    others_first: Backoff,
    /// What was known when the look began.
    by: By,
}

/// What a look at a node came to.
#[derive(Debug)]
struct Looked {
    again: Again,
    draining: Option<Draining>,
    /// Pods by which it cannot be drained.
    stuck: Vec<Blocked>,
    /// What cannot be read or written of it, for a reason that stays.
    failure: Option<String>,
    /// Why it came to nothing, for a reason that may be over any time.
    in_vain: Option<String>,
    /// Whether it was not looked at whether it can be drained: it has a slot, and no turn.
    keeps_stuck: bool,
}

/// When a node is looked at again, if nothing changes.
#[derive(Debug)]
enum Again {
    After(Duration),
    /// Later each time.
    Failed,
    /// Once others, who were faster, have had their turn: later each time.
    Busy,
    Never,
}

/// Who looks at nodes.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    tasks: JoinSet<Looked>,
    /// Whose looks they are.
    nodes: BTreeMap<Id, String>,
    works: BTreeMap<String, Work>,
    draining: BTreeMap<String, Draining>,
    stuck: AllStuck,
}

impl Workers {
    /// Nodes that could not be drained.
    pub(crate) fn stuck(&self) -> &AllStuck {
        &self.stuck
    }

    /// Nodes that are being drained.
    pub(crate) fn draining(&self) -> &BTreeMap<String, Draining> {
        &self.draining
    }

    /// Ends all looks. What one has begun to write is read again by the next.
    pub(crate) fn halt(&mut self) {
        *self = Workers::default();
    }

    /// When the next look is due, if somebody is free for it.
    pub(crate) fn due(&self) -> Option<Instant> {
        let waiting = self.works.values().filter(|work| !work.is_looking);
        let due = waiting.filter_map(|work| work.due).min();
        due.filter(|_| self.tasks.len() < AT_ONCE)
    }

    /// Takes in what is known now: at which nodes something is to be done, and how soon.
    pub(crate) fn see(&mut self, settings: &Settings, moment: &Moment, scene: &Scene) {
        self.see_with(moment, scene, |name| {
            waits(settings, moment, scene, name).map(|waits| after(waits, settings))
        });
    }

    /// The same. `again` says when a node is looked at again where a look would only wait, by what
    /// is watched.
    fn see_with(&mut self, moment: &Moment, scene: &Scene, again: impl Fn(&str) -> Option<Again>) {
        self.works.retain(|name, work| {
            let is_busy = scene.nodes.get(name).is_some_and(|node| node.is_busy());
            let is_kept = is_busy || scene.gone.contains(name);
            if !is_kept {
                // Whatever the look that is under way comes to, it does not hold for what comes next.
                work.stamp = Stamp::default();
            }
            work.is_looking || is_kept
        });
        self.draining.retain(|name, _| self.works.contains_key(name));
        self.stuck.keep(|name| scene.nodes.contains_key(name));
        self.stuck.keep_in_vain(|name| self.works.contains_key(name));
        let busy = scene.nodes.iter().filter(|(_, node)| node.is_busy()).map(|(name, _)| name);
        for name in busy.chain(&scene.gone) {
            let stamp = stamp(name, moment, scene);
            let work = self.works.entry(name.clone()).or_insert_with(|| Work {
                is_looking: false,
                stamp: Stamp::default(),
                due: Some(Instant::now()),
                backoff: Backoff::new(WAITS),
                others_first: Backoff::new(OTHERS_FIRST),
                by: By::default(),
            });
            if work.stamp == stamp {
                continue;
            }
            // The first look at a node reads it, and so does one whose time has come.
            let is_known = work.stamp != Stamp::default();
            work.stamp = stamp;
            let again = match is_known.then(|| again(name)).flatten() {
                Some(Again::After(wait)) => Some(Instant::now() + wait),
                Some(Again::Never) => None,
                Some(Again::Failed | Again::Busy) | None => Some(Instant::now()),
            };
            work.due = [work.due, again].into_iter().flatten().min();
        }
    }

    /// Begins the looks that are due, by what was taken in last.
    /// `newest` is what is seen while they are under way.
    pub(crate) fn begin(
        &mut self,
        settings: &Settings,
        moment: &Moment,
        scene: &Scene,
        newest: &Newest,
    ) {
        let now = Instant::now();
        let waiting = self.works.iter_mut().filter(|(_, work)| !work.is_looking);
        let due = waiting.filter_map(|(name, work)| Some((work.due?, name, work)));
        let mut due: Vec<_> = due.filter(|(due, ..)| *due <= now).collect();
        // Whoever waits longest goes first.
        due.sort_by_key(|(due, name, _)| (*due, *name));
        for (_, name, work) in due.into_iter().take(AT_ONCE.saturating_sub(self.tasks.len())) {
            work.is_looking = true;
            work.due = None;
            let pool = scene.nodes.get(name).and_then(|node| scene.pools.get(&node.pool));
            work.by = By {
                budgets: Arc::clone(&moment.budgets),
                generation: pool.and_then(|pool| pool.generation),
            };
            let task = look(&mut self.tasks, settings, (scene, newest), name);
            self.nodes.insert(task.id(), name.clone());
        }
    }

    /// Notes what a look came to, as soon as one has ended.
    pub(crate) async fn ended(&mut self) {
        let Some(joined) = self.tasks.join_next_with_id().await else {
            return std::future::pending().await;
        };
        let (id, looked) = match joined {
            Ok(ended) => ended,
            Err(interrupted) => {
                tracing::error!("a look at a node was interrupted; please report it");
                (interrupted.id(), Looked::at(Again::Failed))
            }
        };
        let Some(node) = self.nodes.remove(&id) else { return };
        match looked.draining {
            Some(draining) => drop(self.draining.insert(node.clone(), draining)),
            None => drop(self.draining.remove(&node)),
        }
        match &looked.in_vain {
            Some(why) => self.stuck.looks_in_vain(&node, why),
            None => self.stuck.is_looked_at(&node),
        }
        let work = self.works.get_mut(&node);
        match &work {
            Some(work) if !looked.stuck.is_empty() => {
                self.stuck.found(&node, &looked.stuck, &work.by, Instant::now());
            }
            Some(work) if looked.failure.is_some() => {
                let why = looked.failure.as_deref().unwrap_or_default();
                self.stuck.fails(&node, why, &work.by, Instant::now());
            }
            // It was not found out.
            _ if matches!(looked.again, Again::Failed | Again::Busy) => {}
            _ if looked.keeps_stuck => self.stuck.is_read(&node),
            _ => self.stuck.is_none(&node),
        }
        let Some(work) = work else { return };
        work.is_looking = false;
        work.by = By::default();
        if !matches!(looked.again, Again::Busy) {
            work.others_first.reset();
        }
        let after = match looked.again {
            Again::Failed => Some(work.backoff.next_wait()),
            Again::Busy => Some(work.others_first.next_wait()),
            Again::After(wait) => {
                work.backoff.reset();
                Some(wait)
            }
            Again::Never => {
                work.backoff.reset();
                None
            }
        };
        let after = after.map(|wait| Instant::now() + wait);
        // What changed meanwhile is looked at at once.
        work.due = [work.due, after].into_iter().flatten().min();
    }
}

/// Begins a look at a node.
fn look(
    tasks: &mut JoinSet<Looked>,
    settings: &Settings,
    (scene, newest): (&Scene, &Newest),
    name: &str,
) -> AbortHandle {
    let (settings, node) = (settings.clone(), name.to_owned());
    let Some((mut aim, room)) = scene.aim(name) else {
        let is_gone = scene.gone.iter().any(|gone| gone == name);
        return tasks.spawn(async move {
            match is_gone {
                true => forgotten(&settings, &node).await,
                false => Looked::at(Again::After(settings.paces.again)),
            }
        });
    };
    aim.still = still(newest.clone(), name.to_owned(), &aim);
    tasks.spawn(async move {
        let ended = step(&settings.acts, &node, &aim, &room).await;
        looked(&settings, &node, &aim, ended)
    })
}

/// Whether it is still a node's turn, by what is seen when that is asked.
fn still(newest: Newest, node: String, aim: &Aim) -> Still {
    let (turn, digest) = (aim.turn, aim.target.digest);
    Still::by(move || {
        let scene = newest.borrow();
        scene.as_ref().is_none_or(|scene| scene.is_turn_of(&node, turn, digest))
    })
}

/// Why nothing is to be done for a node, by what is watched.
fn waits(settings: &Settings, moment: &Moment, scene: &Scene, name: &str) -> Option<Waits> {
    let (aim, room) = scene.aim(name)?;
    let acts = &settings.acts;
    let now = acts.clock.now()?;
    glance::waits(name, (&aim, &room), moment, (&acts.holder, &acts.terms), now)
}

fn stamp(name: &str, moment: &Moment, scene: &Scene) -> Stamp {
    let update = moment.updates.get(name).and_then(|it| it.metadata.resource_version.clone());
    let lease = node_lease::name(name).and_then(|lease| moment.leases.get(&lease));
    let lease = lease.and_then(|it| it.metadata.resource_version.clone());
    Stamp {
        update: update.unwrap_or_default(),
        node: moment.nodes.get(name).map(|it| it.version.clone()).unwrap_or_default(),
        lease: lease.unwrap_or_default(),
        slot: moment.slots.as_ref().ok().and_then(|slots| slots.of(&name.to_owned())),
        turn: scene.nodes.get(name).and_then(|node| node.turn()),
        turns_back: scene.turns_back(name),
        target: scene.digest(name),
        maintained: scene.nodes.get(name).map(|node| node.maintained).unwrap_or_default(),
    }
}

impl Looked {
    fn at(again: Again) -> Looked {
        Looked {
            again,
            draining: None,
            stuck: Vec::new(),
            failure: None,
            in_vain: None,
            keeps_stuck: false,
        }
    }
}

/// Why a pod does not move: others name it, and its budgets.
fn said(pod: &impl Display, why: &impl Display) -> String {
    one_line_within(&format!("{pod}: {why}"), LONGEST).0
}

fn looked(
    settings: &Settings,
    node: &str,
    aim: &Aim,
    ended: Result<Ended, crate::reading::Unread>,
) -> Looked {
    let again = settings.paces.again;
    match ended {
        Ok(Ended::Waits(waits, read)) => {
            tracing::debug!(node, ?waits, "waits");
            let left = read.left.as_ref().map(|left| left.pods.len()).filter(|left| *left > 0);
            let draining = left.map(|left| Draining { left, ..Draining::default() });
            let keeps_stuck = waits == Waits::Room;
            Looked { draining, keeps_stuck, ..Looked::at(after(waits, settings)) }
        }
        Ok(Ended::Drains(blocked, read)) => {
            let left = read.left.as_ref().map_or(0, |left| left.pods.len());
            let named = blocked.iter().take(NAMED);
            let blocked = named.map(|it| said(&it.pod, &it.by)).collect();
            let late_since = read.late_since(&aim.drain);
            let draining = Some(Draining { left, blocked, late_since });
            Looked { draining, ..Looked::at(Again::After(again)) }
        }
        // Whose turn it is has to be decided again: it is another node's.
        Ok(Ended::Stuck(stuck, _)) => Looked { stuck, ..Looked::at(Again::After(again)) },
        Ok(Ended::NotItsTurn(_)) => Looked::at(Again::After(again)),
        Ok(Ended::Degraded(_)) => Looked { keeps_stuck: true, ..Looked::at(Again::Never) },
        Ok(Ended::Busy) => Looked::at(Again::Busy),
        Err(crate::reading::Unread::Gone) => Looked::at(Again::After(again)),
        Err(error) => {
            tracing::warn!(node, %error, "the node cannot be brought further");
            let why = Some(error.to_string());
            let (failure, in_vain) = if error.stays() { (why, None) } else { (None, why) };
            Looked { failure, in_vain, ..Looked::at(Again::Failed) }
        }
    }
}

/// When something is looked at again that waits. What tread holds is renewed in time.
fn after(waits: Waits, settings: &Settings) -> Again {
    let again = settings.paces.again;
    match waits {
        Waits::Nothing => Again::Never,
        // A Lease ends with time alone.
        Waits::Room | Waits::Lease | Waits::Proof | Waits::HandsOff => Again::After(again),
        // What tread holds is renewed meanwhile.
        Waits::Agent | Waits::Held(_) => Again::After(settings.acts.terms.lease / 8),
    }
}

async fn forgotten(settings: &Settings, node: &str) -> Looked {
    let again = match forget(&settings.acts, node).await {
        Ok(_) => Again::Never,
        Err(error) => {
            tracing::warn!(node, %error, "the slot of a node that is gone cannot be given back");
            Again::Failed
        }
    };
    Looked::at(again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollouts::scene::tests::with_turn;

    #[test]
    fn a_node_whose_turn_goes_and_comes_again_during_a_look_is_looked_at_again() {
        let (moment, mut workers) = (Moment::empty(), Workers::default());
        let see = |turn, workers: &mut Workers| {
            workers.see_with(&moment, &with_turn("a", turn), |_| Some(Again::Never));
        };
        see(Some(Disrupts::Reboot), &mut workers);
        assert!(workers.due().is_some(), "the first look at a node reads it");
        let begins = |workers: &mut Workers| {
            let work = workers.works.get_mut("a").unwrap();
            (work.is_looking, work.due) = (true, None);
        };
        begins(&mut workers);
        // The same turn as before: the look under way is by what is known.
        see(Some(Disrupts::Reboot), &mut workers);
        assert_eq!(workers.works["a"].due, None);
        // It finds that nothing is to be done, since it is another node's turn.
        see(None, &mut workers);
        see(Some(Disrupts::Reboot), &mut workers);
        workers.works.get_mut("a").unwrap().is_looking = false;
        assert!(workers.due().is_some(), "{workers:?}");
    }

    #[tokio::test]
    async fn a_node_at_which_looks_come_to_nothing_is_told_of_for_as_long_as_it_is_looked_at() {
        let (moment, mut workers) = (Moment::empty(), Workers::default());
        let see = |turn, workers: &mut Workers| {
            workers.see_with(&moment, &with_turn("a", turn), |_| Some(Again::Never));
        };
        see(Some(Disrupts::Reboot), &mut workers);
        let ends = async |looked: Looked, workers: &mut Workers| {
            let task = workers.tasks.spawn(async move { looked });
            workers.nodes.insert(task.id(), "a".to_owned());
            workers.ended().await;
            workers.stuck.in_vain("a")
        };
        let in_vain = || {
            let in_vain = Some("the API server does not answer".to_owned());
            Looked { in_vain, ..Looked::at(Again::Failed) }
        };
        assert_eq!(ends(in_vain(), &mut workers).await, None, "it may be over at once");
        for _ in 0..9 {
            ends(in_vain(), &mut workers).await;
        }
        let why = workers.stuck.in_vain("a").unwrap();
        assert!(why.contains("the API server does not answer"), "{why}");
        assert_eq!(ends(Looked::at(Again::Never), &mut workers).await, None, "it was looked at");
        for _ in 0..9 {
            ends(in_vain(), &mut workers).await;
        }
        see(None, &mut workers);
        assert_eq!(workers.stuck.in_vain("a"), None, "nothing is to be done for it");
    }
}
