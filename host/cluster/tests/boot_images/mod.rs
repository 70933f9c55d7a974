//! Boot images on a real API server, with minimal definitions of the machine
//! APIs and stream metadata in OpenShift's form.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails the test"
)]

mod figures;
mod first_boots;
mod fixture;
mod held;
mod judged;
mod modes;
mod stuck;
mod taken;

use fixture::{Cluster, RUNNING, aws};
use serde_json::json;
use tread_cluster::boot_images::gather::gather;
use tread_cluster::boot_images::machine::Key;
use tread_cluster::boot_images::report::{remedy_of, report};
use tread_kube::api::machines::{self, Kind};
use tread_test_bed::{ControlPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_who_reads_only_the_messages_gets_from_blocked_to_upgradeable() {
    let cluster = Cluster::openshift().await;
    cluster.machine_set("worker-a", json!({}), &aws("ami-0554dc0c838511ba9"));
    cluster.machine_set("worker-b", json!({}), &aws("ami-old"));
    let running = cluster.run();

    // Blocked: the message names what blocks, the limit and what to do.
    let status = cluster.until("Upgradeable", "False", "VersionUnknown").await;
    let message = Cluster::message(&status, "Upgradeable");
    for word in [
        "openshift-machine-api/worker-b",
        "OpenShift 4.13.0, RHEL 9.2",
        "Patch updates within this version are not held back",
        "tread.dev/boot-image",
    ] {
        assert!(message.contains(word), "{word}: {message}");
    }
    assert_eq!((status.count, status.oldest.as_deref()), (Some(2), Some("unknown")));
    assert_eq!(status.limit.as_deref(), Some("OpenShift 4.13.0, RHEL 9.2"));
    assert_eq!(status.resources[0].name, "worker-b", "the oldest first");
    assert_eq!(status.resources[1].known_by, "Catalogue");
    assert_eq!(running.known.now().unwrap().1.resources.len(), 2, "what /v1/bootimages answers");
    assert_eq!(
        status.resources[1].version.as_deref(),
        Some("9.8.20260428-0 (OpenShift 4.22.0, RHEL 9.8)")
    );
    let columns = cluster.kubectl(&["get", "bimg", "cluster"]);
    assert!(
        columns.contains("Automatic   unknown   OpenShift 4.13.0, RHEL 9.2   False"),
        "{columns}"
    );
    cluster.event("BootImagesTooOld").await;

    // The annotation is believed, and does not help an image that is too old.
    cluster.annotate("worker-b", "412.86.202308081056-0");
    let status = cluster.until("Upgradeable", "False", "BelowLimit").await;
    let message = Cluster::message(&status, "Upgradeable");
    assert!(message.contains("tread bootimages patch"), "{message}");
    assert_eq!(
        status.oldest.as_deref(),
        Some("412.86.202308081056-0 (OpenShift 4.12.0, RHEL 8.6)")
    );

    // What it says to do is what helps, once the annotation is not true any more.
    let (facts, waits) = gather(&cluster.client, &cluster.namespace).await;
    assert!(waits.is_empty(), "{waits:?}");
    assert_eq!(
        report(&facts, &[]).verdict.message,
        status.conditions.iter().find(|it| it.type_ == "SkewWithinLimit").unwrap().message
    );
    let key = Key {
        kind: "machinesets.machine.openshift.io",
        namespace: "openshift-machine-api".to_owned(),
        name: "worker-b".to_owned(),
    };
    let remedy = remedy_of(&facts, &key, &facts.machines[&key]);
    cluster.shell(&remedy.command.unwrap());
    cluster.kubectl(&[
        "-n",
        "openshift-machine-api",
        "annotate",
        "machinesets.machine.openshift.io",
        "worker-b",
        "tread.dev/boot-image-",
    ]);
    cluster.until("Upgradeable", "True", "WithinLimit").await;
    cluster.event("BootImagesWithinLimit").await;

    // A record that is too old, and the risk that an admin takes.
    cluster.spec(r#"{"mode": "Manual", "manual": {"mode": "OCPVersion", "ocpVersion": "4.10.0"}}"#);
    let status = cluster.until("Upgradeable", "False", "BelowLimit").await;
    assert_eq!(status.oldest.as_deref(), Some("4.10.0"));
    cluster.spec(r#"{"mode": "Manual", "manual": {"mode": "OCPVersion", "ocpVersion": "4.16.0"}}"#);
    cluster.until("Upgradeable", "True", "WithinLimit").await;
    cluster.spec(r#"{"mode": "None", "manual": null}"#);
    let status = cluster.until("Upgradeable", "True", "ModeNone").await;
    assert!(Cluster::message(&status, "Upgradeable").contains("the risk is an admin's"));
    cluster.event("BootImagesNotJudged").await;
    let text = cluster.metrics.text().unwrap();
    assert!(text.contains("tread_boot_images_none 1"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_would_forget_of_a_release_is_kept_and_the_object_is_put_back() {
    let cluster = Cluster::openshift().await;
    cluster.machine_set("worker-a", json!({}), &aws("ami-0554dc0c838511ba9"));
    let _running = cluster.run();
    cluster.until("Upgradeable", "True", "WithinLimit").await;
    let release = cluster.kept_releases().await;
    assert_eq!(release, [RUNNING]);

    // The next release: first the images are replaced, then the stamp, and then
    // the release is there. In between the last verdict stays.
    let none = r#"{"architectures": {"x86_64": {}}}"#;
    cluster.catalogue("4.23.1", RUNNING, none);
    cluster.machine_set("worker-c", json!({}), &aws("ami-of-another-release"));
    let status = cluster.until("SkewWithinLimit", "Unknown", "NotKnownYet").await;
    let message = Cluster::message(&status, "SkewWithinLimit");
    assert!(message.contains("is not stamped for 4.22.0 yet"), "{message}");
    cluster.catalogue("4.23.1", "4.23.1", none);
    cluster.says("SkewWithinLimit", "is stamped for 4.23.1").await;
    let status = cluster.until("SkewWithinLimit", "Unknown", "NotKnownYet").await;
    let message = Cluster::message(&status, "SkewWithinLimit");
    assert!(message.contains("is stamped for 4.23.1, and the cluster runs 4.22.0"), "{message}");
    assert_eq!(Cluster::condition(&status, "Upgradeable").status, "True");
    let known = status.resources.iter().find(|it| it.name == "worker-a").unwrap();
    assert_eq!(known.known_by, "Catalogue", "what was kept is known");

    cluster.version(&["4.23.1", RUNNING, "4.12.0"]);
    let status = cluster.until("Upgradeable", "False", "VersionUnknown").await;
    let known = status.resources.iter().find(|it| it.name == "worker-a").unwrap();
    assert_eq!(known.version.as_deref(), Some("9.8.20260428-0 (OpenShift 4.22.0, RHEL 9.8)"));

    // Older stream metadata by an admin.
    cluster.given("older", "4.14.3", "ami-of-another-release");
    let status = cluster.until("Upgradeable", "True", "WithinLimit").await;
    let known = status.resources.iter().find(|it| it.name == "worker-c").unwrap();
    assert_eq!(
        known.version.as_deref(),
        Some("414.92.202402051952-0 (OpenShift 4.14.0, RHEL 9.2)")
    );

    cluster.kubectl(&["delete", "bimg", "cluster"]);
    let status = cluster.until("Upgradeable", "True", "WithinLimit").await;
    assert_eq!(status.count, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_or_read_holds_up_nothing_else() {
    let cluster = Cluster::openshift().await;
    // Nobody can write here, and the stream metadata would be kept here.
    cluster.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
        "metadata": {"name": "tread-boot-images", "namespace": cluster.namespace}}));
    // An older definition, which does not know a field of the status.
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/limit";
    let patch = json!([{"op": "remove", "path": field}]).to_string();
    cluster.kubectl(&["patch", "crd", "bootimages.tread.dev", "--type=json", "-p", &patch]);
    let mut deep = json!([]);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    cluster.machine_set("deep", json!({}), &deep);
    let running = cluster.run();

    let status = cluster.until("Upgradeable", "False", "VersionUnknown").await;
    assert_eq!((status.count, status.limit.as_deref()), (Some(1), None));
    let message = Cluster::message(&status, "Upgradeable");
    assert!(message.contains("MachineSet cannot be read: it is nested more than 100"), "{message}");
    let message = Cluster::message(&status, "Degraded");
    assert!(message.contains("openshift-machine-api/deep"), "{message}");
    eventually("what was not written is told", async || {
        let failing = running.watches.not_written().join("\n");
        failing.contains("tread-boot-images").then_some(())
    })
    .await;
    eventually("the old definition is told of", async || {
        running.watches.outdated().join("\n").contains("status.limit").then_some(())
    })
    .await;

    // What is dropped is not written again. Judged twice: the first look is over.
    let get = ["get", "bimg", "cluster", "-o", "jsonpath={.metadata.resourceVersion}"];
    let before = cluster.kubectl(&get);
    let known = || std::sync::Arc::as_ptr(&running.known.now().unwrap());
    for version in ["9.6.20250523-0", "9.6.20250523-1"] {
        let judged = known();
        cluster.annotate("deep", version);
        eventually("it is judged again", async || (known() != judged).then_some(())).await;
    }
    assert_eq!(cluster.kubectl(&get), before, "nothing that it says has changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_api_is_read_in_the_version_that_is_served() {
    let cluster = Cluster::bare(ControlPlane::options()).await;
    cluster.kubectl(&["create", "namespace", "capi"]);
    let _running = cluster.run();
    cluster.until("Upgradeable", "True", "NothingToJudge").await;
    // Installed later, and only in the newer version.
    let newer = |kind: &machines::Kind| Kind { version: "v1beta2", ..*kind };
    let kinds =
        [machines::CAPI_MACHINE_DEPLOYMENT, machines::VSPHERE_TEMPLATE].map(|it| newer(&it));
    cluster.plane.define(&kinds.map(|kind| machines::definition(&kind).unwrap())).unwrap();
    let reference = json!({"apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "VSphereMachineTemplate", "name": "t"});
    cluster.apply(&json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
        "metadata": {"name": "md", "namespace": "capi"},
        "spec": {"template": {"spec": {"infrastructureRef": reference}}}}));
    cluster.apply(&json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "VSphereMachineTemplate", "metadata": {"name": "t", "namespace": "capi"},
        "spec": {"template": {"spec": {"template": "rhcos-414.92.202402051952-0-vmware"}}}}));
    let api: kube::Api<tread_kube::api::BootImages> = kube::Api::all(cluster.client.clone());
    eventually("it is judged", async || {
        let status = api.get("cluster").await.ok()?.status?;
        let [one] = status.resources.as_slice() else { return None };
        (one.name == "md" && one.known_by == "Name").then_some(())
    })
    .await;
    let (facts, waits) = gather(&cluster.client, &cluster.namespace).await;
    assert_eq!((facts.machines.len(), waits), (1, Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_machine_apis_and_without_openshift_there_is_nothing_to_hold_back() {
    let cluster = Cluster::bare(ControlPlane::options()).await;
    let _running = cluster.run();
    let status = cluster.until("Upgradeable", "True", "NothingToJudge").await;
    assert_eq!((status.count, status.limit), (Some(0), None));
    assert!(status.openshift.is_none());
}
