//! What OpenShift's operator would do: the cases in `tests/cases/operator.yaml`,
//! and what holds besides.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use tread_model::operator::{Forecast, Policies, Rendered, Topology, forecast};
use tread_model::read::{Input, document_values};

/// A MachineConfig out of what a case says of a side.
fn machine_config(side: &Value) -> Value {
    let empty = Map::new();
    let object = |value: &Value| value.as_object().unwrap_or(&empty).clone();
    let named = |key: &str, name: &str, value: &Value| {
        let mut entry = match value {
            Value::String(text) => {
                let escaped: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
                object(&json!({"contents": {"source": format!("data:,{escaped}")}}))
            }
            other => object(other),
        };
        entry.insert(key.to_owned(), json!(name));
        Value::Object(entry)
    };
    let list = |of: &str, key: &str| -> Vec<Value> {
        object(&side[of]).iter().map(|(name, value)| named(key, name, value)).collect()
    };
    let mut spec = object(&side["spec"]);
    let config = spec.entry("config").or_insert_with(|| json!({}));
    let mut storage = object(&config["storage"]);
    storage.insert("files".to_owned(), Value::Array(list("files", "path")));
    config["storage"] = Value::Object(storage);
    config["systemd"] = json!({"units": list("units", "name")});
    config["passwd"] = json!({"users": side["users"]});
    json!({"spec": spec})
}

fn rendered(side: &Value) -> Rendered {
    Rendered::of([machine_config(side)])
}

fn object_with(policy: &Value) -> Value {
    json!({"metadata": {"name": "cluster"}, "spec": {"nodeDisruptionPolicy": policy}})
}

fn because(forecast: &Forecast) -> BTreeMap<&str, &str> {
    let parts = forecast.because.iter();
    parts.map(|part| (part.id.as_str(), part.effect.as_str())).collect()
}

#[test]
fn the_operator_does_what_the_cases_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/operator.yaml");
    let bytes = std::fs::read(path).expect("the cases");
    let cases = document_values(&Input { name: "operator.yaml", bytes: &bytes }).expect("YAML");
    assert!(cases.len() >= 40, "{} cases", cases.len());
    for case in cases {
        let case = case.value;
        let title = case["title"].as_str().expect("a title");
        let policies = Policies::of(Some(&object_with(&case["policy"])));
        let topology = match case["topology"].as_str() {
            None => Topology::HighlyAvailable,
            Some("single") => Topology::SingleReplica,
            Some(other) => panic!("{title}: {other} is no topology"),
        };
        let found = forecast(&rendered(&case["old"]), &rendered(&case["new"]), &policies, topology);
        let expect = &case["expect"];
        assert_eq!(found.effect.as_str(), expect["effect"], "{title}: {found:?}");
        assert_eq!(found.summary, expect["summary"], "{title}: {found:?}");
        assert_eq!(json!(because(&found)), expect["because"], "{title}: {found:?}");
        assert!(found.because.iter().all(|part| !part.rule.is_empty()), "{title}: {found:?}");
    }
}

fn one_file(path: &str, text: &str) -> Value {
    json!({"files": {path: text}})
}

#[test]
fn what_the_operator_has_worked_out_counts_once_it_has_seen_the_newest_spec() {
    let entry = |actions: Value| json!({"files": [{"path": "/etc/a", "actions": actions}]});
    let reload = json!([{"type": "Reload", "reload": {"serviceName": "a.service"}}]);
    for (observed, summary) in [(1, "none"), (2, "reload a.service"), (3, "reload a.service")] {
        let object = json!({
            "metadata": {"name": "cluster", "generation": 2},
            "spec": {"nodeDisruptionPolicy": entry(json!([{"type": "None"}]))},
            "status": {
                "observedGeneration": observed,
                "nodeDisruptionPolicyStatus": {"clusterPolicies": entry(reload.clone())},
            },
        });
        let policies = Policies::of(Some(&object));
        let (old, new) = (rendered(&json!({})), rendered(&one_file("/etc/a", "x")));
        let found = forecast(&old, &new, &policies, Topology::HighlyAvailable);
        assert_eq!(found.summary, summary, "observedGeneration {observed}");
    }
}

#[test]
fn without_a_machine_configuration_the_defaults_are_in_force() {
    let new = rendered(&one_file("/etc/containers/policy.json", "{}"));
    let found =
        forecast(&rendered(&json!({})), &new, &Policies::of(None), Topology::HighlyAvailable);
    assert_eq!(found.summary, "reload crio.service");
}

