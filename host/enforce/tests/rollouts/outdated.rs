//! Definitions that are older than tread: the API server drops what they do not know.

use super::agent::well;
use super::fixture::Cluster;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use tread_kube::api::{MachineConfigPool, NodeUpdate, Rollout, crds};
use tread_test_bed::eventually;

/// Makes a definition one that does not know this field of the status, which would hold this.
async fn forgets<K>(cluster: &Cluster, (plural, field): (&str, &str), probe: Value)
where
    K: kube::Resource<Scope = k8s_openapi::ClusterResourceScope>,
    K::DynamicType: Default,
{
    let is_it = |name: &str| name.starts_with(&format!("{plural}."));
    let crd = crds::enforcing()
        .into_iter()
        .find(|crd| is_it(crd.metadata.name.as_deref().unwrap()))
        .unwrap();
    let mut value = serde_json::to_value(&crd).unwrap();
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let fields = value.pointer_mut(fields).unwrap().as_object_mut().unwrap();
    assert!(fields.remove(field).is_some(), "{field}");
    cluster.plane.apply(&value.to_string()).unwrap();
    let kind = ApiResource::erase::<K>(&K::DynamicType::default());
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &kind);
    eventually("the API server takes the definition up", async || {
        let object: Value = json!({"apiVersion": kind.api_version, "kind": kind.kind,
            "metadata": {"name": "probe"}, "spec": probe["spec"]});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let _ = api.create(&PostParams::default(), &object).await;
        let patch = Patch::Merge(json!({"status": {field: probe["value"]}}));
        let kept = api.patch_status("probe", &PatchParams::default(), &patch).await.ok()?;
        kept.data["status"][field].is_null().then_some(())
    })
    .await;
    api.delete("probe", &Default::default()).await.unwrap();
}

/// How many writes of the status of these objects the API server has taken.
fn writes(cluster: &Cluster, plural: &str) -> f64 {
    let text = cluster.plane.kubectl(&["get", "--raw", "/metrics"]).unwrap().success().unwrap();
    let counted = text.lines().filter(|line| {
        line.starts_with("apiserver_request_total")
            && line.contains("group=\"tread.dev\"")
            && line.contains(&format!("resource=\"{plural}\""))
            && line.contains("subresource=\"status\"")
            && (line.contains("verb=\"PUT\"") || line.contains("verb=\"PATCH\""))
    });
    counted.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[tokio::test]
async fn what_older_definitions_of_rollouts_drop_is_told_and_not_written_at_each_look() {
    const LOOKS: u8 = 6;
    let cluster = Cluster::with(2, 1).await;
    let rollout = json!({"spec": {}, "value": "a"});
    forgets::<Rollout>(&cluster, ("rollouts", "message"), rollout).await;
    let condition = json!({"type": "Updated", "status": "True", "reason": "HasIt", "message": "a",
        "lastTransitionTime": "2026-10-21T07:28:00Z"});
    let update = json!({"spec": {"pool": ""}, "value": [condition]});
    forgets::<NodeUpdate>(&cluster, ("nodeupdates", "conditions"), update).await;
    let replica = cluster.replica();
    let _agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    cluster.file("90-next", "/etc/none", "2").await;
    cluster.all_have("/etc/none", "2").await;

    let pools: Api<MachineConfigPool> = cluster.api();
    // What somebody writes there is mended when the pool is looked at and told again.
    let looked_at = async || {
        let wrong = Patch::Merge(json!({"status": {"machineCount": 7}}));
        pools.patch_status("worker", &PatchParams::default(), &wrong).await.unwrap();
        eventually("the pool is looked at", async || {
            let status = pools.get("worker").await.ok()?.status?;
            (status.machine_count == Some(2)).then_some(())
        })
        .await;
    };
    // What was still to be said is said by then.
    looked_at().await;
    looked_at().await;
    let before = ["rollouts", "nodeupdates"].map(|plural| writes(&cluster, plural));
    for _ in 0..LOOKS {
        looked_at().await;
    }
    let after = ["rollouts", "nodeupdates"].map(|plural| writes(&cluster, plural));
    for (before, after) in before.into_iter().zip(after) {
        assert!(after - before < f64::from(LOOKS) / 2.0, "{before} and then {after} writes");
    }
    let said = replica.watches.outdated();
    for part in [
        "the definition of rollouts is older than this tread, and the API server drops status.message:",
        "the definition of nodeupdates is older than this tread",
    ] {
        assert!(said.iter().any(|it| it.contains(part)), "{part}: {said:?}");
    }
    // What is new to say is written all the same.
    cluster.rollout_says(json!({"haltAfter": 2})).await;
    let generation = cluster.rollout().await.metadata.generation;
    eventually("the Rollout says it of its new generation", async || {
        let status = cluster.rollout().await.status?;
        (status.observed_generation == generation).then_some(())
    })
    .await;
}
