//! What is watched for rollouts, beside what is known of pools.

use super::budgets::{self, Budget};
use super::facts::Facts;
use super::named::{OfNode, of_machine};
use crate::settings::Settings;
use crate::slots;
use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _, join_all};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::DynamicObject;
use kube::runtime::watcher::Config;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use tread_cluster::index::{All, Index, Kept, keep};
use tread_kube::api::machines::{CAPI_MACHINE, Kind, MACHINE};
use tread_kube::api::{NodeUpdate, Rollout};
use tread_kube::held::{Maintained, Maintenance, Mark};
use tread_kube::watching::parsed::Parsed;
use tread_kube::watching::{Watches, follow, follow_served};
use tread_model::protocol::Slots;

/// How many nodes and NodeUpdates are listed at a time.
const PAGE: u32 = 250;

/// The same of budgets, into each of which anybody in its namespace may write a megabyte.
const PAGE_OF_BUDGETS: u32 = 20;

/// The slots as the watch has them, or why they cannot be read.
pub(crate) type SlotsSeen = Result<Arc<Slots<String, String>>, String>;

/// A node and its NodeUpdate, where they are there.
pub(crate) type OneNode = (Option<Arc<Facts>>, Option<Arc<NodeUpdate>>);

/// What is watched. Clones share everything.
#[derive(Clone)]
pub(crate) struct Known {
    nodes: Kept<String, Arc<Facts>>,
    updates: Kept<String, Arc<NodeUpdate>>,
    rollouts: Kept<String, Arc<Rollout>>,
    leases: Kept<String, Arc<Lease>>,
    slots: Kept<String, SlotsSeen>,
    maintenances: Kept<String, Option<Arc<Maintenance>>>,
    machines: [Kept<String, Option<OfNode>>; 2],
    daemons: Kept<String, ()>,
    budgets: Kept<String, Budget>,
}

/// All of it at one moment.
#[derive(Clone)]
pub(crate) struct Moment {
    pub(crate) nodes: All<String, Arc<Facts>>,
    pub(crate) updates: All<String, Arc<NodeUpdate>>,
    pub(crate) rollouts: All<String, Arc<Rollout>>,
    /// By their own names.
    pub(crate) leases: All<String, Arc<Lease>>,
    pub(crate) slots: SlotsSeen,
    /// What other objects say of nodes.
    pub(crate) maintained: BTreeMap<String, Maintained>,
    /// The first of them that says that somebody has a node, by the node.
    pub(crate) marks: BTreeMap<String, Arc<Mark>>,
    /// The Machines of nodes, where Cluster API made them.
    pub(crate) machines: BTreeMap<String, OfNode>,
    /// Budgets, by namespace and name.
    pub(crate) budgets: All<String, Budget>,
    /// Whether OpenShift's daemon is there, which would roll out too.
    pub(crate) has_operators_daemon: bool,
}

#[cfg(test)]
impl Moment {
    /// One at which there is nothing.
    pub(crate) fn empty() -> Moment {
        Moment {
            nodes: Arc::default(),
            updates: Arc::default(),
            rollouts: Arc::default(),
            leases: Arc::default(),
            slots: Ok(Arc::default()),
            maintained: BTreeMap::new(),
            marks: BTreeMap::new(),
            machines: BTreeMap::new(),
            budgets: Arc::default(),
            has_operators_daemon: false,
        }
    }
}

impl Known {
    /// Begins to watch what the index does not; what watches, for as long as it is polled.
    pub(crate) fn start(
        settings: &Settings,
        index: &Index,
        watches: &Watches,
    ) -> (Known, BoxFuture<'static, ()>) {
        let mut starting = Starting { settings, watches, kinds: Vec::new() };
        let client = &settings.client;
        let page = || Config::default().page_size(PAGE);
        let named = |name: &str| Config::default().fields(&format!("metadata.name={name}"));
        let known = Known {
            nodes: starting.kind(Api::<Node>::all(client.clone()), page(), "nodes", |it| {
                Arc::new(Facts::of(&it))
            }),
            updates: starting.kind(
                Api::<NodeUpdate>::all(client.clone()),
                page(),
                "nodeupdates",
                |mut it| {
                    it.metadata.managed_fields = None;
                    Arc::new(it)
                },
            ),
            rollouts: index.rollouts.clone(),
            leases: index.node_leases.clone(),
            slots: starting.kind(
                Api::<ConfigMap>::namespaced(client.clone(), &settings.namespace),
                named(slots::NAME),
                "configmaps",
                |it| slots::parse(&it).map(Arc::new),
            ),
            maintenances: index.maintenances.clone(),
            machines: [starting.machines(MACHINE), starting.machines(CAPI_MACHINE)],
            daemons: index.operators_daemon.clone(),
            budgets: starting.budgets(),
        };
        (known, join_all(starting.kinds).map(drop).boxed())
    }

