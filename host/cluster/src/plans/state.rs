//! What the watches and the index say of the cluster, put together.

use super::standing::{Standing, strays};
use super::updates::Updates;
use crate::flags::Flags;
use crate::index::{self, All, Differences, Object, differences, last_read, read_as};
use crate::pools::{ConfigMeta, Node, Pool, Selects, Wanted, modified, pools_of};
use crate::previews::{Cluster, Mirror, MirrorKey, Release};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::jiff::Timestamp;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::Event;
use kube::{Resource as _, ResourceExt as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_kube::api::conditions::reason;
use tread_kube::api::openshift::MACHINE_CONFIGURATION;
use tread_kube::api::{
    ClusterVersion, DisruptionPlan, MachineConfig, MachineConfigPool, NodeUpdate, Rollout,
};
use tread_kube::dated::time;
use tread_kube::held::Maintenance;
use tread_kube::metrics::Metrics;
use tread_kube::watching::fold::{Fold, Folded};
use tread_kube::watching::left_out;
use tread_kube::watching::parsed::Parsed;

/// What comes in: snapshots of the index, and what the own watches say.
#[derive(Debug)]
pub(super) enum Input {
    Pools(All<String, Object>),
    MachineConfiguration(All<String, Object>),
    ClusterVersion(All<String, Object>),
    Node(Box<Event<core::Node>>),
    /// The Leases of nodes.
    Leases(All<String, Arc<Lease>>),
    /// The nodes that somebody maintains, by the names of the objects that say so.
    Maintenances(All<String, Option<Arc<Maintenance>>>),
    Rollouts(All<String, Arc<Rollout>>),
    /// Whether OpenShift's daemon is there, where tread rolls out.
    OperatorsDaemon(bool),
    Update(Box<Event<NodeUpdate>>),
    Config(Event<PartialObjectMeta<MachineConfig>>),
    Mirror(&'static str, Event<DynamicObject>),
    Plan(Box<Event<DisruptionPlan>>),
}

/// How many kinds of mirrors there are.
const MIRROR_KINDS: usize = super::admit::MIRROR_KINDS.len();

/// Everything that came in so far, as far as it is not in the [`Cluster`].
#[derive(Debug)]
pub(super) struct State {
    pub(super) plans: BTreeMap<String, Standing>,
    pools: Option<All<String, Object>>,
    /// MachineConfiguration `cluster`, if it is there; None: it was not listed yet.
    machine_configuration: Option<Option<Object>>,
    cluster_version: Option<All<String, Object>>,
    leases: Option<All<String, Arc<Lease>>>,
    maintenances: Option<All<String, Option<Arc<Maintenance>>>>,
    has_rollouts: bool,
    nodes: Fold<String>,
    /// Where tread rolls out, what nodes have, by their NodeUpdates.
    updates: Option<Updates>,
    configs: Fold<String>,
    mirrors: BTreeMap<&'static str, Fold<String>>,
    plan_names: Fold<String>,
    metrics: Metrics,
}

/// What has to be looked at for it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) pools: BTreeSet<String>,
    pub(super) all: bool,
    /// Whether a pool may be made of something else.
    pub(super) sources: bool,
}

impl Touched {
    pub(super) fn everything() -> Touched {
        Touched { all: true, ..Touched::default() }
    }

    fn nothing() -> Touched {
        Touched::default()
    }

    pub(super) fn pools(pools: BTreeSet<String>) -> Touched {
        Touched { pools, ..Touched::default() }
    }

    fn with_sources(self) -> Touched {
        Touched { sources: true, ..self }
    }
}

impl State {
    pub(super) fn new(metrics: Metrics, by_tread: bool) -> State {
        State {
            plans: BTreeMap::new(),
            pools: None,
            machine_configuration: None,
            cluster_version: None,
            leases: None,
            maintenances: None,
            has_rollouts: false,
            nodes: Fold::default(),
            updates: by_tread.then(Updates::default),
            configs: Fold::default(),
            mirrors: BTreeMap::new(),
            plan_names: Fold::default(),
            metrics,
        }
    }

    /// Whether everything was listed once.
    pub(super) fn is_complete(&self) -> bool {
        let own = [&self.nodes, &self.configs, &self.plan_names];
        self.pools.is_some()
            && self.machine_configuration.is_some()
            && self.cluster_version.is_some()
            && self.leases.is_some()
            && self.maintenances.is_some()
            && self.has_rollouts
            && self.mirrors.len() == MIRROR_KINDS
            && self.updates.as_ref().is_none_or(Updates::is_synced)
            && own.into_iter().chain(self.mirrors.values()).all(Fold::is_synced)
    }

    /// Takes in what comes; what has to be looked at again for it.
    pub(super) fn take(&mut self, input: Input, cluster: &mut Cluster) -> Touched {
        match input {
            Input::Pools(now) => self.pools(now, cluster),
            Input::MachineConfiguration(now) => self.machine_configuration(&now, cluster),
            Input::ClusterVersion(now) => self.cluster_version(now, cluster),
            Input::Node(event) if self.updates.is_some() => {
                self.node(*event, Node::that_may_join, cluster)
            }
            Input::Node(event) => self.node(*event, Node::of_whole, cluster),
            Input::Leases(now) => {
                self.leases = Some(now);
                self.flags(cluster)
            }
            Input::Maintenances(now) => {
                self.maintenances = Some(now);
                self.flags(cluster)
            }
            Input::Rollouts(now) => {
                self.has_rollouts = true;
                wanted(&now, cluster)
            }
            Input::OperatorsDaemon(is_there) => self.operators_daemon(is_there, cluster),
            Input::Update(event) => self.update(*event, cluster),
            Input::Config(event) => self.config(event, cluster),
            Input::Mirror(kind, event) => self.mirror(kind, event, cluster),
            Input::Plan(event) => self.plan(*event, cluster),
        }
    }

    fn pools(&mut self, now: All<String, Object>, cluster: &mut Cluster) -> Touched {
        let all = self.pools.is_none();
        let before = self.pools.take().unwrap_or_default();
        let Differences { gone, there } = differences(&before, &now);
        let mut pools = BTreeSet::new();
        let (mut selectors, mut others, mut sources) = (Vec::new(), false, all);
        for name in gone {
            pools.insert(name.clone());
            (others, sources) = (true, true);
            selectors.extend(remove_pool(cluster, name));
        }
        for (name, object) in there {
            let pool = match self.read_as::<MachineConfigPool>(index::POOLS, object) {
                Ok(pool) => Pool::of(&pool),
                // One that cannot be read stays as it was.
                Err(_) if cluster.pools.get(name).is_some_and(|it| it.unread.is_none()) => continue,
                Err(why) => Pool::unread(object.meta(), &why),
            };
            pools.insert(name.clone());
            let changed = put_pool(cluster, pool);
            others |= changed.is_another;
            sources |= changed.sources;
            selectors.extend(changed.selectors);
        }
        let Cluster { members, pools: known, configs, strays, .. } = cluster;
        if !selectors.is_empty() {
            pools.extend(Arc::make_mut(members).sort_again(known, &selectors));
        }
        if others || !selectors.is_empty() {
            pools.extend(strays.look_at_all(members, (configs, known)));
        }
        self.pools = Some(now);
        Touched { pools, all, sources }
    }

    /// The object as one of its kind, or why it is none. That is told of in the log, where the
    /// index has not told of it.
    fn read_as<K: serde::de::DeserializeOwned>(
        &self,
        kind: &'static str,
        object: &Object,
    ) -> Result<K, String> {
        let read = read_as(object);
        if let (Err(why), Parsed::Read(_)) = (&read, &**object) {
            left_out(kind, object.meta(), why, &self.metrics);
        }
        read
    }

    fn machine_configuration(
        &mut self,
        now: &All<String, Object>,
        cluster: &mut Cluster,
    ) -> Touched {
        let known = self.machine_configuration.take().flatten();
        let known = last_read(known, now.get(MACHINE_CONFIGURATION));
        let object = known.as_deref().and_then(|seen| match seen {
            Parsed::Read(object) => Some(object.clone()),
            Parsed::Unreadable(..) => None,
        });
        let value = object.and_then(|mut object| {
            // What changes with each write of whatever part.
            object.metadata.resource_version = None;
            serde_json::to_value(object).ok().map(Arc::new)
        });
        self.machine_configuration = Some(known);
        let before = std::mem::replace(&mut cluster.machine_configuration, value);
        match before == cluster.machine_configuration {
            true => Touched::nothing(),
            false => Touched::everything(),
        }
    }

    /// The release stays known when its object is gone.
    fn cluster_version(&mut self, now: All<String, Object>, cluster: &mut Cluster) -> Touched {
        let before = self.cluster_version.take().unwrap_or_default();
        let Differences { there, .. } = differences(&before, &now);
        let mut touched = Touched::nothing();
        for (_, object) in there {
            let object = self.read_as::<ClusterVersion>(index::CLUSTER_VERSIONS, object).ok();
            if let Some(release) = object.as_ref().map(release)
                && release != cluster.release
            {
                cluster.release = release;
                touched = Touched::everything();
            }
        }
        self.cluster_version = Some(now);
        touched
    }

    /// Finds out again who else has nodes. Returns the pools of the nodes for which that changed.
    pub(super) fn flags(&mut self, cluster: &mut Cluster) -> Touched {
        let (leases, maintenances) = (self.leases.as_deref(), self.maintenances.as_deref());
        let leases = leases.into_iter().flat_map(BTreeMap::values).map(|lease| &**lease);
        let maintained = maintenances.into_iter().flatten();
        let maintained = maintained.filter_map(|(name, it)| Some((name, &it.as_ref()?.node)));
        let now = Flags::of(leases, maintained, time(Timestamp::now()).unwrap_or_default());
        let others = now.differ_from(&cluster.flags);
        let pool = |node: &String| cluster.members.get(node)?.place.pool().map(str::to_owned);
        let touched = others.iter().filter_map(pool).collect();
        cluster.flags = Arc::new(now);
        Touched::pools(touched)
    }

    fn node(
        &mut self,
        event: Event<core::Node>,
        read: fn(&mut core::Node) -> Node,
        cluster: &mut Cluster,
    ) -> Touched {
        let Cluster { members, pools, configs, strays, .. } = cluster;
        let mut touched = BTreeSet::new();
        let nodes = match self.nodes.take(event, |it| it.name_any()) {
            Folded::There(name, mut object) => {
                let mut node = read(&mut object);
                if let Some(updates) = &mut self.updates {
                    updates.note(&name, node.current.take());
                    node.current = updates.current(&name, &node.uid);
                }
                touched.extend(Arc::make_mut(members).put(&name, node, pools));
                vec![name]
            }
            Folded::Gone(name) => vec![name],
            Folded::Listed(gone) => {
                Arc::make_mut(members).listed();
                gone
            }
            Folded::Nothing => Vec::new(),
        };
        for name in nodes {
            if !self.nodes.has(&name) {
                touched.extend(Arc::make_mut(members).remove(&name));
                if let Some(updates) = &mut self.updates {
                    updates.note(&name, None);
                }
            }
            touched.extend(strays.look(&name, members, (configs, pools)));
        }
        Touched::pools(touched)
    }

    /// What a node has may have changed.
    fn update(&mut self, event: Event<NodeUpdate>, cluster: &mut Cluster) -> Touched {
        let Some(updates) = &mut self.updates else { return Touched::nothing() };
        let names = updates.take(event);
        Touched::pools(have_again(updates, names, cluster))
    }

    /// OpenShift's daemon came, so that its operator rolls out, or it went.
    fn operators_daemon(&mut self, is_there: bool, cluster: &mut Cluster) -> Touched {
        let Some(updates) = &mut self.updates else { return Touched::nothing() };
        if !updates.note_operators_daemon(is_there) {
            return Touched::nothing();
        }
        cluster.by_tread = !is_there;
        let names = cluster.members.names().map(str::to_owned).collect();
        have_again(updates, names, cluster);
        Touched::everything()
    }

    fn config(
        &mut self,
        event: Event<PartialObjectMeta<MachineConfig>>,
        cluster: &mut Cluster,
    ) -> Touched {
        let now = Timestamp::now().as_second();
        match self.configs.take(event, |it| it.name_any()) {
            Folded::There(name, mut object) => {
                let config = Arc::new(ConfigMeta::of(&mut object.metadata));
                if cluster.configs.get(&name) == Some(&config) {
                    return Touched::nothing();
                }
                let before = cluster.configs.insert(name.clone(), Arc::clone(&config));
                cluster.note_lost(&name, before.as_deref(), now);
                cluster.gone_configs.remove(&name);
                let had = had(cluster, &name).filter(|_| before.is_none());
                let both = before.iter().chain([&config]);
                let made_of_it = both.flat_map(|it| pools_of(&cluster.pools, &name, it));
                let touched = made_of_it.chain(had).collect();
                Touched::pools(and_strays(cluster, &name, touched)).with_sources()
            }
            Folded::Gone(name) => match cluster.configs.remove(&name) {
                Some(before) => {
                    cluster.note_lost(&name, Some(&before), now);
                    let made_of_it = pools_of(&cluster.pools, &name, &before);
                    let touched = made_of_it.chain(had(cluster, &name)).collect();
                    Touched::pools(and_strays(cluster, &name, touched)).with_sources()
                }
                None => Touched::nothing(),
            },
            Folded::Listed(gone) => {
                for name in gone {
                    let before = cluster.configs.remove(&name);
                    cluster.note_lost(&name, before.as_deref(), now);
                    and_strays(cluster, &name, BTreeSet::new());
                }
                Touched::everything().with_sources()
            }
            Folded::Nothing => Touched::nothing(),
        }
    }

    fn mirror(
        &mut self,
        kind: &'static str,
        event: Event<DynamicObject>,
        cluster: &mut Cluster,
    ) -> Touched {
        let now = Timestamp::now().as_second();
        match self.mirrors.entry(kind).or_default().take(event, |it| it.name_any()) {
            Folded::There(name, mut object) => {
                let key = (kind, name);
                let created =
                    object.metadata.creation_timestamp.as_ref().map_or(0, |it| it.0.as_second());
                let modified = modified(&object.metadata).max(created);
                object.metadata.managed_fields = None;
                let Ok(text) = serde_json::to_vec(&object) else { return Touched::nothing() };
                let mirror = Arc::new(Mirror { created, modified, body: text.into() });
                cluster.gone_mirrors.remove(&key);
                if cluster.mirrors.insert(key, Arc::clone(&mirror)) == Some(mirror) {
                    return Touched::nothing();
                }
            }
            Folded::Gone(name) => remove_mirror(cluster, (kind, name), now),
            Folded::Listed(gone) => {
                gone.into_iter().for_each(|name| remove_mirror(cluster, (kind, name), now));
            }
            Folded::Nothing => return Touched::nothing(),
        }
        Touched::everything().with_sources()
    }

    fn plan(&mut self, event: Event<DisruptionPlan>, cluster: &mut Cluster) -> Touched {
        match self.plan_names.take(event, |it| it.name_any()) {
            Folded::There(name, object) => {
                for (node, uid) in strays(&object) {
                    let Cluster { members, pools, configs, strays, .. } = &mut *cluster;
                    if members.awaits_witness(&node, &uid) {
                        Arc::make_mut(members).witness(&node, &uid);
                        strays.look(&node, members, (configs, pools));
                    }
                }
                let standing = Standing::of(object);
                // A pool that waited, and does not any more, goes on.
                let waited = standing.conditions.iter().any(|condition| {
                    condition.type_ == "Pending" && condition.reason == reason("Paused")
                });
                if waited && cluster.pools.get(&standing.pool).is_some_and(|pool| !pool.paused) {
                    cluster.unpaused.insert(standing.pool.clone());
                }
                let pool = standing.pool.clone();
                let before = self.plans.insert(name, standing);
                let same = before.is_some_and(|before| {
                    self.plans.values().any(|it| it.uid == before.uid && it.says == before.says)
                });
                if same { Touched::nothing() } else { Touched::pools([pool].into()) }
            }
            // Somebody deleted it: if it is still true, it comes back.
            Folded::Gone(name) => {
                Touched::pools(self.plans.remove(&name).map(|plan| plan.pool).into_iter().collect())
            }
            Folded::Listed(gone) => {
                self.plans.retain(|name, _| !gone.contains(name));
                Touched::everything()
            }
            Folded::Nothing => Touched::nothing(),
        }
    }
}

/// Looks again at what nodes have; the pools of which that is something else now.
fn have_again(updates: &Updates, names: Vec<String>, cluster: &mut Cluster) -> BTreeSet<String> {
    let Cluster { members, pools, configs, strays, .. } = cluster;
    let mut touched = BTreeSet::new();
    for name in names {
        let Some(member) = members.get(&name) else { continue };
        let current = updates.current(&name, &member.node.uid);
        if member.node.current != current {
            let node = Node { current, ..member.node.clone() };
            touched.extend(Arc::make_mut(members).put(&name, node, pools));
            touched.extend(strays.look(&name, members, (configs, pools)));
        }
    }
    touched
}

/// Takes in what an admin wants of rollouts; the pools of which that is something else now.
fn wanted(now: &All<String, Arc<Rollout>>, cluster: &mut Cluster) -> Touched {
    let now: BTreeMap<String, Wanted> =
        now.iter().map(|(pool, rollout)| (pool.clone(), Wanted::of(rollout))).collect();
    let pools = now.keys().chain(cluster.wanted.keys());
    let is_other =
        |pool: &&String| now.get(*pool).copied().unwrap_or_default() != cluster.wanted(pool);
    let touched = pools.filter(is_other).cloned().collect();
    cluster.wanted = Arc::new(now);
    Touched::pools(touched)
}

/// The pools of nodes that say that they have a config.
fn had<'c>(cluster: &'c Cluster, config: &str) -> impl Iterator<Item = String> + use<'c> {
    cluster.members.pools_with(config).map(str::to_owned)
}

