//! What becomes of a pool when what it is made of changes.

use super::agent::{Agent, DIFFERS, well};
use super::fixture::{Cluster, FORM, PACES};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use std::collections::BTreeSet;
use tokio::sync::watch;
use tread_kube::agents::Asked;
use tread_kube::api::machines;
use tread_kube::api::mirrors::ImageDigestMirrorSet;
use tread_kube::api::node_update::{NEEDS_AGENT, UpdateDisrupts, UpdateOrder, UpdateStage};
use tread_kube::api::rollout::MADE_ANNOTATION;
use tread_kube::api::{MachineConfig, MachineConfigPool, NodeUpdate, Rollout};
use tread_test_bed::eventually;

/// The reasons of the Events about something, one after the other.
pub(super) async fn event_reasons(cluster: &Cluster, about: &str) -> Option<Vec<String>> {
    let events: Api<Event> = Api::all(cluster.client.clone());
    let mut events = events.list(&ListParams::default()).await.ok()?.items;
    events.retain(|event| {
        let regarding = event.regarding.as_ref().and_then(|it| it.name.as_deref());
        regarding == Some(about) && event.action.as_deref() == Some("Roll")
    });
    events.sort_by_key(|event| event.event_time.as_ref().map(|at| at.0));
    events.into_iter().map(|event| event.reason).collect()
}

/// Waits until the Events about it have these reasons, in this order.
pub(super) async fn wait_for_events(cluster: &Cluster, about: &str, expected: &[&str]) {
    let last = expected.last().copied();
    let reasons = eventually("Events tell of all of it", async || {
        let reasons = event_reasons(cluster, about).await?;
        (reasons.last().map(String::as_str) == last).then_some(reasons)
    })
    .await;
    assert_eq!(reasons, expected, "of {about}");
}

pub(super) const BOOTED: [&str; 4] =
    ["NodeUpdateBegun", "NodeDrained", "NodeBooted", "NodeUpdateEnded"];

