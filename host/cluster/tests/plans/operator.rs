//! What OpenShift writes by itself is told by what made it do so.

use super::fixture::{Cluster, ROLE, Tread, condition, files};
use super::status;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tread_kube::api::mirrors::ImageDigestMirrorSet;
use tread_kube::api::words::{OPERATORS_DAEMON, OPERATORS_NAMESPACE};
use tread_kube::api::{ClusterVersion, DisruptionPlan, MachineConfig, crds};
use tread_model::mirrors::{self, REGISTRIES_CONF};
use tread_model::read::{Input, sides};
use tread_test_bed::ControlPlane;

const GENERATED_BY: &str = "machineconfiguration.openshift.io/generated-by-controller-version";

/// What the operator makes of mirrors.
fn registries_conf(mirrors: &Value) -> String {
    let text = mirrors.to_string();
    let inputs = [Input { name: "mirrors", bytes: text.as_bytes() }];
    let (mut side, _) = sides(&inputs, &inputs).unwrap();
    mirrors::apply(&mut side.config, &side.mirrors).unwrap();
    let file = side.config.files.iter().find(|file| file.path == REGISTRIES_CONF).unwrap();
    let bytes = tread_model::contents::decode(&file.contents).unwrap().unwrap();
    String::from_utf8(bytes.into_owned()).unwrap()
}

