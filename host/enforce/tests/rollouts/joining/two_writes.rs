//! A claim is bound, and then its node is written: what comes between lets nobody in twice.

use super::{
    INFRA, Witness, claim, held, hold_back, is_in, kubelet, let_through, register, with_pools,
};
use crate::gate::Gate;
use crate::rollouts::fixture::{Cluster, Replica};
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::pin::pin;
use tokio::sync::oneshot;
use tread_test_bed::{Part, eventually};

/// The claims that are bound, each with its node.
async fn bound(cluster: &Cluster) -> Vec<(String, String)> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let data = eventually("what is bound can be read", async || {
        maps.get_opt("tread-joining").await.ok().map(|map| map.and_then(|map| map.data))
    });
    let claims = data.await.unwrap_or_default().into_iter();
    let claims = claims.filter(|(key, _)| key.starts_with("claim."));
    claims.map(|(key, by)| (key, by.split(' ').next().unwrap_or_default().to_owned())).collect()
}

#[tokio::test]
async fn a_leader_that_dies_between_its_two_writes_lets_nobody_in_twice() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let claim = claim(&replica, "infra").await;
    hold_back(&cluster).await;
    let witness = Witness::begin(&cluster.client).await;
    register(&kubelet(&cluster, "one").await, "one", &claim).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    eventually("the claim is bound", async || {
        let data = maps.get_opt("tread-joining").await.ok()??.data?;
        data.values().any(|by| by.starts_with("one ")).then_some(())
    })
    .await;
    drop(replica);
    // Two others, who both believe to lead.
    let (_a, _b) = (cluster.replica(), cluster.replica());
    register(&kubelet(&cluster, "two").await, "two", &claim).await.unwrap();
    assert_eq!(held(&cluster, "two").await.0, "ClaimUsed");
    let_through(&cluster);
    witness.joined(&["one".to_owned()]).await;
    assert!(witness.of("two").iter().all(|it| it.is_held));
}

/// A cluster with a replica that is about to let in the node `one`, which has registered: its claim
/// is bound, and the write by which it joins waits.
async fn about_to_join() -> (Cluster, Replica, Gate, oneshot::Sender<()>) {
    let mut cluster = with_pools().await;
    let (mut gate, gated) =
        Gate::before(&cluster.acts.client, Method::PATCH, "/api/v1/nodes/one".to_owned());
    let own = std::mem::replace(&mut cluster.acts.client, gated);
    let replica = cluster.replica();
    // Replicas that begin later write as they please.
    cluster.acts.client = own;
    let claim = claim(&replica, "infra").await;
    register(&kubelet(&cluster, "one").await, "one", &claim).await.unwrap();
    let turn = gate.waits().await;
    assert_eq!(bound(&cluster).await.len(), 1, "the claim is bound before the node is written");
    (cluster, replica, gate, turn)
}

/// That `one` joined by one write, and by nobody's second one: another node that comes later has
/// joined too by now. Its claim is bound once.
async fn joined_once(cluster: &Cluster, replica: &Replica, witness: &Witness) {
    witness.joined(&["one".to_owned()]).await;
    let claim = claim(replica, "infra").await;
    register(&kubelet(cluster, "two").await, "two", &claim).await.unwrap();
    is_in(cluster, "two", INFRA).await;
    let versions = witness.of("one");
    let joins = versions.windows(2).filter(|it| it[0].is_held && !it[1].is_held).count();
    assert_eq!(joins, 1, "{versions:?}");
    let mut by: Vec<String> = bound(cluster).await.into_iter().map(|(_, by)| by).collect();
    by.sort();
    assert_eq!(by, ["one", "two"]);
}

#[tokio::test]
async fn a_node_that_somebody_writes_before_it_joins_is_settled_again_and_joins_once() {
    let (cluster, replica, mut gate, mut turn) = about_to_join().await;
    let witness = Witness::begin(&cluster.client).await;
    let nodes: Api<Node> = cluster.api();
    for times in 1..=3 {
        let note = Patch::Merge(json!({"metadata": {"annotations": {"times": times.to_string()}}}));
        nodes.patch("one", &PatchParams::default(), &note).await.unwrap();
        drop(turn);
        assert_eq!(gate.answered(times).await, vec![Some(409); times]);
        turn = gate.waits().await;
    }
    assert!(witness.of("one").iter().all(|it| it.is_held));
    drop(turn);
    // Whoever else writes nodes may have come before it once more.
    let answers = gate.open();
    joined_once(&cluster, &replica, &witness).await;
    let answers = answers.lock().unwrap().clone();
    let (last, before) = answers.split_last().unwrap();
    assert_eq!(*last, Some(200));
    assert!(before.len() >= 3 && before.iter().all(|it| *it == Some(409)), "{answers:?}");
    let node = nodes.get("one").await.unwrap();
    assert_eq!(node.metadata.annotations.unwrap()["times"], "3", "what others wrote is kept");
}

