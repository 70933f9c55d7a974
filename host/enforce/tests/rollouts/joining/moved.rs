//! Nodes that register again come back by what was noted of them: where they were last, also where
//! nobody has the key any more that signed their claim.

use super::{INFRA, WORKER, claim, held, is_in, kubelet, register, with_pools};
use crate::rollouts::fixture::Cluster;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tread_kube::api::{MachineConfigPool, NodeUpdate, Rollout};
use tread_model::joining::{Claim, KEYS_SECRET, Key, Mark};
use tread_test_bed::eventually;

/// By which a node is in the pool `gpu`.
const GPU: &str = "example.com/gpu";

/// Waits until the record of claims says that a node was in a pool last.
async fn is_noted(cluster: &Cluster, node: &str, pool: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let pools: Api<MachineConfigPool> = cluster.api();
    let uid = pools.get(pool).await.unwrap().metadata.uid.unwrap();
    let (begins, was_in) = (format!("{node} "), format!(" pool:{}", Mark::of_pool(&uid)));
    eventually(&format!("that {node} is in {pool} is noted"), async || {
        let data = maps.get_opt("tread-joining").await.ok()??.data?;
        let is_it = |by: &String| by.starts_with(&begins) && by.contains(&was_in);
        data.values().any(is_it).then_some(())
    })
    .await;
}

async fn is_a_member(cluster: &Cluster, node: &str, pool: &str) {
    eventually(&format!("{node} counts in {pool}"), async || {
        let node: Node = cluster.api().get(node).await.ok()?;
        let update: NodeUpdate =
            cluster.api().get_opt(node.metadata.name.as_deref()?).await.ok()??;
        let owner = update.metadata.owner_references?.first()?.uid.clone();
        (Some(owner) == node.metadata.uid && update.spec.pool == pool).then_some(())
    })
    .await;
}

