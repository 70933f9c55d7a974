//! The definitions of custom resources: what is committed is what the code
//! makes, and what the API server asks of them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of a test fails the test"
)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use std::path::PathBuf;
use tread_kube::api::crds;
use tread_test_bed::golden;

fn all() -> Vec<CustomResourceDefinition> {
    [crds::crds(), crds::enforcing(), crds::openshift()].concat()
}

#[test]
fn a_change_of_a_schema_is_seen_in_review() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for crd in all() {
        let name = crd.metadata.name.clone().unwrap();
        let made = serde_saphyr::to_string(&crd).unwrap();
        golden(&dir.join(format!("{name}.yaml")), &made).unwrap();
    }
    let files = std::fs::read_dir(dir).unwrap().count();
    assert_eq!(files, all().len(), "tests/golden holds a definition that no code makes");
}

/// Every object in a schema, with the path to it.
fn walk(path: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            found.push((path.to_owned(), value.clone()));
            for (name, value) in fields {
                walk(&format!("{path}.{name}"), value, found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                walk(&format!("{path}[{index}]"), value, found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_rule_of_a_schema_has_a_message_for_people() {
    let mut rules = 0;
    for crd in crds::crds() {
        let mut found = Vec::new();
        walk("", &serde_json::to_value(&crd).unwrap(), &mut found);
        for (path, object) in
            found.iter().filter(|(path, _)| path.contains("x-kubernetes-validations["))
        {
            rules += 1;
            let message = object["message"].as_str().unwrap_or_default();
            assert!(message.contains(' '), "{path}: {object}");
            assert!(!message.contains("self."), "{path}: {message}");
        }
    }
    assert!(rules > 15, "{rules}");
}

#[test]
fn every_field_of_our_own_objects_is_explained() {
    for crd in crds::own() {
        let mut found = Vec::new();
        let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
        walk("", &schema, &mut found);
        let mut fields = 0;
        for (path, object) in &found {
            let name = path.rsplit_once('.').map_or("", |(before, _)| before);
            if name.ends_with(".properties") && !path.ends_with(".metadata") {
                fields += 1;
                assert!(object.get("description").is_some(), "{path} has no description");
            }
        }
        assert!(fields > 20, "{fields}");
    }
}

fn columns(crd: &CustomResourceDefinition, wide: bool) -> Vec<String> {
    let columns = crd.spec.versions[0].additional_printer_columns.iter().flatten();
    let shown = columns.filter(|column| (column.priority.unwrap_or(0) > 0) == wide);
    shown.map(|column| column.name.to_uppercase()).collect()
}

#[test]
fn the_columns_are_those_that_people_were_promised() {
    let own = crds::own();
    let [policy, plan, images] = own.as_slice() else { panic!("three of our own") };
    let shown = ["LAYER", "SOURCE", "VERSION", "STATE", "MODE", "CLAIMS", "AGE", "EFFECTS"];
    assert_eq!(columns(policy, false), shown);
    assert_eq!(columns(policy, true), ["DIGEST", "DECISIONS"]);
    let shown =
        ["POOL", "CAUSE", "EFFECT", "TREAD", "NODES", "FALLBACKS", "STALE", "PENDING", "AGE"];
    assert_eq!(columns(plan, false), shown);
    assert_eq!(columns(plan, true), ["BECAUSE"]);
    assert_eq!(columns(images, false), ["MODE", "OLDEST", "LIMIT", "UPGRADEABLE", "AGE"]);
    assert_eq!(columns(images, true), [""; 0]);
    let enforcing = crds::enforcing();
    let updates = enforcing.iter().find(|crd| crd.spec.names.kind == "NodeUpdate").unwrap();
    let shown = ["POOL", "PHASE", "STEP", "CONFIG", "SINCE", "MESSAGE"];
    assert_eq!(columns(updates, false), shown);
    assert_eq!(columns(updates, true), [""; 0]);
    for (crd, short) in [(policy, "dpol"), (plan, "dplan"), (images, "bimg")] {
        assert_eq!(crd.spec.names.short_names, Some(vec![short.to_owned()]));
        assert_eq!((crd.spec.group.as_str(), crd.spec.scope.as_str()), ("tread.dev", "Cluster"));
        assert!(crd.spec.versions[0].subresources.as_ref().unwrap().status.is_some());
    }
}

#[test]
fn a_column_shows_a_field_that_exists() {
    for crd in crds::crds() {
        let version = &crd.spec.versions[0];
        let schema = serde_json::to_value(&version.schema).unwrap();
        for column in version.additional_printer_columns.iter().flatten() {
            if column.json_path.starts_with(".metadata.") || column.json_path.contains('[') {
                continue;
            }
            let pointer = column.json_path.replace('.', "/properties/");
            let free = json!(true);
            let mut at = &schema["openAPIV3Schema"];
            for part in pointer.split('/').skip(1) {
                if at.get("x-kubernetes-preserve-unknown-fields") == Some(&free) {
                    break;
                }
                at = at.get(part).unwrap_or_else(|| panic!("{}", column.json_path));
            }
        }
    }
}

#[test]
fn an_object_of_openshift_loses_nothing_that_a_plan_needs() {
    let spec = json!({
        "baseOSExtensionsContainerImage": "e",
        "config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "/a", "mode": 420}]}},
        "extensions": ["usbguard"],
        "fips": false,
        "kernelArguments": ["a=b"],
        "kernelType": "realtime",
        "osImageURL": "i",
    });
    let read: tread_kube::api::MachineConfigSpec = serde_json::from_value(spec.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), spec);
    let pool = json!({
        "configuration": {"name": "rendered-worker-1", "source": [{"kind": "MachineConfig", "name": "00-worker"}]},
        "machineConfigSelector": {"matchExpressions": [{"key": "role", "operator": "In", "values": ["worker"]}]},
        "nodeSelector": {"matchLabels": {"node-role.kubernetes.io/worker": ""}},
        "maxUnavailable": "10%",
        "paused": true,
    });
    let read: tread_kube::api::MachineConfigPoolSpec =
        serde_json::from_value(pool.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), pool);
}

#[test]
fn what_may_be_left_out_may_be_left_out() {
    let required = |crd: &CustomResourceDefinition| {
        let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
        schema["openAPIV3Schema"]["properties"]["spec"]["required"].clone()
    };
    for crd in all() {
        let name = crd.spec.names.kind.clone();
        // Only tread writes these two.
        let expected = match name.as_str() {
            "DisruptionPlan" => json!(["cause", "pool"]),
            "NodeUpdate" => json!(["pool"]),
            _ => json!(null),
        };
        assert_eq!(required(&crd), expected, "{name}");
    }
}