/// These pools, and those of the strays whose config came, changed or went.
fn and_strays(
    cluster: &mut Cluster,
    config: &str,
    mut touched: BTreeSet<String>,
) -> BTreeSet<String> {
    let Cluster { members, pools, configs, strays, .. } = cluster;
    for node in members.with_config(config) {
        touched.extend(strays.look(&node, members, (configs, pools)));
    }
    touched
}

/// What differs of a pool.
struct Changed {
    /// It is new, or another one of its name.
    is_another: bool,
    /// It may be made of something else.
    sources: bool,
    /// What it selected, and what it selects now, where that is not the same.
    selectors: Vec<Selects>,
}

fn put_pool(cluster: &mut Cluster, pool: Pool) -> Changed {
    let (name, paused) = (pool.name.clone(), pool.paused);
    let (now, configs, uid) = (pool.nodes.clone(), pool.configs.clone(), pool.uid.clone());
    let before = cluster.pools.insert(name.clone(), Arc::new(pool));
    match &before {
        Some(before) if before.paused && !paused => {
            cluster.unpaused.insert(name);
        }
        _ if paused => {
            cluster.unpaused.remove(&name);
        }
        _ => {}
    }
    let is_another = before.as_ref().is_none_or(|before| before.uid != uid);
    let sources = is_another || before.as_ref().is_none_or(|before| before.configs != configs);
    let before = before.map(|before| before.nodes.clone()).unwrap_or_default();
    let selectors = if before == now { Vec::new() } else { vec![before, now] };
    Changed { is_another, sources, selectors }
}

/// Removes a pool; gives what it selected.
fn remove_pool(cluster: &mut Cluster, name: &str) -> Option<Selects> {
    cluster.baselines.remove(name);
    cluster.unpaused.remove(name);
    cluster.pools.remove(name).map(|pool| pool.nodes.clone())
}

/// Notes when it was gone: what is rendered may still have it.
fn remove_mirror(cluster: &mut Cluster, key: MirrorKey, now: i64) {
    if cluster.mirrors.remove(&key).is_some() {
        cluster.gone_mirrors.insert(key, now);
    }
}

fn release(object: &ClusterVersion) -> Option<Release> {
    let status = object.status.as_ref()?;
    let desired = status.desired.as_ref()?.version.clone()?;
    let completed = status.history.iter().flatten().find(|update| update.state == "Completed");
    Some(Release { desired, completed: completed.map(|update| update.version.clone()) })
}

#[cfg(test)]
mod tests;
