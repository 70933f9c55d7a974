//! The rules of a DisruptionPolicy in the cluster are those that `tread plan
//! --rules` reads from a file.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a helper of a test fails the test"
)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use tread_kube::api::DisruptionPolicy;
use tread_model::read::{Input, document_values};
use tread_model::rules::{self, RulesPolicy};

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(object: &Value) -> Result<Vec<RulesPolicy>, String> {
    let text = object.to_string();
    rules::read(&Input { name: "object", bytes: text.as_bytes() })
        .map_err(|error| error.to_string())
}

/// Every DisruptionPolicy that stands anywhere in a document.
fn policies_in(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(fields) => {
            if fields.get("kind").is_some_and(|kind| kind == "DisruptionPolicy") {
                found.push(value.clone());
            }
            fields.values().for_each(|value| policies_in(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| policies_in(value, found)),
        _ => {}
    }
}

fn fixtures() -> Vec<(String, Value)> {
    let tree = tree();
    let mut files: Vec<PathBuf> = std::fs::read_dir(tree.join("tests/cases/policies"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "yaml"))
        .collect();
    files.push(tree.join("examples/with-rules/rules.yaml"));
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let name = file.display().to_string();
        let mut found = Vec::new();
        for document in document_values(&Input { name: &name, bytes: &bytes }).unwrap() {
            policies_in(&document.value, &mut found);
        }
        all.extend(found.into_iter().map(|policy| (name.clone(), policy)));
    }
    all
}

#[test]
fn what_a_file_of_rules_says_an_object_says_too() {
    let fixtures = fixtures();
    assert!(fixtures.len() > 10, "{}", fixtures.len());
    for (file, object) in fixtures {
        let policy: DisruptionPolicy = serde_json::from_value(object.clone())
            .unwrap_or_else(|error| panic!("{file}: {error}: {object}"));
        let back = serde_json::to_value(&policy).unwrap();
        assert_eq!(read(&back), read(&object), "{file}: {back}");
        assert!(read(&back).is_ok(), "{file}: {object}");
    }
}
