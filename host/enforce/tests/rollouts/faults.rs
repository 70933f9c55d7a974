//! What goes wrong around a rollout: replicas and agents that are killed or frozen, an API server
//! that is gone, an etcd without space, nodes that are made anew. No node is booted twice, none
//! without its Lease, and never more than the budget.
//!
//! Times are scaled down; with `TREAD_WHOLE=1` they are those of a cluster.

use super::agent::{Agent, well};
use super::fixture::{Cluster, PACES, Replica};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tread_enforce::rollouts::{Agents, OPERATORS_DAEMON, OPERATORS_NAMESPACE};
use tread_kube::agents::{Answer, Ask, Asked};
use tread_kube::api::node_update::{UpdateOrder, UpdateStage};
use tread_model::protocol::Terms;
use tread_test_bed::{ControlPlane, Part, eventually};

fn is_whole() -> bool {
    std::env::var_os("TREAD_WHOLE").is_some()
}

/// How long something lasts: the one in short, the other with `TREAD_WHOLE=1`.
fn lasts(short: u64, whole: u64) -> Duration {
    Duration::from_secs(if is_whole() { whole } else { short })
}

/// Terms under which nothing takes long, and a Lease outlasts a machine that is busy.
fn short_terms() -> Terms {
    Terms {
        lease: Duration::from_secs(60),
        skew: Duration::from_secs(1),
        drift: Duration::from_millis(500),
        step: Duration::from_secs(3),
        boot: Duration::from_secs(4),
        pass: Duration::from_secs(4),
    }
}

/// The orders in which an agent and a replica are replaced: whether the agent is first, and whether
/// the next replica begins while the last one still acts.
const ORDERS: [(bool, bool); 4] = [(true, true), (false, true), (true, false), (false, false)];

/// A cluster whose nodes have their first config, and are to get another one by a reboot.
async fn under_way(nodes: usize) -> (Cluster, watch::Sender<Agents>, Replica, Vec<Agent>) {
    goes_on(Cluster::with(nodes, 1).await).await
}

/// The same with this one.
async fn goes_on(mut cluster: Cluster) -> (Cluster, watch::Sender<Agents>, Replica, Vec<Agent>) {
    cluster.acts.terms = short_terms();
    let replica = cluster.replica();
    let (door, asks) = watch::channel(replica.agents.clone());
    let agents = cluster.agents_at(&asks, well());
    cluster.all_have("/etc/first", "1").await;
    cluster.file("90-next", "/etc/hard", "2").await;
    (cluster, door, replica, agents)
}

/// That all nodes got there, each by one boot, and that the laws held.
async fn all_booted_once(cluster: &Cluster, agents: &[Agent]) {
    all_got_there(cluster, agents).await;
    cluster.judge.holds().await;
}

async fn all_got_there(cluster: &Cluster, agents: &[Agent]) {
    cluster.all_have("/etc/hard", "2").await;
    for agent in agents {
        assert_eq!(agent.boots(), 1, "{}: {:?}", agent.node, agent.did());
    }
}

#[tokio::test]
async fn replicas_and_agents_are_replaced_after_each_thing_that_is_done() {
    // Whole: after each change, and after each of them in each order. In short after each second.
    let (times, after) = if is_whole() { (ORDERS.len(), 1) } else { (1, 2) };
    for first in 0..times {
        Box::pin(all_are_replaced(first, after)).await;
    }
}

/// Replaces the replica and the agents each time that so many more cordons, Leases, slots, stages
/// and phases have changed; the first time in this order, and then in the next one.
async fn all_are_replaced(first: usize, after: usize) {
    let (cluster, door, replica, mut agents) = under_way(2).await;
    let mut replica = Some(replica);
    let done = tokio::select! {
        () = cluster.all_have("/etc/hard", "2") => true,
        () = async {
            let mut seen = cluster.judge.changes();
            for (agents_first, overlaps) in ORDERS.into_iter().cycle().skip(first) {
                seen = eventually("something is done", async || {
                    Some(cluster.judge.changes()).filter(|now| *now >= seen + after)
                })
                .await;
                if agents_first {
                    agents.iter_mut().for_each(Agent::restart);
                }
                // The next replica begins while the last one still acts, or after it has ended.
                let last = replica.take().filter(|_| overlaps);
                let next = cluster.replica();
                door.send_replace(next.agents.clone());
                replica = Some(next);
                drop(last);
                if !agents_first {
                    agents.iter_mut().for_each(Agent::restart);
                }
            }
        } => false,
    };
    assert!(done);
    all_booted_once(&cluster, &agents).await;
}