#[tokio::test]
async fn all_nodes_get_what_their_pool_is_made_of_each_as_its_plan_says() {
    let cluster = Cluster::with(3, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    // They begin with it: nothing is done to them.
    cluster.all_have("/etc/first", "1").await;
    assert!(agents.iter().all(|agent| agent.did().is_empty()));
    for (path, expected, disrupts) in [
        ("/etc/none", vec![Asked::Write], UpdateDisrupts::Nothing),
        ("/etc/soft", vec![Asked::Write, Asked::Unit], UpdateDisrupts::Softly),
        ("/etc/hard", vec![Asked::Write, Asked::Boot], UpdateDisrupts::Reboot),
    ] {
        let before: Vec<usize> = agents.iter().map(|agent| agent.did().len()).collect();
        cluster.file("90-next", path, "2").await;
        cluster.all_have(path, "2").await;
        for (agent, before) in agents.iter().zip(before) {
            let did: Vec<Asked> = agent.did().into_iter().skip(before).map(|(_, it)| it).collect();
            // What the file before it was goes with it, and costs what that costs.
            assert_eq!(did, expected, "{path} on {}", agent.node);
            let order = cluster.update(&agent.node).await.spec.order.unwrap();
            assert_eq!(order.disrupts, disrupts, "{path}");
            let plan = order.plan.unwrap();
            assert!(plan["digest"].as_str().unwrap().starts_with("blake3:"), "{plan}");
        }
    }
    cluster.judge.holds().await;
    for node in &cluster.nodes {
        eventually("its NodeUpdate says that it is updated", async || {
            let status = cluster.update(node).await.status?;
            status.conditions.into_iter().find(|it| it.type_ == "Updated" && it.status == "True")
        })
        .await;
        wait_for_events(&cluster, node, &BOOTED).await;
    }
    // Of each soft change: one node first, and then the others.
    let mut reasons = event_reasons(&cluster, "worker").await.unwrap();
    reasons.retain(|reason| reason == "SoftWave");
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    let metrics = cluster.acts.metrics.text().unwrap();
    assert!(
        metrics.contains("tread_node_updates_total{pool=\"worker\",disrupts=\"reboot\"} 3"),
        "{metrics}"
    );
    for line in [
        "tread_node_updates_total{pool=\"worker\",disrupts=\"softly\"} 3",
        "tread_node_updates_total{pool=\"worker\",disrupts=\"nothing\"} 3",
        "tread_node_reboots_total{pool=\"worker\"} 3",
        "tread_node_reboots_avoided_total{pool=\"worker\"} 6",
        "tread_rollout_waiting_nodes{pool=\"worker\",reason=\"room\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert!(cluster.acts.metrics.unavailable.get() > 0.0, "{metrics}");
    let pool: MachineConfigPool = cluster.api().get("worker").await.unwrap();
    let status = pool.status.unwrap();
    assert_eq!((status.machine_count, status.updated_machine_count), (Some(3), Some(3)));
    assert_eq!(status.configuration.unwrap().name, pool.spec.configuration.unwrap().name);
}

/// What the pool is to have.
async fn target(cluster: &Cluster) -> Option<String> {
    let pool: MachineConfigPool = cluster.api().get("worker").await.ok()?;
    pool.spec.configuration?.name
}

#[tokio::test]
async fn mirrors_are_rolled_out_when_they_come_and_when_they_go() {
    let cluster = Cluster::with(1, 1).await;
    let replica = cluster.replica();
    let _agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    let without = target(&cluster).await.unwrap();
    cluster
        .apply::<ImageDigestMirrorSet>(json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet",
            "metadata": {"name": "quay"}, "spec": {"imageDigestMirrors": [
                {"source": "quay.example/a", "mirrors": ["mirror.example/a"]}]},
        }))
        .await;
    let with = eventually("the pool is to have them", async || {
        target(&cluster).await.filter(|it| *it != without)
    })
    .await;
    eventually("the node has them", async || {
        let current = cluster.update("node-0").await.status?.current?;
        (current.name == with).then_some(())
    })
    .await;
    let mirrors = cluster.api::<ImageDigestMirrorSet>();
    mirrors.delete("quay", &DeleteParams::default()).await.unwrap();
    eventually("the pool is to have none", async || {
        target(&cluster).await.filter(|it| *it == without)
    })
    .await;
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_newer_config_is_rendered_however_often_the_status_of_a_pool_changes() {
    let cluster = Cluster::with(1, 1).await;
    let replica = cluster.replica();
    let _agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    // More often than changes are waited for that are rendered together.
    let pools = cluster.api::<MachineConfigPool>();
    let writes = async {
        for count in 0.. {
            let status = Patch::Merge(json!({"status": {"degradedMachineCount": count % 2}}));
            let written = pools.patch_status("worker", &PatchParams::default(), &status).await;
            written.unwrap();
            tokio::time::sleep(PACES.render_after / 2).await;
        }
    };
    let gets_there = async {
        cluster.file("90-next", "/etc/none", "2").await;
        cluster.all_have("/etc/none", "2").await;
    };
    tokio::select! {
        () = writes => unreachable!("it does not end"),
        () = gets_there => {}
    }
    cluster.judge.holds().await;
}

#[tokio::test]
async fn three_replicas_that_all_act_roll_out_one_config_and_keep_the_budget() {
    let cluster = Cluster::with(4, 1).await;
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(cluster.replica());
    }
    let agents: Vec<_> = (0..4)
        .map(|at| {
            let node = &cluster.nodes[at];
            {
                let (_, door) = tokio::sync::watch::channel(replicas[at % 3].agents.clone());
                super::agent::Agent::start(cluster.client.clone(), door, node, well())
            }
        })
        .collect();
    cluster.all_have("/etc/first", "1").await;
    cluster.file("90-next", "/etc/hard", "2").await;
    cluster.all_have("/etc/hard", "2").await;
    for agent in &agents {
        let boots = agent.did().into_iter().filter(|(_, what)| *what == Asked::Boot);
        assert_eq!(boots.count(), 1, "{}", agent.node);
    }
    let configs: BTreeSet<String> =
        agents.iter().flat_map(|agent| agent.did()).map(|it| it.0).collect();
    assert_eq!(configs.len(), 1, "{configs:?}");
    cluster.judge.holds().await;
}

