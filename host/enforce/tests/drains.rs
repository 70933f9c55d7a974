//! Pods move before a node boots, as its budgets allow.

use crate::fixture::Bed;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use std::sync::Arc;
use tread_enforce::Ended;
use tread_enforce::drain::Evicted;
use tread_model::protocol::Disrupts;
use tread_test_bed::eventually;

fn pod(name: &str, node: &str, labels: &Value, more: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "example.com/c"}]},
    });
    for (field, value) in more.as_object().unwrap() {
        pod[field] = value.clone();
    }
    serde_json::from_value(pod).unwrap()
}

fn budget(name: &str, labels: &Value, available: usize) -> PodDisruptionBudget {
    let spec = json!({"minAvailable": available, "selector": {"matchLabels": labels}});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

/// What tread says of a node.
async fn conditions(bed: &Bed, node: &str) -> Vec<String> {
    let all = bed.node(node).await.status.unwrap_or_default().conditions.unwrap_or_default();
    let own = all.into_iter().filter(|it| it.reason.as_deref() == Some("TreadUpdate"));
    let mut own: Vec<String> = own.map(|it| format!("{}={}", it.type_, it.status)).collect();
    own.sort();
    own
}

#[tokio::test]
async fn a_pod_that_its_budget_holds_is_named_and_waited_for() {
    let bed = Arc::new(Bed::with(1, 1).await);
    let node = bed.nodes[0].clone();
    let namespace = &bed.settings.namespace;
    let pods: Api<Pod> = Api::namespaced(bed.client.clone(), namespace);
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(bed.client.clone(), namespace);
    let (web, db) = (json!({"app": "web"}), json!({"app": "db"}));
    for (name, labels) in [("web", &web), ("db", &db), ("free", &json!({}))] {
        let pod = pod(name, &node, labels, json!({}));
        pods.create(&PostParams::default(), &pod).await.unwrap();
    }
    for (name, labels) in [("web", &web), ("db", &db), ("db-too", &db)] {
        budgets.create(&PostParams::default(), &budget(name, labels, 1)).await.unwrap();
    }
    for name in ["web", "db"] {
        eventually("the pod is Ready, and its budget knows it", async || {
            let budget = budgets.get(name).await.unwrap();
            (budget.status?.current_healthy == 1).then_some(())
        })
        .await;
    }
    let agents = bed.agents(Disrupts::Reboot);
    let blocked = eventually("the drain waits for the budget", async || {
        let ended = bed.step(&node, Disrupts::Reboot).await;
        let Ok(Ended::Drains(blocked, read)) = ended else { return None };
        let left = read.left.as_ref().map_or(0, |left| left.pods.len());
        (left == 2 && blocked.len() == 2).then_some(blocked)
    })
    .await;
    assert_eq!(blocked[0].pod, format!("{namespace}/db"));
    let both = vec!["db".to_owned(), "db-too".to_owned()];
    assert_eq!(blocked[0].by, Evicted::Never(both));
    assert_eq!(blocked[1].by, Evicted::Blocked(vec!["web".to_owned()]));
    assert!(agents[0].did().is_empty(), "the node is not drained");
    let says = async || conditions(&bed, &node).await;
    assert_eq!(says().await, ["DrainInProgress=True", "Drained=False"]);
    // Nobody takes the order for now.
    drop(agents);
    for name in ["web", "db-too", "db"] {
        budgets.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    eventually("it is said that the node is drained", async || {
        let all = ["DrainInProgress=False", "Drained=True", "MaintenanceInProgress=True"];
        (says().await == all).then_some(())
    })
    .await;
    let agents = bed.agents(Disrupts::Reboot);
    bed.all_are_done().await;
    drop((agents, replica));
    assert!(says().await.is_empty(), "tread takes its own away");
    for name in ["web", "db", "free"] {
        assert!(pods.get_opt(name).await.unwrap().is_none(), "{name}");
    }
    bed.judge.holds().await;
}

#[tokio::test]
async fn pods_that_a_kubelet_or_a_daemon_set_runs_keep_no_node_from_booting() {
    let bed = Arc::new(Bed::with(1, 1).await);
    let node = bed.nodes[0].clone();
    let pods: Api<Pod> = Api::namespaced(bed.client.clone(), &bed.settings.namespace);
    let mirror = json!({"metadata": {"name": "mirror",
        "annotations": {"kubernetes.io/config.mirror": "x"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node,
            "uid": bed.node(&node).await.metadata.uid, "controller": true}]}});
    pods.create(&PostParams::default(), &pod("mirror", &node, &json!({}), mirror)).await.unwrap();
    let agents = bed.agents(Disrupts::Reboot);
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    bed.all_are_done().await;
    drop((agents, replica));
    assert!(pods.get_opt("mirror").await.unwrap().is_some());
    bed.judge.holds().await;
}
