//! What several parts have to know of the cluster. One task watches each of these
//! kinds once and folds what the watch says; everybody else gets immutable
//! snapshots: of all objects of a kind, from the beginning and after each change.

mod kept;
mod objects;

pub use kept::{All, Kept, keep};
pub use objects::{Differences, Object, differences, last_read, read_as};

use crate::policies::snapshot::{Allowed, Place, PolicyMap};
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tread_kube::api::openshift;
use tread_kube::api::words::{
    ALLOWED_SELECTOR, OPERATORS_DAEMON, OPERATORS_NAMESPACE, POLICY_SELECTOR,
};
use tread_kube::api::{
    ClusterVersion, DisruptionPolicy, MachineConfigPool, MachineConfiguration, Rollout,
};
use tread_kube::held::{Maintenance, NODE_MAINTENANCE, maintained};
use tread_kube::metrics::Metrics;
use tread_kube::watching::parsed::Parsed;
use tread_kube::watching::{Watches, follow, follow_all, left_out};

/// So many ConfigMaps are listed with one request. Their annotations may have
/// 256 KiB each, and whoever may write ConfigMaps somewhere can make many: all at
/// once would take more memory than tread has.
const AT_A_TIME: u32 = 50;

/// So many of what there is for each node.
const NODES_AT_A_TIME: u32 = 500;

/// The one ClusterVersion.
const VERSION: &str = "version";

/// The kinds that are watched here, as `/readyz` calls them.
pub const POLICIES: &str = "disruptionpolicies";
const CONFIG_MAPS: &str = "configmaps";
const NAMESPACES: &str = "namespaces";
const LEASES: &str = "leases";
const ROLLOUTS: &str = "rollouts";
const DAEMON_SETS: &str = "daemonsets";
/// MachineConfigPools.
pub const POOLS: &str = "machineconfigpools";
/// MachineConfigurations.
pub const MACHINE_CONFIGURATIONS: &str = "machineconfigurations";
/// ClusterVersions.
pub const CLUSTER_VERSIONS: &str = "clusterversions";

/// What is known of the cluster. Clones share everything.
#[derive(Debug, Clone)]
pub struct Index {
    /// DisruptionPolicies.
    pub policies: Kept<String, Object>,
    /// ConfigMaps that are labelled as policies, without what they hold.
    pub config_maps: Kept<Place, PolicyMap>,
    /// Namespaces whose ConfigMaps may be policies.
    pub namespaces: Kept<String, Allowed>,
    /// MachineConfigPools.
    pub pools: Kept<String, Object>,
    /// MachineConfiguration `cluster`, if it is there.
    pub machine_configuration: Kept<String, Object>,
    /// ClusterVersion `version`, if it is there.
    pub cluster_version: Kept<String, Object>,
    /// The Leases by which nodes are shared, by their own names.
    pub node_leases: Kept<String, Arc<Lease>>,
    /// The nodes that somebody maintains, by the names of the objects that say so.
    pub maintenances: Kept<String, Option<Arc<Maintenance>>>,
    /// The Rollouts of pools, where tread rolls out; elsewhere there are none.
    pub rollouts: Kept<String, Arc<Rollout>>,
    /// OpenShift's daemon, where tread rolls out: nothing is rolled out while it is there. Elsewhere
    /// nobody asks for it.
    pub operators_daemon: Kept<String, ()>,
}

/// The index, and the task that keeps it up to date for as long as it is polled. `leases` is the
/// namespace of the nodes' Leases.
pub fn start(
    client: &Client,
    leases: &str,
    watches: &Watches,
    metrics: &Metrics,
) -> (Index, BoxFuture<'static, ()>) {
    start_where(client, leases, watches, metrics, false)
}

