//! Drains as a pool's Rollout wants them, and nodes that could not be drained.

use super::agent::{Agent, first_fails, well};
use super::fixture::Cluster;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::DynamicObject;
use serde_json::json;
use std::sync::Arc;
use tread_enforce::{SKIPPED_BY, SKIPS_REMEDIATION};
use tread_kube::api::node_update::UpdatePhase;
use tread_kube::api::rollout::WaitingNode;
use tread_kube::api::{MachineConfig, Rollout, machines};
use tread_test_bed::eventually;

#[tokio::test]
async fn a_node_that_could_not_be_drained_waits_for_its_budget_while_another_one_goes() {
    let cluster = Cluster::with(2, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    let (first, second) = (cluster.nodes[0].as_str(), cluster.nodes[1].as_str());
    let labels = json!({"app": "lone"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "lone", "namespace": "default", "labels": labels},
        "spec": {"nodeName": first, "containers": [{"name": "c", "image": "example.com/c"}]}});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "lone", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}});
    for object in [pod, budget] {
        cluster.plane.apply(&object.to_string()).unwrap();
    }
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(cluster.client.clone(), "default");
    eventually("the budget knows its pod", async || {
        let status = budgets.get("lone").await.ok()?.status?;
        (status.expected_pods == 1 && status.current_healthy == 1).then_some(())
    })
    .await;
    cluster.file("90-next", "/etc/hard", "2").await;
    let status = eventually("the other one has it", async || {
        let status = cluster.rollout().await.status?;
        let [waits] = status.waiting.as_slice() else { return None };
        // Once its turn came, it is known why it is not drained.
        let is_held = waits.why.contains("default/lone: the PodDisruptionBudget lone never allows");
        (status.updated == 1 && status.under_way == 0 && is_held).then_some(status)
    })
    .await;
    assert_eq!(status.waiting[0].node, first);
    assert!(agents[0].did().is_empty() && !agents[1].did().is_empty(), "{second} alone");
    let node: Node = cluster.api().get(first).await.unwrap();
    assert_ne!(node.spec.unwrap().unschedulable, Some(true));
    let update = cluster.update(first).await;
    let drain = update.status.unwrap().drain.unwrap();
    assert_eq!(drain.pods[0].pod, "default/lone");
    // Long before it would be looked at again by itself.
    cluster.plane.kubectl(&["delete", "pdb", "lone"]).unwrap().success().unwrap();
    cluster.all_have("/etc/hard", "2").await;
    assert_eq!(cluster.update(first).await.status.unwrap().drain, None);
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_pod_that_cannot_be_read_or_a_cordon_that_is_refused_is_named_until_it_is_mended() {
    let cluster = Cluster::with(2, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    let (first, second) = (cluster.nodes[0].as_str(), cluster.nodes[1].as_str());
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "odd", "namespace": "default"},
        "spec": {"nodeName": first, "containers": [{"name": "c", "image": "example.com/c"}]}});
    cluster.plane.apply(&pod.to_string()).unwrap();
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "default");
    eventually("the pod runs", async || {
        (pods.get("odd").await.ok()?.status?.phase? == "Running").then_some(())
    })
    .await;
    // Later than any time that can be read.
    let odd = r#"{"status": {"startTime": "9999-12-31T23:59:59Z"}}"#;
    let patch = ["patch", "pod", "odd", "--subresource=status", "--type=merge", "-p", odd];
    cluster.plane.kubectl(&patch).unwrap().success().unwrap();
    assert!(pods.get("odd").await.is_err(), "it can be read");
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-cordon"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["UPDATE"], "resources": ["nodes"]}]},
            "validations": [{"expression": format!(
                "object.metadata.name != '{second}' || !object.spec.?unschedulable.orValue(false)"
            )}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-cordon"},
        "spec": {"policyName": "no-cordon", "validationActions": ["Deny"]},
    });
    for object in [policy, binding] {
        cluster.plane.apply(&object.to_string()).unwrap();
    }
    let nodes: Api<Node> = cluster.api();
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    eventually("nobody can cordon the second node", async || {
        let answer = nodes.patch(second, &PatchParams::default().dry_run(), &cordon).await;
        answer.err().filter(|error| error.to_string().contains("no-cordon"))
    })
    .await;
    cluster.file("90-next", "/etc/hard", "2").await;
    // One after the other on a busy machine: the second node, once begun, is what the first one waits for.
    let (mut of_pod, mut of_cordon) = (None, None);
    let (waits, message) = eventually("both are named", async || {
        let status = cluster.rollout().await.status?;
        let is_named = |it: &WaitingNode| it.node == first && it.why.contains("default/odd");
        let named = status.waiting.into_iter().find(is_named);
        of_pod = of_pod.take().or(named.map(|it| it.why));
        let message = status.message.filter(|it| it.contains("it cannot be brought further"));
        of_cordon = of_cordon.take().or(message);
        Some((of_pod.clone()?, of_cordon.clone()?))
    })
    .await;
    assert!(message.contains(&format!("({second}: it cannot be")), "{message}");
    assert!(message.contains("no-cordon"), "{message}");
    assert!(waits.contains("cannot be read"), "{waits}");
    assert!(agents.iter().all(|agent| agent.did().is_empty()));
    let gone = ["delete", "validatingadmissionpolicybinding", "no-cordon"];
    cluster.plane.kubectl(&gone).unwrap().success().unwrap();
    let gone = ["delete", "pod", "odd", "--force", "--grace-period=0"];
    cluster.plane.kubectl(&gone).unwrap().success().unwrap();
    cluster.all_have("/etc/hard", "2").await;
    cluster.judge.holds().await;
}

