//! The slots of all pools, while somebody removes them, and where whoever writes them is interrupted.

use crate::fixture::{Bed, aim, room};
use crate::gate::Gate;
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tread_enforce::{Ended, SLOTS, Settings, Unread, step};
use tread_kube::node_lease::operation_text;
use tread_model::protocol::{Disrupts, Operation, Waits};
use tread_test_bed::eventually;

fn objects(bed: &Bed) -> Api<ConfigMap> {
    Api::namespaced(bed.client.clone(), &bed.settings.namespace)
}

/// The operations that have a slot, by their nodes.
async fn slots(bed: &Bed) -> BTreeMap<String, String> {
    let data = objects(bed).get(SLOTS).await.unwrap().data.unwrap();
    let all: BTreeMap<String, Value> = serde_json::from_str(&data["slots.json"]).unwrap();
    all.into_iter().map(|(node, slot)| (node, slot["operation"].as_str().unwrap().into())).collect()
}

/// Has a node cordoned and its agent ordered, while no agent is there; gives the operation.
async fn is_ordered(bed: &Bed, node: &str) -> String {
    eventually("its order is given", async || {
        let ended = bed.step(node, Disrupts::Reboot).await;
        matches!(ended, Ok(Ended::Waits(Waits::Agent, _))).then_some(())
    })
    .await;
    bed.update(node).await.spec.order.unwrap().operation
}

#[tokio::test]
async fn a_slot_that_is_lost_is_taken_again_for_what_was_begun_whatever_room_there_is() {
    let bed = Arc::new(Bed::with(2, 2).await);
    let (first, second) = (bed.nodes[0].clone(), bed.nodes[1].clone());
    let operation = is_ordered(&bed, &first).await;
    assert_eq!(slots(&bed).await, BTreeMap::from([(first.clone(), operation.clone())]));
    // The object is removed.
    objects(&bed).delete(SLOTS, &DeleteParams::default()).await.unwrap();
    assert_eq!(is_ordered(&bed, &first).await, operation, "nothing is begun anew");
    assert_eq!(slots(&bed).await, BTreeMap::from([(first.clone(), operation.clone())]));
    // Another node has the only slot instead.
    let other = operation_text(Operation(7));
    let slot = json!({"pool": "worker", "operation": other, "unavailable": true});
    let text = json!({&second: slot}).to_string();
    let patch = Patch::Merge(json!({"data": {"slots.json": text}}));
    objects(&bed).patch(SLOTS, &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(is_ordered(&bed, &first).await, operation, "nothing is begun anew");
    assert_eq!(slots(&bed).await, BTreeMap::from([(first, operation), (second, other)]));
}

/// Looks at a node until nothing more is to be done at once, where all of them may be down.
fn looks(settings: &Settings, node: &str) -> JoinHandle<Result<Ended, Unread>> {
    let (settings, node) = (settings.clone(), node.to_owned());
    tokio::spawn(async move {
        loop {
            let ended = step(&settings, &node, &aim(Disrupts::Reboot), &room(4)).await;
            if !matches!(ended, Ok(Ended::Busy | Ended::Drains(..))) {
                return ended;
            }
        }
    })
}

#[tokio::test]
async fn whoever_is_interrupted_while_it_writes_the_slots_of_others_too_holds_up_nobody() {
    let bed = Arc::new(Bed::with(4, 4).await);
    let path = format!("/api/v1/namespaces/{}/configmaps/{SLOTS}", bed.settings.namespace);
    let (mut gate, client) = Gate::before(&bed.settings.client, Method::PUT, path);
    let settings = Settings { client, ..bed.settings.clone() };
    let first = looks(&settings, &bed.nodes[0]);
    let writes = gate.waits().await;
    // The others wait for the first one, and then one of them writes for all of them.
    let mut others: Vec<_> = bed.nodes[1..].iter().map(|node| looks(&settings, node)).collect();
    eventually("they wait", async || (settings.at_slots.waiting() == others.len()).then_some(()))
        .await;
    drop(writes);
    let writes = gate.waits().await;
    while !writes.is_closed() {
        let interrupted = others.remove(0);
        interrupted.abort();
        assert!(interrupted.await.unwrap_err().is_cancelled());
    }
    let _answers = gate.open();
    for left in others.into_iter().chain([first]) {
        waits_for_its_agent(left).await;
    }
    // Those who were interrupted go on as they began.
    for node in &bed.nodes {
        waits_for_its_agent(looks(&settings, node)).await;
    }
    assert_eq!(slots(&bed).await.into_keys().collect::<Vec<_>>(), bed.nodes);
    bed.judge.verdict().unwrap();
}

async fn waits_for_its_agent(looks: JoinHandle<Result<Ended, Unread>>) {
    let ended = looks.await.unwrap();
    assert!(matches!(ended, Ok(Ended::Waits(Waits::Agent, _))), "{ended:?}");
}
