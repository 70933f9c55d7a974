//! What becomes of a pool when a node of it fails, or does not come back.

use super::agent::{Agent, first_fails, well};
use super::fixture::Cluster;
use super::pools::{BOOTED, event_reasons, wait_for_events};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tread_kube::agents::Asked;
use tread_kube::api::node_update::{LOST, UpdatePhase, UpdateStage};
use tread_kube::api::{MachineConfig, NodeUpdate};
use tread_test_bed::eventually;

#[tokio::test]
async fn a_node_that_fails_halts_its_pool_until_it_is_retried() {
    let cluster = Cluster::with(3, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, first_fails());
    cluster.all_have("/etc/first", "1").await;
    cluster.file("90-next", "/etc/hard", "2").await;
    let status = eventually("the rollout halts", async || {
        let status = cluster.rollout().await.status?;
        let halted = status.waiting.iter().filter(|it| it.why.contains("halted")).count();
        (status.failed == 1 && halted == 2).then_some(status)
    })
    .await;
    assert!(status.message.unwrap().contains("1 failed"), "{:?}", status.conditions);
    let did = |agents: &[super::agent::Agent]| -> usize {
        agents.iter().filter(|agent| !agent.did().is_empty()).count()
    };
    assert_eq!(did(&agents), 1, "nobody else was begun");
    let mut failed = Vec::new();
    for node in &cluster.nodes {
        let status = cluster.update(node).await.status.unwrap();
        failed.extend(status.operation.filter(|_| status.phase == Some(UpdatePhase::Degraded)));
    }
    assert_eq!(failed.len(), 1, "{failed:?}");
    let now = k8s_openapi::jiff::Timestamp::now() + std::time::Duration::from_secs(1);
    cluster.rollout_says(json!({"retryFailedBefore": format!("{now:.0}")})).await;
    cluster.all_have("/etc/hard", "2").await;
    assert_eq!(did(&agents), 3);
    // Its order says what it tries again, and that of no other node does.
    let mut retried = Vec::new();
    for node in &cluster.nodes {
        let order = cluster.update(node).await.spec.order.unwrap();
        assert_ne!(order.retries.as_ref(), Some(&order.operation));
        retried.extend(order.retries);
    }
    assert_eq!(retried, failed);
    cluster.judge.holds_for_failed_nodes().await;
}

#[tokio::test]
async fn a_node_that_failed_is_retried_back_to_the_config_that_it_had() {
    let cluster = Cluster::with(1, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, first_fails());
    cluster.all_have("/etc/first", "1").await;
    let node = cluster.nodes[0].as_str();
    let had = cluster.update(node).await.status.unwrap().current.unwrap();
    cluster.file("90-next", "/etc/hard", "2").await;
    eventually("it fails", async || (cluster.rollout().await.status?.failed == 1).then_some(()))
        .await;
    let failed = cluster.update(node).await.status.unwrap();
    assert_eq!(failed.current.as_ref(), Some(&had), "nobody knows what of the other one it has");
    cluster.api::<MachineConfig>().delete("90-next", &Default::default()).await.unwrap();
    eventually("the change is taken back", async || {
        (cluster.rollout().await.status?.target.as_ref() == Some(&had)).then_some(())
    })
    .await;
    let now = Timestamp::now() + Duration::from_secs(1);
    cluster.rollout_says(json!({"retryFailedBefore": format!("{now:.0}")})).await;
    cluster.all_have("/etc/first", "1").await;
    let order = cluster.update(node).await.spec.order.unwrap();
    assert_eq!((order.config, order.retries), (had, failed.operation));
    assert_eq!(agents[0].boots(), 2);
    cluster.judge.holds_for_failed_nodes().await;
}