async fn label(cluster: &Cluster, node: &str, labels: Value) {
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    let nodes: Api<Node> = cluster.api();
    nodes.patch(node, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn a_node_that_was_moved_by_labels_registers_again_into_the_pool_that_it_was_in_last() {
    let cluster = with_pools().await;
    let gpu = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "metadata": {"name": "gpu"},
        "spec": {
            "machineConfigSelector": {"matchLabels": {
                "machineconfiguration.openshift.io/role": "worker"}},
            "nodeSelector": {"matchLabels": {GPU: ""}},
        },
    });
    cluster.apply::<MachineConfigPool>(gpu).await;
    let replica = cluster.replica();
    let claim = claim(&replica, "infra").await;
    let one = kubelet(&cluster, "one").await;
    let nodes: Api<Node> = cluster.api();
    let again = async || {
        nodes.delete("one", &Default::default()).await.unwrap();
        register(&one, "one", &claim).await.unwrap();
    };
    register(&one, "one", &claim).await.unwrap();
    is_in(&cluster, "one", INFRA).await;
    // To the workers, and back into no other pool though its claim names one.
    label(&cluster, "one", json!({INFRA: null})).await;
    is_noted(&cluster, "one", "worker").await;
    again().await;
    is_in(&cluster, "one", WORKER).await;
    is_a_member(&cluster, "one", "worker").await;
    let node = nodes.get("one").await.unwrap();
    assert!(!node.metadata.labels.unwrap().contains_key(INFRA));
    // To a pool whose labels a node is given.
    label(&cluster, "one", json!({GPU: ""})).await;
    is_noted(&cluster, "one", "gpu").await;
    again().await;
    is_in(&cluster, "one", GPU).await;
    is_a_member(&cluster, "one", "gpu").await;
    // One that is gone by the time that it comes.
    nodes.delete("one", &Default::default()).await.unwrap();
    eventually("what was said of it is gone too", async || {
        cluster.api::<NodeUpdate>().get_opt("one").await.ok()?.is_none().then_some(())
    })
    .await;
    cluster.api::<MachineConfigPool>().delete("gpu", &Default::default()).await.unwrap();
    eventually("that the pool is gone is known", async || {
        let why = replica.joining.serve("gpu", None).await.err()?.to_string();
        why.contains("the pool is gone").then_some(())
    })
    .await;
    register(&one, "one", &claim).await.unwrap();
    let (reason, message) = held(&cluster, "one").await;
    assert_eq!(reason, "PoolGone", "{message}");
    assert!(message.contains("the pool that it was in last is gone"), "{message}");
    assert!(message.contains("tread pools admit one --pool"), "{message}");
    eventually("it is not in the pool of its claim", async || {
        let rollout = cluster.api::<Rollout>().get("infra").await.ok()?;
        (rollout.status?.nodes == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_node_registers_again_after_the_keys_were_made_anew_by_what_was_noted_of_it_alone() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let bound = claim(&replica, "infra").await;
    let unbound = claim(&replica, "infra").await;
    let one = kubelet(&cluster, "one").await;
    register(&one, "one", &bound).await.unwrap();
    is_in(&cluster, "one", INFRA).await;
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    secrets.delete(KEYS_SECRET, &Default::default()).await.unwrap();
    let new = eventually("a machine is served by another key", async || {
        let data = secrets.get_opt(KEYS_SECRET).await.ok()??.data?;
        let keys: Vec<Key> = serde_json::from_slice(&data["joining.json"].0).ok()?;
        let claim = replica.joining.serve("infra", None).await.ok()?.claim;
        (Claim::read(&claim, &keys).is_ok() && Claim::read(&bound, &keys).is_err()).then_some(claim)
    })
    .await;
    let nodes: Api<Node> = cluster.api();
    // The pool in it was altered: what it says counts nothing beside what was noted.
    let altered = bound.replace(bound.get(4..8).unwrap(), "AAAA");
    for claim in [&bound, &altered] {
        nodes.delete("one", &Default::default()).await.unwrap();
        register(&one, "one", claim).await.unwrap();
        is_in(&cluster, "one", INFRA).await;
    }
    // Another node's, and one that nobody has shown before.
    for (name, claim) in [("two", &bound), ("three", &altered), ("four", &unbound)] {
        register(&kubelet(&cluster, name).await, name, claim).await.unwrap();
        let (reason, message) = held(&cluster, name).await;
        assert_eq!(reason, "ClaimForged", "{message}");
        assert!(message.contains("before the Secret with the keys was made anew"), "{message}");
    }
    // Machines that boot from now on join by the new one.
    register(&kubelet(&cluster, "five").await, "five", &new).await.unwrap();
    is_in(&cluster, "five", INFRA).await;
}

#[tokio::test]
async fn a_pool_says_that_its_nodes_would_register_without_their_claims_while_its_config_lacks_room()
 {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let claim = claim(&replica, "infra").await;
    let says = async |pool: &str, is_it: &dyn Fn(&str, &str) -> bool| {
        eventually(&format!("{pool} says so"), async || {
            let rollout = cluster.api::<Rollout>().get(pool).await.ok()?;
            let mut all = rollout.status?.conditions.into_iter();
            all.find(|it| it.type_ == "Serves" && is_it(&it.reason, &it.message)).map(drop)
        })
        .await;
    };
    register(&kubelet(&cluster, "one").await, "one", &claim).await.unwrap();
    is_in(&cluster, "one", INFRA).await;
    let warns = |message: &str| message.contains("Delete none of the Nodes");
    let path = "/etc/kubernetes/kubelet.conf";
    let taints = "kind:%20KubeletConfiguration%0AregisterWithTaints:%20%5B%5D%0A";
    cluster.file("40-kubelet", path, taints).await;
    // No node of worker has a claim.
    says("worker", &|word, message| word == "CannotBeServed" && !warns(message)).await;
    says("infra", &|word, message| word == "CannotBeServed" && warns(message)).await;
    // Nor does any of infra, once its node is a worker.
    label(&cluster, "one", json!({INFRA: null})).await;
    says("worker", &|word, message| word == "CannotBeServed" && warns(message)).await;
    says("infra", &|word, message| word == "CannotBeServed" && !warns(message)).await;
    cluster.file("40-kubelet", path, "kind:%20KubeletConfiguration%0A").await;
    says("infra", &|word, _| word == "NoBootstrapSecret").await;
}