#[tokio::test]
async fn an_agent_is_upgraded_before_it_gets_an_order_of_a_newer_form_and_nothing_boots() {
    let cluster = Cluster::with(2, 2).await;
    let before = cluster.replica();
    let (door, asks) = watch::channel(before.agents.clone());
    let agents = cluster.agents_at(&asks, well());
    cluster.all_have("/etc/first", "1").await;
    drop(before);
    let newer = cluster.replica_of_form(FORM + 1);
    door.send_replace(newer.agents.clone());
    cluster.file("90-next", "/etc/none", "2").await;
    let waiting = eventually("both wait for their agents", async || {
        let waiting = cluster.rollout().await.status?.waiting;
        let waits = waiting.iter().filter(|it| it.why.starts_with("NeedsAgent")).count();
        (waits == 2).then_some(waiting)
    })
    .await;
    assert!(waiting[0].why.contains("form 1"), "{waiting:?}");
    for node in &cluster.nodes {
        eventually("its NodeUpdate says so", async || {
            let conditions = cluster.update(node).await.status?.conditions;
            conditions.into_iter().find(|it| it.type_ == "Updated" && it.reason == NEEDS_AGENT)
        })
        .await;
    }
    assert!(agents.iter().all(|agent| agent.did().is_empty()), "nobody got an order");
    // One is upgraded, and goes on alone; then the other.
    let knows = Patch::Merge(json!({"status": {"form": FORM + 1}}));
    for (at, node) in cluster.nodes.iter().enumerate() {
        let updates = cluster.api::<NodeUpdate>();
        updates.patch_status(node, &PatchParams::default(), &knows).await.unwrap();
        eventually("it has the config", async || {
            let updated = cluster.rollout().await.status?.updated;
            (usize::try_from(updated).ok()? == at + 1).then_some(())
        })
        .await;
    }
    cluster.all_have("/etc/none", "2").await;
    for agent in &agents {
        let did: Vec<Asked> = agent.did().into_iter().map(|(_, what)| what).collect();
        assert_eq!(did, [Asked::Write], "{}", agent.node);
    }
    cluster.judge.holds().await;
}

