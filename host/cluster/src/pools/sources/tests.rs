use super::*;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::sync::Arc;
use tread_kube::api::MachineConfigPool;

fn configs(all: &[(&str, &str)]) -> Configs {
    let config = |role: &str| ConfigMeta {
        labels: [(ROLE_LABEL.to_owned(), role.to_owned())].into(),
        ..ConfigMeta::default()
    };
    all.iter().map(|(name, role)| ((*name).to_owned(), Arc::new(config(role)))).collect()
}

fn pool(selector: serde_json::Value) -> Pool {
    let object: MachineConfigPool = serde_json::from_value(
        serde_json::json!({"metadata": {"name": "x"}, "spec": {"machineConfigSelector": selector}}),
    )
    .unwrap();
    Pool::of(&object)
}

#[test]
fn those_of_the_worker_role_come_first_and_those_of_the_pools_own_last() {
    let all =
        configs(&[("99-a", "infra"), ("00-z", "infra"), ("50-b", "worker"), ("99-m", "master")]);
    let infra = pool(serde_json::json!({"matchExpressions": [
        {"key": ROLE_LABEL, "operator": "In", "values": ["worker", "infra"]}]}));
    assert_eq!(sources(&infra, &all), ["50-b", "00-z", "99-a"]);
    let master = pool(serde_json::json!({"matchLabels": {ROLE_LABEL: "master"}}));
    assert_eq!(sources(&master, &all), ["99-m"]);
}

#[test]
fn configs_are_sources_by_their_labels_alone_and_a_pool_that_selects_nothing_has_none() {
    let mut all = configs(&[("60-owned", "worker"), ("50-b", "worker")]);
    all.insert("rendered-worker-1".to_owned(), Arc::new(ConfigMeta::default()));
    let worker = pool(serde_json::json!({"matchLabels": {ROLE_LABEL: "worker"}}));
    assert_eq!(sources(&worker, &all), ["50-b", "60-owned"]);
    assert_eq!(sources(&pool(serde_json::json!({})), &all), [""; 0]);
}

#[test]
fn a_config_is_as_old_as_its_last_write_without_those_of_its_status() {
    let mut metadata: ObjectMeta = serde_json::from_value(serde_json::json!({
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [
            {"manager": "a", "operation": "Update", "time": "2026-01-01T00:00:05Z"},
            {"manager": "b", "operation": "Update", "time": "2026-01-01T00:01:00Z", "subresource": "status"},
        ],
    }))
    .unwrap();
    let meta = ConfigMeta::of(&mut metadata);
    assert_eq!(meta.modified - meta.created, 5);
}
