//! Nodes, pools and MachineSets, listed once with the rights of whoever asks: for the
//! command line.

use super::foretold::{Foretold, Scene};
use super::held::{HeldNode, Updates, held};
use super::machines;
use crate::boot_images::facts::Facts;
use crate::boot_images::machine::Key;
use crate::plans::strays_of;
use crate::pools::{ConfigMeta, Members, Node, Pool, Stray, Strays};
use crate::previews::Cluster;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::jiff::Timestamp;
use kube::api::ListParams;
use kube::core::{DynamicObject, ObjectList, PartialObjectMeta};
use kube::{Api, Client, ResourceExt as _};
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_kube::api::machines::{CLUSTER_VERSION, Kind, MACHINE_SET};
use tread_kube::api::rollout::MissingMachine;
use tread_kube::api::{DisruptionPlan, MachineConfig, MachineConfigPool, NodeUpdate, Rollout};
use tread_kube::asking::{Call, CallOutcome, Failed};
use tread_kube::metrics::Metrics;
use tread_kube::paging::in_pages;
use tread_kube::watching::parsed::{Parsed, each_by_itself};

/// What DisruptionPlans are called where they cannot be listed.
pub const PLANS: &str = "disruptionplans";

/// How many objects are listed at a time: of most few bytes are read, and plans are large.
const SMALL: u32 = 500;
const LARGE: u32 = 20;

/// What was listed.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Nodes, pools and configs.
    pub cluster: Cluster,
    /// MachineSets, and which release runs.
    pub facts: Facts,
    /// DisruptionPlans.
    pub plans: Vec<DisruptionPlan>,
    /// Machines that fetched a pool's config, and registered no node, by pool.
    pub missing: BTreeMap<String, Vec<MissingMachine>>,
    /// Nodes that registered as joining, and have not joined.
    pub held: Vec<HeldNode>,
    /// What could not be listed, and why.
    pub unlisted: Vec<(&'static str, Failed)>,
}

