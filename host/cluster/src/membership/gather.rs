//! Nodes, pools and MachineSets, listed once with the rights of whoever asks: for the
//! command line.

use super::foretold::{Foretold, Scene};
use super::held::{HeldNode, Updates, held};
use super::machines;
use crate::boot_images::facts::Facts;
use crate::boot_images::machine::Key;
use crate::plans::strays_of;
use crate::pools::{ConfigMeta, Members, Node, Pool, Pools, Stray, Strays};
use crate::previews::Cluster;
use crate::updates::{current, has_failed, node_of};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::jiff::Timestamp;
use kube::api::ListParams;
use kube::core::{DynamicObject, ObjectList, PartialObjectMeta};
use kube::{Api, Client, ResourceExt as _};
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_kube::api::machines::{CLUSTER_VERSION, Kind, MACHINE_SET};
use tread_kube::api::rollout::MissingMachine;
use tread_kube::api::words::{OPERATORS_DAEMON, OPERATORS_NAMESPACE};
use tread_kube::api::{DisruptionPlan, MachineConfig, MachineConfigPool, NodeUpdate, Rollout};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::metrics::Metrics;
use tread_kube::paging::in_pages;
use tread_kube::watching::parsed::{Parsed, each_by_itself};

/// What DisruptionPlans are called where they cannot be listed.
pub const PLANS: &str = "disruptionplans";

/// What MachineConfigPools are called where one cannot be read.
pub const POOLS: &str = "machineconfigpools";

/// What DaemonSets are called where it cannot be told whether OpenShift's is there.
pub const DAEMON_SETS: &str = "daemonsets";

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
    /// What could not be read: its kind, and its name with the field.
    pub unreadable: Vec<(&'static str, String)>,
}