#[tokio::test]
async fn an_admin_says_in_the_rollout_how_nodes_are_drained() {
    let cluster = Cluster::with(2, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    let api = cluster.api::<Rollout>();
    let says = async |drain: serde_json::Value| {
        let patch = Patch::Merge(json!({"spec": {"drain": drain}}));
        let said = api.patch("worker", &PatchParams::default(), &patch).await;
        said.map(drop).map_err(|error| error.to_string())
    };
    for (drain, why) in [
        (json!({"timeout": "soon"}), "spec.drain.timeout"),
        (json!({"timeout": "5"}), "spec.drain.timeout"),
        (json!({"afterTimeout": "Delete"}), "needs a timeout"),
        (json!({"ignore": [{}]}), "say which pods"),
        (json!({"ignore": [{"pods": {}}]}), "spec.drain.ignore[0].pods"),
        (
            json!({"waitFor": [{"pods": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]}),
            "In and NotIn need values",
        ),
        (
            json!({"waitFor": [{"pods": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}]}),
            "operator",
        ),
        (json!({"refuse": ["Everything"]}), "spec.drain.refuse[0]"),
    ] {
        let refusal = says(drain.clone()).await.unwrap_err();
        assert!(refusal.contains(why), "{drain}: {refusal}");
    }
    let node = cluster.nodes[0].as_str();
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "example.com/c"}]}});
    cluster.plane.apply(&pod.to_string()).unwrap();
    says(json!({"ignore": [{"namespaces": ["default"]}], "timeout": "1h 30m",
        "leaveLoadBalancers": "1s", "gracePeriod": "5s"}))
    .await
    .unwrap();
    cluster.file("90-next", "/etc/hard", "2").await;
    cluster.all_have("/etc/hard", "2").await;
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "default");
    assert!(pods.get_opt("probe").await.unwrap().is_some());
    assert!(!agents[0].did().is_empty());
    cluster.judge.holds().await;
}

#[tokio::test]
async fn the_machine_of_a_node_is_not_replaced_while_tread_disrupts_the_node() {
    let cluster = Cluster::with(2, 1).await;
    let definition = machines::definition(&machines::CAPI_MACHINE).unwrap();
    cluster.plane.define(&[definition]).unwrap();
    let theirs = json!({SKIPS_REMEDIATION: ""});
    for (node, annotations) in cluster.nodes.iter().zip([json!({}), theirs]) {
        let machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine",
            "metadata": {"name": node, "namespace": "default", "annotations": annotations},
            "status": {"nodeRef": {"name": node}}});
        eventually("Machines are served", async || cluster.plane.apply(&machine.to_string()).ok())
            .await;
    }
    let resource = machines::CAPI_MACHINE.resource();
    let api: Api<DynamicObject> =
        Api::namespaced_with(cluster.client.clone(), "default", &resource);
    let marks = async |node: &str| {
        let all = api.get(node).await.unwrap().metadata.annotations.unwrap_or_default();
        (all.contains_key(SKIPS_REMEDIATION), all.contains_key(SKIPPED_BY))
    };
    let replica = cluster.replica();
    let _agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    let first = cluster.nodes[0].as_str();
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "job", "namespace": "default"},
        "spec": {"nodeName": first, "containers": [{"name": "c", "image": "example.com/c"}]}});
    cluster.plane.apply(&pod.to_string()).unwrap();
    cluster.rollout_says(json!({"drain": {"waitFor": [{"namespaces": ["default"]}]}})).await;
    cluster.file("90-next", "/etc/hard", "2").await;
    eventually("the drain waits for the job", async || {
        let status = cluster.rollout().await.status?;
        status.draining.into_iter().find(|it| it.node == first && it.pods_left == 1)
    })
    .await;
    assert_eq!(marks(first).await, (true, true));
    cluster.plane.kubectl(&["delete", "pod", "job", "--wait=false"]).unwrap().success().unwrap();
    cluster.all_have("/etc/hard", "2").await;
    eventually("tread's mark is taken away", async || {
        (marks(first).await == (false, false)).then_some(())
    })
    .await;
    let second = cluster.nodes[1].as_str();
    assert_eq!(marks(second).await, (true, false), "the mark of others stays");
    cluster.judge.holds().await;
}

