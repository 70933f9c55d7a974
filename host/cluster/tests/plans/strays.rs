//! A node that boots into a pool of its own name and registers as a worker is told of
//! while that can still be ended.

use super::fixture::{Cluster, Tread, files};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use tread_kube::api::disruption_plan::PlanStray;
use tread_kube::api::{DisruptionPlanStatus, MachineConfigPool};
use tread_test_bed::{ControlPlane, eventually};

const PREFIX: &str = "machineconfiguration.openshift.io";

/// The pools `worker` and `infra`, both rendered; what is rendered for them.
pub(super) async fn two_pools(cluster: &Cluster) -> (String, String) {
    for (pool, nodes) in [("worker", 1), ("infra", 1)] {
        cluster.pool(pool, nodes).await;
        let text = format!("{pool}\n");
        cluster.config(&format!("00-{pool}"), pool, files(&[("/etc/motd", &text)])).await;
        cluster.render(pool).await;
        cluster.settle(pool).await;
    }
    let target = async |pool: &str| {
        let pool = cluster.api::<MachineConfigPool>().get(pool).await.unwrap();
        pool.spec.configuration.unwrap().name.unwrap()
    };
    (target("worker").await, target("infra").await)
}

async fn registers(cluster: &Cluster, name: &str, roles: &[&str], has: &[(&str, &str)]) -> Node {
    let labels: std::collections::BTreeMap<String, &str> =
        roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), "")).collect();
    let annotations: std::collections::BTreeMap<String, &str> =
        has.iter().map(|(key, value)| (format!("{PREFIX}/{key}"), *value)).collect();
    let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
    cluster.create::<Node>(json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata})).await
}

async fn patch_labels(cluster: &Cluster, node: &str, labels: serde_json::Value) {
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    cluster.api::<Node>().patch(node, &PatchParams::default(), &patch).await.unwrap();
}

/// What was reported of strays: kind, name and text.
async fn reported(cluster: &Cluster) -> Vec<(String, String, String)> {
    let events: Api<Event> = Api::all(cluster.client.clone());
    let all = events.list(&ListParams::default()).await.unwrap().items;
    let of_strays = all.into_iter().filter(|it| it.reason.as_deref() == Some("NodeStrays"));
    of_strays
        .map(|it| {
            let about = it.regarding.unwrap_or_default();
            let name = (about.kind.unwrap_or_default(), about.name.unwrap_or_default());
            (name.0, name.1, it.note.unwrap_or_default())
        })
        .collect()
}

/// Waits for a plan of the pool `worker`, whatever its cause.
async fn planned(cluster: &Cluster, is_it: impl Fn(&DisruptionPlanStatus) -> bool) {
    eventually("a plan of worker", async || {
        let plans = cluster.plans().await;
        let mut of_worker = plans.iter().filter(|plan| plan.spec.pool == "worker");
        of_worker.any(|plan| plan.status.as_ref().is_some_and(&is_it)).then_some(())
    })
    .await;
}

