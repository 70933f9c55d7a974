//! Who would block a drain is said before a change is made.

use super::fixture::{Cluster, ROLE, Tread, files};
use super::status;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use tread_cluster::plans::Blockers;
use tread_kube::api::{DisruptionPlan, MachineConfig, MachineConfigPool, crds};
use tread_kube::metrics::Metrics;
use tread_kube::review::Asked;
use tread_test_bed::{ControlPlane, eventually};

/// A pod on a node, and a budget that wants it healthy.
async fn holds(cluster: &Cluster, namespace: &str, name: &str, node: &str) {
    let labels = json!({"app": name});
    for object in [
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "example.com/c"}]}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}),
    ] {
        eventually("it is applied", async || cluster.plane.apply(&object.to_string()).ok()).await;
    }
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(cluster.client.clone(), namespace);
    eventually("the budget has counted its pod", async || {
        let budget = budgets.get(name).await.ok()?;
        (budget.status?.expected_pods == 1).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_drains_names_the_budgets_and_pods_that_would_block_it() {
    let cluster = Cluster::settled(ControlPlane::options().with_controllers()).await;
    holds(&cluster, "default", "db", "worker-1").await;
    // Nobody drains a node that no pool has.
    holds(&cluster, "kube-system", "other", "elsewhere").await;
    let _tread = Tread::start(&cluster.client);
    cluster.config("50-chrony", "worker", files(&[("/etc/foo.conf", "server a\n")])).await;
    let plan = cluster
        .plan("MachineConfig/50-chrony created", |plan| !status(plan).drain_blockers.is_empty())
        .await;
    let [blocker] = status(&plan).drain_blockers.as_slice() else { panic!("{plan:?}") };
    assert_eq!(blocker.budget, "default/db");
    assert_eq!(blocker.why, "it wants 1 healthy pods, and there are to be 1");
    let [pod] = blocker.pods.as_slice() else { panic!("{blocker:?}") };
    assert_eq!((pod.pod.as_str(), pod.node.as_str()), ("default/db", "worker-1"));
    assert_eq!((blocker.more_pods, status(&plan).drain_blockers_left_out), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_drains_names_two_budgets_that_hold_one_pod() {
    let cluster = Cluster::settled(ControlPlane::options().with_controllers()).await;
    let labels = json!({"app": "db", "tier": "back"});
    let budget = |name: &str, selector: serde_json::Value| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector}}})
    };
    let pod = |name: &str, labels: &serde_json::Value| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": labels},
            "spec": {"nodeName": "worker-1", "containers": [{"name": "c", "image": "a"}]}})
    };
    for object in [
        pod("db", &labels),
        pod("alone", &json!({"app": "db"})),
        budget("by-app", json!({"app": "db"})),
        budget("by-tier", json!({"tier": "back"})),
        // No pod is under these and another one.
        budget("of-web", json!({"app": "web"})),
    ] {
        eventually("it is applied", async || cluster.plane.apply(&object.to_string()).ok()).await;
    }
    let running = json!({"status": {"phase": "Running"}}).to_string();
    let patch = ["patch", "pod", "db", "--subresource=status", "--type=merge", "-p", &running];
    cluster.plane.kubectl(&patch).unwrap().success().unwrap();
    let _tread = Tread::start(&cluster.client);
    cluster.config("50-chrony", "worker", files(&[("/etc/foo.conf", "server a\n")])).await;
    let cause = "MachineConfig/50-chrony created";
    let plan = cluster.plan(cause, |plan| !status(plan).drain_blockers.is_empty()).await;
    let [blocker] = status(&plan).drain_blockers.as_slice() else { panic!("{plan:?}") };
    assert_eq!(blocker.budget, "default/by-app");
    let why = "under the PodDisruptionBudget default/by-tier too";
    assert!(blocker.why.contains(why), "{}", blocker.why);
    let pods: Vec<&str> = blocker.pods.iter().map(|pod| pod.pod.as_str()).collect();
    assert_eq!(pods, ["default/db"], "the other one is under one budget alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_which_nodes_are_not_drained_where_tread_rolls_out() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    cluster.plane.define(&crds::enforcing()).unwrap();
    let rollout = |spec: serde_json::Value| {
        let rollout = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "worker"}, "spec": spec});
        rollout.to_string()
    };
    eventually("it is served", async || cluster.plane.apply(&rollout(json!({}))).ok()).await;
    // One node is left.
    for node in ["worker-1", "worker-2"] {
        cluster.delete::<Node>(node).await;
    }
    let pool: MachineConfigPool = cluster.api().get("worker").await.unwrap();
    let has = pool.spec.configuration.unwrap().name.unwrap();
    cluster.says("worker-0", &has).await;
    let tread = Tread::rolling_out(&cluster.client);
    let config = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "50-chrony", "labels": {ROLE: "worker"}},
        "spec": files(&[("/etc/foo.conf", "server a\n")])});
    let asked = json!({"request": {"uid": "1", "operation": "CREATE", "name": "50-chrony",
        "kind": {"kind": "MachineConfig"}, "object": config,
        "resource": {"group": "machineconfiguration.openshift.io", "resource": "machineconfigs"}}});
    let asked = asked.to_string();
    let line = "tread: pool worker: 1 node is not drained: no other node takes the pods";
    eventually("whoever makes a change is told", async || {
        let asked = Asked::read(asked.as_bytes()).unwrap();
        let lines = tread.previewer.warnings(asked).await.lines;
        lines.iter().any(|it| it == line).then_some(())
    })
    .await;
    cluster.create::<MachineConfig>(config).await;
    let cause = "MachineConfig/50-chrony created";
    let plan = cluster.plan(cause, |plan| status(plan).drain_skipped.is_some()).await;
    let skipped = status(&plan).drain_skipped.as_ref().unwrap();
    assert_eq!((skipped.nodes, skipped.why.as_str()), (1, "no other node takes the pods"));
    let effect = |plan: &DisruptionPlan| status(plan).effect.clone().unwrap();
    assert_eq!(effect(&plan), "reboot, not drained");
    // Another one takes them by now, until an admin wants no pod to be moved.
    let role = "node-role.kubernetes.io/worker";
    cluster.create::<Node>(json!({"metadata": {"name": "worker-3", "labels": {role: ""}}})).await;
    let plan = cluster.plan(cause, |plan| status(plan).drain_skipped.is_none()).await;
    assert_eq!(effect(&plan), "drain + reboot");
    cluster.plane.apply(&rollout(json!({"drain": {"skip": true}}))).unwrap();
    let said = "spec.drain.skip of Rollout worker says so";
    cluster
        .plan(cause, |plan| status(plan).drain_skipped.as_ref().is_some_and(|it| it.why == said))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_read_pods_is_told_of_budgets_alone() {
    let cluster = Cluster::start(ControlPlane::options().with_controllers()).await;
    holds(&cluster, "default", "db", "elsewhere").await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "budgets"}, "rules": [{"apiGroups": ["policy"],
            "resources": ["poddisruptionbudgets"], "verbs": ["list"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding", "metadata": {"name": "budgets"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "budgets"},
        "subjects": [{"kind": "ServiceAccount", "name": "asks", "namespace": "default"}]});
    for object in [role, binding] {
        cluster.plane.apply(&object.to_string()).unwrap();
    }
    let client = cluster.plane.service_account("default", "asks").unwrap().client().await.unwrap();
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::all(client.clone());
    assert!(pods.list(&ListParams::default()).await.is_err());
    eventually("it may list budgets", async || {
        let blockers = Blockers::find(&client, &Metrics::new()).await.ok()?;
        (blockers.budgets() == ["default/db"]).then_some(())
    })
    .await;
}
