//! Nodes get a new config: each by its slot, its Lease, its order and its proof.

use crate::fixture::{Bed, NEW, room};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tread_enforce::{Aim, CORDON_ANNOTATION, Ended, SLOTS, Still, Unread, forget, step};
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::{UpdateOrder, UpdatePhase};
use tread_kube::node_lease::operation_text;
use tread_model::protocol::{Disrupts, HeldBy, Operation, Waits, What};
use tread_test_bed::eventually;

#[tokio::test]
async fn a_node_gets_a_config_by_each_kind_of_plan() {
    for disrupts in [Disrupts::Nothing, Disrupts::Softly, Disrupts::Drain, Disrupts::Reboot] {
        let bed = Arc::new(Bed::with(1, 1).await);
        let agents = bed.agents(disrupts);
        let replica = bed.replica(0, disrupts, 1);
        bed.all_are_done().await;
        drop(replica);
        let did: Vec<What> = agents[0].did().into_iter().map(|(_, what)| what).collect();
        let expected = match disrupts {
            Disrupts::Nothing => vec![What::Write],
            Disrupts::Softly | Disrupts::Drain => vec![What::Write, What::Unit],
            Disrupts::Reboot => vec![What::Write, What::Boot],
        };
        assert_eq!(did, expected, "{disrupts:?}");
        let status = bed.update(&bed.nodes[0]).await.status.unwrap();
        assert_eq!(status.current.unwrap().digest, NEW.to_string());
        bed.judge.holds().await;
    }
}

#[tokio::test]
async fn three_replicas_without_an_election_keep_the_budget() {
    let bed = Arc::new(Bed::with(4, 1).await);
    let agents = bed.agents(Disrupts::Reboot);
    let replicas: Vec<_> = (0..3).map(|number| bed.replica(number, Disrupts::Reboot, 1)).collect();
    bed.all_are_done().await;
    drop(replicas);
    for agent in agents {
        let boots = agent.did().into_iter().filter(|(_, what)| *what == What::Boot);
        assert_eq!(boots.count(), 1, "{}", agent.node);
    }
    bed.judge.holds().await;
}

#[tokio::test]
async fn a_node_that_somebody_else_has_is_left_alone_until_it_is_given_back() {
    let bed = Arc::new(Bed::with(1, 1).await);
    let node = bed.nodes[0].clone();
    let waits = async |expected: Waits| match bed.step(&node, Disrupts::Reboot).await {
        Ok(Ended::Waits(waits, _)) => assert_eq!(waits, expected),
        ended => panic!("{ended:?}"),
    };
    bed.patch_node(&node, json!({"spec": {"unschedulable": true}})).await;
    waits(Waits::Held(HeldBy::Cordon)).await;
    bed.patch_node(&node, json!({"spec": {"unschedulable": null}})).await;
    let exclude = "remediation.medik8s.io/exclude-from-remediation";
    bed.patch_node(&node, json!({"metadata": {"labels": {exclude: "true"}}})).await;
    waits(Waits::Held(HeldBy::Maintenance)).await;
    bed.patch_node(&node, json!({"metadata": {"labels": {exclude: null}}})).await;
    let leases: Api<Lease> = Api::namespaced(bed.client.clone(), &bed.settings.leases);
    let name = format!("node-{node}");
    let now = k8s_openapi::jiff::Timestamp::now();
    let lease = json!({
        "metadata": {"name": name},
        "spec": {"holderIdentity": "node-maintenance", "leaseDurationSeconds": 3600,
                 "acquireTime": format!("{now:.6}"), "renewTime": format!("{now:.6}")},
    });
    let lease: Lease = serde_json::from_value(lease).unwrap();
    leases.create(&PostParams::default(), &lease).await.unwrap();
    waits(Waits::Lease).await;
    leases.delete(&name, &DeleteParams::default()).await.unwrap();
    let agents = bed.agents(Disrupts::Reboot);
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    bed.all_are_done().await;
    drop((agents, replica));
    bed.judge.holds().await;
}

/// Has a node cordoned and its agent ordered, while no agent is there.
async fn is_ordered(bed: &Bed, node: &str) -> UpdateOrder {
    is_ordered_by(bed, node, &bed.aim(node, Disrupts::Reboot).await).await
}

async fn is_ordered_by(bed: &Bed, node: &str, aim: &Aim) -> UpdateOrder {
    eventually("its order is given", async || {
        let ended = step(&bed.settings, node, aim, &room(1)).await;
        matches!(ended, Ok(Ended::Waits(Waits::Agent, _))).then_some(())
    })
    .await;
    assert_eq!(bed.node(node).await.spec.unwrap().unschedulable, Some(true));
    bed.update(node).await.spec.order.unwrap()
}

#[tokio::test]
async fn whoever_begins_to_drain_a_node_that_waits_for_its_agent_gets_its_cordon() {
    let bed = Arc::new(Bed::with(1, 1).await);
    let node = bed.nodes[0].clone();
    let order = is_ordered(&bed, &node).await;
    bed.admin_drains(&node, true).await;
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    let agents = bed.agents(Disrupts::Reboot);
    bed.is_handed_over(&node).await;
    let update = bed.update(&node).await;
    assert_eq!(update.spec.order.unwrap().operation, order.operation, "nothing is begun anew");
    assert_eq!(update.status.unwrap().phase, Some(UpdatePhase::TurnedBack));
    assert!(agents[0].did().is_empty());
    let conditions = bed.node(&node).await.status.unwrap().conditions.unwrap();
    let drains = conditions.iter().find(|it| it.type_ == "DrainInProgress").unwrap();
    assert_eq!(
        (drains.status.as_str(), drains.reason.as_deref()),
        ("True", Some("AdminRequested"))
    );
    // Whoever drained it uncordons it, and it goes on.
    bed.admin_drains(&node, false).await;
    bed.patch_node(&node, json!({"spec": {"unschedulable": null}})).await;
    bed.all_are_done().await;
    drop(replica);
    bed.judge.holds().await;
}

