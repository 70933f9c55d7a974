//! Which crate may use which: what a crate can do is seen from what it depends on.
//! And that the tests which the pages name are there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The crates of the host, and those of them that each may use.
const ARROWS: [(&str, &[&str]); 6] = [
    ("tread-model", &[]),
    ("tread-engine", &["tread-model"]),
    ("tread-kube", &["tread-model"]),
    ("tread-cluster", &["tread-engine", "tread-kube", "tread-model"]),
    ("tread-front", &["tread-kube", "tread-model"]),
    ("tread", &["tread-cluster", "tread-engine", "tread-front", "tread-kube", "tread-model"]),
];

/// What must not be in a crate, whichever way it would come there.
const WITHOUT: [(&str, &[&str]); 4] = [
    ("tread-model", &["kube", "tokio", "wasmtime"]),
    ("tread-engine", &["kube"]),
    ("tread-kube", &["wasmtime"]),
    ("tread-front", &["wasmtime"]),
];

fn metadata() -> Value {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .arg("--manifest-path")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// What each package depends on, by id: without what only its tests and its build
/// need.
fn uses(metadata: &Value) -> BTreeMap<&str, Vec<&str>> {
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    nodes.iter().map(|node| (text(node, "id"), used(node))).collect()
}

fn used(node: &Value) -> Vec<&str> {
    let all = node["deps"].as_array().unwrap().iter();
    all.filter(|used| is_used(used)).map(|used| text(used, "pkg")).collect()
}

fn is_used(used: &Value) -> bool {
    used["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null())
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap()
}

fn names(metadata: &Value) -> BTreeMap<&str, &str> {
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|package| (text(package, "id"), text(package, "name"))).collect()
}

#[test]
fn each_crate_of_the_host_uses_those_below_it_and_no_other() {
    let metadata = metadata();
    let (uses, names) = (uses(&metadata), names(&metadata));
    let in_host: BTreeMap<&str, &str> = names
        .iter()
        .filter(|(id, name)| name.starts_with("tread") && id.contains("/host/"))
        .map(|(id, name)| (*name, *id))
        .collect();
    let stated: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(in_host.keys().copied().collect::<BTreeSet<_>>(), stated);
    for (name, below) in ARROWS {
        let used = uses[in_host[name]].iter().map(|id| names[id]);
        let used: BTreeSet<&str> = used.filter(|name| in_host.contains_key(name)).collect();
        assert_eq!(used, below.iter().copied().collect(), "{name}");
    }
}

#[test]
fn what_decides_is_built_without_what_it_must_not_reach() {
    let metadata = metadata();
    let (uses, names) = (uses(&metadata), names(&metadata));
    for (name, without) in WITHOUT {
        let (id, _) = names.iter().find(|(_, other)| **other == name).unwrap();
        let mut reached = BTreeSet::new();
        let mut next = vec![*id];
        while let Some(id) = next.pop() {
            if reached.insert(names[id]) {
                next.extend(&uses[id]);
            }
        }
        for unwanted in without {
            assert!(!reached.contains(unwanted), "{name} reaches {unwanted}");
        }
    }
}

/// The names of all functions below a folder.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            functions(&path, names);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let declared = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('('));
            names.extend(declared.map(|(name, _)| name.to_owned()));
        }
    }
}

/// What stands in backticks and reads like the name of a test: many words, and no
/// metric.
fn tests_named_in(page: &str) -> impl Iterator<Item = &str> {
    page.split('`').skip(1).step_by(2).filter(|quoted| {
        quoted.len() > 24
            && quoted.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
            && !quoted.starts_with("tread_")
    })
}

#[test]
fn every_test_that_a_page_names_is_there() {
    let tree = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut names = BTreeSet::new();
    for folder in ["host", "guest-sdk", "policies", "tests"] {
        functions(&tree.join(folder), &mut names);
    }
    for page in ["SECURITY.md", "SPECIFICATION.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(tree.join(page)).unwrap();
        let named: Vec<&str> = tests_named_in(&text).collect();
        assert!(!named.is_empty(), "{page} names no test");
        let missing: Vec<&&str> = named.iter().filter(|name| !names.contains(**name)).collect();
        assert!(missing.is_empty(), "{page} names tests that are not there: {missing:?}");
    }
}