/// The same where tread rolls out, or somebody else does.
pub fn start_where(
    client: &Client,
    leases: &str,
    watches: &Watches,
    metrics: &Metrics,
    by_tread: bool,
) -> (Index, BoxFuture<'static, ()>) {
    let mut starting = Starting { client, watches, metrics, kinds: Vec::new() };
    let named = |name: &str| Config::default().fields(&format!("metadata.name={name}"));
    let maps = Config::default().labels(POLICY_SELECTOR).page_size(AT_A_TIME);
    let index = Index {
        policies: starting.objects::<DisruptionPolicy>(POLICIES, Config::default()),
        config_maps: starting.metadata::<ConfigMap, _, _>(CONFIG_MAPS, maps, |map| {
            let place = (map.namespace().unwrap_or_default(), map.name_any());
            (place, PolicyMap::of(&map.metadata))
        }),
        namespaces: starting.metadata::<Namespace, _, _>(
            NAMESPACES,
            Config::default().labels(ALLOWED_SELECTOR),
            |namespace| (namespace.name_any(), Allowed::of(&namespace.metadata)),
        ),
        pools: starting.objects::<MachineConfigPool>(POOLS, Config::default()),
        machine_configuration: starting.objects::<MachineConfiguration>(
            MACHINE_CONFIGURATIONS,
            named(openshift::MACHINE_CONFIGURATION),
        ),
        cluster_version: starting.objects::<ClusterVersion>(CLUSTER_VERSIONS, named(VERSION)),
        node_leases: starting.read(
            Api::<Lease>::namespaced(client.clone(), leases),
            LEASES,
            |mut lease| {
                lease.metadata.managed_fields = None;
                Arc::new(lease)
            },
        ),
        maintenances: starting.read(
            Api::<DynamicObject>::all_with(client.clone(), &NODE_MAINTENANCE.resource()),
            NODE_MAINTENANCE.name,
            |object| maintained(&object).map(Arc::new),
        ),
        rollouts: match by_tread {
            true => starting.read(Api::<Rollout>::all(client.clone()), ROLLOUTS, |mut rollout| {
                rollout.metadata.managed_fields = None;
                Arc::new(rollout)
            }),
            false => Kept::none(),
        },
        operators_daemon: match by_tread {
            true => starting.operators_daemon(),
            false => Kept::none(),
        },
    };
    (index, join_all(starting.kinds).map(drop).boxed())
}

struct Starting<'s> {
    client: &'s Client,
    watches: &'s Watches,
    metrics: &'s Metrics,
    kinds: Vec<BoxFuture<'static, ()>>,
}

impl Starting<'_> {
    /// Objects of any form, those included that cannot be read.
    fn objects<K>(&mut self, name: &'static str, config: Config) -> Kept<String, Object>
    where
        K: Resource<DynamicType = ()>,
    {
        let api: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &ApiResource::erase::<K>(&()));
        let events = follow_all(api, config, name, self.watches, self.metrics);
        let metrics = self.metrics.clone();
        let (kept, keep) = kept::keep(
            events,
            |seen: &Parsed<DynamicObject>| seen.name_any(),
            move |mut seen| {
                if let Parsed::Unreadable(metadata, why) = &seen {
                    left_out(name, metadata, why, &metrics);
                }
                seen.meta_mut().managed_fields = None;
                Arc::new(seen)
            },
        );
        self.kinds.push(keep.boxed());
        kept
    }

    /// A kind of which is kept what is needed of each object.
    fn read<O, V>(&mut self, api: Api<O>, name: &'static str, read: fn(O) -> V) -> Kept<String, V>
    where
        O: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
        V: Clone + Send + Sync + 'static,
    {
        let config = Config::default().page_size(NODES_AT_A_TIME);
        let events = follow(api, config, name, self.watches, self.metrics);
        let (kept, keep) = kept::keep(events, |it: &O| it.name_any(), read);
        self.kinds.push(keep.boxed());
        kept
    }

    /// The DaemonSet that halts all rollouts.
    fn operators_daemon(&mut self) -> Kept<String, ()> {
        let api: Api<PartialObjectMeta<DaemonSet>> =
            Api::namespaced(self.client.clone(), OPERATORS_NAMESPACE);
        let config = Config::default().fields(&format!("metadata.name={OPERATORS_DAEMON}"));
        let events = follow(api, config, DAEMON_SETS, self.watches, self.metrics);
        let name = |it: &PartialObjectMeta<DaemonSet>| it.name_any();
        let (kept, keep) = kept::keep(events, name, drop);
        self.kinds.push(keep.boxed());
        kept
    }

    /// Of the metadata of objects what is needed.
    fn metadata<O, K, V>(
        &mut self,
        name: &'static str,
        config: Config,
        read: fn(&PartialObjectMeta<O>) -> (K, V),
    ) -> Kept<K, V>
    where
        O: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + 'static,
        K: Ord + Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
    {
        let api: Api<PartialObjectMeta<O>> = Api::all(self.client.clone());
        let events = follow(api, config, name, self.watches, self.metrics);
        let (kept, keep) =
            kept::keep(events, move |object| read(object).0, move |object| read(&object).1);
        self.kinds.push(keep.boxed());
        kept
    }
}