    /// All of it, once all was listed.
    pub(crate) fn now(&self) -> Option<Moment> {
        let slots = self.slots.now()?.get(slots::NAME).cloned();
        let mut maintained: BTreeMap<String, Maintained> = BTreeMap::new();
        let mut marks = BTreeMap::new();
        for machines in &self.machines {
            for machine in machines.now()?.values().flatten() {
                let Some(mark) = &machine.goes else { continue };
                maintained.entry(machine.node.clone()).or_default().machine_goes = true;
                marks.entry(machine.node.clone()).or_insert_with(|| Arc::clone(mark));
            }
        }
        for maintenance in self.maintenances.now()?.values().flatten() {
            let node = &maintenance.node;
            maintained.entry(node.clone()).or_default().by_object = true;
            marks.entry(node.clone()).or_insert_with(|| Arc::new(maintenance.mark.clone()));
        }
        let [_, of_cluster_api] = &self.machines;
        let machines = of_cluster_api.now()?;
        let machines = machines.values().flatten().map(|it| (it.node.clone(), it.clone()));
        Some(Moment {
            nodes: self.nodes.now()?,
            updates: self.updates.now()?,
            rollouts: self.rollouts.now()?,
            leases: self.leases.now()?,
            slots: slots.unwrap_or_else(|| Ok(Arc::default())),
            maintained,
            marks,
            machines: machines.collect(),
            budgets: self.budgets.now()?,
            has_operators_daemon: !self.daemons.now()?.is_empty(),
        })
    }

    /// Whether OpenShift's daemon is there, as is known now.
    pub(crate) fn has_operators_daemon(&self) -> bool {
        self.daemons.now().is_some_and(|all| !all.is_empty())
    }

    /// One node and its NodeUpdate, once nodes and NodeUpdates were listed.
    pub(crate) fn node(&self, name: &str) -> Option<OneNode> {
        Some((self.nodes.now()?.get(name).cloned(), self.updates.now()?.get(name).cloned()))
    }

    /// Whenever any of it changes.
    pub(crate) fn changes(&self) -> futures::stream::BoxStream<'static, ()> {
        let machines = self.machines.iter().map(|it| it.moments().map(drop).boxed());
        let others = [
            self.nodes.moments().map(drop).boxed(),
            self.updates.moments().map(drop).boxed(),
            self.rollouts.moments().map(drop).boxed(),
            self.leases.moments().map(drop).boxed(),
            self.slots.moments().map(drop).boxed(),
            self.maintenances.moments().map(drop).boxed(),
            self.daemons.moments().map(drop).boxed(),
            budgets::changes(&self.budgets),
        ];
        futures::stream::select_all(others.into_iter().chain(machines)).boxed()
    }

    /// The nodes, whenever one changes.
    pub(crate) fn nodes(&self) -> &Kept<String, Arc<Facts>> {
        &self.nodes
    }

    /// The Machines of OpenShift, and those of Cluster API.
    pub(crate) fn machines(&self) -> &[Kept<String, Option<OfNode>>; 2] {
        &self.machines
    }

    /// The Rollouts, whenever one changes.
    pub(crate) fn rollouts(&self) -> &Kept<String, Arc<Rollout>> {
        &self.rollouts
    }

    /// The NodeUpdates, whenever one changes.
    pub(crate) fn updates(&self) -> &Kept<String, Arc<NodeUpdate>> {
        &self.updates
    }
}

struct Starting<'s> {
    settings: &'s Settings,
    watches: &'s Watches,
    kinds: Vec<BoxFuture<'static, ()>>,
}

impl Starting<'_> {
    /// The Machines of a kind.
    fn machines(&mut self, kind: Kind) -> Kept<String, Option<OfNode>> {
        let Settings { client, metrics, holder, .. } = self.settings;
        let holder = holder.clone();
        let config = Config::default().page_size(PAGE);
        let events = follow_served(client, kind, config, self.watches, metrics);
        let key = |it: &Parsed<DynamicObject>| {
            let namespace = it.meta().namespace.as_deref().unwrap_or_default();
            format!("{namespace}/{}", it.name_any())
        };
        let (kept, keep) = keep(events, key, move |it| {
            it.read().and_then(|machine| of_machine(&machine, &holder))
        });
        self.kinds.push(keep.boxed());
        kept
    }

    fn budgets(&mut self) -> Kept<String, Budget> {
        let Settings { client, metrics, .. } = self.settings;
        let api = Api::<PodDisruptionBudget>::all(client.clone());
        let config = Config::default().page_size(PAGE_OF_BUDGETS);
        let events = follow(api, config, "poddisruptionbudgets", self.watches, metrics);
        let (kept, keep) = keep(events, budgets::key, |it| Budget::of(&it));
        self.kinds.push(keep.boxed());
        kept
    }

    fn kind<K, V>(
        &mut self,
        api: Api<K>,
        config: Config,
        name: &'static str,
        read: impl Fn(K) -> V + Send + 'static,
    ) -> Kept<String, V>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        V: Clone + Send + Sync + 'static,
    {
        let events = follow(api, config, name, self.watches, &self.settings.metrics);
        let (kept, keep) = keep(events, |it: &K| it.name_any(), read);
        self.kinds.push(keep.boxed());
        kept
    }
}