/// What is there. Without pools and nodes nothing can be said: what of them could not be listed,
/// and why.
pub async fn gather(client: &Client) -> Result<Gathered, (&'static str, Failed)> {
    let metrics = Metrics::new();
    let mut gathered = Gathered::default();
    let cluster = &mut gathered.cluster;
    let api = each_by_itself(Api::<MachineConfigPool>::all(client.clone()));
    let list = async |params| api.list(&params).await;
    let pools = listed("machineconfigpools", SMALL, &metrics, list).await?;
    for pool in pools.into_iter().filter_map(Parsed::read) {
        let pool = Pool::of(&pool);
        cluster.pools.insert(pool.name.clone(), Arc::new(pool));
    }
    let mut members = Members::since(Timestamp::now().as_second());
    let api = each_by_itself(Api::<DisruptionPlan>::all(client.clone()));
    let list = async |params| api.list(&params).await;
    match listed(PLANS, LARGE, &metrics, list).await {
        Ok(plans) => gathered.plans = plans.into_iter().filter_map(Parsed::read).collect(),
        Err(failed) => gathered.unlisted.push(failed),
    }
    // tread saw them register.
    for (node, uid) in gathered.plans.iter().flat_map(strays_of) {
        members.witness(&node, &uid);
    }
    let api = each_by_itself(Api::<NodeUpdate>::all(client.clone()));
    let list = async |params| api.list(&params).await;
    let updates: Updates = match listed("nodeupdates", LARGE, &metrics, list).await {
        Ok(all) => {
            let read = all.into_iter().filter_map(Parsed::read);
            Some(read.map(|it| (it.name_any(), it)).collect())
        }
        // Nodes say themselves that they join, and most clusters have no NodeUpdates.
        Err((_, failed)) if failed.outcome == CallOutcome::Forbidden => None,
        Err(failed) => {
            gathered.unlisted.push(failed);
            None
        }
    };
    let api = each_by_itself(Api::<Rollout>::all(client.clone()));
    let list = async |params| api.list(&params).await;
    match listed("rollouts", SMALL, &metrics, list).await {
        Ok(all) => {
            let missing = all.into_iter().filter_map(Parsed::read);
            let missing = missing.map(|it| (it.name_any(), it.status.unwrap_or_default().missing));
            gathered.missing = missing.filter(|(_, missing)| !missing.is_empty()).collect();
        }
        // Most clusters have none.
        Err((_, failed)) if failed.outcome == CallOutcome::Forbidden => {}
        Err(failed) => gathered.unlisted.push(failed),
    }
    let api: Api<core::Node> = Api::all(client.clone());
    if updates.as_ref().is_some_and(BTreeMap::is_empty) {
        let list = async |params| api.list_metadata(&params).await;
        for mut node in listed("nodes", SMALL, &metrics, list).await? {
            members.put(&node.name_any(), Node::of(&mut node.metadata), &cluster.pools);
        }
    } else {
        // Where tread rolls out, a node says by a taint that it joins.
        let list = async |params| api.list(&params).await;
        for mut node in listed("nodes", SMALL, &metrics, list).await? {
            let name = node.name_any();
            gathered.held.extend(held(&node, &updates, &cluster.pools));
            members.put(&name, Node::that_may_join(&mut node), &cluster.pools);
        }
    }
    let api: Api<MachineConfig> = Api::all(client.clone());
    let list = async |params| api.list_metadata(&params).await;
    match listed("machineconfigs", SMALL, &metrics, list).await {
        Ok(configs) => {
            for mut config in configs {
                let name = config.name_any();
                let config: &mut PartialObjectMeta<MachineConfig> = &mut config;
                cluster.configs.insert(name, Arc::new(ConfigMeta::of(&mut config.metadata)));
            }
        }
        Err(failed) => gathered.unlisted.push(failed),
    }
    let mut strays = Strays::default();
    strays.look_at_all(&members, (&cluster.configs, &cluster.pools));
    (cluster.members, cluster.strays) = (Arc::new(members), strays);
    for kind in [MACHINE_SET, CLUSTER_VERSION] {
        match machines(client, &metrics, &kind).await {
            Ok(all) => all.iter().for_each(|object| gathered.facts.take(&kind, object)),
            Err(failed) => gathered.unlisted.push(failed),
        }
    }
    Ok(gathered)
}

async fn machines(
    client: &Client,
    metrics: &Metrics,
    kind: &Kind,
) -> Result<Vec<DynamicObject>, (&'static str, Failed)> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
    let api = each_by_itself(api);
    let list = async |params| api.list(&params).await;
    let found = listed(kind.plural, SMALL, metrics, list).await?;
    Ok(found.into_iter().filter_map(Parsed::read).collect())
}

/// A kind that is not installed has no objects.
async fn listed<K: Clone, Page>(
    kind: &'static str,
    size: u32,
    metrics: &Metrics,
    list: impl Fn(ListParams) -> Page,
) -> Result<Vec<K>, (&'static str, Failed)>
where
    Page: Future<Output = kube::Result<ObjectList<K>>>,
{
    let (call, params) = (Call::new("list", kind), ListParams::default());
    match in_pages(size, metrics, call, params, list, Some).await {
        Ok(found) => Ok(found),
        Err(failed) if failed.outcome == CallOutcome::Gone => Ok(Vec::new()),
        Err(failed) => Err((kind, failed)),
    }
}

impl Gathered {
    /// What is known, as it takes to foretell what becomes of machines.
    pub fn scene(&self) -> Scene<'_> {
        machines::scene(&self.cluster, &self.facts)
    }

    /// MachineSets whose machines will stray, by the names of their Secrets.
    pub fn foretold(&self) -> BTreeMap<Key, Foretold> {
        machines::all(&self.cluster, &self.facts)
    }

    /// Nodes that stray.
    pub fn strays(&self) -> Vec<Stray> {
        self.cluster.strays.values().map(|it| Stray::clone(it)).collect()
    }
}
