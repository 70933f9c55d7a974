//! Nodes that somebody has for maintenance are named by plans, and told of once.

use super::fixture::{Cluster, Tread, files};
use super::status;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use tread_kube::api::DisruptionPlan;
use tread_kube::api::machines;
use tread_kube::held::NODE_MAINTENANCE;
use tread_kube::node_lease;
use tread_test_bed::{ControlPlane, eventually};

/// Who has the Lease of a node, for an hour.
async fn lease(cluster: &Cluster, node: &str, holder: &str) {
    let now = Timestamp::now();
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), node_lease::NAMESPACE);
    let lease = json!({"metadata": {"name": format!("node-{node}")},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600,
            "acquireTime": format!("{now:.6}"), "renewTime": format!("{now:.6}")}});
    let lease = serde_json::from_value(lease).unwrap();
    leases.create(&PostParams::default(), &lease).await.unwrap();
}

fn named(plan: &DisruptionPlan) -> Vec<(&str, &str)> {
    let words = |why: &'static str, of: &str| of.contains(why).then_some(why);
    let short = |why: &str| {
        words("held by node-maintenance", why)
            .or_else(|| words("somebody cordoned it", why))
            .or_else(|| words("NodeMaintenance disk", why))
            .unwrap_or("another")
    };
    status(plan).flagged.iter().map(|it| (it.node.as_str(), short(&it.why))).collect()
}

async fn events(cluster: &Cluster) -> Vec<(String, String)> {
    let events: Api<Event> = Api::all(cluster.client.clone());
    let listed = events.list(&ListParams::default()).await.unwrap().items;
    let flagged = listed.into_iter().filter(|it| it.reason.as_deref() == Some("NodeFlagged"));
    let mut said: Vec<(String, String)> = flagged
        .map(|it| (it.regarding.unwrap().name.unwrap(), it.note.unwrap_or_default()))
        .collect();
    said.sort();
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_the_operator_plans_name_who_else_has_nodes_and_each_is_told_of_once() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    cluster.create::<Namespace>(json!({"metadata": {"name": node_lease::NAMESPACE}})).await;
    lease(&cluster, "worker-0", "node-maintenance").await;
    cluster.plane.kubectl(&["cordon", "worker-1"]).unwrap().success().unwrap();
    let tread = Tread::start(&cluster.client);
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let cause = "MachineConfig/50-a created";
    let both = [("worker-0", "held by node-maintenance"), ("worker-1", "somebody cordoned it")];
    let plan = cluster.plan(cause, |plan| named(plan) == both).await;
    assert_eq!(status(&plan).flagged_left_out, 0);
    eventually("both are told of", async || (events(&cluster).await.len() == 2).then_some(()))
        .await;
    // Another replica leads by now: it tells nothing again.
    drop(tread);
    let _tread = Tread::start(&cluster.client);

    // A kind that comes later is seen.
    let definition = machines::definition(&NODE_MAINTENANCE).unwrap();
    cluster.plane.define(&[definition]).unwrap();
    let object: Value = json!({"apiVersion": "nodemaintenance.medik8s.io/v1beta1",
        "kind": "NodeMaintenance", "metadata": {"name": "disk"}, "spec": {"nodeName": "worker-2"}});
    eventually("it is served", async || cluster.plane.apply(&object.to_string()).ok()).await;
    let all = [both[0], both[1], ("worker-2", "NodeMaintenance disk")];
    cluster.plan(cause, |plan| named(plan) == all).await;
    let said = eventually("the third one is told of", async || {
        Some(events(&cluster).await).filter(|said| said.len() >= 3)
    })
    .await;
    let nodes: Vec<&str> = said.iter().map(|(node, _)| node.as_str()).collect();
    assert_eq!(nodes, ["worker-0", "worker-1", "worker-2"]);
    assert!(said[0].1.contains("held by node-maintenance"), "{}", said[0].1);
    assert!(said[0].1.contains("does not wait for that"), "{}", said[0].1);

    // What is given back is not named any more.
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), node_lease::NAMESPACE);
    leases.delete("node-worker-0", &DeleteParams::default()).await.unwrap();
    cluster.plane.kubectl(&["uncordon", "worker-1"]).unwrap().success().unwrap();
    cluster.plan(cause, |plan| named(plan) == all[2..]).await;
}
