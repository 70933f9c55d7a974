//! Plans for what is about to happen to nodes, on a real API server.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by these"
)]

mod drains;
mod failing;
mod fixture;
mod flagged;
mod foreign;
mod foretold;
mod operator;
mod strays;
mod unknown;

use fixture::{Cluster, Tread, broken, condition, current, files, shadowed};
use kube::ResourceExt as _;
use serde_json::json;
use std::sync::Arc;
use tread_cluster::plans::Retention;
use tread_cluster::previews::MOST_CAUSES;
use tread_kube::api::mirrors::ImageDigestMirrorSet;
use tread_kube::api::{DisruptionPlan, MachineConfig, MachineConfiguration};
use tread_test_bed::{ControlPlane, eventually};

fn status(plan: &DisruptionPlan) -> &tread_kube::api::DisruptionPlanStatus {
    plan.status.as_ref().unwrap()
}

const REBOOT: &str = "drain + reboot";

#[tokio::test(flavor = "multi_thread")]
async fn a_new_config_is_planned_before_it_is_rendered_and_alike_when_it_is() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let tread = Tread::start(&cluster.client);
    let before = cluster.api::<tread_kube::api::MachineConfigPool>().get("worker").await.unwrap();
    let from = before.spec.configuration.unwrap().name.unwrap();

    cluster.config("50-chrony", "worker", files(&[("/etc/foo.conf", "server a\n")])).await;
    let cause = "MachineConfig/50-chrony created";
    let early = cluster.plan(cause, |_| true).await;
    let said = status(&early);
    assert_eq!(early.spec.pool, "worker");
    assert_eq!(said.effect.as_deref(), Some(REBOOT));
    assert_eq!(said.tread.as_deref(), Some(REBOOT));
    assert_eq!((said.nodes, said.fallbacks, said.stale), (Some(3), Some(1), false));
    let [way] = said.transitions.as_slice() else { panic!("{:?}", said.transitions) };
    assert_eq!((way.from.as_str(), way.to.as_str()), (from.as_str(), ""));
    assert_eq!(
        way.changes.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(),
        ["file:/etc/foo.conf"]
    );
    assert_eq!(condition(&early, "Pending"), ("True", "NotRendered"));
    assert_eq!(early.metadata.owner_references.as_ref().unwrap()[0].kind, "MachineConfigPool");

    // The operator renders it: what is planned is the same to the digest.
    let to = cluster.render("worker").await;
    let late = cluster.plan(cause, |plan| status(plan).transitions[0].to == to).await;
    assert_eq!(late.name_any(), early.name_any());
    assert_eq!(status(&late).transitions[0].digest, way.digest);
    assert_eq!(condition(&late, "Pending"), ("True", "NotRolledOut"));

    // Nodes follow, one by one.
    cluster.roll(&["worker-0"], &to).await;
    cluster.plan(cause, |plan| status(plan).nodes == Some(2)).await;
    cluster.settle("worker").await;
    let over = cluster.plan(cause, |plan| condition(plan, "Pending").0 == "False").await;
    assert_eq!(condition(&over, "Pending"), ("False", "Over"));
    assert_eq!(tread.previewer.plans(), []);
    let text = tread.metrics.text().unwrap();
    assert!(text.contains("tread_decisions_total{policy=\"\",outcome=\"fallback\"}"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_changes_at_once_have_a_plan_each_and_one_for_all_of_them() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let _tread = Tread::start(&cluster.client);
    let keys = json!({"config": {"ignition": {"version": "3.4.0"},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA me"]}]}}});
    cluster.config("50-keys", "worker", keys).await;
    cluster.config("50-arguments", "worker", json!({"kernelArguments": ["quiet"]})).await;
    let all = cluster.plan("MachineConfigPool/worker rollout", |_| true).await;
    let keys = cluster
        .plan("MachineConfig/50-keys created", |plan| {
            status(plan).effect.as_deref() == Some("none")
        })
        .await;
    let arguments = cluster.plan("MachineConfig/50-arguments created", |_| true).await;
    assert_eq!(status(&all).effect.as_deref(), Some(REBOOT));
    assert_eq!(status(&keys).tread.as_deref(), Some("none"));
    assert_eq!(status(&arguments).effect.as_deref(), Some(REBOOT));
    let ids = |plan: &DisruptionPlan| {
        let changes = status(plan).transitions[0].changes.iter();
        changes.map(|it| it.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&keys), ["ssh-keys:core"]);
    assert_eq!(ids(&arguments), ["kernel-arguments"]);
    assert_eq!(ids(&all), ["kernel-arguments", "ssh-keys:core"]);
    assert!(status(&keys).transitions[0].warnings[0].contains(&all.name_any()));

    // One is taken back: the other is alone, and the plan for all is over.
    cluster.delete::<MachineConfig>("50-arguments").await;
    cluster
        .plan("MachineConfigPool/worker rollout", |plan| condition(plan, "Pending").0 == "False")
        .await;
    cluster
        .plan("MachineConfig/50-arguments created", |plan| condition(plan, "Pending").0 == "False")
        .await;
    cluster
        .plan("MachineConfig/50-keys created", |plan| {
            condition(plan, "Pending").0 == "True"
                && status(plan).transitions[0].warnings.is_empty()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_too_many_changes_at_once_those_that_cost_most_have_plans_of_their_own() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let tread = Tread::start(&cluster.client);
    for number in 0..MOST_CAUSES + 4 {
        let keys = json!({"config": {"ignition": {"version": "3.4.0"}, "passwd": {"users": [
            {"name": "core", "sshAuthorizedKeys": [format!("ssh-ed25519 AAAA {number}")]}]}}});
        cluster.config(&format!("50-key-{number:02}"), "worker", keys).await;
    }
    let all = "MachineConfigPool/worker rollout";
    let counts = |words: &'static str| {
        move |plan: &DisruptionPlan| {
            status(plan).transitions[0].warnings.iter().any(|it| it.starts_with(words))
        }
    };
    cluster.plan(all, counts("4 more pending changes have no plan of their own")).await;
    let last = format!("MachineConfig/50-key-{:02} created", MOST_CAUSES - 1);
    cluster.plan(&last, |plan| condition(plan, "Pending").0 == "True").await;

    cluster.config("99-z", "worker", json!({"kernelArguments": ["quiet"]})).await;
    let costly = cluster.plan("MachineConfig/99-z created", |_| true).await;
    assert_eq!(status(&costly).effect.as_deref(), Some(REBOOT));
    let whole = cluster.plan(all, counts("5 more pending changes have no plan of their own")).await;
    let out =
        cluster.plan(&last, |plan| condition(plan, "Pending") == ("Unknown", "LeftOut")).await;
    let said = status(&out).conditions.iter().find(|it| it.type_ == "Pending").unwrap();
    assert!(said.message.contains(&whole.name_any()), "{}", said.message);
    assert_eq!(tread.previewer.plans().len(), MOST_CAUSES + 1);
    let is_pending = |plan: &&DisruptionPlan| condition(plan, "Pending").0 == "True";
    assert_eq!(cluster.plans().await.iter().filter(is_pending).count(), MOST_CAUSES + 1);
    // What lost its place is over once its change is.
    cluster.delete::<MachineConfig>(&format!("50-key-{:02}", MOST_CAUSES - 1)).await;
    cluster.plan(&last, |plan| condition(plan, "Pending").0 == "False").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_already_differ_are_counted_by_the_config_that_they_have() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let second = cluster.render("worker").await;
    cluster.roll(&["worker-1"], &second).await;
    let _tread = Tread::start(&cluster.client);
    cluster.config("50-b", "worker", files(&[("/etc/b", "b")])).await;
    let all = cluster.plan("MachineConfigPool/worker rollout", |_| true).await;
    let ways: Vec<(bool, i64, usize)> = status(&all)
        .transitions
        .iter()
        .map(|way| (way.from == second, way.nodes.count, way.changes.len()))
        .collect();
    assert_eq!(ways, [(false, 2, 2), (true, 1, 1)]);
    assert_eq!(status(&all).transitions[1].nodes.first, ["worker-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_pool_waits_and_says_so_and_has_a_plan_of_its_own_when_it_goes_on() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    cluster.patch_pool("worker", json!({"spec": {"paused": true}})).await;
    let _tread = Tread::start(&cluster.client);
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    cluster
        .plan("MachineConfig/50-a created", |plan| condition(plan, "Pending") == ("True", "Paused"))
        .await;
    cluster.render("worker").await;
    cluster.patch_pool("worker", json!({"spec": {"paused": false}})).await;
    let plan = cluster.plan("MachineConfigPool/worker unpaused", |_| true).await;
    assert_eq!(status(&plan).nodes, Some(3));
    cluster.settle("worker").await;
    cluster
        .plan("MachineConfigPool/worker unpaused", |plan| condition(plan, "Pending").0 == "False")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_or_changed_is_planned_too() {
    let cluster = Cluster::start(ControlPlane::options()).await;
    cluster.pool("worker", 1).await;
    cluster.config("00-worker", "worker", files(&[("/etc/motd", "hello\n")])).await;
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    cluster.render("worker").await;
    cluster.settle("worker").await;
    let _tread = Tread::start(&cluster.client);
    cluster.delete::<MachineConfig>("50-a").await;
    let plan = cluster.plan("MachineConfig/50-a deleted", |_| true).await;
    let change = &status(&plan).transitions[0].changes[0];
    assert_eq!((change.id.as_str(), change.edit.as_str()), ("file:/etc/a", "removed"));
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let over = cluster
        .plan("MachineConfig/50-a deleted", |plan| condition(plan, "Pending").0 == "False")
        .await;
    assert_eq!(condition(&over, "Pending").1, "Withdrawn");
    let params = kube::api::PatchParams::default();
    let patch = json!({"spec": files(&[("/etc/motd", "good day\n")])});
    let configs = cluster.api::<MachineConfig>();
    configs.patch("00-worker", &params, &kube::api::Patch::Merge(patch)).await.unwrap();
    let plan = cluster.plan("MachineConfig/00-worker changed", |_| true).await;
    let change = &status(&plan).transitions[0].changes[0];
    assert_eq!((change.id.as_str(), change.edit.as_str()), ("file:/etc/motd", "changed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn mirrors_are_rendered_over_what_the_pool_has() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let _tread = Tread::start(&cluster.client);
    let mirrors = json!([{"source": "quay.example/a", "mirrors": ["mirror.example/a"]}]);
    cluster
        .create::<ImageDigestMirrorSet>(json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet",
            "metadata": {"name": "quay"}, "spec": {"imageDigestMirrors": mirrors},
        }))
        .await;
    let plan = cluster.plan("ImageDigestMirrorSet/quay created", |_| true).await;
    assert_eq!(status(&plan).effect.as_deref(), Some("reload crio.service"));
    assert_eq!(status(&plan).tread.as_deref(), Some("reload crio.service"));
    assert_eq!(status(&plan).fallbacks, Some(0));
    cluster.delete::<ImageDigestMirrorSet>("quay").await;
    cluster
        .plan("ImageDigestMirrorSet/quay created", |plan| condition(plan, "Pending").0 == "False")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_the_operator_the_effect_is_what_the_operator_will_do() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let tread = Tread::start(&cluster.client);
    tread.policies.send(Arc::new(current(&[
        "apiVersion: tread.dev/v1alpha1\nkind: DisruptionPolicy\nmetadata: {name: ours}\nspec:\n  \
         rules: [{match: ['file:/etc/a'], actions: []}]\n",
    ]))).unwrap();
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let plan = cluster.plan("MachineConfig/50-a created", |_| true).await;
    assert_eq!(status(&plan).effect.as_deref(), Some(REBOOT));
    assert_eq!(status(&plan).tread.as_deref(), Some("none"));
    let measured = |spared: i64, not: i64| {
        let text = tread.metrics.text().unwrap();
        let lines = [format!("tread_reboots_avoided {spared}"), format!("tread_reboots {not}")];
        assert!(lines.iter().all(|line| text.lines().any(|it| it == line)), "{text}");
    };
    measured(0, 3);
    cluster
        .create::<MachineConfiguration>(json!({
            "apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration",
            "metadata": {"name": "cluster"}, "spec": {"nodeDisruptionPolicy": {"files": [
                {"path": "/etc/a", "actions": [{"type": "Restart",
                    "restart": {"serviceName": "a.service"}}]}]}},
        }))
        .await;
    let plan = cluster
        .plan("MachineConfig/50-a created", |plan| status(plan).effect.as_deref() != Some(REBOOT))
        .await;
    assert_eq!(status(&plan).effect.as_deref(), Some("restart a.service"));
    measured(3, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_cluster_without_the_operator_tread_renders_and_its_effect_is_the_only_one() {
    let cluster = Cluster::start(ControlPlane::options()).await;
    cluster.pool("worker", 2).await;
    cluster.config("00-worker", "worker", files(&[("/etc/motd", "hello\n")])).await;
    let _tread = Tread::start(&cluster.client);
    // What is there when tread comes is what the nodes have.
    tread_ready(&_tread).await;
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let plan = cluster.plan("MachineConfig/50-a created", |_| true).await;
    assert_eq!(
        (status(&plan).effect.as_deref(), status(&plan).tread.as_deref()),
        (Some(REBOOT), None)
    );
    assert_eq!(status(&plan).nodes, Some(2));
    cluster.delete::<MachineConfig>("50-a").await;
    let plan = cluster
        .plan("MachineConfig/50-a created", |plan| condition(plan, "Pending").0 == "False")
        .await;
    assert_eq!(condition(&plan, "Pending").1, "Withdrawn");
}

/// Waits until what the pools are made of is known.
async fn tread_ready(tread: &Tread) {
    eventually("the pools are known", async || {
        (!tread.previewer.snapshot().baselines.is_empty()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_changes_says_which_plans_it_made_gentler() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let tread = Tread::start(&cluster.client);
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let before = cluster.plan("MachineConfig/50-a created", |_| true).await;
    assert_eq!(status(&before).tread.as_deref(), Some(REBOOT));
    tread.policies.send(Arc::new(current(&[
        "apiVersion: tread.dev/v1alpha1\nkind: DisruptionPolicy\nmetadata: {name: ours}\nspec:\n  \
         rules: [{match: ['file:/etc/a'], actions: []}]\n",
    ]))).unwrap();
    let after = cluster
        .plan("MachineConfig/50-a created", |plan| status(plan).tread.as_deref() == Some("none"))
        .await;
    assert_eq!(after.name_any(), before.name_any());
    assert_ne!(status(&after).inputs, status(&before).inputs);
    // The same policy, but it cannot decide any more.
    let now = Arc::clone(&tread.policies.borrow());
    tread.policies.send(Arc::new(broken(&now, "ours"))).unwrap();
    cluster
        .plan("MachineConfig/50-a created", |plan| status(plan).tread.as_deref() == Some(REBOOT))
        .await;
    let text = tread.metrics.text().unwrap();
    let failed = "tread_policy_failures_total{policy=\"ours\",failure=\"compile-timeout\"}";
    assert!(text.contains(failed), "{text}");
    assert!(!text.contains("tread_preview_time_seconds_count 0\n"), "{text}");
    let name = after.name_any();
    let selector = format!("involvedObject.name={name}");
    let args = [
        "wait",
        "--for=jsonpath={.reason}=PlanChanged",
        "events",
        "--timeout=600s",
        "--field-selector",
        &selector,
    ];
    cluster.plane.kubectl(&args).unwrap().success().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_in_the_shadow_is_named_with_what_it_would_change() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let tread = Tread::start(&cluster.client);
    let rules = "apiVersion: tread.dev/v1alpha1\nkind: DisruptionPolicy\nmetadata: {name: ours}\n\
                 spec:\n  rules: [{match: ['file:/etc/a'], actions: []}]\n";
    tread.policies.send(Arc::new(shadowed(&[rules]))).unwrap();
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let plan = cluster.plan("MachineConfig/50-a created", |_| true).await;
    assert_eq!(status(&plan).tread.as_deref(), Some(REBOOT), "it decides nothing");
    let reason = &status(&plan).transitions[0].changes[0].reason;
    let claims = "In Shadow, where it decides nothing: ours claims this.";
    assert!(reason.ends_with(claims), "{reason}");
    let warnings = &status(&plan).transitions[0].warnings;
    let expected = "If ours, in Shadow, decided: saves 3 steps (drain, reboot, uncordon).";
    assert!(warnings.iter().any(|it| **it == expected), "{warnings:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_the_api_server_is_down_is_planned_when_it_is_back() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let tread = Tread::start(&cluster.client);
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    cluster.plan("MachineConfig/50-a created", |_| true).await;
    assert_eq!(tread.watches.waiting(), [""; 0]);
    cluster.plane.restart(tread_test_bed::Part::ApiServer).unwrap();
    cluster.config("50-b", "worker", files(&[("/etc/b", "b")])).await;
    cluster.plan("MachineConfig/50-b created", |_| true).await;
    // What somebody deletes comes back, while it is true.
    let plan = cluster.plan("MachineConfig/50-a created", |_| true).await;
    cluster.delete::<DisruptionPlan>(&plan.name_any()).await;
    cluster.plan("MachineConfig/50-a created", |it| it.uid() != plan.uid()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_does_not_lead_knows_the_plans_and_writes_none() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let tread = Tread::start(&cluster.client);
    tread.leads.send(false).unwrap();
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    eventually("it knows the plan", async || (!tread.previewer.plans().is_empty()).then_some(()))
        .await;
    assert_eq!(cluster.plans().await, []);
    tread.leads.send(true).unwrap();
    cluster.plan("MachineConfig/50-a created", |_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_whose_time_is_over_writes_nothing_though_it_was_not_told_so_yet() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let over = Some(std::time::Duration::ZERO);
    let tread = Tread::leading(&cluster.client, Retention::default(), over);
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    eventually("it knows the plan", async || (!tread.previewer.plans().is_empty()).then_some(()))
        .await;
    // What comes with the next look was written after what came with this one.
    cluster.config("50-b", "worker", files(&[("/etc/b", "b")])).await;
    eventually("it knows all", async || (tread.previewer.plans().len() == 3).then_some(())).await;
    assert_eq!(cluster.plans().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_cannot_be_read_and_a_node_in_two_pools_are_told_of() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let _tread = Tread::start(&cluster.client);
    cluster.pool("infra", 1).await;
    cluster.pool("gpu", 0).await;
    let patch =
        json!({"spec": {"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}});
    cluster.patch_pool("worker", patch).await;
    let label = ["label", "node", "infra-0", "node-role.kubernetes.io/gpu="];
    cluster.plane.kubectl(&label).unwrap().success().unwrap();
    let said = async |words: &[&str]| {
        eventually(&words.join(", "), async || {
            let events = cluster.plane.kubectl(&["get", "events", "-o", "wide"]).unwrap().stdout;
            words.iter().all(|words| events.contains(words)).then_some(())
        })
        .await;
    };
    said(&["PoolUnreadable", "spec.nodeSelector: ", "OpenShift places no node"]).await;
    // Nobody is in any pool before that is mended.
    let mended = json!({"spec": {"nodeSelector": {"matchExpressions": null}}});
    cluster.patch_pool("worker", mended).await;
    said(&["InSeveralPools", "the pools gpu, infra"]).await;
    cluster.pool("master", 1).await;
    let label = ["label", "node", "master-0", "node-role.kubernetes.io/gpu="];
    cluster.plane.kubectl(&label).unwrap().success().unwrap();
    said(&["MasterCounts", "pool gpu selects it too"]).await;
}