/// What is there. Without pools and nodes nothing can be said: what of them could not be listed,
/// and why.
pub async fn gather(client: &Client) -> Result<Gathered, (&'static str, Failed)> {
    let metrics = Metrics::new();
    let mut gathered = Gathered::default();
    let cluster = &mut gathered.cluster;
    let found = listed_pools(client, &metrics).await?;
    cluster.pools = pools_of(&found);
    // Those that cannot be read are named, too.
    read(found, POOLS, &mut gathered.unreadable);
    let mut members = Members::since(Timestamp::now().as_second());
    let api = each_by_itself(Api::<DisruptionPlan>::all(client.clone()));
    let list = async |params| api.list(&params).await;
    match listed(PLANS, LARGE, &metrics, list).await {
        Ok(plans) => gathered.plans = read(plans, PLANS, &mut gathered.unreadable),
        Err(failed) => gathered.unlisted.push(failed),
    }
    // tread saw them register.
    for (node, uid) in gathered.plans.iter().flat_map(strays_of) {
        members.witness(&node, &uid);
    }
    let api = each_by_itself(Api::<Rollout>::all(client.clone()));
    let list = async |params| api.list(&params).await;
    match listed("rollouts", SMALL, &metrics, list).await {
        Ok(all) => {
            // Where tread rolls out each pool has one. They stay where OpenShift's operator does again.
            if !all.is_empty() {
                match operator_rolls_out(client, &metrics).await {
                    Ok(by_operator) => cluster.by_tread = !by_operator,
                    Err(failed) => gathered.unlisted.push((DAEMON_SETS, failed)),
                }
            }
            let all = read(all, "rollouts", &mut gathered.unreadable).into_iter();
            for (pool, rollout) in all.map(|it| (it.name_any(), it)) {
                let missing = rollout.status.unwrap_or_default().missing;
                if cluster.by_tread && !missing.is_empty() {
                    gathered.missing.insert(pool, missing);
                }
            }
        }
        // Most clusters have none.
        Err((_, failed)) if failed.outcome == CallOutcome::Forbidden => {}
        Err(failed) => gathered.unlisted.push(failed),
    }
    let by_tread = cluster.by_tread;
    let api = each_by_itself(Api::<NodeUpdate>::all(client.clone()));
    let list = async |params| api.list(&params).await;
    let updates: Updates = match listed("nodeupdates", LARGE, &metrics, list).await {
        Ok(all) => {
            let all = read(all, "nodeupdates", &mut gathered.unreadable).into_iter();
            Some(all.map(|it| (it.name_any(), it)).collect())
        }
        // Nodes say themselves that they join, and most clusters have no NodeUpdates.
        Err((_, failed)) if failed.outcome == CallOutcome::Forbidden && !by_tread => None,
        Err(failed) => {
            gathered.unlisted.push(failed);
            None
        }
    };
    let api: Api<core::Node> = Api::all(client.clone());
    if !by_tread && updates.as_ref().is_some_and(BTreeMap::is_empty) {
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
            let mut node = Node::that_may_join(&mut node);
            if by_tread {
                let update = updates.as_ref().and_then(|updates| updates.get(&name));
                node = by_its_agent(node, update);
            }
            members.put(&name, node, &cluster.pools);
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

/// Whether OpenShift's operator rolls out: its daemon is there, and tread does nothing on any node
/// then, whatever it left behind.
pub async fn operator_rolls_out(client: &Client, metrics: &Metrics) -> Result<bool, Failed> {
    let daemons: Api<DaemonSet> = Api::namespaced(client.clone(), OPERATORS_NAMESPACE);
    let call = Call::new("get", DAEMON_SETS).within(OPERATORS_NAMESPACE);
    match ask(metrics, call, daemons.get_metadata(OPERATORS_DAEMON)).await {
        Ok(_) => Ok(true),
        Err(failed) if failed.outcome == CallOutcome::Gone => Ok(false),
        Err(failed) => Err(failed),
    }
}

/// The pools of a cluster.
pub async fn pools(client: &Client, metrics: &Metrics) -> Result<Pools, Failed> {
    let found = listed_pools(client, metrics).await.map_err(|(_, failed)| failed)?;
    Ok(pools_of(&found))
}

async fn listed_pools(
    client: &Client,
    metrics: &Metrics,
) -> Result<Vec<Parsed<MachineConfigPool>>, (&'static str, Failed)> {
    let api = each_by_itself(Api::<MachineConfigPool>::all(client.clone()));
    listed(POOLS, SMALL, metrics, async |params| api.list(&params).await).await
}

/// All of them: one that cannot be read counts as there too.
fn pools_of(all: &[Parsed<MachineConfigPool>]) -> Pools {
    let pools = all.iter().map(|pool| match pool {
        Parsed::Read(pool) => Pool::of(pool),
        Parsed::Unreadable(metadata, why) => Pool::unread(metadata, why),
    });
    pools.map(|pool| (pool.name.clone(), Arc::new(pool))).collect()
}

/// Those that can be read; the others are named.
fn read<K>(
    found: Vec<Parsed<K>>,
    kind: &'static str,
    unreadable: &mut Vec<(&'static str, String)>,
) -> Vec<K> {
    let read = found.into_iter().filter_map(|it| match it {
        Parsed::Read(object) => Some(object),
        Parsed::Unreadable(metadata, why) => {
            let name = metadata.name.as_deref().unwrap_or_default();
            unreadable.push((kind, format!("{name}: {why}")));
            None
        }
    });
    read.collect()
}

/// A node where tread rolls out: what it has, and whether it failed, says its agent, and no
/// annotation.
fn by_its_agent(node: Node, update: Option<&NodeUpdate>) -> Node {
    let update = update.filter(|update| node_of(update) == Some(&*node.uid));
    Node { current: update.and_then(current), is_degraded: update.is_some_and(has_failed), ..node }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::{Place, pool_of};
    use serde_json::json;

    #[test]
    fn a_pool_that_cannot_be_read_counts_as_there_so_that_no_node_is_placed() {
        let pool = |name: &str, most: u64| -> Parsed<MachineConfigPool> {
            let role = format!("node-role.kubernetes.io/{name}");
            let object = json!({"metadata": {"name": name, "uid": name},
                "spec": {"maxUnavailable": most, "nodeSelector": {"matchLabels": {role: ""}}}});
            serde_json::from_value(object).unwrap()
        };
        // It is more than 32 bits hold.
        let pools = pools_of(&[pool("worker", 1), pool("infra", 4_294_967_296)]);
        let labels = ["infra", "worker"].map(|it| format!("node-role.kubernetes.io/{it}"));
        let labels = labels.into_iter().map(|key| (key, String::new())).collect();
        let expected = Place::Unplaced(vec!["infra".to_owned()]);
        assert_eq!(pool_of(&labels, &pools), expected);
        let problems = pools["infra"].problems();
        assert!(problems[0].starts_with("spec.maxUnavailable: "), "{problems:?}");
        assert_eq!((problems.len(), pools["infra"].uid.as_str()), (1, "infra"));
        assert!(pools["worker"].problems().is_empty());
    }

    #[test]
    fn where_tread_rolls_out_a_node_has_and_is_what_the_agent_of_its_own_uid_says() {
        let said = |uid: &str, phase: &str| -> NodeUpdate {
            let object = json!({"metadata": {"name": "n", "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid}]},
                "spec": {"pool": "worker"},
                "status": {"current": {"name": "rendered-b", "digest": "d"}, "phase": phase}});
            serde_json::from_value(object).unwrap()
        };
        // Whoever is root on the node writes its annotations.
        let node = Node {
            uid: "1".to_owned(),
            current: Some("rendered-a".to_owned()),
            is_degraded: true,
            ..Node::default()
        };
        for (update, has, is_degraded) in [
            (Some(said("1", "Done")), Some("rendered-b"), false),
            (Some(said("1", "Degraded")), Some("rendered-b"), true),
            (Some(said("2", "Degraded")), None, false),
            (None, None, false),
        ] {
            let node = by_its_agent(node.clone(), update.as_ref());
            assert_eq!((node.current.as_deref(), node.is_degraded), (has, is_degraded));
        }
    }
}