#[tokio::test]
async fn an_api_server_that_is_gone_while_a_node_joins_lets_it_in_once_when_it_is_back() {
    let (cluster, replica, mut gate, turn) = about_to_join().await;
    cluster.plane.kill(Part::ApiServer).unwrap();
    drop(turn);
    assert_eq!(gate.answered(1).await, [None]);
    cluster.plane.restart(Part::ApiServer).unwrap();
    // One that is started anew tells nobody what was written before: the node still waits.
    let witness = Witness::begin(&cluster.client).await;
    assert!(matches!(&witness.of("one")[..], [it, ..] if it.is_held));
    drop(gate.waits().await);
    let answers = gate.open();
    joined_once(&cluster, &replica, &witness).await;
    let answers = answers.lock().unwrap().clone();
    assert_eq!(answers.iter().filter(|it| **it == Some(200)).count(), 1, "{answers:?}");
    assert_eq!(answers.last(), Some(&Some(200)), "{answers:?}");
}

#[tokio::test]
async fn a_leader_that_writes_after_another_one_let_a_node_in_lets_it_in_no_second_time() {
    let (cluster, late, gate, turn) = about_to_join().await;
    let witness = Witness::begin(&cluster.client).await;
    let replica = cluster.replica();
    witness.joined(&["one".to_owned()]).await;
    drop(turn);
    assert_eq!(gate.answered(1).await, [Some(409)]);
    let answers = gate.open();
    // It goes on alone, and lets in another one after it has seen what became of this one.
    drop(replica);
    joined_once(&cluster, &late, &witness).await;
    assert_eq!(*answers.lock().unwrap(), [Some(409)]);
}

#[tokio::test]
async fn a_leader_that_loses_its_turn_between_its_two_writes_lets_the_node_in_when_it_leads_again()
{
    let mut cluster = with_pools().await;
    let record = format!("/api/v1/namespaces/{}/configmaps/tread-joining", cluster.acts.namespace);
    let (mut gate, gated) = Gate::before(&cluster.acts.client, Method::PATCH, record);
    let own = std::mem::replace(&mut cluster.acts.client, gated);
    let replica = cluster.replica();
    cluster.acts.client = own;
    let claim = {
        let mut claim = pin!(claim(&replica, "infra"));
        // That a machine is served is noted there too.
        loop {
            tokio::select! {
                claim = &mut claim => break claim,
                turn = gate.waits() => drop(turn),
            }
        }
    };
    let witness = Witness::begin(&cluster.client).await;
    replica.leads.send_replace(false);
    register(&kubelet(&cluster, "one").await, "one", &claim).await.unwrap();
    eventually("others have written the node", async || {
        let node = cluster.api::<Node>().get("one").await.ok()?;
        let is_ready = node.status?.conditions?.iter().any(|it| it.type_ == "Ready");
        (is_ready && node.metadata.annotations.is_some()).then_some(())
    })
    .await;
    // A write of theirs would be looked at.
    for part in [Part::SimulatedNodes, Part::Controllers] {
        cluster.plane.kill(part).unwrap();
    }
    replica.leads.send_replace(true);
    for writes in 1.. {
        let turn = gate.waits().await;
        replica.leads.send_replace(false);
        let answered = gate.answered(0).await.len();
        drop(turn);
        gate.answered(answered + 1).await;
        let is_bound = !bound(&cluster).await.is_empty();
        if is_bound {
            break;
        }
        assert!(writes < 100, "the claim is not bound");
        replica.leads.send_replace(true);
    }
    assert!(witness.of("one").iter().all(|it| it.is_held), "it did not lead");
    replica.leads.send_replace(true);
    let answers = gate.open();
    joined_once(&cluster, &replica, &witness).await;
    drop(answers);
}