/// A runtime that stands still while this is there.
struct Frozen(mpsc::Sender<()>);

impl Frozen {
    async fn freeze(runtime: &Runtime) -> Frozen {
        let (goes_on, until) = mpsc::channel();
        let (stands, still) = tokio::sync::oneshot::channel();
        runtime.spawn(async move {
            let _ = stands.send(());
            // Its only thread.
            let _ = until.recv();
        });
        still.await.unwrap();
        Frozen(goes_on)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn a_replica_that_is_frozen_past_a_lease_does_no_harm_when_it_goes_on() {
    let mut cluster = Cluster::with(3, 1).await;
    if lasts(0, 1).is_zero() {
        cluster.acts.terms = Terms { lease: Duration::from_secs(12), ..short_terms() };
    }
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    };
    let runtimes = [runtime(), runtime(), runtime()];
    let mut replicas = Vec::new();
    for runtime in &runtimes {
        replicas.push(cluster.replica_on(runtime.handle(), PACES).await);
    }
    let (_door, asks) = watch::channel(replicas[0].agents.clone());
    let agents = cluster.agents_at(&asks, well());
    cluster.all_have("/etc/first", "1").await;
    cluster.file("90-next", "/etc/hard", "2").await;
    cluster.judge.cordoned().await;
    let frozen = Frozen::freeze(&runtimes[1]).await;
    tokio::time::sleep(cluster.acts.terms.lease + cluster.acts.terms.boot).await;
    // The others have gone on meanwhile, and do so with it.
    drop(frozen);
    all_booted_once(&cluster, &agents).await;
    cluster.file("90-next", "/etc/hard", "3").await;
    cluster.all_have("/etc/hard", "3").await;
    assert!(agents.iter().all(|agent| agent.boots() == 2));
    cluster.judge.holds().await;
    drop(replicas);
    runtimes.into_iter().for_each(Runtime::shutdown_background);
}

#[tokio::test]
async fn an_api_server_that_hangs_for_a_while_delays_a_rollout_and_nothing_else() {
    let (cluster, _door, _replica, agents) = under_way(2).await;
    cluster.judge.cordoned().await;
    let hangs = cluster.plane.pause(Part::ApiServer).unwrap();
    tokio::time::sleep(lasts(6, 90)).await;
    hangs.resume().unwrap();
    all_booted_once(&cluster, &agents).await;
}

#[tokio::test]
async fn an_api_server_that_is_gone_for_a_while_delays_a_rollout_and_nothing_else() {
    let options = ControlPlane::options().with_readable_store();
    let (cluster, _door, _replica, agents) = goes_on(Cluster::on(options, 2, 1).await).await;
    cluster.judge.cordoned().await;
    cluster.plane.kill(Part::ApiServer).unwrap();
    tokio::time::sleep(lasts(6, 90)).await;
    cluster.plane.restart(Part::ApiServer).unwrap();
    all_got_there(&cluster, &agents).await;
    // One that is started anew tells nobody what it wrote before.
    cluster.judge.holds_by_the_store_of(&cluster.plane).await;
}

#[tokio::test]
async fn an_etcd_without_space_delays_a_rollout_and_nothing_else() {
    let (cluster, _door, _replica, agents) = under_way(2).await;
    cluster.judge.cordoned().await;
    let full = cluster.plane.fill().unwrap();
    tokio::time::sleep(lasts(6, 90)).await;
    full.empty().unwrap();
    all_booted_once(&cluster, &agents).await;
}

/// So many nodes, of which the first one is cordoned and has its order, and is kept from its boot by
/// pods that stay.
async fn kept_by_pods(nodes: usize) -> (Cluster, Replica, Vec<Agent>, String, UpdateOrder) {
    let mut cluster = Cluster::with(nodes, 1).await;
    cluster.acts.terms = short_terms();
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    cluster.pods_that_stay().await;
    cluster.file("90-next", "/etc/hard", "2").await;
    let node = cluster.judge.cordoned().await;
    let order =
        eventually("its order is there", async || cluster.update(&node).await.spec.order).await;
    (cluster, replica, agents, node, order)
}

#[tokio::test]
async fn slots_that_somebody_removes_are_taken_again_and_no_other_node_is_begun() {
    let (cluster, _replica, agents, node, order) = kept_by_pods(3).await;
    let slots: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    slots.delete(tread_enforce::SLOTS, &DeleteParams::default()).await.unwrap();
    eventually("its slot is taken again, and no other one", async || {
        let text = slots.get_opt(tread_enforce::SLOTS).await.ok()??.data?.remove("slots.json")?;
        let all: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).ok()?;
        assert!(all.keys().all(|has| *has == node), "{text}");
        (all.get(&node)?["operation"] == order.operation.as_str()).then_some(())
    })
    .await;
    cluster.pods_may_go().await;
    all_got_there(&cluster, &agents).await;
    cluster.judge.holds_but_for_slots().await;
}