#[test]
fn several_machine_configs_are_merged_as_for_a_pool() {
    let first = machine_config(&json!({
        "files": {"/etc/a": "x", "/etc/b": "x"},
        "units": {"a.service": {"enabled": true, "dropins": [{"name": "1.conf", "contents": "a"}]}},
        "users": [{"name": "core", "sshAuthorizedKeys": ["a"]}],
        "spec": {"kernelArguments": ["a"], "osImageURL": "one", "kernelType": "realtime"},
    }));
    let second = machine_config(&json!({
        "files": {"/etc/b": "y"},
        "units": {"a.service": {"dropins": [{"name": "1.conf", "contents": "b"}]}},
        "users": [{"name": "core", "sshAuthorizedKeys": ["a", "b"]}],
        "spec": {"kernelArguments": ["a", "b"], "osImageURL": ""},
    }));
    let expected = machine_config(&json!({
        "files": {"/etc/a": "x", "/etc/b": "y"},
        "units": {"a.service": {"enabled": true, "dropins": [{"name": "1.conf", "contents": "b"}]}},
        "users": [{"name": "core", "sshAuthorizedKeys": ["a", "b"]}],
        "spec": {"kernelArguments": ["a", "a", "b"], "osImageURL": "one", "kernelType": "realtime"},
    }));
    assert_eq!(Rendered::of([first, second]), Rendered::of([expected]));
}

#[test]
fn what_only_provisioning_sets_is_merged_as_the_operator_renders_it() {
    let of = |config: Value| {
        Rendered::of([machine_config(
            &json!({"spec": {"config": config}, "files": {"/etc/a": "x"}}),
        )])
    };
    let both = |first: Value, second: Value| {
        let config = |config: Value| json!({"spec": {"config": config}});
        let file = json!({"files": {"/etc/a": "x"}});
        let all = [file, config(first), config(second)];
        Rendered::of(all.map(|side| machine_config(&side)))
    };
    let disk = |partitions: Value| json!({"storage": {"disks": [{"device": "/dev/nvme0n1", "partitions": partitions}]}});
    let filesystem = |fields: Value| {
        let mut filesystem = json!({"device": "/dev/sda1", "format": "xfs"});
        filesystem.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap());
        json!({"storage": {"filesystems": [filesystem]}})
    };
    for (first, second, rendered) in [
        (
            disk(json!([{"label": "var", "number": 5, "sizeMiB": 1}])),
            disk(json!([{"label": "var", "number": 5, "sizeMiB": 2}])),
            disk(json!([{"label": "var", "number": 5, "sizeMiB": 2}])),
        ),
        (
            filesystem(json!({"path": "/var"})),
            filesystem(json!({})),
            filesystem(json!({"path": "/var"})),
        ),
        (
            filesystem(json!({"mountOptions": ["a"]})),
            filesystem(json!({"mountOptions": ["a"]})),
            filesystem(json!({"mountOptions": ["a", "a"]})),
        ),
        (
            json!({"kernelArguments": {"shouldExist": ["a", "b"]}}),
            json!({"kernelArguments": {"shouldNotExist": ["a"]}}),
            json!({"kernelArguments": {"shouldExist": ["b"], "shouldNotExist": ["a"]}}),
        ),
        (
            json!({"storage": {"links": [{"path": "/etc/b", "target": "/etc/c"}]}}),
            json!({"storage": {"directories": [{"path": "/etc/b"}]}}),
            json!({"storage": {"directories": [{"path": "/etc/b"}]}}),
        ),
    ] {
        assert_eq!(both(first.clone(), second.clone()), of(rendered), "{first} and {second}");
    }
}

#[test]
fn a_file_that_a_controller_renders_again_alike_stays_as_it_was_written() {
    let path = "/etc/containers/registries.conf";
    let before = rendered(&one_file(path, "short-name-mode = \"\"\n"));
    assert_eq!(before.clone().with_file(path, "short-name-mode = \"\"\n"), before);
    let after = before.clone().with_file(path, "");
    let found = forecast(&before, &after, &Policies::default(), Topology::HighlyAvailable);
    assert_eq!(found.summary, "reload crio.service");
}

#[test]
fn what_the_operator_runs_twice_is_listed_once() {
    let new = json!({"files": {
        "/etc/containers/policy.json": "a", "/etc/containers/registries.d/a": "b",
        "/etc/containers/registries.conf": "",
    }});
    let found = forecast(
        &rendered(&json!({})),
        &rendered(&new),
        &Policies::default(),
        Topology::HighlyAvailable,
    );
    assert_eq!(found.actions, ["reload crio.service"]);
}

#[test]
fn nothing_that_a_cluster_could_hold_makes_it_panic() {
    let odd = [
        json!(null),
        json!([]),
        json!({"spec": []}),
        json!({"spec": {"config": {"storage": {"files": [1, {"path": 2}, {"path": "/a"}]}}}}),
        json!({"spec": {"config": {"passwd": {"users": "x"}, "systemd": []}, "kernelArguments": 1}}),
        json!({"spec": {"config": {"storage": []}, "fips": "yes"}}),
    ];
    for old in &odd {
        for new in &odd {
            let sides = [old, new].map(|side| Rendered::of([side.clone(), side.clone()]));
            forecast(&sides[0], &sides[1], &Policies::of(Some(old)), Topology::HighlyAvailable);
        }
    }
}
