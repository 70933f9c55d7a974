//! What is not said of pools and nodes costs no reboot that nobody heard of.

use super::fixture::{Cluster, ROLE, Tread, condition, current, files};
use super::{REBOOT, status, tread_ready};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_cluster::previews::{Described, Edit, describe, warnings};
use tread_kube::api::disruption_plan::{Cause, CauseEvent};
use tread_kube::api::{DisruptionPlan, MachineConfig, MachineConfigPool};
use tread_model::digest::Digest;
use tread_model::effect::Effect;
use tread_test_bed::{ControlPlane, eventually};

fn cause(name: &str, event: CauseEvent) -> Cause {
    Cause { kind: "MachineConfig".to_owned(), name: name.to_owned(), event }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_from_a_pool_that_does_not_say_what_it_is_made_of_is_planned() {
    let cluster = Cluster::start(ControlPlane::options()).await;
    cluster.pool("worker", 2).await;
    cluster.config("00-worker", "worker", files(&[("/etc/motd", "hello\n")])).await;
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    // Times have only seconds: what is as old as what was rendered may be newer.
    let made = cluster.api::<MachineConfig>().get("50-a").await.unwrap();
    let made = made.creation_timestamp().unwrap().0.as_second();
    eventually("it is later", async || (Timestamp::now().as_second() > made).then_some(())).await;
    let rendered = cluster.render("worker").await;
    cluster.patch_pool("worker", json!({"spec": {"configuration": {"source": null}}})).await;
    cluster.settle("worker").await;
    let pool = cluster.api::<MachineConfigPool>().get("worker").await.unwrap();
    assert_eq!(pool.spec.configuration.unwrap().source, None);
    let tread = Tread::start(&cluster.client);
    tread.previewer.ready().await;
    assert_eq!(tread.previewer.plans(), [], "its nodes have what it says");

    let labels: BTreeMap<String, String> = [(ROLE.to_owned(), "master".to_owned())].into();
    let body = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "50-a", "labels": labels}, "spec": files(&[("/etc/a", "a")]),
    });
    let body = Arc::from(body.to_string().into_bytes());
    let moved = Edit::MachineConfig { name: "50-a".to_owned(), labels, body };
    for change in [Edit::NoMachineConfig("50-a".to_owned()), moved] {
        let previews = tread.previewer.preview(&[change]).await.unwrap();
        let [preview] = previews.as_slice() else { panic!("{previews:?}") };
        let plans = describe(preview, Digest::of(b""), Default::default());
        let [plan] = plans.as_slice() else { panic!("{plans:?}") };
        assert_eq!(plan.cause.to_string(), "MachineConfig/50-a deleted");
        assert_eq!(plan.status.effect.as_deref(), Some(REBOOT));
        let noted = &plan.status.transitions[0].warnings;
        let doubt = format!("it cannot be told what {rendered} was made of");
        assert!(noted.iter().any(|it| it.starts_with(&doubt)), "{noted:?}");
        let lines = warnings(&previews, &cause("50-a", CauseEvent::Deleted));
        assert!(lines[0].starts_with("tread: pool worker, 2 nodes: drain + reboot"), "{lines:?}");
    }

    cluster.delete::<MachineConfig>("50-a").await;
    let plan = cluster.plan("MachineConfig/50-a deleted", |_| true).await;
    assert_eq!(status(&plan).effect.as_deref(), Some(REBOOT));
    // Who comes later sees it by what was rendered.
    drop(tread);
    let later = Tread::start(&cluster.client);
    later.previewer.ready().await;
    cluster.plan("MachineConfigPool/worker rollout", |_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_config_of_a_pool_and_the_last_are_planned() {
    let cluster = Cluster::start(ControlPlane::options()).await;
    cluster.pool("worker", 1).await;
    let tread = Tread::start(&cluster.client);
    tread_ready(&tread).await;
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let first = cluster.plan("MachineConfig/50-a created", |_| true).await;
    assert_eq!(condition(&first, "Planned"), ("True", "Planned"));
    let change = &status(&first).transitions[0].changes[0];
    assert_eq!((change.id.as_str(), change.edit.as_str()), ("file:/etc/a", "added"));
    drop(tread);

    let tread = Tread::start(&cluster.client);
    tread_ready(&tread).await;
    cluster.delete::<MachineConfig>("50-a").await;
    let last = cluster.plan("MachineConfig/50-a deleted", |_| true).await;
    assert_eq!(condition(&last, "Planned"), ("True", "Planned"));
    assert_ne!(last.name_any(), first.name_any());
    let change = &status(&last).transitions[0].changes[0];
    assert_eq!((change.id.as_str(), change.edit.as_str()), ("file:/etc/a", "removed"));
}

/// A change that is about to be made, with a file.
fn about_to(name: &str, path: &str) -> Edit {
    let labels: BTreeMap<String, String> = [(ROLE.to_owned(), "worker".to_owned())].into();
    let body = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name, "labels": labels}, "spec": files(&[(path, "a")]),
    });
    Edit::MachineConfig {
        name: name.to_owned(),
        labels,
        body: Arc::from(body.to_string().into_bytes()),
    }
}