#[tokio::test]
async fn a_node_that_is_made_anew_in_the_middle_begins_anew() {
    let (cluster, _door, _replica, agents) = under_way(3).await;
    let node = cluster.judge.cordoned().await;
    let api = cluster.api::<Node>();
    let mut made: Node = api.get(&node).await.unwrap();
    api.delete(&node, &DeleteParams::default()).await.unwrap();
    made.metadata = kube::api::ObjectMeta {
        name: Some(node.clone()),
        labels: made.metadata.labels,
        annotations: made.metadata.annotations.map(|mut all| {
            all.retain(|name, _| !name.starts_with("tread.dev/"));
            all
        }),
        ..kube::api::ObjectMeta::default()
    };
    if let Some(spec) = &mut made.spec {
        spec.unschedulable = None;
        spec.taints = None;
    }
    eventually("the node is made anew", async || {
        api.create(&PostParams::default(), &made).await.ok()
    })
    .await;
    // kwok may have the node in its queue of Leases twice now, and renews none of the others then.
    cluster.plane.restart(Part::SimulatedNodes).unwrap();
    cluster.all_have("/etc/hard", "2").await;
    for agent in agents.iter().filter(|agent| agent.node != node) {
        assert_eq!(agent.boots(), 1, "{}", agent.node);
    }
    cluster.judge.holds().await;
}

#[tokio::test]
async fn while_openshifts_daemon_is_there_nothing_is_done_and_later_it_goes_on() {
    let (cluster, replica, agents, node, order) = kept_by_pods(2).await;
    let namespace = json!({"metadata": {"name": OPERATORS_NAMESPACE}});
    let namespace: Namespace = serde_json::from_value(namespace).unwrap();
    cluster.api().create(&PostParams::default(), &namespace).await.unwrap();
    let labels = json!({"app": "daemon"});
    let daemon = json!({"metadata": {"name": OPERATORS_DAEMON}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
        "spec": {"containers": [{"name": "one", "image": "one"}]}}}});
    let daemon: DaemonSet = serde_json::from_value(daemon).unwrap();
    let daemons: Api<DaemonSet> = Api::namespaced(cluster.client.clone(), OPERATORS_NAMESPACE);
    daemons.create(&PostParams::default(), &daemon).await.unwrap();
    eventually("the rollout says why it halts", async || {
        let status = cluster.rollout().await.status?;
        status.message.filter(|message| message.contains(OPERATORS_DAEMON))
    })
    .await;
    let ask = Ask { operation: order.operation, what: Asked::Boot, number: 1 };
    match replica.agents.permit(&node, None, &ask).await {
        Answer::Refused { why } => assert!(why.contains(OPERATORS_DAEMON), "{why}"),
        permitted => panic!("{permitted:?}"),
    }
    // Now the pods are gone, and nothing comes of that, though tread looks again and again.
    cluster.pods_may_go().await;
    for rounds in 1..4 {
        cluster.rollout_says(json!({"haltAfter": rounds})).await;
        let generation = cluster.rollout().await.metadata.generation;
        eventually("it is looked at", async || {
            let status = cluster.rollout().await.status?;
            (status.observed_generation == generation).then_some(())
        })
        .await;
    }
    let stage = cluster.update(&node).await.spec.order.unwrap().stage;
    assert_eq!(stage, UpdateStage::Prepare);
    assert!(agents.iter().all(|agent| agent.did().is_empty()));

    daemons.delete(OPERATORS_DAEMON, &DeleteParams::default()).await.unwrap();
    all_booted_once(&cluster, &agents).await;
}