#[tokio::test]
async fn a_node_that_fails_is_begun_again_by_itself_and_a_new_leader_counts_on() {
    let cluster = Cluster::with(1, 1).await;
    let first = cluster.replica();
    let (door, asks) = watch::channel(first.agents.clone());
    let does = Arc::new(|_: &str, tries: usize| match tries {
        1 | 2 | 4 | 5 => UpdatePhase::Degraded,
        _ => UpdatePhase::Done,
    });
    let agents = cluster.agents_at(&asks, does);
    cluster.all_have("/etc/first", "1").await;
    cluster.rollout_says(json!({"retry": {"attempts": 3, "firstAfter": "1s"}})).await;
    cluster.file("90-next", "/etc/hard", "2").await;
    let node = cluster.nodes[0].as_str();
    let tried = async |times: u32| {
        let order = cluster.update(node).await.spec.order?;
        (order.tried == times).then_some(())
    };
    eventually("it is begun again", async || tried(1).await).await;
    drop(first);
    let second = cluster.replica();
    door.send_replace(second.agents.clone());
    cluster.all_have("/etc/hard", "2").await;
    tried(2).await.unwrap();
    assert_eq!(agents[0].boots(), 3);

    // What fails for good is given up, and its node keeps its cordon.
    cluster.rollout_says(json!({"retry": {"attempts": 1, "firstAfter": "1s"}})).await;
    cluster.file("90-next", "/etc/hard", "3").await;
    eventually("it is given up", async || {
        let update = cluster.update(node).await;
        let phase = update.status?.phase;
        let order = update.spec.order.filter(|order| order.tried == 1);
        order.filter(|_| phase == Some(UpdatePhase::Degraded))
    })
    .await;
    eventually("nobody says that it is begun again", async || {
        let message = cluster.rollout().await.status?.message?;
        (message.contains("1 failed") && !message.contains("begun again")).then_some(())
    })
    .await;
    assert_eq!(agents[0].boots(), 5);
    let spec = cluster.api::<Node>().get(node).await.unwrap().spec.unwrap();
    assert_eq!(spec.unschedulable, Some(true));
    // By hand it is begun again all the same.
    let now = k8s_openapi::jiff::Timestamp::now() + std::time::Duration::from_secs(1);
    cluster.rollout_says(json!({"retryFailedBefore": format!("{now:.0}")})).await;
    cluster.all_have("/etc/hard", "3").await;
    tried(2).await.unwrap();
    cluster.judge.holds_for_failed_nodes().await;
}

