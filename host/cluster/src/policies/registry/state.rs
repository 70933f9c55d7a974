//! What a registry knows, and what it is doing.

use super::carry::Written;
use super::entry::{Entry, Kept};
use super::hopeless::Hopeless;
use super::jobs::{Done, Hands};
use super::known::Known;
use super::settings::Settings;
use super::sweep::Sweep;
use super::turns::Turns;
use super::write::Write;
use crate::policies::current::Current;
use crate::policies::load::Loader;
use crate::policies::snapshot::Snapshot;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tread_kube::asking::pause;
use tread_kube::watching::Unwritten;

/// So many versions are compiled at the same time.
const COMPILED_AT_ONCE: usize = 2;

/// So much is written in one round, of each namespace in turn. What became due
/// meanwhile is looked at before the next round.
const WRITTEN_AT_ONCE: usize = 40;

/// Between two rounds of writing: the watches tell of the first one in the
/// meantime.
const BETWEEN_WRITES: Duration = Duration::from_millis(200);

/// The same while the API server does not answer, at most.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Before something that was refused is tried again: at first, and at most.
const REFUSED_WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What a registry knows, and what it is doing.
pub(super) struct Registry {
    pub(super) settings: Settings,
    pub(super) hands: Hands,
    pub(super) known: Known,
    /// By the UID of the DisruptionPolicy.
    pub(super) entries: BTreeMap<String, Entry>,
    pub(super) jobs: JoinSet<Done>,
    pub(super) publish: watch::Sender<Arc<Current>>,
    /// Of which namespaces it was reported why they have ConfigMaps that are no
    /// policies: the newest one by UID, and when.
    pub(super) reported: BTreeMap<(String, &'static str), (String, Instant)>,
    /// What admins had said in objects that were withdrawn, by name.
    pub(super) lost: BTreeMap<String, String>,
    /// Copies that nobody needs any more.
    pub(super) swept: Sweep,
    /// Copies that the round of writing that is under way removes.
    pub(super) removing: BTreeSet<String>,
    /// Nothing is written before that.
    pub(super) write_after: Instant,
    /// So many rounds of writing got no answer in a row.
    pub(super) failures: u32,
    /// What was refused: when it is tried again, and how often it was.
    pub(super) refused: BTreeMap<String, (Instant, u32)>,
    /// Why the last round of writing did not write all.
    pub(super) unwritten: Option<Unwritten>,
    /// When something has to be looked at again, whatever the watches say.
    pub(super) look_at: Option<Instant>,
}

impl Registry {
    pub(super) fn new(settings: Settings, publish: watch::Sender<Arc<Current>>) -> Registry {
        let loader = Loader::new(settings.sandbox.clone(), settings.shipped.clone());
        let hands = Hands {
            client: settings.client.clone(),
            namespace: settings.namespace.clone(),
            loader: Arc::new(loader),
            turns: Turns::new(COMPILED_AT_ONCE),
            hopeless: Hopeless::default(),
            metrics: settings.metrics.clone(),
            watches: settings.watches.clone(),
            leads: settings.leads.clone(),
        };
        Registry {
            settings,
            hands,
            known: Known::default(),
            entries: BTreeMap::new(),
            jobs: JoinSet::new(),
            publish,
            reported: BTreeMap::new(),
            lost: BTreeMap::new(),
            swept: Sweep::default(),
            removing: BTreeSet::new(),
            write_after: Instant::now(),
            failures: 0,
            refused: BTreeMap::new(),
            unwritten: None,
            look_at: None,
        }
    }

    pub(super) fn leads(&self) -> bool {
        self.settings.leads.now()
    }

    /// What the cluster says now.
    pub(super) fn snapshot(&self) -> Snapshot {
        let policies = self.known.policies();
        Snapshot {
            own_namespace: self.settings.namespace.clone(),
            policies: policies.map(|(name, it)| (name.clone(), Arc::clone(&it.object))).collect(),
            config_maps: self.known.config_maps(),
            allowed: self.known.namespaces(),
            has_node_disruption_policy: self.known.node_disruption_policy().is_some(),
            builtins: self.hands.loader.builtins(),
            room: self.settings.room,
        }
    }

    /// Looks at everything again at this time, or earlier.
    pub(super) fn look_by(&mut self, time: Instant) {
        self.look_at = Some(self.look_at.map_or(time, |earlier| earlier.min(time)));
    }

    /// Notes how a round of writing ended.
    pub(super) fn wrote(&mut self, written: Written) {
        let now = Instant::now();
        for entry in self.entries.values_mut() {
            entry.removed(&self.removing);
        }
        self.removing.clear();
        let reported = written.reported.into_iter();
        self.reported.extend(reported.map(|(key, uid)| (key, (uid, now))));
        for (uid, wanted, kept) in written.kept {
            let Some(entry) = self.entries.get_mut(&uid) else { continue };
            entry.written = Some(Kept { wanted, kept, at: now });
        }
        self.swept.settled(&written.done);
        self.swept.settled(&written.refused);
        if written.why.is_some() || !written.done.is_empty() {
            self.unwritten = written.why;
        }
        for name in written.done {
            self.refused.remove(&name);
        }
        for name in written.refused {
            let times = self.refused.get(&name).map_or(0, |(_, times)| *times);
            let again = now + pause(REFUSED_WAITS, times);
            self.refused.insert(name, (again, times.saturating_add(1)));
        }
        self.failures = if written.unreachable { self.failures.saturating_add(1) } else { 0 };
        self.write_after = now + pause((BETWEEN_WRITES, LONGEST_WAIT), self.failures);
    }

    /// What may be written now. What was refused waits, and holds up nothing else.
    pub(super) fn due(&mut self, mut writes: Vec<Write>) -> Vec<Write> {
        let names: BTreeSet<String> = writes.iter().map(Write::name).collect();
        self.refused.retain(|name, _| names.contains(name));
        let why = self.unwritten.clone().filter(|_| !names.is_empty());
        self.settings.watches.unwritten("policies", why);
        let now = Instant::now();
        let waiting = self.refused.values().map(|(again, _)| *again).filter(|again| *again > now);
        if let Some(first) = waiting.min() {
            self.look_by(first);
        }
        writes.retain(|it| self.refused.get(&it.name()).is_none_or(|(again, _)| *again <= now));
        writes.truncate(WRITTEN_AT_ONCE);
        writes
    }
}
