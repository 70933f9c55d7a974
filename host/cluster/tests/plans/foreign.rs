//! Plans under a name that tread uses, which somebody else made.

use super::fixture::{Cluster, Tread, files};
use super::{REBOOT, status};
use kube::ResourceExt as _;
use kube::api::PostParams;
use serde_json::{Value, json};
use tread_kube::api::{DisruptionPlan, MachineConfigPool};
use tread_test_bed::{ControlPlane, eventually};

const CAUSE: &str = "MachineConfig/50-a created";

/// A cluster with a change that is pending, and the name that its plan has.
async fn pending() -> (Cluster, DisruptionPlan) {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let tread = Tread::start(&cluster.client);
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let plan = cluster.plan(CAUSE, |_| true).await;
    drop(tread);
    cluster.delete::<DisruptionPlan>(&plan.name_any()).await;
    eventually("it is gone", async || cluster.plans().await.is_empty().then_some(())).await;
    (cluster, plan)
}

async fn made(cluster: &Cluster, name: &str, metadata: Value, spec: Value) -> DisruptionPlan {
    let mut object = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPlan",
        "metadata": {"name": name}, "spec": spec});
    for (field, value) in metadata.as_object().unwrap() {
        object["metadata"][field] = value.clone();
    }
    let object: DisruptionPlan = serde_json::from_value(object).unwrap();
    cluster.api::<DisruptionPlan>().create(&PostParams::default(), &object).await.unwrap()
}

fn spec(pool: &str, name: &str) -> Value {
    json!({"pool": pool, "cause": {"kind": "MachineConfig", "name": name, "event": "Created"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_somebody_made_before_keeps_treads_own_away_no_longer_and_is_told_of() {
    let (cluster, ours) = pending().await;
    let name = ours.name_any();
    for (number, spec, said) in [
        (
            0,
            spec("infra", "50-a"),
            "for pool infra and MachineConfig/50-a created, and owned by no",
        ),
        (1, spec("worker", "60-b"), "for pool worker and MachineConfig/60-b created, and owned by"),
        // It would stay when the pool goes.
        (2, spec("worker", "50-a"), "for pool worker and MachineConfig/50-a created, and owned by"),
    ] {
        let foreign =
            made(&cluster, &name, json!({"labels": {"number": format!("n{number}")}}), spec).await;
        let tread = Tread::start(&cluster.client);
        let plan = cluster.plan(CAUSE, |plan| plan.uid() != foreign.uid()).await;
        assert_eq!((plan.name_any(), &plan.spec), (name.clone(), &ours.spec));
        assert_eq!(status(&plan).tread.as_deref(), Some(REBOOT));
        let pool = cluster.api::<MachineConfigPool>().get("worker").await.unwrap();
        assert_eq!(plan.owner_references()[0].uid, pool.uid().unwrap());
        eventually("it is told of", async || {
            let events =
                ["get", "events", "-A", "--field-selector", "reason=PlanReplaced", "-o", "json"];
            let events = cluster.plane.kubectl(&events).unwrap().success().unwrap();
            let events: Value = serde_json::from_str(&events).unwrap();
            let mut all = events["items"].as_array().unwrap().iter();
            all.find(|it| it["involvedObject"]["uid"] == foreign.uid().unwrap().as_str())
                .map(|it| assert!(it["message"].as_str().unwrap().contains(said), "{it}"))
        })
        .await;
        drop(tread);
        cluster.delete::<DisruptionPlan>(&name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_held_by_a_finalizer_is_waited_for_and_that_is_said() {
    let (cluster, ours) = pending().await;
    let name = ours.name_any();
    let held = json!({"finalizers": ["example.com/holds"]});
    made(&cluster, &name, held, spec("infra", "50-a")).await;
    let tread = Tread::start(&cluster.client);
    let said = "its finalizers are gone: example.com/holds";
    eventually(said, async || {
        tread.watches.not_written().iter().any(|it| it.contains(said)).then_some(())
    })
    .await;
    let free =
        ["patch", "dplan", &name, "--type=merge", "-p", "{\"metadata\":{\"finalizers\":null}}"];
    cluster.plane.kubectl(&free).unwrap().success().unwrap();
    let plan = cluster.plan(CAUSE, |_| true).await;
    assert_eq!(plan.spec, ours.spec);
    eventually("nothing is left", async || tread.watches.not_written().is_empty().then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_brought_back_as_it_was_is_treads_own() {
    let (cluster, ours) = pending().await;
    // As from a backup: without its status.
    let owners = json!({"ownerReferences": ours.owner_references()});
    let back = made(&cluster, &ours.name_any(), owners, spec("worker", "50-a")).await;
    let _tread = Tread::start(&cluster.client);
    let plan = cluster.plan(CAUSE, |_| true).await;
    assert_eq!(plan.uid(), back.uid());
}