/// What a laptop says of a change: causes and effects, the whole last.
async fn asked(laptop: &Tread, change: Edit) -> Vec<Described> {
    let previews = laptop.previewer.preview(&[change]).await.unwrap();
    previews.iter().flat_map(|it| describe(it, Digest::of(b""), Timestamp::default())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_laptop_counts_what_waits_in_a_pool_that_nobody_renders() {
    let cluster = Cluster::start(ControlPlane::options()).await;
    cluster.pool("worker", 2).await;
    cluster.config("00-worker", "worker", files(&[("/etc/motd", "hello\n")])).await;
    let service = Tread::start(&cluster.client);
    tread_ready(&service).await;
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let waits = cluster.plan("MachineConfig/50-a created", |_| true).await;

    let rules = "apiVersion: tread.dev/v1alpha1\nkind: DisruptionPolicy\nmetadata: {name: ours}\n\
                 spec:\n  rules: [{match: ['file:/etc/b'], actions: []}]\n";
    let laptop = Tread::start(&cluster.client);
    laptop.leads.send(false).unwrap();
    laptop.policies.send(Arc::new(current(&[rules]))).unwrap();
    laptop.previewer.ready().await;
    let plans = asked(&laptop, about_to("60-b", "/etc/b")).await;
    let said: Vec<(String, Effect)> =
        plans.iter().map(|plan| (plan.cause.to_string(), plan.effect)).collect();
    let expected = [
        ("MachineConfig/60-b created", Effect::None),
        ("MachineConfig/50-a created", Effect::Reboot),
        ("MachineConfigPool/worker rollout", Effect::Reboot),
    ];
    assert_eq!(said, expected.map(|(cause, effect)| (cause.to_owned(), effect)));
    let warning = plans[0].status.transitions[0].warnings[0].as_str();
    assert!(warning.starts_with("It is not known what these nodes have"), "{warning}");
    assert!(warning.contains(&format!("{} ({REBOOT})", waits.name_any())), "{warning}");

    // What is in the cluster already is what waits, not nothing.
    let again = asked(&laptop, about_to("50-a", "/etc/a")).await;
    let [own] = again.as_slice() else { panic!("{again:?}") };
    assert_eq!((own.name.as_str(), own.effect), (waits.name_any().as_str(), Effect::Reboot));

    // Nor is that nothing of which no plan says anything.
    let known = asked(&laptop, about_to("00-worker", "/etc/motd")).await;
    assert!(known.iter().any(|plan| plan.cause.name == "00-worker"), "{known:?}");
    drop(service);
    cluster.delete::<DisruptionPlan>(&waits.name_any()).await;
    let unknown = asked(&laptop, about_to("50-a", "/etc/a")).await;
    let [own] = unknown.as_slice() else { panic!("{unknown:?}") };
    assert_eq!((own.cause.name.as_str(), own.effect), ("50-a", Effect::Reboot));
    let planned = own.status.conditions.iter().find(|it| it.type_ == "Planned").unwrap();
    assert_eq!(planned.status, "False");
    assert!(planned.message.contains("its nodes do not say what they have"), "{planned:?}");
}