#[tokio::test]
async fn the_machine_of_a_node_that_failed_may_be_remedied_once_its_lease_is_given_back() {
    let cluster = Cluster::with(1, 1).await;
    let definition = machines::definition(&machines::CAPI_MACHINE).unwrap();
    cluster.plane.define(&[definition]).unwrap();
    let node = cluster.nodes[0].as_str();
    let machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine",
        "metadata": {"name": node, "namespace": "default"}, "status": {"nodeRef": {"name": node}}});
    eventually("Machines are served", async || cluster.plane.apply(&machine.to_string()).ok())
        .await;
    let resource = machines::CAPI_MACHINE.resource();
    let api: Api<DynamicObject> =
        Api::namespaced_with(cluster.client.clone(), "default", &resource);
    let replica = cluster.replica();
    let before = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    drop(before);
    let fails = Arc::new(|_: &str, _: usize| UpdatePhase::Degraded);
    let _agents = cluster.agents(&replica, fails);
    cluster.file("90-next", "/etc/hard", "2").await;
    eventually("the node has failed, and its Machine has no mark of tread's", async || {
        let failed = cluster.update(node).await.status?.phase == Some(UpdatePhase::Degraded);
        let all = api.get(node).await.ok()?.metadata.annotations.unwrap_or_default();
        let is_marked = all.contains_key(SKIPS_REMEDIATION) || all.contains_key(SKIPPED_BY);
        (failed && !is_marked).then_some(())
    })
    .await;
}

#[tokio::test]
async fn whoever_takes_a_node_that_is_due_is_told_of_in_an_event() {
    let cluster = Cluster::with(1, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    cluster.rollout_says(json!({"paused": true})).await;
    cluster.file("90-next", "/etc/hard", "2").await;
    eventually("the node is due", async || {
        let waiting = cluster.rollout().await.status?.waiting;
        waiting.into_iter().find(|it| it.why == "its pool is paused")
    })
    .await;
    let node = cluster.nodes[0].as_str();
    cluster.plane.kubectl(&["cordon", node]).unwrap().success().unwrap();
    let events: Api<Event> = Api::all(cluster.client.clone());
    let event = eventually("an Event tells of it", async || {
        let events = events.list(&ListParams::default()).await.ok()?.items;
        events.into_iter().find(|event| event.reason.as_deref() == Some("NodeTaken"))
    })
    .await;
    assert_eq!(event.regarding.unwrap().name.as_deref(), Some(node));
    assert!(event.note.unwrap().contains("somebody cordoned it"));
    cluster.rollout_says(json!({"paused": false})).await;
    eventually("it is left alone, and it is said since when it is cordoned", async || {
        let waiting = cluster.rollout().await.status?.waiting;
        let says =
            |why: &str| why.starts_with("somebody cordoned it, ") && why.contains("since 20");
        waiting.into_iter().find(|it| says(&it.why))
    })
    .await;
    let now = k8s_openapi::jiff::Timestamp::now();
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": format!("node-{node}"), "namespace": cluster.acts.leases,
            "annotations": {"tread.dev/reason": "a new disk"}},
        "spec": {"holderIdentity": "alice", "leaseDurationSeconds": 3600,
            "acquireTime": "2026-10-21T07:28:00.000000Z", "renewTime": format!("{now:.6}")}});
    cluster.plane.apply(&lease.to_string()).unwrap();
    cluster.plane.kubectl(&["uncordon", node]).unwrap().success().unwrap();
    let waits = eventually("who holds its Lease is named", async || {
        let waiting = cluster.rollout().await.status?.waiting;
        waiting.into_iter().find(|it| it.why.starts_with("alice holds its Lease"))
    })
    .await;
    let words = "alice holds its Lease since 2026-10-21T07:28:00Z until ";
    assert!(waits.why.starts_with(words) && waits.why.ends_with("(a new disk)"), "{}", waits.why);
    // Whoever leads says the same: it is when the config was made.
    let target = cluster.rollout().await.status.unwrap().target.unwrap();
    let config = cluster.api::<MachineConfig>().get(&target.name).await.unwrap();
    assert_eq!(waits.since, config.metadata.creation_timestamp);
    assert!(agents[0].did().is_empty());
    let gone = ["-n", &cluster.acts.leases, "delete", "lease", &format!("node-{node}")];
    cluster.plane.kubectl(&gone).unwrap().success().unwrap();
    cluster.all_have("/etc/hard", "2").await;
    cluster.judge.holds().await;
}

