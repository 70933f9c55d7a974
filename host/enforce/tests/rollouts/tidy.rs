//! Rendered configs that nobody names any more go, and nothing else does.

use super::agent::well;
use super::fixture::Cluster;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::Duration;
use tread_kube::api::disruption_plan::Transition;
use tread_kube::api::{DisruptionPlan, DisruptionPlanStatus, MachineConfig, MachineConfigPool};
use tread_model::rendering::RENDERED_BY;
use tread_test_bed::eventually;

/// One that was rendered for the pool, as tread makes them.
fn rendered(name: &str, pool: &MachineConfigPool) -> MachineConfig {
    serde_json::from_value(json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name, "annotations": {RENDERED_BY: "tread tests"},
            "ownerReferences": [{
                "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
                "name": "worker", "uid": pool.metadata.uid, "controller": true}]},
        "spec": {"config": {"ignition": {"version": "3.4.0"}}},
    }))
    .unwrap()
}

/// Makes one in a second in which none was made before: which one is older is told by seconds.
async fn make(cluster: &Cluster, config: &MachineConfig, last: Option<Time>) -> Option<Time> {
    let api = cluster.api::<MachineConfig>();
    let name = config.metadata.name.as_deref().unwrap();
    let made = eventually("it is made in a second of its own", async || {
        let made = match api.create(&PostParams::default(), config).await {
            Ok(made) => made,
            // It was made, and its answer was lost.
            Err(_) => api.get_opt(name).await.ok()??,
        };
        let created = made.metadata.creation_timestamp;
        if created == last {
            api.delete(name, &DeleteParams::default()).await.ok()?;
            return None;
        }
        created
    });
    Some(made.await)
}

#[tokio::test]
async fn the_oldest_rendered_configs_that_nobody_names_go_and_what_a_plan_names_or_a_machine_was_served_stays()
 {
    let cluster = Cluster::with(1, 1).await;
    let pool = cluster.api::<MachineConfigPool>().get("worker").await.unwrap();
    let names: Vec<String> = (1..=5).map(|at| format!("rendered-worker-old-{at}")).collect();
    let mut last = None;
    for name in &names {
        last = make(&cluster, &rendered(name, &pool), last).await;
    }
    // A plan of long ago, for a pool that is gone, by which somebody may still look something up.
    let plan = json!({
        "apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPlan", "metadata": {"name": "old"},
        "spec": {"pool": "gone",
            "cause": {"kind": "MachineConfig", "name": "a", "event": "Changed"}},
    });
    cluster.apply::<DisruptionPlan>(plan).await;
    let way = Transition { from: names[1].clone(), to: "gone".to_owned(), ..Transition::default() };
    let status = DisruptionPlanStatus { transitions: vec![way], ..Default::default() };
    let patch = Patch::Merge(json!({"status": status}));
    let plans = cluster.api::<DisruptionPlan>();
    plans.patch_status("old", &PatchParams::default(), &patch).await.unwrap();

    // A machine was served the first one, by a claim that does not end soon.
    let served = json!({"metadata": {"name": "tread-joining"},
        "data": {format!("served.{}", names[0]): "9999999999"}});
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    maps.create(&PostParams::default(), &serde_json::from_value(served).unwrap()).await.unwrap();

    let replica = cluster.replica_that_tidies(Duration::from_millis(500));
    let _agents = cluster.agents(&replica, well());
    cluster.all_have("/etc/first", "1").await;
    let there = async || {
        let all = cluster.api::<MachineConfig>().list(&Default::default()).await.ok()?;
        let all = all.items.into_iter().filter_map(|it| it.metadata.name);
        Some(all.filter(|name| name.starts_with("rendered-worker-")).collect::<Vec<String>>())
    };
    let left = eventually("one of them goes", async || {
        let there = there().await?;
        (!there.contains(&names[2])).then_some(there)
    })
    .await;
    let target = cluster.rollout().await.status.unwrap().target.unwrap().name;
    // The newest three stay in any case, and so does what nodes have.
    for name in [&names[0], &names[1], &names[3], &names[4], &target] {
        assert!(left.contains(name), "{name} is not there: {left:?}");
    }
    // Without its plan it goes as well; so it was looked at again, and nothing else goes.
    plans.delete("old", &DeleteParams::default()).await.unwrap();
    let left = eventually("the one that was named goes", async || {
        let there = there().await?;
        (!there.contains(&names[1])).then_some(there)
    })
    .await;
    for name in [&names[0], &names[3], &names[4], &target] {
        assert!(left.contains(name), "{name} is not there: {left:?}");
    }
    // What nobody rendered is no such config.
    let own = cluster.api::<MachineConfig>().get_opt("50-first").await.unwrap();
    assert!(own.is_some());
}
