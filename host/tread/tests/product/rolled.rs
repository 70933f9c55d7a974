//! What an admin is told of a change, and what comes of it.

use crate::cluster::{Cluster, mc, nobody_is_forbidden_anything};
use crate::judge;
use crate::machines::{status, text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::UpdateStage;
use tread_kube::node_lease;
use tread_model::plan::VerifiablePlan;
use tread_test_bed::eventually;

/// As many that one is drained while others take its pods.
const NODES: usize = 3;

/// Applies a change that puts this into a file; what is told before, what is planned, what is
/// ordered and what was done is one and the same. It gives the newest version before the change.
async fn rolls(cluster: &Cluster, name: &str, (path, word): (&str, &str), effect: &str) -> u64 {
    let change = mc(name, path, word);
    let count = cluster.nodes.len();
    let nodes = if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
    cluster.warned(&change, &format!("tread: pool worker, {nodes}: {effect}")).await;
    let before = cluster.recorded.now();
    cluster.apply(&change);
    let plan = cluster.plan(&format!("MachineConfig/{name} created")).await;
    let transitions = plan.status.unwrap().transitions;
    assert_eq!(transitions.len(), 1, "{transitions:?}");
    let digest = transitions[0].digest.clone().unwrap();

    cluster.is_updated(name, count).await;
    for node in &cluster.nodes {
        let (operation, plan) = ordered(cluster, before, &node.name);
        assert_eq!(plan.digest.to_string(), digest, "what is ordered is what was previewed");
        assert_eq!(plan.computed_digest(), plan.digest);
        let status = status(&node.machine);
        let done = &status["operation"];
        assert_eq!(done["operation"], operation.as_str(), "{status}");
        assert_eq!(done["phase"], "Done", "{status}");
        assert_eq!(done["plan"], digest.as_str(), "what is done is what was previewed");
        let steps = done["steps"].as_array().unwrap().iter();
        let steps: Vec<&str> = steps.map(|step| step["step"].as_str().unwrap()).collect();
        let planned: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
        assert_eq!(steps, planned, "what is done is what was ordered");
        assert_eq!(status["config"], plan.to.to_string());
        assert_eq!(text(&node.machine, path), word);
    }
    before
}

/// The one operation that was ordered of a node, and its plan.
fn ordered(cluster: &Cluster, since: u64, node: &str) -> (String, VerifiablePlan) {
    let versions = cluster.recorded.since(since).into_iter();
    let updates = versions.filter(|it| it.kind == "NodeUpdate" && it.name == node);
    let updates: Vec<Value> = updates.map(|it| it.object).collect();
    let mut orders = BTreeMap::new();
    for update in &updates {
        let update: NodeUpdate = serde_json::from_value(update.clone()).unwrap();
        if let Some(order) = update.spec.order
            && order.stage != UpdateStage::Closed
            && let Some(plan) = order.plan
        {
            orders.insert(order.operation, serde_json::from_value(plan).unwrap());
        }
    }
    assert_eq!(orders.len(), 1, "one operation of {node}: {:?}", orders.keys());
    orders.pop_first().unwrap()
}

/// That nothing of it was a disruption: no boot, no cordon.
fn disrupted_nobody(cluster: &Cluster) {
    for node in &cluster.nodes {
        assert_eq!(node.machine.boots().len(), 1, "{}", node.name);
    }
    for (node, words) in went(cluster, 0) {
        assert!(!words.contains(&"cordoned"), "{node}: {words:?}");
    }
}

fn went(cluster: &Cluster, after: u64) -> BTreeMap<String, Vec<&'static str>> {
    let holder = node_lease::holder(&cluster.uid_of_installation());
    judge::went(&cluster.recorded.since(0), after, &holder)
}

/// Pods of a Deployment, one on each node and one more that no node takes, of which none may be
/// evicted just now.
async fn runs_what_may_not_move(cluster: &Cluster) {
    let count = cluster.nodes.len();
    let labels = json!({"app": "held"});
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}]}});
    cluster.apply(&json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "held", "namespace": "default"},
        "spec": {"replicas": count + 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"affinity": apart,
                "containers": [{"name": "held", "image": "held"}]}}}}));
    cluster.apply(&json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "held", "namespace": "default"},
        "spec": {"minAvailable": count, "selector": {"matchLabels": labels}}}));
    eventually("they run", async || {
        let ready = ["get", "deployment", "held", "-o", "jsonpath={.status.readyReplicas}"];
        (cluster.kubectl(&ready) == count.to_string()).then_some(())
    })
    .await;
}

/// A reboot of each node, of which the first one is held up by a budget until that allows it.
async fn reboots(cluster: &Cluster) {
    runs_what_may_not_move(cluster).await;
    let releases = async {
        let blocked = cluster
            .within("a pod is held by its budget", async || {
                let status = cluster.rollout().await?.status?;
                status.draining.into_iter().find(|it| !it.blocked.is_empty())
            })
            .await;
        assert!(blocked.blocked[0].contains("held"), "{blocked:?}");
        let node = cluster.node(&blocked.node);
        assert_eq!(node.machine.boots().len(), 1);
        assert_eq!(text(&node.machine, "/etc/boots"), "", "nothing is written before");
        let allows = r#"{"spec": {"minAvailable": 1}}"#;
        cluster.kubectl(&["patch", "pdb", "held", "--type=merge", "-p", allows]);
        blocked.node
    };
    let file = ("/etc/boots", "1");
    let (rolled, first) =
        tokio::join!(rolls(cluster, "70-boots", file, "drain + reboot"), releases);
    let cordoned = ["get", "nodes", "-o", "jsonpath={.items[*].spec.unschedulable}"];
    assert_eq!(cluster.kubectl(&cordoned), "", "a pool that is Updated has no cordon");
    let went = cluster
        .within("their Leases are gone", async || {
            let went = went(cluster, rolled);
            went.values().all(|words| words.last() == Some(&"let go")).then_some(went)
        })
        .await;
    for node in &cluster.nodes {
        let steps = ["leased", "cordoned", "given", "booted", "uncordoned", "let go"];
        assert_eq!(went[&node.name], steps, "{}; the first one was {first}", node.name);
        let boots = node.machine.boots();
        assert_eq!(boots.len(), 2, "{}: one boot and no more", node.name);
        let status = cluster.update(&node.name).await.status.unwrap();
        assert_eq!(status.boot_id.as_ref(), Some(&boots[1].id));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_happens_on_machines_as_it_was_previewed() {
    let cluster = Cluster::with(NODES).await;
    cluster.ship().await;
    rolls(&cluster, "50-none", ("/etc/acts/none", "1"), "none").await;
    disrupted_nobody(&cluster);
    let file = ("/etc/acts/reload", "soft.service");
    rolls(&cluster, "60-reload", file, "reload soft.service").await;
    disrupted_nobody(&cluster);
    for node in &cluster.nodes {
        assert_eq!(text(&node.machine, "/var/soft.log"), "start\nreload\n", "{}", node.name);
    }
    reboots(&cluster).await;
    nobody_is_forbidden_anything(&cluster);
}
