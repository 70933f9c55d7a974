//! The registry: watches the cluster, loads in the background, and publishes the
//! policies that decide. Every replica runs one; only the leader writes.

mod carry;
mod chosen;
mod entry;
mod hopeless;
mod jobs;
mod known;
mod last_good;
mod origin;
mod pass;
mod publish;
mod recipe;
mod running;
mod sweep;
mod taken;
mod turns;
mod write;

use super::current::{Current, Published};
use super::load::{AllShipped, Loader};
use super::snapshot::{Room, Snapshot};
use crate::index::Index;
use carry::{Written, carry_out};
use entry::{Entry, Kept};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use hopeless::Hopeless;
use jobs::{Done, Hands};
use known::{Known, moments};
use kube::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use sweep::Sweep;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tread_engine::policy::PolicySet;
use tread_engine::sandbox::Sandbox;
use tread_kube::asking::pause;
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::watching::{Unwritten, Watches};
use turns::Turns;
use write::Write;

/// So many versions are compiled at the same time.
const COMPILED_AT_ONCE: usize = 2;

/// So much is written in one round, of each namespace in turn. What became due
/// meanwhile is looked at before the next round.
const WRITTEN_AT_ONCE: usize = 40;

/// So many snapshots are taken in before the next look at everything.
const AT_ONCE: usize = 8;

/// Between two rounds of writing: the watches tell of the first one in the
/// meantime.
const BETWEEN_WRITES: Duration = Duration::from_millis(200);

/// The same while the API server does not answer, at most.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Before something that was refused is tried again: at first, and at most.
const REFUSED_WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How a registry is set up.
#[derive(Clone)]
pub struct Settings {
    /// For everything that is asked of the API server.
    pub client: Client,
    /// What is known of the cluster.
    pub index: Index,
    /// tread's own namespace.
    pub namespace: String,
    /// What this replica is called.
    pub replica: String,
    /// What loads and asks policies.
    pub sandbox: Sandbox,
    /// What comes with tread.
    pub shipped: AllShipped,
    /// How many policies there may be.
    pub room: Room,
    /// Whether this replica writes.
    pub leads: Leading,
    /// Where it is noted what is read, and what waits to be written.
    pub watches: Watches,
    /// What is measured.
    pub metrics: Metrics,
    /// Where Events go.
    pub events: Events,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("replica", &self.replica).finish_non_exhaustive()
    }
}

/// Starts a registry. What is published at first is empty and not settled. The
/// future runs until it is dropped, and everything with it.
pub fn start(settings: Settings) -> (Published, impl Future<Output = ()> + Send + use<>) {
    let nobody = Current::new(PolicySet::default(), None, false);
    let (publish, published) = watch::channel(Arc::new(nobody));
    (published, run(settings, publish))
}

struct Registry {
    settings: Settings,
    hands: Hands,
    known: Known,
    /// By the UID of the DisruptionPolicy.
    entries: BTreeMap<String, Entry>,
    jobs: JoinSet<Done>,
    publish: watch::Sender<Arc<Current>>,
    /// Of which namespaces it was told why they have ConfigMaps that are no
    /// policies: the newest one by UID, and when.
    told: BTreeMap<(String, &'static str), (String, Instant)>,
    /// What admins had said in objects that were withdrawn, by name.
    lost: BTreeMap<String, String>,
    /// Copies that nobody needs any more.
    swept: Sweep,
    /// Nothing is written before that.
    write_after: Instant,
    /// So many rounds of writing got no answer in a row.
    failures: u32,
    /// What was refused: when it is tried again, and how often it was.
    refused: BTreeMap<String, (Instant, u32)>,
    /// Why the last round of writing did not write all.
    unwritten: Option<Unwritten>,
    /// When something has to be looked at again, whatever the watches say.
    look_at: Option<Instant>,
}

async fn run(settings: Settings, publish: watch::Sender<Arc<Current>>) {
    let mut moments = moments(&settings.index).ready_chunks(AT_ONCE);
    let mut leads = settings.leads.watch();
    let mut registry = Registry::new(settings, publish);
    let mut writing = None;
    loop {
        if registry.known.is_complete() {
            let writes = registry.pass();
            let may_write = Instant::now() >= registry.write_after;
            if writing.is_none() && !writes.is_empty() {
                if may_write {
                    writing = Some(carry_out(registry.settings.clone(), writes).boxed());
                } else {
                    registry.look_by(registry.write_after);
                }
            }
        }
        let look_at = registry.look_at.take();
        tokio::select! {
            Some(now) = moments.next() => now.into_iter().for_each(|it| registry.known.take(it)),
            Some(done) = registry.jobs.join_next() => registry.take(done),
            written = next_of(&mut writing) => {
                writing = None;
                registry.wrote(written);
            }
            Ok(()) = leads.changed() => {}
            () = sleep_until(look_at.unwrap_or_else(Instant::now)), if look_at.is_some() => {}
        }
    }
}

/// What comes of it; nothing, where there is nothing.
async fn next_of<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => futures::future::pending().await,
    }
}

impl Registry {
    fn new(settings: Settings, publish: watch::Sender<Arc<Current>>) -> Registry {
        let loader = Loader::new(settings.sandbox.clone(), settings.shipped.clone());
        let hands = Hands {
            client: settings.client.clone(),
            namespace: settings.namespace.clone(),
            loader: Arc::new(loader),
            turns: Turns::new(COMPILED_AT_ONCE),
            hopeless: Hopeless::default(),
            metrics: settings.metrics.clone(),
            watches: settings.watches.clone(),
        };
        Registry {
            settings,
            hands,
            known: Known::default(),
            entries: BTreeMap::new(),
            jobs: JoinSet::new(),
            publish,
            told: BTreeMap::new(),
            lost: BTreeMap::new(),
            swept: Sweep::default(),
            write_after: Instant::now(),
            failures: 0,
            refused: BTreeMap::new(),
            unwritten: None,
            look_at: None,
        }
    }

    fn leads(&self) -> bool {
        self.settings.leads.now()
    }

    /// What the cluster says now.
    fn snapshot(&self) -> Snapshot {
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
    fn look_by(&mut self, time: Instant) {
        self.look_at = Some(self.look_at.map_or(time, |earlier| earlier.min(time)));
    }

    /// Notes how a round of writing ended.
    fn wrote(&mut self, written: Written) {
        let now = Instant::now();
        let told = written.told.into_iter();
        self.told.extend(told.map(|(key, uid)| (key, (uid, now))));
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
    fn due(&mut self, mut writes: Vec<Write>) -> Vec<Write> {
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
