//! The registry: watches the cluster, loads in the background, and publishes the
//! policies that decide. Every replica runs one; only the leader writes.

mod carry;
mod entry;
mod hopeless;
mod jobs;
mod mirror;
mod pass;
mod publish;
pub(crate) mod read;
mod recipe;
mod sweep;
mod taken;
mod turns;
mod write;

use super::current::{Current, Published};
use super::load::{AllShipped, Loader};
use super::snapshot::{Allowed, Place, PolicyMap, Room, Snapshot};
use carry::{Written, carry_out};
use entry::{Entry, Kept};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, select_all};
use futures::{FutureExt as _, StreamExt as _};
use hopeless::Hopeless;
use jobs::{Done, Hands};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, ResourceExt as _};
use mirror::Mirror;
use serde_json::Value;
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
use tread_kube::api::words::{ALLOWED_SELECTOR, POLICY_SELECTOR};
use tread_kube::api::{DisruptionPolicy, MachineConfiguration, openshift};
use tread_kube::asking::pause;
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::watching::{Unwritten, Watches, follow};
use turns::Turns;
use write::Write;

/// So many versions are compiled at the same time.
const COMPILED_AT_ONCE: usize = 2;

/// So many ConfigMaps are listed with one request. Their annotations may have
/// 256 KiB each, and whoever may write ConfigMaps somewhere can make many: all at
/// once would take more memory than tread has.
const AT_A_TIME: u32 = 50;

/// So much is written in one round, of each namespace in turn. What became due
/// meanwhile is looked at before the next round.
const WRITTEN_AT_ONCE: usize = 40;

/// So many events are taken in before the next look at everything.
const AT_ONCE: usize = 512;

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
    /// Where it is noted how it stands with the watches.
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

/// What a watch has seen.
enum News {
    Policy(Event<DynamicObject>),
    ConfigMap(Event<PartialObjectMeta<ConfigMap>>),
    Namespace(Event<PartialObjectMeta<Namespace>>),
    OpenShift(Event<DynamicObject>),
}

struct Registry {
    settings: Settings,
    hands: Hands,
    policies: Mirror<String, read::Policy>,
    config_maps: Mirror<Place, PolicyMap>,
    namespaces: Mirror<String, Allowed>,
    node_disruption_policy: Mirror<String, Option<Value>>,
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
    let mut news = news(&settings).ready_chunks(AT_ONCE);
    let mut leads = settings.leads.watch();
    let mut registry = Registry::new(settings, publish);
    let mut writing = None;
    loop {
        if registry.synced() {
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
            Some(seen) = news.next() => seen.into_iter().for_each(|it| registry.see(it)),
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

/// All watches together.
fn news(settings: &Settings) -> impl futures::Stream<Item = News> + Send + Unpin + use<> {
    let Settings { client, watches, metrics, .. } = settings;
    let labels = |selector: &str| Config::default().labels(selector);
    let policies = Api::all_with(client.clone(), &ApiResource::erase::<DisruptionPolicy>(&()));
    let openshift = Api::all_with(client.clone(), &ApiResource::erase::<MachineConfiguration>(&()));
    let maps: Api<PartialObjectMeta<ConfigMap>> = Api::all(client.clone());
    let namespaces: Api<PartialObjectMeta<Namespace>> = Api::all(client.clone());
    let only =
        Config::default().fields(&format!("metadata.name={}", openshift::MACHINE_CONFIGURATION));
    let all: [BoxStream<'static, News>; 4] = [
        follow(policies, Config::default(), "disruptionpolicies", watches, metrics)
            .map(News::Policy)
            .boxed(),
        follow(maps, labels(POLICY_SELECTOR).page_size(AT_A_TIME), "configmaps", watches, metrics)
            .map(News::ConfigMap)
            .boxed(),
        follow(namespaces, labels(ALLOWED_SELECTOR), "namespaces", watches, metrics)
            .map(News::Namespace)
            .boxed(),
        follow(openshift, only, "machineconfigurations", watches, metrics)
            .map(News::OpenShift)
            .boxed(),
    ];
    select_all(all)
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
            policies: Mirror::new(),
            config_maps: Mirror::new(),
            namespaces: Mirror::new(),
            node_disruption_policy: Mirror::new(),
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

    fn synced(&self) -> bool {
        self.policies.synced()
            && self.config_maps.synced()
            && self.namespaces.synced()
            && self.node_disruption_policy.synced()
    }

    fn leads(&self) -> bool {
        self.settings.leads.now()
    }

    fn see(&mut self, news: News) {
        match news {
            News::Policy(event) => {
                self.policies.apply(event, |it| (it.name_any(), read::policy(it)));
            }
            News::ConfigMap(event) => self.config_maps.apply(event, |it| {
                let place = (it.namespace().unwrap_or_default(), it.name_any());
                (place, PolicyMap::of(&it.metadata))
            }),
            News::Namespace(event) => {
                self.namespaces.apply(event, |it| (it.name_any(), Allowed::of(&it.metadata)));
            }
            News::OpenShift(event) => self.node_disruption_policy.apply(event, |it| {
                let said = it.data.pointer("/spec/nodeDisruptionPolicy").cloned();
                let empty = |it: &Value| {
                    it.is_null() || it.as_object().is_some_and(serde_json::Map::is_empty)
                };
                (it.name_any(), said.filter(|it| !empty(it)))
            }),
        }
    }

    /// What OpenShift's object says, if it says anything.
    fn node_disruption_policy(&self) -> Option<&Value> {
        let found = self.node_disruption_policy.now().get(openshift::MACHINE_CONFIGURATION);
        found.and_then(Option::as_ref)
    }

    /// What the cluster says now.
    fn snapshot(&self) -> Snapshot {
        let policies = self.policies.now().iter();
        Snapshot {
            own_namespace: self.settings.namespace.clone(),
            policies: policies.map(|(name, it)| (name.clone(), Arc::clone(&it.object))).collect(),
            config_maps: self.config_maps.now().clone(),
            allowed: self.namespaces.now().clone(),
            has_node_disruption_policy: self.node_disruption_policy().is_some(),
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