#[tokio::test]
async fn an_agent_that_never_answers_is_taken_for_lost_until_that_is_retried() {
    let cluster = Cluster::with(2, 1).await;
    let replica = cluster.replica_that_waits_for(Duration::from_secs(2));
    let mut agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    agents.iter().for_each(Agent::stop);
    cluster.file("90-next", "/etc/hard", "2").await;
    eventually("the node is said to be lost, and the other one is not begun", async || {
        let status = cluster.rollout().await.status?;
        let is_said = status.message.is_some_and(|it| it.contains("has not ended it since"));
        let halted = status.waiting.iter().any(|it| it.why.contains("the rollout halted"));
        (is_said && status.failed == 1 && halted).then_some(())
    })
    .await;
    eventually("whoever leads next knows it, too", async || {
        let updates = cluster.api::<NodeUpdate>().list(&ListParams::default()).await.ok()?;
        let mut all = updates.items.into_iter().filter_map(|update| update.status);
        all.find(|status| status.conditions.iter().any(|it| it.reason == LOST))
    })
    .await;
    // It is waited for until then, and from then on for as long as always.
    let retry = async |ahead: u64| {
        let at = Timestamp::now() + Duration::from_secs(ahead);
        cluster.rollout_says(json!({"retryFailedBefore": format!("{at:.0}")})).await;
    };
    let failed = async |wanted: i64| {
        let status = cluster.rollout().await.status?;
        (i64::from(status.failed) == wanted).then_some(())
    };
    retry(45).await;
    eventually("it is waited for", async || failed(0).await).await;
    retry(1).await;
    eventually("it is waited for once more, and not for ever", async || failed(1).await).await;
    agents.iter_mut().for_each(Agent::restart);
    retry(45).await;
    cluster.all_have("/etc/hard", "2").await;
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_node_that_was_somebody_elses_for_longer_than_a_boot_goes_on_when_it_is_given_back() {
    const LOST_AFTER: Duration = Duration::from_secs(10);
    let cluster = Cluster::with(1, 1).await;
    let first = cluster.replica();
    let (door, asks) = watch::channel(first.agents.clone());
    let mut agents = cluster.agents_at(&asks, well());
    cluster.all_have("/etc/first", "1").await;
    agents.iter().for_each(Agent::stop);
    cluster.file("90-next", "/etc/hard", "2").await;
    let node = cluster.nodes[0].as_str();
    let order = eventually("the node may boot", async || {
        let order = cluster.update(node).await.spec.order?;
        (order.stage == UpdateStage::Go && order.go_since.is_some()).then_some(order)
    })
    .await;
    drop(first);
    // It has written its config, and waits for its permit to boot.
    let status = json!({"operation": order.operation, "phase": "Begun",
        "since": MicroTime(Timestamp::now())});
    let (params, status) = (PatchParams::default(), Patch::Merge(json!({"status": status})));
    cluster.api::<NodeUpdate>().patch_status(node, &params, &status).await.unwrap();
    // Somebody takes it. Its Lease had ended, and they removed it when they were done.
    let kubectl = |args: &[&str]| cluster.plane.kubectl(args).unwrap().success().unwrap();
    let excluded = "remediation.medik8s.io/exclude-from-remediation";
    kubectl(&["label", "node", node, &format!("{excluded}=true")]);
    kubectl(&["-n", &cluster.acts.leases, "delete", "lease", &format!("node-{node}")]);
    let second = cluster.replica_that_waits_for(LOST_AFTER);
    door.send_replace(second.agents.clone());
    let given = order.go_since.as_ref().unwrap().0;
    eventually("it is theirs for longer than a boot takes, and did not fail", async || {
        let status = cluster.rollout().await.status?;
        let is_said = status.message?.contains(excluded);
        let is_long = Timestamp::now() > given + LOST_AFTER + Duration::from_secs(2);
        (is_said && is_long && status.failed == 0 && status.under_way == 1).then_some(())
    })
    .await;
    kubectl(&["label", "node", node, &format!("{excluded}-")]);
    eventually("its Lease is claimed anew, and it is prepared again", async || {
        let now = cluster.update(node).await.spec.order?;
        (now.operation == order.operation && now.token > order.token).then_some(())
    })
    .await;
    agents.iter_mut().for_each(Agent::restart);
    cluster.all_have("/etc/hard", "2").await;
    assert_eq!(agents[0].boots(), 1);
}

#[tokio::test]
async fn a_node_that_is_done_and_never_ready_fails_until_it_is() {
    let cluster = Cluster::with(1, 1).await;
    let replica = cluster.replica_that_waits_for(Duration::from_secs(2));
    let mut agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    agents.iter().for_each(Agent::stop);
    cluster.file("90-next", "/etc/hard", "2").await;
    let node = cluster.nodes[0].as_str();
    eventually("the node may boot", async || {
        let order = cluster.update(node).await.spec.order?;
        (order.stage == UpdateStage::Go && order.go_since.is_some()).then_some(())
    })
    .await;
    let nodes = cluster.api::<Node>();
    let stays = |stays: serde_json::Value| {
        Patch::Merge(json!({"metadata": {"annotations": {"bed.tread.dev/not-ready": stays}}}))
    };
    nodes.patch(node, &PatchParams::default(), &stays(json!(""))).await.unwrap();
    let down = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let down = Patch::Strategic(down);
    nodes.patch_status(node, &PatchParams::default(), &down).await.unwrap();
    agents.iter_mut().for_each(Agent::restart);
    eventually("it failed, and it is said why", async || {
        let status = cluster.rollout().await.status?;
        let is_said = status.message.is_some_and(|it| it.contains("the node is not Ready"));
        (is_said && status.failed == 1).then_some(())
    })
    .await;
    nodes.patch(node, &PatchParams::default(), &stays(json!(null))).await.unwrap();
    cluster.all_have("/etc/hard", "2").await;
    cluster.judge.holds().await;
}

#[tokio::test]
async fn nobody_waits_for_a_node_that_does_not_write_in_time_and_it_is_told_of() {
    let cluster = Cluster::with(2, 1).await;
    let replica = cluster.replica_that_waits_for(Duration::from_secs(2));
    let mut agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    agents.iter().for_each(Agent::stop);
    cluster.file("90-next", "/etc/none", "2").await;
    eventually("it is told of, did not fail, and the other one has its order", async || {
        let status = cluster.rollout().await.status?;
        let is_said = status.message?.contains("the other nodes do not wait for it");
        (is_said && status.failed == 0 && status.under_way == 2).then_some(())
    })
    .await;
    agents.iter_mut().for_each(Agent::restart);
    cluster.all_have("/etc/none", "2").await;
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_node_that_dies_fails_also_where_its_order_is_withdrawn() {
    let cluster = Cluster::with(2, 1).await;
    let replica = cluster.replica_that_waits_for(Duration::from_secs(5));
    let mut agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    agents.iter().for_each(Agent::stop);
    cluster.file("90-next", "/etc/hard", "2").await;
    let in_stage = async |wanted: UpdateStage| {
        let updates = cluster.api::<NodeUpdate>().list(&ListParams::default()).await.ok()?;
        let orders = updates.items.into_iter().filter_map(|update| update.spec.order);
        let mut orders = orders.filter(|order| order.stage == wanted && order.go_since.is_some());
        orders.next()
    };
    eventually("a node may boot", async || in_stage(UpdateStage::Go).await).await;
    cluster.file("90-next", "/etc/hard", "3").await;
    eventually("its order is withdrawn", async || in_stage(UpdateStage::Withdrawn).await).await;
    eventually("it failed", async || {
        let status = cluster.rollout().await.status?;
        (status.failed == 1).then_some(())
    })
    .await;
    agents.iter_mut().for_each(Agent::restart);
    let now = k8s_openapi::jiff::Timestamp::now() + Duration::from_secs(1);
    cluster.rollout_says(json!({"retryFailedBefore": format!("{now:.0}")})).await;
    cluster.all_have("/etc/hard", "3").await;
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_failed_reload_boots_its_node_in_its_turn_and_stops_its_pool_until_that_is_retried() {
    let cluster = Cluster::with(3, 1).await;
    let replica = cluster.replica();
    // The reload fails on the first node that tries it.
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
    // However many nodes may fail.
    cluster.rollout_says(json!({"haltAfter": 5})).await;
    // There is no room to drain one while another one is cordoned.
    let last = cluster.nodes[2].as_str();
    let kubectl = |args: &[&str]| cluster.plane.kubectl(args).unwrap().success().unwrap();
    kubectl(&["cordon", last]);
    cluster.file("90-next", "/etc/soft", "2").await;
    let needs_boot = eventually("a node needs a boot", async || {
        let updates = cluster.api::<NodeUpdate>().list(&ListParams::default()).await.ok()?;
        let found = updates.items.into_iter().find(|update| {
            let status = update.status.as_ref();
            status.is_some_and(|status| status.phase == Some(UpdatePhase::NeedsBoot))
        });
        found?.metadata.name
    })
    .await;
    cluster.rollout_says(json!({"paused": true})).await;
    kubectl(&["uncordon", last]);
    eventually("it does not boot while its pool is paused", async || {
        let waiting = cluster.rollout().await.status?.waiting;
        let of = waiting.iter().find(|it| it.node == needs_boot)?;
        let others = waiting.iter().all(|it| it.why == "its pool is paused");
        (others && of.why == "its pool is paused").then_some(())
    })
    .await;
    assert_eq!(agents.iter().map(Agent::boots).sum::<usize>(), 0);
    cluster.rollout_says(json!({"paused": false})).await;
    eventually("the others stay where they are after it booted", async || {
        let status = cluster.rollout().await.status?;
        let stopped = status.waiting.iter().filter(|it| it.why.contains("a step failed on"));
        (status.updated == 1 && status.under_way == 0 && stopped.count() == 2).then_some(())
    })
    .await;
    cluster.nothing_is_left().await;
    let did =
        |agent: &Agent| -> Vec<Asked> { agent.did().into_iter().map(|(_, what)| what).collect() };
    let (booted, others): (Vec<&Agent>, Vec<&Agent>) =
        agents.iter().partition(|agent| !agent.did().is_empty());
    assert_eq!((booted.len(), others.len()), (1, 2));
    assert_eq!(did(booted[0]), [Asked::Write, Asked::Unit, Asked::Boot]);
    let [begun, drained, boots, ended] = BOOTED;
    wait_for_events(&cluster, &booted[0].node, &["NodeNeedsBoot", begun, drained, boots, ended])
        .await;
    let order = cluster.update(&booted[0].node).await.spec.order.unwrap();
    assert!(order.escalated.is_some(), "whoever leads next knows it, too");
    let now = k8s_openapi::jiff::Timestamp::now() + std::time::Duration::from_secs(1);
    cluster.rollout_says(json!({"retryFailedBefore": format!("{now:.0}")})).await;
    cluster.all_have("/etc/soft", "2").await;
    for agent in others {
        assert_eq!(did(agent), [Asked::Write, Asked::Unit], "{}", agent.node);
    }
    let reasons = event_reasons(&cluster, "worker").await.unwrap();
    let halts = reasons.iter().filter(|reason| *reason == "NodeNeedsBoot").count();
    assert_eq!(halts, 1, "{reasons:?}");
    cluster.judge.holds().await;
}

/// The nodes whose agents may carry an order out.
async fn ordered(cluster: &Cluster) -> Vec<usize> {
    let mut ordered = Vec::new();
    for (at, node) in cluster.nodes.iter().enumerate() {
        let order = cluster.update(node).await.spec.order;
        ordered.extend(order.filter(|order| order.stage == UpdateStage::Go).map(|_| at));
    }
    ordered
}

#[tokio::test]
async fn a_wave_stops_at_its_first_failure_and_who_has_written_nothing_turns_back() {
    let cluster = Cluster::with(4, 1).await;
    let replica = cluster.replica();
    let fails = Arc::new(std::sync::Mutex::new(None::<String>));
    let does = {
        let fails = Arc::clone(&fails);
        Arc::new(move |node: &str, tries: usize| {
            match tries == 1 && fails.lock().unwrap().as_deref() == Some(node) {
                true => UpdatePhase::Degraded,
                false => UpdatePhase::Done,
            }
        })
    };
    let mut agents = cluster.agents(&replica, does);
    cluster.all_have("/etc/first", "1").await;
    // However many nodes may fail.
    cluster.rollout_says(json!({"haltAfter": 5})).await;
    agents.iter().for_each(Agent::stop);
    cluster.file("90-next", "/etc/soft", "2").await;
    let wave = async |size: usize| {
        eventually("the wave is ordered", async || {
            let ordered = ordered(&cluster).await;
            (ordered.len() == size).then_some(ordered)
        })
        .await
    };
    let first = wave(1).await[0];
    agents[first].restart();
    let second = wave(2).await;
    let (failing, waiting) = (second[0], second[1]);
    assert!(!second.contains(&first));
    *fails.lock().unwrap() = Some(cluster.nodes[failing].clone());
    agents[failing].restart();
    eventually("the order of the other one is withdrawn", async || {
        let order = cluster.update(&cluster.nodes[waiting]).await.spec.order?;
        (order.stage == UpdateStage::Withdrawn).then_some(())
    })
    .await;
    agents.iter_mut().for_each(Agent::restart);
    eventually("it turns back, and waits", async || {
        let status = cluster.rollout().await.status?;
        let stopped = status.waiting.iter().filter(|it| it.why.contains("a step failed on"));
        let is_so = (status.updated, status.failed, status.under_way) == (1, 1, 0);
        (is_so && stopped.count() == 2).then_some(())
    })
    .await;
    assert!(agents[waiting].did().is_empty());
    let now = k8s_openapi::jiff::Timestamp::now() + Duration::from_secs(1);
    cluster.rollout_says(json!({"retryFailedBefore": format!("{now:.0}")})).await;
    cluster.all_have("/etc/soft", "2").await;
    let did: Vec<Asked> = agents[waiting].did().into_iter().map(|(_, what)| what).collect();
    assert_eq!(did, [Asked::Write, Asked::Unit]);
    assert_eq!(agents[failing].boots(), 1);
    cluster.judge.holds_for_failed_nodes().await;
}
