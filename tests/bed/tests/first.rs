//! What is kept of the first control plane for the next ones is what they would have made.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// All of which something is kept, and the namespaces, of which nothing is.
const KINDS: &str = "apiservices,clusterroles,clusterrolebindings,flowschemas,namespaces,\
                     priorityclasses,prioritylevelconfigurations,roles,rolebindings";

/// A folder of its own with what was built, of which nothing is kept yet.
fn binaries() -> TempDir {
    let tmp = TempDir::new().unwrap();
    let built = PathBuf::from(std::env::var_os("TREAD_BED").unwrap());
    for name in ["kube-apiserver", "kubectl", "supervisor"] {
        let (from, to) = (built.join(name), tmp.path().join(name));
        if fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to).unwrap();
        }
    }
    tmp
}

/// The objects of a control plane of the binaries in that folder.
fn objects(binaries: &Path) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_tread-bed"))
        .env("TREAD_BED", binaries)
        .args(["--bare", "--", "kubectl", "get", KINDS, "--all-namespaces", "-o", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    list["items"].as_array().unwrap().clone()
}

fn uids(objects: &[Value], is_wanted: impl Fn(&str) -> bool) -> Vec<&str> {
    let wanted = objects.iter().filter(|it| is_wanted(it["kind"].as_str().unwrap()));
    wanted.map(|it| it["metadata"]["uid"].as_str().unwrap()).collect()
}

/// Without who wrote it, and when.
fn said(mut object: Value) -> Value {
    for field in ["creationTimestamp", "managedFields", "resourceVersion", "uid"] {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
        condition.as_object_mut().unwrap().remove("lastTransitionTime");
    }
    object
}

#[test]
fn the_second_control_plane_has_what_the_first_one_made_and_namespaces_of_its_own() {
    let tmp = binaries();
    let kept = tmp.path().join("first.json");
    let first = objects(tmp.path());
    assert!(kept.exists());
    let second = objects(tmp.path());
    let is_kept = |kind: &str| kind != "Namespace";
    assert_eq!(uids(&first, is_kept), uids(&second, is_kept));
    let (of_first, of_second) = (uids(&first, |it| !is_kept(it)), uids(&second, |it| !is_kept(it)));
    assert!(of_first.iter().all(|uid| !of_second.contains(uid)), "{of_first:?} {of_second:?}");
    let said = |objects: Vec<Value>| objects.into_iter().map(said).collect::<Vec<_>>();
    assert_eq!(said(first), said(second));
}

#[test]
fn what_was_kept_and_cannot_be_read_is_named() {
    let tmp = binaries();
    let kept = tmp.path().join("first.json");
    fs::write(&kept, "[{").unwrap();
    let mut bed = Command::new(env!("CARGO_BIN_EXE_tread-bed"));
    let output = bed.env("TREAD_BED", tmp.path()).args(["--bare", "--", "true"]).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(kept.to_str().unwrap()) && said.contains("can be removed"), "{said}");
}