async fn strays(tread: &Tread, count: i64) {
    let what = format!("{count} strays");
    eventually(&what, async || (tread.metrics.strays.get() == count).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_strays_is_told_of_on_itself_both_pools_and_the_plan_that_would_move_it() {
    let cluster = Cluster::start(ControlPlane::options()).await;
    let (worker, infra) = two_pools(&cluster).await;
    let tread = Tread::start(&cluster.client);
    tread.previewer.ready().await;
    let pools_before = cluster.api::<MachineConfigPool>().list(&ListParams::default()).await;
    // As OpenShift 4.22 writes them, and as 4.18 does.
    let both: [(&str, &[(&str, &str)]); 2] = [
        ("new-22", &[("currentConfig", &infra), ("firstPivotConfig", &infra)]),
        ("new-18", &[("currentConfig", &infra)]),
    ];
    for (number, (name, annotations)) in both.into_iter().enumerate() {
        let node = registers(&cluster, name, &["worker"], annotations).await;
        let command =
            format!("kubectl label node {name} --overwrite node-role.kubernetes.io/infra=");
        for (kind, about) in
            [("Node", name), ("MachineConfigPool", "infra"), ("MachineConfigPool", "worker")]
        {
            eventually(&format!("{name} on {kind} {about}"), async || {
                let is_it = |(k, n, text): &(String, String, String)| {
                    (k.as_str(), n.as_str()) == (kind, about) && text.contains(&command)
                };
                reported(&cluster).await.iter().any(is_it).then_some(())
            })
            .await;
        }
        strays(&tread, i64::try_from(number).unwrap() + 1).await;
        let named = |strays: &[PlanStray]| {
            strays.iter().any(|it| {
                it.node == name
                    && it.booted == "infra"
                    && it.ends == command
                    && it.because.contains(&infra)
            })
        };
        planned(&cluster, |plan| {
            let mut ways = plan.transitions.iter();
            ways.any(|way| way.from == infra && way.to == worker && named(&way.nodes.strays))
        })
        .await;
        let now = cluster.api::<Node>().get(name).await.unwrap();
        assert_eq!(now.resource_version(), node.resource_version(), "nobody wrote the node");
    }
    let pools = cluster.api::<MachineConfigPool>().list(&ListParams::default()).await.unwrap();
    let versions = |all: Vec<MachineConfigPool>| {
        all.iter().map(kube::ResourceExt::resource_version).collect::<Vec<_>>()
    };
    assert_eq!(versions(pools.items), versions(pools_before.unwrap().items));

    // What is printed ends it.
    let command = ["label", "node", "new-22", "--overwrite", "node-role.kubernetes.io/infra="];
    cluster.plane.kubectl(&command).unwrap().success().unwrap();
    strays(&tread, 1).await;
    patch_labels(&cluster, "new-18", json!({"node-role.kubernetes.io/infra": ""})).await;
    strays(&tread, 0).await;

    // Who takes the label away moves the node on purpose.
    let none = json!({"node-role.kubernetes.io/infra": null});
    patch_labels(&cluster, "new-22", none.clone()).await;
    patch_labels(&cluster, "new-18", none).await;
    // The next one that strays is told of after them.
    registers(&cluster, "last", &["worker"], &[("currentConfig", &infra)]).await;
    strays(&tread, 1).await;
    let count = |all: &[(String, String, String)], name: &str| {
        all.iter().filter(|(kind, node, _)| kind == "Node" && node == name).count()
    };
    eventually("the last one is told of", async || {
        (count(&reported(&cluster).await, "last") == 1).then_some(())
    })
    .await;
    let all = reported(&cluster).await;
    assert_eq!((count(&all, "new-22"), count(&all, "new-18")), (1, 1), "{all:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_selector_cannot_be_read_nothing_is_foretold_and_that_is_said() {
    let cluster = Cluster::start(ControlPlane::options()).await;
    let (_, infra) = two_pools(&cluster).await;
    let tread = Tread::start(&cluster.client);
    registers(&cluster, "new", &["worker"], &[("currentConfig", &infra)]).await;
    strays(&tread, 1).await;
    planned(&cluster, |plan| !plan.stale).await;
    let selector = json!({"matchExpressions": [{"key": "site", "operator": "Near"}]});
    cluster
        .create::<MachineConfigPool>(json!({
            "apiVersion": format!("{PREFIX}/v1"), "kind": "MachineConfigPool",
            "metadata": {"name": "edge"}, "spec": {"nodeSelector": selector},
        }))
        .await;
    strays(&tread, 0).await;
    let events: Api<Event> = Api::all(cluster.client.clone());
    let text = eventually("the pool is told of", async || {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let it = all.into_iter().find(|it| it.reason.as_deref() == Some("PoolUnreadable"))?;
        it.note
    })
    .await;
    assert!(text.contains("OpenShift places no node in any pool"), "{text}");
    planned(&cluster, |plan| plan.stale).await;
    // Whoever asks this replica is told so, too.
    let served = |stale: bool| {
        let plans = tread.previewer.plans();
        let unplanned = tread.previewer.unplanned();
        let all = plans.iter().all(|plan| plan.status.stale == stale);
        (!plans.is_empty() && all && unplanned.is_empty() != stale).then_some(unplanned)
    };
    let unplanned = eventually("what is served is stale", async || served(true)).await;
    let why = unplanned.values().next().unwrap();
    assert!(why.contains("until somebody mends the pool edge"), "{why}");
    cluster.delete::<MachineConfigPool>("edge").await;
    strays(&tread, 1).await;
    planned(&cluster, |plan| !plan.stale).await;
    eventually("what is served is true again", async || served(false)).await;
}

/// Has the API server fail for Events of strays: it is to ask somebody who is not there.
async fn no_events(cluster: &Cluster) {
    let webhook = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "no-events"},
        "webhooks": [{
            "name": "no-events.example.com", "sideEffects": "None", "failurePolicy": "Fail",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "matchConditions": [{"name": "strays", "expression": "object.reason == 'NodeStrays'"}],
            "rules": [{"apiGroups": ["events.k8s.io"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["events"]}]}]});
    cluster.plane.apply(&webhook.to_string()).unwrap();
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": "tried", "namespace": "default"}, "reason": "NodeStrays",
        "action": "Try", "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal",
        "reportingController": "test", "reportingInstance": "test",
        "regarding": {"kind": "Node", "name": "a"}}))
    .unwrap();
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), "default");
    let params = PostParams { dry_run: true, ..PostParams::default() };
    eventually("Events of strays fail", async || {
        events.create(&params, &event).await.is_err().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_failed_is_told_once_the_api_server_takes_it() {
    let cluster = Cluster::start(ControlPlane::options()).await;
    let (_, infra) = two_pools(&cluster).await;
    let tread = Tread::start(&cluster.client);
    tread.previewer.ready().await;
    no_events(&cluster).await;
    registers(&cluster, "new", &["worker"], &[("currentConfig", &infra)]).await;
    strays(&tread, 1).await;
    let failed = "kind=\"events\",code=\"500\"";
    eventually("Events failed", async || {
        tread.metrics.text().ok().filter(|text| text.contains(failed))
    })
    .await;
    assert_eq!(reported(&cluster).await, []);
    let webhook = ["delete", "validatingwebhookconfiguration", "no-events"];
    cluster.plane.kubectl(&webhook).unwrap().success().unwrap();
    for (kind, name) in
        [("Node", "new"), ("MachineConfigPool", "infra"), ("MachineConfigPool", "worker")]
    {
        eventually(&format!("{kind} {name} is told of"), async || {
            let all = reported(&cluster).await;
            all.iter().any(|it| (it.0.as_str(), it.1.as_str()) == (kind, name)).then_some(())
        })
        .await;
    }
}
