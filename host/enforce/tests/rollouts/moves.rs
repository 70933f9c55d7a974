//! Nodes that an admin moves from one pool into another.

use super::agent::first_fails;
use super::fixture::Cluster;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;
use tread_kube::api::{MachineConfig, MachineConfigPool, Rollout};
use tread_test_bed::eventually;

const ROLE: &str = "machineconfiguration.openshift.io/role";

const INFRA: &str = "infra";

/// A pool beside the workers, whose nodes have a file more that costs them a boot.
async fn infra(cluster: &Cluster) {
    let file = json!({"path": "/etc/hard", "mode": 420, "contents": {"source": "data:,infra"}});
    cluster
        .apply::<MachineConfig>(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": "60-infra", "labels": {ROLE: INFRA}},
            "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [file]}}},
        }))
        .await;
    cluster
        .apply::<MachineConfigPool>(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
            "metadata": {"name": INFRA},
            "spec": {
                "maxUnavailable": 1,
                "machineConfigSelector": {"matchExpressions": [{
                    "key": ROLE, "operator": "In", "values": ["worker", INFRA]}]},
                "nodeSelector": {"matchLabels": {"node-role.kubernetes.io/infra": ""}},
            },
        }))
        .await;
}

/// What an admin says of the rollout of that pool.
async fn says(cluster: &Cluster, spec: Value) {
    let (api, patch) = (cluster.api::<Rollout>(), Patch::Merge(json!({"spec": spec})));
    eventually("the Rollout is there", async || {
        api.patch(INFRA, &PatchParams::default(), &patch).await.ok()
    })
    .await;
}

#[tokio::test]
async fn a_node_that_an_admin_moves_gets_the_other_pools_config_in_that_pools_turn() {
    let cluster = Cluster::with(3, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, first_fails());
    cluster.all_have("/etc/first", "1").await;
    infra(&cluster).await;
    says(&cluster, json!({"paused": true})).await;

    let (moved, stays) = (&cluster.nodes[..2], &agents[2]);
    for node in moved {
        let labels = json!({"node-role.kubernetes.io/infra": ""});
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        cluster.api::<Node>().patch(node, &PatchParams::default(), &patch).await.unwrap();
    }
    eventually("both wait, as their new pool is paused", async || {
        let status = cluster.api::<Rollout>().get(INFRA).await.ok()?.status?;
        let waits = status.waiting.iter().filter(|it| it.why == "its pool is paused");
        (status.nodes == 2 && waits.count() == 2).then_some(())
    })
    .await;
    eventually("the pool that they left counts them no more", async || {
        (cluster.rollout().await.status?.nodes == 1).then_some(())
    })
    .await;
    assert!(agents.iter().all(|agent| agent.did().is_empty()));

    // One at a time, and none after one that failed.
    says(&cluster, json!({"paused": false})).await;
    eventually("their new pool halts", async || {
        let status = cluster.api::<Rollout>().get(INFRA).await.ok()?.status?;
        let halted = status.waiting.iter().filter(|it| it.why.contains("halted")).count();
        (status.failed == 1 && halted == 1).then_some(())
    })
    .await;
    assert_eq!(agents.iter().filter(|agent| !agent.did().is_empty()).count(), 1);
    let now = k8s_openapi::jiff::Timestamp::now() + Duration::from_secs(1);
    says(&cluster, json!({"retryFailedBefore": format!("{now:.0}")})).await;
    eventually("both have the config of their new pool", async || {
        let status = cluster.api::<Rollout>().get(INFRA).await.ok()?.status?;
        let target = status.target?;
        for node in moved {
            let update = cluster.update(node).await;
            let has_it = update.status?.current.as_ref() == Some(&target);
            (has_it && update.spec.pool == INFRA).then_some(())?;
        }
        (status.updated == 2).then_some(())
    })
    .await;
    cluster.nothing_is_left().await;
    assert!(stays.did().is_empty(), "nothing was done to the one that stays");
    assert!(agents[..2].iter().all(|agent| agent.boots() > 0));
    cluster.judge.holds_for_failed_nodes().await;
}
