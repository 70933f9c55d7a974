//! Nodes that leave every pool while something of tread is on them.

use super::agent::well;
use super::fixture::Cluster;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use tread_kube::api::node_update::UpdateStage;
use tread_kube::api::{MachineConfig, MachineConfigPool};
use tread_test_bed::eventually;

/// Waits until nothing of tread is on a node: no cordon, no slot and no Lease.
async fn is_given_back(cluster: &Cluster, node: &str) {
    let slots: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), &cluster.acts.leases);
    eventually(&format!("{node} has no cordon, slot or Lease"), async || {
        let spec = cluster.api::<Node>().get(node).await.ok()?.spec.unwrap_or_default();
        let slots = slots.get(tread_enforce::SLOTS).await.ok()?.data?;
        let has_slot = slots.get("slots.json")?.contains(&format!("\"{node}\""));
        let lease = leases.get_opt(&format!("node-{node}")).await.ok()?;
        (spec.unschedulable != Some(true) && !has_slot && lease.is_none()).then_some(())
    })
    .await;
}

/// Waits until a node has what the pool is to have, by its agent's word.
async fn has_the_config(cluster: &Cluster, node: &str, before: &str) {
    eventually(&format!("{node} has the config"), async || {
        let target = cluster.rollout().await.status?.target?;
        let current = cluster.update(node).await.status?.current?;
        (target.name != before && current == target).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_node_that_leaves_every_pool_while_it_is_drained_is_given_back_and_the_next_one_goes_on()
{
    let cluster = Cluster::with(2, 1).await;
    for pool in ["one", "two"] {
        cluster
            .apply::<MachineConfigPool>(json!({
                "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
                "metadata": {"name": pool},
                "spec": {
                    "machineConfigSelector": {"matchExpressions": [{
                        "key": "machineconfiguration.openshift.io/role", "operator": "In",
                        "values": ["worker", pool]}]},
                    "nodeSelector": {"matchLabels": {format!("node-role.kubernetes.io/{pool}"): ""}},
                },
            }))
            .await;
    }
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    let before = cluster.rollout().await.status.unwrap().target.unwrap().name;
    cluster.pods_that_stay().await;
    cluster.file("90-next", "/etc/hard", "2").await;
    let left = cluster.judge.cordoned().await;
    let other = cluster.nodes.iter().find(|node| **node != left).unwrap().as_str();
    // Nobody can say to which of them it belongs: it is in none.
    let labels = json!({"node-role.kubernetes.io/one": "", "node-role.kubernetes.io/two": ""});
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    cluster.api::<Node>().patch(&left, &PatchParams::default(), &patch).await.unwrap();
    is_given_back(&cluster, &left).await;
    cluster.pods_may_go().await;
    has_the_config(&cluster, other, &before).await;
    cluster.nothing_is_left().await;
    for agent in &agents {
        let boots = usize::from(agent.node != left);
        assert_eq!(agent.boots(), boots, "{}", agent.node);
    }
    // Once it is in one pool again it gets the config as all others do.
    let labels = json!({"node-role.kubernetes.io/one": null, "node-role.kubernetes.io/two": null});
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    cluster.api::<Node>().patch(&left, &PatchParams::default(), &patch).await.unwrap();
    cluster.all_have("/etc/hard", "2").await;
    has_the_config(&cluster, &left, &before).await;
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_selector_that_nobody_can_read_leaves_no_node_cordoned_that_was_being_drained() {
    let cluster = Cluster::with(2, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    cluster.pods_that_stay().await;
    cluster.file("90-next", "/etc/hard", "2").await;
    cluster.judge.cordoned().await;
    let wrong = json!({"matchExpressions": [{"key": "a", "operator": "Likes", "values": ["b"]}]});
    cluster
        .apply::<MachineConfigPool>(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
            "metadata": {"name": "wrong"}, "spec": {"nodeSelector": wrong},
        }))
        .await;
    cluster.nothing_is_left().await;
    assert!(agents.iter().all(|agent| agent.did().is_empty()));
    let pools = cluster.api::<MachineConfigPool>();
    pools.delete("wrong", &Default::default()).await.unwrap();
    cluster.pods_may_go().await;
    cluster.all_have("/etc/hard", "2").await;
    assert!(agents.iter().all(|agent| agent.boots() == 1));
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_node_that_was_away_while_its_pool_was_deleted_turns_back() {
    let cluster = Cluster::with(1, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    let node = cluster.nodes[0].as_str();
    agents[0].stop();
    cluster.file("90-next", "/etc/hard", "2").await;
    eventually("its agent may begin", async || {
        let order = cluster.update(node).await.spec.order?;
        (order.stage == UpdateStage::Go).then_some(())
    })
    .await;
    cluster.api::<MachineConfigPool>().delete("worker", &Default::default()).await.unwrap();
    // What the pool owns goes with it, be it by the garbage collector.
    let configs = cluster.api::<MachineConfig>();
    eventually("its configs are gone", async || {
        let all = configs.list(&ListParams::default()).await.ok()?;
        let names = all.into_iter().filter_map(|config| config.metadata.name);
        let left: Vec<String> = names.filter(|it| it.starts_with("rendered-worker-")).collect();
        for name in &left {
            configs.delete(name, &Default::default()).await.ok();
        }
        left.is_empty().then_some(())
    })
    .await;
    let mut agents = agents;
    agents[0].restart();
    is_given_back(&cluster, node).await;
    assert_eq!(agents[0].boots(), 0);
}
