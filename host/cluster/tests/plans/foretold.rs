//! MachineSets whose machines will boot into one pool and count in another are told of before
//! one boots.

use super::fixture::{Cluster, Tread};
use super::strays::two_pools;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::watch;
use tread_cluster::membership::admit::warnings;
use tread_cluster::plans::Retention;
use tread_cluster::{boot_images, index};
use tread_kube::api::{ClusterVersion, machines};
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::node_lease;
use tread_kube::review::Asked;
use tread_kube::watching::Watches;
use tread_test_bed::{ControlPlane, eventually};

const MACHINES: &str = "openshift-machine-api";

fn machine_set(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
    "metadata": {"name": name, "namespace": MACHINES},
    "spec": {"replicas": 1, "template": {"spec": {
        "metadata": {"labels": labels},
        "providerSpec": {"value": {"userDataSecret": {"name": "infra-user-data-managed"}}},
    }}}})
}

fn asked(object: &Value, before: Option<&Value>, subresource: Option<&str>) -> Asked {
    let operation = if before.is_some() { "UPDATE" } else { "CREATE" };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "1", "operation": operation, "kind": {"kind": "MachineSet"},
            "resource": {"group": "machine.openshift.io", "version": "v1beta1",
                "resource": "machinesets"},
            "subResource": subresource, "namespace": MACHINES, "name": "infra-a",
            "object": object, "oldObject": before}});
    Asked::read(review.to_string().as_bytes()).unwrap()
}

/// What was reported of machines: kind, name and text.
async fn reported(cluster: &Cluster) -> Vec<(String, String, String)> {
    let events: Api<Event> = Api::all(cluster.client.clone());
    let all = events.list(&ListParams::default()).await.unwrap().items;
    let of_machines =
        all.into_iter().filter(|it| it.reason.as_deref() == Some("MachinesWillStray"));
    of_machines
        .map(|it| {
            let about = it.regarding.unwrap_or_default();
            let (kind, name) = (about.kind.unwrap_or_default(), about.name.unwrap_or_default());
            (kind, name, it.note.unwrap_or_default())
        })
        .collect()
}

/// What the cluster runs.
async fn release(cluster: &Cluster, version: &str) {
    let status = json!({"status": {"desired": {"version": version},
        "history": [{"state": "Completed", "version": version}]}});
    let params = PatchParams::default();
    let versions = cluster.api::<ClusterVersion>();
    versions.patch_status("version", &params, &Patch::Merge(status)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_that_will_stray_are_told_of_before_one_boots_with_what_they_go_through() {
    let cluster = Cluster::start(ControlPlane::options()).await;
    cluster.plane.define(&machines::definitions().unwrap()).unwrap();
    let kubectl = |args: &[&str]| cluster.plane.kubectl(args).unwrap().success().unwrap();
    kubectl(&["create", "namespace", MACHINES]);
    let namespace = cluster.plane.namespace("tread").unwrap();
    two_pools(&cluster).await;
    cluster
        .create::<ClusterVersion>(json!({"apiVersion": "config.openshift.io/v1",
            "kind": "ClusterVersion", "metadata": {"name": "version"}, "spec": {"clusterID": "1"}}))
        .await;
    release(&cluster, "4.21.9").await;

    let (leads, leading) = watch::channel(true);
    let (metrics, watches) = (Metrics::new(), Watches::default());
    let (index, indexing) =
        index::start(&cluster.client, node_lease::NAMESPACE, &watches, &metrics);
    let (known, judging) = boot_images::start(boot_images::Settings {
        client: cluster.client.clone(),
        index,
        namespace,
        leads: Leading::without_election(leading, None),
        block_upgrades: false,
        watches,
        metrics: metrics.clone(),
        events: Events::new(cluster.client.clone(), "test", "Judge", &metrics),
    });
    let tasks = [tokio::spawn(indexing), tokio::spawn(judging)];
    let tread = Tread::knowing(&cluster.client, known.clone(), (Retention::default(), None));
    let count = async |count: i64| {
        eventually(&format!("{count} MachineSets"), async || {
            (tread.metrics.straying_machines.get() == count).then_some(())
        })
        .await;
    };
    let apply = |object: &Value| cluster.plane.apply(&object.to_string()).unwrap();
    let wrong = machine_set("infra-a", &json!({}));
    let right = machine_set("infra-b", &json!({"node-role.kubernetes.io/infra": ""}));
    apply(&right);
    apply(&wrong);
    count(1).await;
    for (kind, name) in [("MachineSet", "infra-a"), ("MachineConfigPool", "infra")] {
        let text = eventually(&format!("{kind} {name} is told of"), async || {
            let all = reported(&cluster).await;
            all.into_iter().find(|(k, n, _)| k == kind && n == name).map(|it| it.2)
        })
        .await;
        for words in ["boot into pool infra and will count in pool worker", "2 reboots ("] {
            assert!(text.contains(words), "{text}");
        }
    }
    assert!(reported(&cluster).await.iter().all(|(_, name, _)| name != "infra-b"));

    // Whoever makes it or scales it up is warned, and nobody else.
    let lines = async |asked: Asked| warnings(&tread.previewer, &known, &asked).await;
    let made = lines(asked(&wrong, None, None)).await;
    assert!(made[0].contains("will count in pool worker"), "{made:?}");
    assert!(made[1].contains("2 reboots ("), "{made:?}");
    let scale = |replicas: i64| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "spec": {"replicas": replicas}})
    };
    assert_eq!(lines(asked(&scale(3), Some(&scale(1)), Some("scale"))).await, made);
    assert!(lines(asked(&scale(1), Some(&scale(3)), Some("scale"))).await.is_empty());
    assert!(lines(asked(&right, None, None)).await.is_empty());
    assert!(made.iter().all(|line| line.len() <= 256), "{made:#?}");

    // From 4.22 on the operator labels their nodes, unless worker is paused.
    release(&cluster, "4.22.0").await;
    count(0).await;
    assert!(lines(asked(&wrong, None, None)).await.is_empty());
    cluster.patch_pool("worker", json!({"spec": {"paused": true}})).await;
    count(1).await;
    let gap = lines(asked(&wrong, None, None)).await;
    assert!(gap[0].contains("(pool worker is paused)"), "{gap:?}");
    cluster.patch_pool("worker", json!({"spec": {"paused": false}})).await;
    release(&cluster, "4.21.9").await;
    count(1).await;

    // What is printed prevents it.
    let command = made[2].strip_prefix("tread: what prevents it: ").unwrap();
    let mut shell = std::process::Command::new("sh");
    cluster.plane.prepare(&mut shell);
    let ran = shell.args(["-c", command]).output().unwrap();
    assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    count(0).await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    drop(leads);
}