/// A pod on each node, and a budget that never lets one go. Says what its name begins with.
async fn pods_that_never_go(cluster: &Cluster) -> &'static str {
    let labels = json!({"app": "lone"});
    for (at, node) in cluster.nodes.iter().enumerate() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("lone-{at}"), "namespace": "default", "labels": labels},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "example.com/c"}]}});
        cluster.plane.apply(&pod.to_string()).unwrap();
    }
    let all = i32::try_from(cluster.nodes.len()).unwrap();
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "lone", "namespace": "default"},
        "spec": {"minAvailable": all, "selector": {"matchLabels": labels}}});
    cluster.plane.apply(&budget.to_string()).unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(cluster.client.clone(), "default");
    eventually("the budget knows its pods", async || {
        let status = budgets.get("lone").await.ok()?.status?;
        (status.expected_pods == all && status.current_healthy == all).then_some(())
    })
    .await;
    "default/lone-"
}

/// Waits until a node that has a soft slot waits for that budget; which one it is. It is not
/// cordoned, and has no slot of a node that may be down.
async fn is_not_drained(cluster: &Cluster, pods: &str) -> String {
    let node = eventually("it is said which pods keep a node from being drained", async || {
        let waiting = cluster.rollout().await.status?.waiting;
        let says = |why: &str| why.contains(pods) && why.contains("the PodDisruptionBudget lone");
        let node = waiting.into_iter().find(|it| says(&it.why))?.node;
        let drain = cluster.update(&node).await.status?.drain?;
        let is_named = drain.pods.first()?.pod.starts_with(pods);
        (is_named && drain.why.contains("it is not cordoned")).then_some(node)
    })
    .await;
    let slots: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let slots = slots.get(tread_enforce::SLOTS).await.unwrap().data.unwrap();
    let slots: serde_json::Value = serde_json::from_str(&slots["slots.json"]).unwrap();
    assert_eq!(slots[&node]["unavailable"], json!(false), "{slots}");
    let spec = cluster.api::<Node>().get(&node).await.unwrap().spec.unwrap();
    assert_ne!(spec.unschedulable, Some(true));
    node
}

#[tokio::test]
async fn a_node_that_needs_a_boot_and_could_not_be_drained_takes_no_slot_for_it() {
    let cluster = Cluster::with(2, 1).await;
    let replica = cluster.replica();
    let failed = std::sync::Mutex::new(None::<String>);
    let does = Arc::new(move |node: &str, _: usize| {
        let mut failed = failed.lock().unwrap();
        match failed.get_or_insert_with(|| node.to_owned()) == node {
            true => UpdatePhase::NeedsBoot,
            false => UpdatePhase::Done,
        }
    });
    let agents = cluster.agents(&replica, does);
    cluster.all_have("/etc/first", "1").await;
    let pods = pods_that_never_go(&cluster).await;
    cluster.file("90-next", "/etc/soft", "2").await;
    let node = is_not_drained(&cluster, pods).await;
    let boots = |agents: &[Agent]| agents.iter().map(Agent::boots).sum::<usize>();
    assert_eq!(boots(&agents), 0);
    cluster.plane.kubectl(&["delete", "pdb", "lone"]).unwrap().success().unwrap();
    eventually("it boots", async || {
        let status = cluster.rollout().await.status?;
        (status.updated == 1 && status.under_way == 0).then_some(())
    })
    .await;
    cluster.nothing_is_left().await;
    assert_eq!(boots(&agents), 1);
    assert_eq!(cluster.update(&node).await.status.unwrap().drain, None);
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_node_that_failed_softly_and_could_not_be_drained_takes_no_slot_to_be_tried_again() {
    let cluster = Cluster::with(2, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, first_fails());
    cluster.all_have("/etc/first", "1").await;
    let pods = pods_that_never_go(&cluster).await;
    cluster.file("90-next", "/etc/soft", "2").await;
    eventually("a node fails", async || {
        (cluster.rollout().await.status?.failed == 1).then_some(())
    })
    .await;
    let now = k8s_openapi::jiff::Timestamp::now() + std::time::Duration::from_secs(1);
    cluster.rollout_says(json!({"retryFailedBefore": format!("{now:.0}")})).await;
    let node = is_not_drained(&cluster, pods).await;
    assert!(agents.iter().all(|agent| agent.boots() == 0));
    cluster.plane.kubectl(&["delete", "pdb", "lone"]).unwrap().success().unwrap();
    cluster.all_have("/etc/soft", "2").await;
    for agent in &agents {
        assert_eq!(agent.boots(), usize::from(agent.node == node), "{}", agent.node);
    }
    cluster.judge.holds_for_failed_nodes().await;
}
