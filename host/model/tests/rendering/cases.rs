//! The cases of `tests/cases/rendering.yaml`, and OpenShift's own.

use crate::laws::{POOL, holds, rendered};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use tread_model::mirrors::data_url;
use tread_model::rendering::{RENDERED_BY, SOURCES};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    case: String,
    sources: Vec<Source>,
    #[serde(default)]
    mirrors: Vec<Value>,
    renders: Option<Value>,
    registries: Option<String>,
    refused: Option<String>,
}

#[derive(Deserialize)]
struct Source {
    name: String,
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    generated: bool,
    #[serde(flatten)]
    spec: Map<String, Value>,
}

impl Source {
    fn text(&self) -> String {
        let mut spec = Value::Object(self.spec.clone());
        if spec.get("config").is_none() {
            spec["config"] = json!({});
        }
        if spec["config"].is_object() && spec["config"].get("ignition").is_none() {
            spec["config"]["ignition"] = json!({"version": "3.4.0"});
        }
        let role = self.role.as_deref().unwrap_or("worker");
        let mut object = json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": {"name": self.name, "uid": format!("uid-of-{}", self.name),
                "labels": {"machineconfiguration.openshift.io/role": role}},
            "spec": spec,
        });
        if self.generated {
            let by = "machineconfiguration.openshift.io/generated-by-controller-version";
            object["metadata"]["annotations"] = json!({by: "abc"});
        }
        object.to_string()
    }
}

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(path)
}

/// A spec without what says nothing, as cases are written.
fn without_defaults(mut spec: Value) -> Value {
    let fields = spec.as_object_mut().unwrap();
    for (name, default) in [
        ("extensions", json!([])),
        ("fips", json!(false)),
        ("kernelArguments", json!([])),
        ("kernelType", json!("default")),
    ] {
        assert!(fields.contains_key(name), "it says nothing of {name}");
        fields.retain(|field, value| !(field == name && *value == default));
    }
    let config = fields["config"].as_object_mut().unwrap();
    config.retain(|field, value| !(field == "ignition" && *value == json!({"version": "3.4.0"})));
    if config.is_empty() {
        fields.remove("config");
    }
    spec
}

#[test]
fn the_configs_of_a_pool_become_one_as_the_cases_say() {
    let text = std::fs::read_to_string(file("cases/rendering.yaml")).unwrap();
    let cases: Vec<Case> = serde_saphyr::from_str(&text).unwrap();
    assert!(cases.len() >= 25, "{} cases", cases.len());
    for case in cases {
        let sources: Vec<String> = case.sources.iter().map(Source::text).collect();
        let mirrors: Vec<String> = case.mirrors.iter().map(Value::to_string).collect();
        let found = rendered(&sources, &mirrors);
        if let Some(words) = case.refused {
            let why = found.err().unwrap_or_else(|| panic!("{}: it is rendered", case.case));
            assert!(why.to_string().contains(&words), "{}: {why}", case.case);
            for text in sources.iter().flat_map(|text| contents(text)) {
                assert!(!why.to_string().contains(&text), "{}: {why}", case.case);
            }
            continue;
        }
        let found = found.unwrap_or_else(|why| panic!("{}: {why}", case.case));
        let mut want = case.renders.unwrap();
        if let Some(text) = &case.registries {
            let files = want["config"]["storage"]["files"].as_array_mut().unwrap();
            let file = files.iter_mut().find(|it| it["contents"]["source"] == "REGISTRIES");
            file.unwrap()["contents"]["source"] = json!(data_url(text));
        }
        assert_eq!(without_defaults(found.object["spec"].clone()), want, "{}", case.case);
        holds(&found, &sources, &mirrors);
    }
}

/// The contents of the files and units of a source, and what they are fetched from.
fn contents(source: &str) -> Vec<String> {
    let source: Value = serde_json::from_str(source).unwrap();
    let config = &source["spec"]["config"];
    let list = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let files =
        list(&config["storage"]["files"]).into_iter().map(|it| it["contents"]["source"].clone());
    let units = list(&config["systemd"]["units"]).into_iter().map(|it| it["contents"].clone());
    let texts = files.chain(units).filter_map(|it| it.as_str().map(str::to_owned));
    let plain = texts.map(|text| text.trim_start_matches("data:,").to_owned());
    plain.filter(|text| text.len() > 3).collect()
}

#[test]
fn what_openshift_renders_of_real_configs_is_rendered_alike() {
    for pool in ["worker", "master"] {
        let read = |name: String| -> Value {
            let path = file(&format!("corpus/openshift/{name}.json"));
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
        };
        let list = read(pool.to_owned());
        let sources = list["items"].as_array().unwrap().iter().map(Value::to_string);
        let found = rendered(&sources.collect::<Vec<_>>(), &[]).unwrap();
        let mut theirs = read(format!("rendered-{pool}"));
        // The operator writes the newest version that it knows.
        theirs["spec"]["config"]["ignition"]["version"] = json!("3.4.0");
        assert_eq!(found.object["spec"], theirs["spec"], "{pool}");
        assert_ne!(found.name, theirs["metadata"]["name"], "{pool}");
    }
}

#[test]
fn the_object_says_who_made_it_of_what_and_whose_it_is() {
    let source = |name: &str, spec: Value| {
        let spec = spec.as_object().unwrap().clone();
        Source { name: name.to_owned(), role: None, generated: false, spec }.text()
    };
    let sources = [source("60-b", json!({"fips": true})), source("50-a", json!({}))];
    let found = rendered(&sources, &[]).unwrap();
    let metadata = &found.object["metadata"];
    assert_eq!(metadata["annotations"][SOURCES], "50-a/uid-of-50-a,60-b/uid-of-60-b");
    let by = metadata["annotations"][RENDERED_BY].as_str().unwrap();
    assert_eq!(by, format!("tread {}", env!("CARGO_PKG_VERSION")));
    // Without `blockOwnerDeletion`, for which OpenShift wants a right to the pool's finalizers.
    let owner = json!([{
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "name": POOL.name, "uid": POOL.uid, "controller": true,
    }]);
    assert_eq!(metadata["ownerReferences"], owner);
    // By another version of tread, and of the same objects made anew, it is the same.
    let anew: Vec<String> = sources.iter().map(|it| it.replace("uid-of", "new-uid-of")).collect();
    assert_eq!(rendered(&anew, &[]).unwrap().name, found.name);
}

#[test]
fn a_name_of_this_version_is_the_name_of_every_version() {
    let spec = json!({"kernelArguments": ["quiet"], "config": {"ignition": {"version": "3.4.0"}}});
    let spec = spec.as_object().unwrap().clone();
    let source = Source { name: "50-a".to_owned(), role: None, generated: false, spec };
    let found = rendered(&[source.text()], &[]).unwrap();
    assert_eq!(found.name, "rendered-worker-525f27547fd6e29aed0cdcecdc2e77b5");
}

#[test]
fn many_sources_are_named_as_far_as_annotations_can_hold_them() {
    let source = |number: usize| {
        let name = format!("{}-{number:04}", "n".repeat(200));
        Source { name, role: None, generated: false, spec: Map::new() }.text()
    };
    let sources: Vec<String> = (0..600).map(source).collect();
    let found = rendered(&sources, &[]).unwrap();
    let named = found.object["metadata"]["annotations"][SOURCES].as_str().unwrap();
    assert!(named.ends_with(" and 100 more") && named.len() < 256 << 10, "{}", named.len());
}
