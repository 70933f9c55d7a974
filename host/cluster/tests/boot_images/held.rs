//! Updates are held back by ClusterOperator `tread`, where an admin asks for it.

use super::fixture::{Cluster, aws};
use super::judged::{judged, machine_set, openshift, take};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tread_cluster::boot_images::cluster_operator::{Due, due};
use tread_cluster::boot_images::kinds::MACHINE_CONFIGURATION;
use tread_kube::api::machines::{CLUSTER_OPERATOR, MACHINE_SET};
use tread_test_bed::{ControlPlane, eventually};

const NEW: &str = "ami-0554dc0c838511ba9";

fn operators(cluster: &Cluster) -> Vec<Value> {
    let listed = cluster.kubectl(&["get", "clusteroperators", "-o", "json"]);
    serde_json::from_str::<Value>(&listed).unwrap()["items"].as_array().unwrap().clone()
}

fn condition(operator: &Value, kind: &str) -> Option<Value> {
    let all = operator["status"]["conditions"].as_array()?;
    all.iter().find(|it| it["type"] == kind).cloned()
}

/// Why the cluster-version operator holds minor and major updates back: any
/// ClusterOperator with Upgradeable=False does.
fn held_back(cluster: &Cluster) -> Option<String> {
    let all = operators(cluster);
    let mut held = all.iter().filter_map(|it| condition(it, "Upgradeable"));
    held.find(|it| it["status"] == "False").map(|it| it["message"].as_str().unwrap().to_owned())
}

async fn until_held(cluster: &Cluster) -> String {
    eventually("updates are held back", async || held_back(cluster)).await
}

async fn until_gone(cluster: &Cluster) {
    let gone = async || operators(cluster).is_empty().then_some(());
    eventually("the ClusterOperator is gone", gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_who_wants_updates_held_back_gets_from_blocked_to_upgradeable() {
    let cluster = Cluster::openshift_on(ControlPlane::options().with_controllers()).await;
    cluster.machine_set("worker-a", json!({}), &aws(NEW));
    let old = json!({"annotations": {"tread.dev/boot-image": "412.86.202308081056-0"}});
    cluster.machine_set("worker-b", old, &aws(NEW));
    let running = cluster.run_blocking();
    let said = until_held(&cluster).await;
    for word in [
        "openshift-machine-api/worker-b",
        "412.86.202308081056-0",
        "OpenShift 4.13.0, RHEL 9.2",
        "Patch updates within this version are not held back",
        "tread bootimages patch",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let [operator] = operators(&cluster).try_into().unwrap();
    assert_eq!(condition(&operator, "Available").unwrap()["status"], "True");

    // Somebody removes what the leader keeps.
    cluster.kubectl(&["delete", "clusteroperator", "tread"]);
    until_held(&cluster).await;

    cluster.annotate("worker-b", "9.6.20250523-0");
    let free = async || {
        let operator = operators(&cluster).pop()?;
        (condition(&operator, "Upgradeable")?["status"] == "True").then_some(())
    };
    eventually("nothing is held back any more", free).await;

    cluster.spec(r#"{"mode": "Manual", "manual": {"mode": "OCPVersion", "ocpVersion": "4.10.0"}}"#);
    let said = until_held(&cluster).await;
    assert!(said.contains("4.10.0") && said.contains("as recorded in spec.manual"), "{said}");
    cluster.spec(r#"{"mode": "None", "manual": null}"#);
    until_gone(&cluster).await;
    cluster.spec(r#"{"mode": "Automatic"}"#);
    eventually("it is there again", async || operators(&cluster).pop()).await;

    // Without the flag it is removed.
    drop(running);
    let running = cluster.run();
    until_gone(&cluster).await;
    drop(running);

    // With tread's namespace it goes, whoever removes that.
    let running = cluster.run_blocking();
    eventually("it is there again", async || operators(&cluster).pop()).await;
    drop(running);
    cluster.kubectl(&["delete", "namespace", &cluster.namespace, "--wait=false"]);
    until_gone(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_operator_of_that_name_that_is_somebody_elses_is_left_alone() {
    let cluster = Cluster::openshift().await;
    cluster.machine_set("worker-a", json!({}), &aws("ami-old"));
    let api = "config.openshift.io/v1";
    cluster.apply(&json!({"apiVersion": api, "kind": "ClusterOperator",
        "metadata": {"name": "tread"}, "spec": {}}));
    let running = cluster.run_blocking();
    eventually("it is told of", async || {
        running.watches.not_written().join("\n").contains("not tread's").then_some(())
    })
    .await;
    cluster.until("Upgradeable", "False", "VersionUnknown").await;
    assert_eq!(operators(&cluster)[0]["status"], Value::Null);
}

#[test]
fn while_nothing_can_be_told_it_says_what_it_said() {
    let now = Timestamp::now();
    let mut fold = openshift();
    take(&mut fold, MACHINE_SET, machine_set("a", json!({}), &aws("ami-old")));
    assert_eq!(due(true, &fold.facts, &judged(&fold), now), Due::Create);
    assert_eq!(due(false, &fold.facts, &judged(&fold), now), Due::Nothing);
    let ours = json!({"name": "tread", "labels": {"app.kubernetes.io/managed-by": "tread"}});
    let stands = |status: Value| json!({"metadata": ours, "status": status});
    take(&mut fold, CLUSTER_OPERATOR, stands(Value::Null));
    assert_eq!(due(false, &fold.facts, &judged(&fold), now), Due::Delete);
    let Due::Say(blocked) = due(true, &fold.facts, &judged(&fold), now) else { panic!() };
    assert!(blocked.iter().any(|it| it.type_ == "Upgradeable" && it.status == "False"));
    take(&mut fold, CLUSTER_OPERATOR, stands(json!({ "conditions": blocked })));
    assert_eq!(due(true, &fold.facts, &judged(&fold), now), Due::Nothing);

    // OpenShift's updater begins: nothing is known, and nothing is lifted.
    let manager = json!({"apiGroup": "machine.openshift.io", "resource": "machinesets",
        "selection": {"mode": "All"}});
    let status = json!({"managedBootImagesStatus": {"machineManagers": [manager]}});
    take(
        &mut fold,
        MACHINE_CONFIGURATION,
        json!({"metadata": {"name": "cluster"}, "status": status}),
    );
    assert!(judged(&fold).waits());
    assert_eq!(due(true, &fold.facts, &judged(&fold), now), Due::Nothing);
}

#[test]
fn a_cluster_that_is_not_openshift_has_none() {
    let fold = tread_cluster::boot_images::gathered::Gathered::default();
    assert_eq!(due(true, &fold.facts, &judged(&fold), Timestamp::now()), Due::Nothing);
}