async fn release(cluster: &Cluster, history: Value) {
    let status = json!({"status": {"desired": {"version": "4.20.1"}, "history": history}});
    let versions = cluster.api::<ClusterVersion>();
    let params = PatchParams::default();
    versions.patch_status("version", &params, &Patch::Merge(status)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn new_templates_of_a_release_are_due_to_the_update_and_an_admins_config_is_not() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    cluster
        .create::<ClusterVersion>(json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
            "metadata": {"name": "version"}, "spec": {"clusterID": "1"},
        }))
        .await;
    let before = json!({"state": "Completed", "version": "4.20.0"});
    release(&cluster, json!([{"state": "Partial", "version": "4.20.1"}, before])).await;
    let _tread = Tread::start(&cluster.client);
    let patch = json!({
        "metadata": {"annotations": {GENERATED_BY: "2"}},
        "spec": files(&[("/etc/motd", "good day\n")]),
    });
    let configs = cluster.api::<MachineConfig>();
    let params = PatchParams::default();
    configs.patch("00-worker", &params, &Patch::Merge(patch)).await.unwrap();
    let plan = cluster.plan("ClusterVersion/version changed", |_| true).await;
    assert_eq!(status(&plan).transitions[0].changes[0].id, "file:/etc/motd");

    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let own = cluster.plan("MachineConfig/50-a created", |_| true).await;
    let ids: Vec<&str> =
        status(&own).transitions[0].changes.iter().map(|change| change.id.as_str()).collect();
    assert_eq!(ids, ["file:/etc/a"]);
    let update = cluster
        .plan("ClusterVersion/version changed", |plan| {
            !status(plan).transitions[0].warnings.is_empty()
        })
        .await;
    let ids: Vec<&str> =
        status(&update).transitions[0].changes.iter().map(|change| change.id.as_str()).collect();
    assert_eq!(ids, ["file:/etc/motd"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_openshifts_daemon_is_there_plans_say_what_its_operator_will_do() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    cluster.plane.define(&crds::enforcing()).unwrap();
    let _tread = Tread::rolling_out(&cluster.client);
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let cause = "MachineConfig/50-a created";
    let operated =
        |plan: &DisruptionPlan| status(plan).transitions.iter().any(|way| way.operator.is_some());
    cluster.plan(cause, |plan| !operated(plan) && status(plan).tread.is_none()).await;
    let namespace = json!({"metadata": {"name": OPERATORS_NAMESPACE}});
    cluster.create::<Namespace>(namespace).await;
    let labels = json!({"app": OPERATORS_DAEMON});
    let daemon = json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": OPERATORS_DAEMON, "namespace": OPERATORS_NAMESPACE},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "one", "image": "one"}]}}}});
    cluster.plane.apply(&daemon.to_string()).unwrap();
    let plan = cluster.plan(cause, operated).await;
    assert!(status(&plan).tread.is_some(), "{plan:?}");
    let delete = ["delete", "daemonset", OPERATORS_DAEMON, "-n", OPERATORS_NAMESPACE];
    cluster.plane.kubectl(&delete).unwrap().success().unwrap();
    cluster.plan(cause, |plan| !operated(plan) && status(plan).tread.is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_config_that_the_operator_makes_of_mirrors_is_due_to_the_mirrors() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let _tread = Tread::start(&cluster.client);
    let cause = "ImageDigestMirrorSet/quay created";
    let mirrors = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet",
        "metadata": {"name": "quay"}, "spec": {"imageDigestMirrors": [
            {"source": "quay.example/a", "mirrors": ["mirror.example/a"]}]},
    });
    cluster.create::<ImageDigestMirrorSet>(mirrors.clone()).await;
    let early = cluster.plan(cause, |_| true).await;
    let text = registries_conf(&mirrors);
    cluster
        .create::<MachineConfig>(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": "99-worker-generated-registries", "labels": {ROLE: "worker"}},
            "spec": files(&[(REGISTRIES_CONF, &text)]),
        }))
        .await;
    let to = cluster.render("worker").await;
    let late = cluster.plan(cause, |plan| status(plan).transitions[0].to == to).await;
    assert_eq!(late.name_any(), early.name_any());
    assert_eq!(status(&late).tread.as_deref(), Some("reload crio.service"));
    assert_eq!(status(&late).transitions[0].steps, status(&early).transitions[0].steps);
    assert_eq!(cluster.plans().await.len(), 1);

    // They go, and with them what was made of them.
    cluster.settle("worker").await;
    cluster.plan(cause, |plan| condition(plan, "Pending").0 == "False").await;
    cluster.delete::<ImageDigestMirrorSet>("quay").await;
    let plan = cluster.plan("ImageDigestMirrorSet/quay deleted", |_| true).await;
    assert_eq!(status(&plan).transitions[0].changes[0].id, format!("file:{REGISTRIES_CONF}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_image_configuration_says_stays_when_mirrors_are_rendered_anew() {
    let cluster = Cluster::start(ControlPlane::options()).await;
    cluster.pool("worker", 2).await;
    let rendered = "unqualified-search-registries = [\"docker.io\"]\n\n[[registry]]\n  prefix = \
                    \"\"\n  location = \"lab.example\"\n  insecure = true\n\n[[registry]]\n  \
                    prefix = \"\"\n  location = \"bad.example\"\n  blocked = true\n";
    let policy = json!({"default": [{"type": "insecureAcceptAnything"}],
        "transports": {"docker": {"bad.example": [{"type": "reject"}]}}});
    let search = "unqualified-search-registries = [\"quay.example\"]\n";
    let spec = files(&[
        (REGISTRIES_CONF, rendered),
        ("/etc/containers/policy.json", &policy.to_string()),
        ("/etc/containers/registries.conf.d/01-image-searchRegistries.conf", search),
    ]);
    cluster.config("99-worker-generated-registries", "worker", spec).await;
    cluster.render("worker").await;
    cluster.settle("worker").await;
    let _tread = Tread::start(&cluster.client);
    let mirrors = json!([{"source": "quay.example/a", "mirrors": ["lab.example/a"]}]);
    cluster
        .create::<ImageDigestMirrorSet>(json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet",
            "metadata": {"name": "quay"}, "spec": {"imageDigestMirrors": mirrors},
        }))
        .await;
    let plan = cluster.plan("ImageDigestMirrorSet/quay created", |_| true).await;
    let changes = &status(&plan).transitions[0].changes;
    let ids: Vec<&str> = changes.iter().map(|change| change.id.as_str()).collect();
    assert_eq!(ids, [format!("file:{REGISTRIES_CONF}")]);
    assert_eq!(status(&plan).effect.as_deref(), Some("reload crio.service"));
    assert_eq!(status(&plan).tread.as_deref(), Some("reload crio.service"));
}