#[tokio::test]
async fn what_an_admin_holds_back_waits_with_a_reason_and_goes_on_later() {
    let cluster = Cluster::with(2, 2).await;
    let replica = cluster.replica();
    let mut agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    cluster.rollout_says(json!({"paused": true})).await;
    cluster.file("90-next", "/etc/hard", "2").await;
    let why = async |node: &str| {
        let status = cluster.rollout().await.status?;
        status.waiting.into_iter().find(|it| it.node == node).map(|it| it.why)
    };
    let (first, second) = (cluster.nodes[0].as_str(), cluster.nodes[1].as_str());
    for node in [first, second] {
        eventually("it waits", async || (why(node).await? == "its pool is paused").then_some(()))
            .await;
    }
    let annotate = async |node: &str, value: serde_json::Value| {
        let patch = json!({"metadata": {"annotations": {"tread.dev/paused": value}}});
        let params = PatchParams::default();
        cluster.api::<Node>().patch(node, &params, &Patch::Merge(patch)).await.unwrap();
    };
    annotate(second, json!("true")).await;
    cluster.rollout_says(json!({"paused": false})).await;
    eventually("the first node has it", async || {
        let status = cluster.rollout().await.status?;
        (status.updated == 1 && status.under_way == 0).then_some(())
    })
    .await;
    assert_eq!(why(second).await.unwrap(), "it is paused");
    assert!(agents[1].did().is_empty());
    annotate(second, json!(null)).await;
    cluster.all_have("/etc/hard", "2").await;

    // The second one is the canary of the next change, and does not get further.
    let canary = json!({"matchLabels": {"canary": "true"}});
    cluster.rollout_says(json!({"paused": true, "canary": canary})).await;
    let label = ["label", "node", second, "canary=true"];
    cluster.plane.kubectl(&label).unwrap().success().unwrap();
    agents[1].stop();
    cluster.file("90-next", "/etc/hard", "3").await;
    eventually("the canary is the first that waits", async || {
        let waiting = cluster.rollout().await.status?.waiting;
        let names: Vec<&str> = waiting.iter().map(|it| it.node.as_str()).collect();
        (names == [second, first]).then_some(())
    })
    .await;
    cluster.rollout_says(json!({"paused": false})).await;
    eventually("the canary is under way, and the first node waits for it", async || {
        let under_way = cluster.rollout().await.status?.under_way;
        let waits = why(first).await? == format!("it waits for the canary {second}");
        (waits && under_way == 1).then_some(())
    })
    .await;
    assert_eq!((agents[0].boots(), agents[1].boots()), (1, 1));
    agents[1].restart();
    cluster.all_have("/etc/hard", "3").await;
    assert_eq!((agents[0].boots(), agents[1].boots()), (2, 2));
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_node_that_joins_with_another_disk_is_held_and_overwritten_where_its_rollout_says_so() {
    let cluster = Cluster::with(2, 1).await;
    let replica = cluster.replica();
    let (_, door) = watch::channel(replica.agents.clone());
    let [first, second] = [0, 1].map(|at| cluster.nodes[at].as_str());
    let client = || cluster.client.clone();
    let has_it = Agent::start(client(), door.clone(), first, well());
    let differs = Agent::start_where_it_differs(client(), door, second, well());
    eventually("the one waits that differs, and the other one has the config", async || {
        let status = cluster.api::<Rollout>().get_opt("worker").await.ok()??.status?;
        let waits = status.waiting.iter().find(|it| it.node == second)?;
        (waits.why.contains(DIFFERS) && status.updated == 1).then_some(())
    })
    .await;
    assert!(differs.did().is_empty(), "it is left as it is");
    cluster.rollout_says(json!({"newNodes": "Overwrite"})).await;
    cluster.all_have("/etc/first", "1").await;
    let did: Vec<Asked> = differs.did().into_iter().map(|(_, what)| what).collect();
    assert_eq!(did, [Asked::Write, Asked::Boot], "drained, and booted");
    assert!(has_it.did().is_empty());
    let order = cluster.update(second).await.spec.order.unwrap();
    assert_eq!((order.disrupts, order.plan), (UpdateDisrupts::Reboot, None));
    cluster.judge.holds().await;
}

#[tokio::test]
async fn when_a_window_ends_a_node_that_has_written_nothing_turns_back() {
    let cluster = Cluster::with(2, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    cluster.pods_that_stay().await;
    cluster.file("90-next", "/etc/hard", "2").await;
    cluster.judge.cordoned().await;
    // The last window ended yesterday, and the next one is later today.
    let later = k8s_openapi::jiff::Timestamp::now() + std::time::Duration::from_secs(7200);
    let start = later.strftime("%H:%M").to_string();
    let window = json!({"start": start, "lasts": "1h", "overrun": "TurnBack"});
    cluster.rollout_says(json!({"windows": [window]})).await;
    eventually("all nodes wait for the window", async || {
        let waiting = cluster.rollout().await.status?.waiting;
        let waits = waiting.iter().filter(|it| it.why.contains("window"));
        (waits.count() == 2).then_some(())
    })
    .await;
    cluster.nothing_is_left().await;
    assert!(agents.iter().all(|agent| agent.did().is_empty()));
    cluster.pods_may_go().await;
    cluster.rollout_says(json!({"windows": null})).await;
    cluster.all_have("/etc/hard", "2").await;
    assert!(agents.iter().all(|agent| agent.boots() == 1));
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_config_that_cannot_be_rendered_is_told_of_and_reaches_nobody() {
    let cluster = Cluster::with(1, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    let target = cluster.rollout().await.status.unwrap().target;
    cluster.file("90-next", "relative/path", "2").await;
    eventually("the Rollout says so", async || {
        let status = cluster.api::<Rollout>().get("worker").await.ok()?.status?;
        let rendered = status.conditions.iter().find(|it| it.type_ == "Rendered")?;
        let says = rendered.status == "False" && rendered.message.contains("90-next");
        (says && status.target == target).then_some(())
    })
    .await;
    assert!(agents[0].did().is_empty());
    cluster.file("90-next", "/etc/none", "2").await;
    cluster.all_have("/etc/none", "2").await;
    // Each config of the pool has a name by what it says.
    let configs = cluster.api::<MachineConfig>().list(&Default::default()).await.unwrap();
    let rendered = configs.items.iter().filter_map(|it| it.metadata.name.as_ref());
    assert_eq!(rendered.filter(|name| name.starts_with("rendered-worker-")).count(), 2);
}

/// The order of the only node.
async fn order(cluster: &Cluster) -> Option<UpdateOrder> {
    cluster.api::<NodeUpdate>().get(&cluster.nodes[0]).await.ok()?.spec.order
}

#[tokio::test]
async fn a_node_under_way_is_given_back_though_the_next_config_cannot_be_rendered() {
    let cluster = Cluster::with(1, 1).await;
    let replica = cluster.replica();
    let mut agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    agents[0].stop();
    cluster.file("90-next", "/etc/hard", "2").await;
    let ordered = eventually("it is prepared, and nobody boots it", async || {
        order(&cluster).await.filter(|order| order.stage == UpdateStage::Go)
    })
    .await;
    cluster.file("95-bad", "relative/path", "2").await;
    eventually("the next config cannot be rendered", async || {
        let status = cluster.rollout().await.status?;
        let rendered = status.conditions.into_iter().find(|it| it.type_ == "Rendered")?;
        (rendered.status == "False").then_some(())
    })
    .await;
    agents[0].restart();
    eventually("it has what was ordered", async || {
        let order = order(&cluster).await?;
        let is_over = order.operation == ordered.operation && order.stage == UpdateStage::Closed;
        is_over.then_some(())
    })
    .await;
    cluster.nothing_is_left().await;
    assert_eq!(agents[0].boots(), 1);
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_cordon_that_somebody_undid_is_made_again_and_its_mark_is_not_left() {
    let cluster = Cluster::with(2, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    agents.iter().for_each(Agent::stop);
    cluster.file("90-next", "/etc/hard", "2").await;
    let name = eventually("a node is prepared", async || {
        let updates = cluster.api::<NodeUpdate>().list(&Default::default()).await.ok()?;
        let go = |it: &NodeUpdate| {
            it.spec.order.as_ref().is_some_and(|order| order.stage == UpdateStage::Go)
        };
        updates.items.into_iter().find(go)?.metadata.name
    })
    .await;
    cluster.plane.kubectl(&["uncordon", &name]).unwrap().success().unwrap();
    let node = async || cluster.api::<Node>().get(&name).await.unwrap();
    eventually("it is cordoned again", async || node().await.spec?.unschedulable.filter(|it| *it))
        .await;
    let mut agents = agents;
    agents.iter_mut().for_each(Agent::restart);
    cluster.all_have("/etc/hard", "2").await;
    for name in &cluster.nodes {
        let node = cluster.api::<Node>().get(name).await.unwrap();
        assert!(!node.annotations().contains_key("tread.dev/cordoned-for"), "{name}");
        assert!(!node.annotations().contains_key("tread.dev/cordon"), "{name}");
    }
    // A mark that an operation left long ago, and somebody's cordon after it.
    let mark = "tread.dev/cordoned-for=00000000000000000000000000000007";
    cluster.plane.kubectl(&["annotate", "node", &name, mark]).unwrap().success().unwrap();
    eventually("the mark is taken away", async || {
        (!node().await.annotations().contains_key("tread.dev/cordoned-for")).then_some(())
    })
    .await;
    cluster.plane.kubectl(&["cordon", &name]).unwrap().success().unwrap();
    cluster.file("91-next", "/etc/none", "2").await;
    eventually("the other one has the next config", async || {
        (cluster.rollout().await.status?.updated == 1).then_some(())
    })
    .await;
    assert_eq!(node().await.spec.unwrap().unschedulable, Some(true), "the cordon is somebody's");
}

#[tokio::test]
async fn the_newest_config_wins_and_what_was_not_begun_turns_back() {
    let cluster = Cluster::with(3, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    cluster.file("90-next", "/etc/hard", "2").await;
    eventually("a node is under way", async || {
        let status = cluster.rollout().await.status?;
        (status.under_way > 0).then_some(())
    })
    .await;
    cluster.file("90-next", "/etc/hard", "3").await;
    cluster.all_have("/etc/hard", "3").await;
    let last: BTreeSet<String> =
        agents.iter().filter_map(|agent| agent.did().pop()).map(|did| did.0).collect();
    assert_eq!(last.len(), 1, "all ended with the newest: {last:?}");
    let boots = agents.iter().flat_map(|agent| agent.did()).filter(|it| it.1 == Asked::Boot);
    assert!(boots.count() <= 4, "those that had not begun skipped the one between");
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_node_that_joins_begins_with_the_config_of_its_pool() {
    let cluster = Cluster::with(1, 1).await;
    let replica = cluster.replica();
    let _agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    let joined = cluster.plane.create_nodes("joins", 1).await.unwrap();
    let (_, door) = tokio::sync::watch::channel(replica.agents.clone());
    let agent = super::agent::Agent::start(cluster.client.clone(), door, &joined[0], well());
    eventually("it has the config", async || {
        let update =
            cluster.api::<tread_kube::api::NodeUpdate>().get_opt(&joined[0]).await.ok()??;
        let target = cluster.rollout().await.status?.target?;
        (update.status?.current? == target && update.spec.pool == "worker").then_some(())
    })
    .await;
    assert!(agent.did().is_empty(), "nothing was done to it");
    eventually("it counts", async || (cluster.rollout().await.status?.nodes == 2).then_some(()))
        .await;
}

#[tokio::test]
async fn a_node_whose_pods_no_other_one_takes_boots_undrained() {
    let cluster = Cluster::with(1, 1).await;
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let pod = json!({
        "metadata": {"name": "only"},
        "spec": {"nodeName": cluster.nodes[0], "containers": [{"name": "c", "image": "example.com/c"}]},
    });
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    cluster.file("90-next", "/etc/hard", "2").await;
    cluster.all_have("/etc/hard", "2").await;
    let did: Vec<Asked> = agents[0].did().into_iter().map(|(_, what)| what).collect();
    assert_eq!(did, [Asked::Write, Asked::Boot]);
    let only = pods.get("only").await.unwrap();
    assert!(only.metadata.deletion_timestamp.is_none(), "it was not evicted");
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_node_that_is_maintained_or_whose_machine_goes_waits_for_that() {
    let cluster = Cluster::with(2, 2).await;
    let kinds = [machines::MACHINE, maintenance()];
    cluster.plane.define(&kinds.map(|kind| machines::definition(&kind).unwrap())).unwrap();
    let replica = cluster.replica();
    let _agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    let namespace = &cluster.acts.namespace;
    let machine = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {"name": "m", "namespace": namespace,
            "annotations": {"machine.openshift.io/delete-machine": "true"}},
        "status": {"nodeRef": {"name": cluster.nodes[0]}},
    });
    let maintained = json!({
        "apiVersion": "nodemaintenance.medik8s.io/v1beta1", "kind": "NodeMaintenance",
        "metadata": {"name": "of-node"},
        "spec": {"nodeName": cluster.nodes[1], "reason": "a new disk"},
    });
    for object in [&machine, &maintained] {
        cluster.plane.apply(&object.to_string()).unwrap();
    }
    eventually("the maintenance is seen by tread", async || {
        cluster.file("90-next", "/etc/none", "2").await;
        let status = cluster.rollout().await.status?;
        let waits = |node: &String, why: &str| {
            status.waiting.iter().any(|it| it.node == *node && it.why.contains(why))
        };
        let annotated = "/m by the annotation machine.openshift.io/delete-machine, seen since 20";
        let both = waits(&cluster.nodes[0], annotated)
            && waits(&cluster.nodes[1], "by NodeMaintenance of-node (a new disk), since 20");
        both.then_some(())
    })
    .await;
    let of = |it: &str| it.to_owned();
    for (kind, name) in
        [("machine.machine.openshift.io", of("m")), ("nodemaintenance", of("of-node"))]
    {
        let args = ["-n", namespace, "delete", kind, &name];
        cluster.plane.kubectl(&args).unwrap().success().unwrap();
    }
    cluster.all_have("/etc/none", "2").await;
    cluster.judge.holds().await;
}

#[tokio::test]
async fn a_rollout_that_somebody_removes_is_made_anew_and_paused_until_somebody_resumes_it() {
    let cluster = Cluster::with(1, 1).await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    // The first one is not paused.
    cluster.all_have("/etc/first", "1").await;
    eventually("the pool says that it had a Rollout", async || {
        let pool = cluster.api::<MachineConfigPool>().get("worker").await.ok()?;
        pool.annotations().contains_key(MADE_ANNOTATION).then_some(())
    })
    .await;
    let first = cluster.rollout().await;
    let rollouts = cluster.api::<Rollout>();
    rollouts.delete("worker", &DeleteParams::default()).await.unwrap();
    cluster.file("90-next", "/etc/hard", "2").await;
    let anew = eventually("it is made anew, and says why it is paused", async || {
        let rollout = rollouts.get_opt("worker").await.ok()??;
        let status = rollout.status.as_ref()?;
        let says = status.message.as_ref()?.contains("its Rollout was removed");
        let waits = status.waiting.iter().any(|it| it.why == "its pool is paused");
        (says && waits).then_some(rollout)
    })
    .await;
    assert_ne!(anew.uid(), first.uid());
    assert!(anew.spec.paused);
    let status = anew.status.unwrap_or_default();
    let progressing = status.conditions.iter().find(|it| it.type_ == "Progressing").unwrap();
    assert_eq!((&*progressing.status, &*progressing.reason), ("False", "MadeAnew"));
    let events: Api<Event> = Api::all(cluster.client.clone());
    let event = eventually("an Event tells of it", async || {
        let events = events.list(&ListParams::default()).await.ok()?.items;
        events.into_iter().find(|event| event.reason.as_deref() == Some("RolloutMadeAnew"))
    })
    .await;
    assert_eq!(event.regarding.unwrap().name.as_deref(), Some("worker"));
    let did = || agents[0].did().into_iter().any(|(_, what)| what == Asked::Boot);
    assert!(!did(), "no node was begun");
    cluster.rollout_says(json!({"maxUnavailable": "50%"})).await;
    eventually("it says so also when its limits are set again", async || {
        let rollout = cluster.rollout().await;
        let status = rollout.status.as_ref()?;
        let is_seen = status.observed_generation == rollout.metadata.generation;
        (is_seen && rollout.metadata.generation > Some(1)).then_some(())?;
        status.message.as_ref()?.contains("its Rollout was removed").then_some(())
    })
    .await;
    assert!(!did(), "no node was begun by that either");
    cluster.rollout_says(json!({"paused": false})).await;
    cluster.all_have("/etc/hard", "2").await;
    assert!(did());
    let message = cluster.rollout().await.status.unwrap_or_default().message.unwrap_or_default();
    assert!(!message.contains("removed"), "{message}");
    cluster.judge.holds().await;
}

fn maintenance() -> machines::Kind {
    machines::Kind {
        name: "nodemaintenances.nodemaintenance.medik8s.io",
        group: "nodemaintenance.medik8s.io",
        version: "v1beta1",
        kind: "NodeMaintenance",
        plural: "nodemaintenances",
        namespaced: false,
    }
}