#[tokio::test]
async fn whoever_begins_to_drain_a_node_that_is_done_gets_its_cordon() {
    let bed = Arc::new(Bed::with(1, 1).await);
    let node = bed.nodes[0].clone();
    let order = is_ordered(&bed, &node).await;
    bed.admin_drains(&node, true).await;
    let status = json!({"operation": order.operation, "phase": "Done", "current": order.config,
        "since": MicroTime(Timestamp::now())});
    let patch = Patch::Merge(json!({"status": status}));
    let updates = bed.api::<NodeUpdate>();
    updates.patch_status(&node, &PatchParams::default(), &patch).await.unwrap();
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    bed.is_handed_over(&node).await;
    drop(replica);
    bed.judge.holds().await;
}

#[tokio::test]
async fn a_cordon_without_a_slot_is_not_overlooked() {
    let bed = Bed::with(1, 1).await;
    let annotations = json!({CORDON_ANNOTATION: operation_text(Operation(7))});
    let patch = json!({"metadata": {"annotations": annotations}, "spec": {"unschedulable": true}});
    bed.patch_node(&bed.nodes[0], patch).await;
    let broken = eventually("the judge sees it", async || bed.judge.verdict().err()).await;
    assert!(broken.contains("cordoned without its Lease"), "{broken}");
}

#[tokio::test]
async fn a_node_that_was_deleted_gives_its_slot_back_and_one_of_its_name_begins_anew() {
    let bed = Arc::new(Bed::alone(2, 1).await);
    let (first, second) = (bed.nodes[0].clone(), bed.nodes[1].clone());
    let step = async |node: &str| bed.step(node, Disrupts::Reboot).await;
    assert!(matches!(step(&first).await, Ok(Ended::Waits(Waits::Agent, _) | Ended::Drains(..))));
    assert!(matches!(step(&second).await, Ok(Ended::Waits(Waits::Room, _))));
    assert!(!forget(&bed.settings, &first).await.unwrap(), "it is there");
    let mut again = bed.node(&first).await;
    bed.plane.kubectl(&["delete", "node", &first]).unwrap().success().unwrap();
    assert!(forget(&bed.settings, &first).await.unwrap());
    assert!(!forget(&bed.settings, &first).await.unwrap(), "it had one slot");
    // It registers anew, before what was ordered of the one before is collected.
    again.metadata = serde_json::from_value(json!({"name": first})).unwrap();
    (again.spec, again.status) = (None, None);
    bed.plane.create_these_nodes(vec![again]).await.unwrap();
    assert!(matches!(step(&first).await, Err(Unread::Gone)));
    assert!(bed.node(&first).await.spec.unwrap_or_default().unschedulable.is_none());
    assert!(matches!(step(&second).await, Ok(Ended::Waits(Waits::Agent, _) | Ended::Drains(..))));
}

#[tokio::test]
async fn a_node_that_has_the_config_by_now_is_not_begun_again() {
    let bed = Arc::new(Bed::with(1, 1).await);
    let node = bed.nodes[0].clone();
    // What somebody knew before the node was done.
    let known = bed.aim(&node, Disrupts::Reboot).await;
    assert!(known.turn.is_some());
    let agents = bed.agents(Disrupts::Reboot);
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    bed.all_are_done().await;
    drop(replica);
    let ended = step(&bed.settings, &node, &known, &room(1)).await;
    assert!(matches!(ended, Ok(Ended::Waits(Waits::Nothing, _))), "{ended:?}");
    let boots = agents[0].did().into_iter().filter(|(_, what)| *what == What::Boot);
    assert_eq!(boots.count(), 1);
    bed.judge.holds().await;
}

#[tokio::test]
async fn a_node_whose_pool_is_paused_while_its_pods_are_tried_is_not_begun() {
    let bed = Arc::new(Bed::with(1, 1).await);
    let node = bed.nodes[0].clone();
    let may = Arc::new(AtomicBool::new(false));
    let says = Arc::clone(&may);
    let still = Still::by(move || says.load(Ordering::SeqCst));
    let aim = Aim { still, ..bed.aim(&node, Disrupts::Reboot).await };
    let ended = step(&bed.settings, &node, &aim, &room(1)).await;
    assert!(matches!(ended, Ok(Ended::NotItsTurn(_))), "{ended:?}");
    let slots: Api<ConfigMap> = Api::namespaced(bed.client.clone(), &bed.settings.namespace);
    assert_eq!(slots.get(SLOTS).await.unwrap().data.unwrap()["slots.json"], "{}");
    assert!(bed.update(&node).await.spec.order.is_none());
    assert!(bed.node(&node).await.spec.unwrap_or_default().unschedulable.is_none());
    may.store(true, Ordering::SeqCst);
    let ended = step(&bed.settings, &node, &aim, &room(1)).await;
    assert!(matches!(ended, Ok(Ended::Waits(Waits::Agent, _) | Ended::Drains(..))), "{ended:?}");
    // What was begun goes on.
    may.store(false, Ordering::SeqCst);
    is_ordered_by(&bed, &node, &aim).await;
}
