//! What machines say at their first boot, and what nodes say that booted.

use super::fixture::{Cluster, aws};
use super::judged::{judged, openshift, take};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use tread_cluster::boot_images::machine::Key;
use tread_cluster::boot_images::noting;
use tread_cluster::boot_images::{Booted, NewestNode};
use tread_kube::api::boot_images::FirstBoot;
use tread_kube::api::machines::{
    CAPI_MACHINE_DEPLOYMENT, CAPI_MACHINE_SET, CONTROL_PLANE_MACHINE_SET, Kind, MACHINE_SET,
};
use tread_test_bed::eventually;

fn said(machine: &str, stopped: bool) -> FirstBoot {
    FirstBoot {
        machine: machine.to_owned(),
        address: "192.0.2.7".to_owned(),
        pool: "infra".to_owned(),
        image: "412.86.202308081056-0\u{1b}[31m".to_owned(),
        reason: "BelowLimit".to_owned(),
        stopped,
        at: Time(Timestamp::now()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_machine_said_at_its_first_boot_is_told_on_the_object_for_a_day() {
    let cluster = Cluster::openshift().await;
    let running = cluster.run();
    let status = cluster.until("Upgradeable", "True", "NothingToJudge").await;
    assert!(!status.conditions.iter().any(|it| it.type_ == "FirstBootsWithinLimit"));
    // Two replicas hear of machines at the same time.
    let start = || noting::start(running.settings.clone(), running.known.clone());
    let ((one, writes_one), (two, writes_two)) = (start(), start());
    let writing = tokio::spawn(async move { tokio::join!(writes_one, writes_two) });
    assert!(one.take(said("worker-1", false)));
    let status = cluster.until("FirstBootsWithinLimit", "False", "MachineWarned").await;
    let message = Cluster::message(&status, "FirstBootsWithinLimit");
    for word in ["worker-1 (192.0.2.7)", "pool infra", "412.86.202308081056-0", "tread bootimages"]
    {
        assert!(message.contains(word), "{word}: {message}");
    }
    assert!(!message.contains('\u{1b}'), "{message}");
    cluster.event("MachineTooOld").await;
    for at in 0..12 {
        assert!(
            one.take(said(&format!("one-{at}"), false))
                && two.take(said(&format!("two-{at}"), true))
        );
    }
    eventually("both are heard, as far as there is room", async || {
        let status = cluster.until("FirstBootsWithinLimit", "False", "MachineStopped").await;
        let has = |name: &str| status.first_boots.iter().any(|it| it.machine == name);
        (status.first_boots.len() == 20 && has("one-11") && has("two-11")).then_some(())
    })
    .await;
    cluster.says("FirstBootsWithinLimit", "and 15 more").await;
    let events = ["get", "events", "-A", "--field-selector", "reason=MachineTooOld", "-o", "json"];
    let notes = eventually("there is an Event of each", async || {
        let listed: Value = serde_json::from_str(&cluster.kubectl(&events)).unwrap();
        let items = listed["items"].as_array().unwrap().clone();
        (items.len() == 25).then_some(items)
    })
    .await;
    assert!(notes.iter().all(|it| it["message"].as_str().unwrap().contains("(192.0.2.7)")));
    // A day later it is told no more.
    let old = FirstBoot { at: Time(Timestamp::UNIX_EPOCH), ..said("worker-1", true) };
    let patch = json!({"status": {"firstBoots": [old]}}).to_string();
    let to = ["patch", "bimg", "cluster", "--subresource=status", "--type=merge", "-p", &patch];
    cluster.kubectl(&to);
    let status = cluster.until("FirstBootsWithinLimit", "True", "AsExpected").await;
    assert!(status.first_boots.is_empty(), "{:?}", status.first_boots);
    writing.abort();
}

fn key(kind: &Kind, name: &str) -> Key {
    Key { kind: kind.name, namespace: "openshift-machine-api".to_owned(), name: name.to_owned() }
}

#[test]
fn the_newest_node_of_a_resource_says_what_nobody_else_knows() {
    let mut fold = openshift();
    let set = |name: &str, provider: &Value| super::judged::machine_set(name, json!({}), provider);
    take(&mut fold, MACHINE_SET, set("old", &aws("ami-x")));
    take(&mut fold, MACHINE_SET, set("new", &aws("ami-y")));
    take(&mut fold, MACHINE_SET, set("garbage", &aws("ami-y")));
    take(&mut fold, MACHINE_SET, set("silent", &aws("ami-z")));
    // What stream metadata says is believed more.
    take(&mut fold, MACHINE_SET, set("known", &aws("ami-0554dc0c838511ba9")));
    let template =
        json!({"spec": {"infrastructureRef": {"kind": "AWSMachineTemplate", "name": "t"}}});
    let of_capi = |name: &str, owners: Value| {
        json!({
            "metadata": {"name": name, "namespace": "openshift-machine-api", "ownerReferences": owners},
            "spec": {"template": template},
        })
    };
    take(&mut fold, CAPI_MACHINE_DEPLOYMENT, of_capi("many", json!([])));
    for name in ["many-a", "many-b"] {
        let owners = json!([{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment",
            "name": "many", "uid": "1"}]);
        take(&mut fold, CAPI_MACHINE_SET, of_capi(name, owners));
    }
    let says = |created: u64, image: &str| NewestNode { created, image: image.to_owned() };
    fold.facts.booted = Arc::new(Booted::from([
        (key(&MACHINE_SET, "old"), says(1, "412.86.202308081056-0")),
        (key(&MACHINE_SET, "new"), says(1, "416.94.202402051952-0")),
        (key(&MACHINE_SET, "garbage"), says(1, "\u{1b}[31mnew")),
        (key(&MACHINE_SET, "known"), says(1, "412.86.202308081056-0")),
        (key(&CAPI_MACHINE_SET, "many-a"), says(1, "416.94.202402051952-0")),
        (key(&CAPI_MACHINE_SET, "many-b"), says(2, "412.86.202308081056-0")),
        // The same name of another kind.
        (key(&CONTROL_PLANE_MACHINE_SET, "silent"), says(1, "416.94.202402051952-0")),
    ]));
    let report = judged(&fold);
    let of = |name: &str| {
        let it = report.resources.iter().find(|it| it.key.name == name).unwrap();
        (it.shown.known_by.as_str(), it.verdict.reason.as_str())
    };
    assert_eq!(of("old"), ("Aleph", "BelowLimit"));
    assert_eq!(of("new"), ("Aleph", "WithinLimit"));
    assert_eq!(of("garbage"), ("Aleph", "VersionUnreadable"));
    assert_eq!(of("silent"), ("Unknown", "VersionUnknown"));
    assert_eq!(of("known"), ("Catalogue", "WithinLimit"));
    assert_eq!(of("many"), ("Aleph", "BelowLimit"), "its newest node is of many-b");
}
