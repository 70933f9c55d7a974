//! Tests use a control plane one after the other, and none sees what another one did.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use tread_test_bed::{ControlPlane, Options, Part, eventually};

/// Few are kept, so that a test here would lose its own one to those of others.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has it end with its test, and not be kept.
fn ends(plane: &ControlPlane) {
    plane.compact().unwrap();
}

/// One that no other test of this file takes: it has a user of that name.
fn options(name: &str) -> Options {
    ControlPlane::options().with_user(name, &[]).maybe_used()
}

fn things() -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object"}}}],
        },
    }))
    .unwrap()
}

const FLOW: &str = r#"{"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
    "metadata": {"name": "one"}, "spec": {"priorityLevelConfiguration": {"name": "exempt"}}}"#;

/// The objects of all kinds that a test here makes, and of those that come of them.
fn objects(plane: &ControlPlane) -> Vec<String> {
    let kinds = "namespaces,nodes,configmaps,serviceaccounts,deployments,replicasets,pods,things,\
                 leases,clusterroles,customresourcedefinitions";
    let list: Value = serde_json::from_str(
        &plane.kubectl(&["get", kinds, "-A", "-o", "json"]).unwrap().success().unwrap(),
    )
    .unwrap();
    let name = |it: &Value| {
        let meta = &it["metadata"];
        format!("{}/{}/{} {}", it["kind"], meta["namespace"], meta["name"], meta["labels"])
    };
    let mut names: Vec<String> = list["items"].as_array().unwrap().iter().map(name).collect();
    names.sort();
    names
}

fn kubectl(plane: &ControlPlane, args: &[&str]) {
    plane.kubectl(args).unwrap().success().unwrap();
}

/// In a runtime that ends with it, as the clients do that it makes: as at the end of a test.
fn run<T>(it: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(it)
}

/// A Deployment, until the controllers have made something of it.
fn deployed(plane: &ControlPlane) {
    let namespace = plane.namespace("apps").unwrap();
    kubectl(plane, &["create", "deployment", "web", "--image=web", "-n", &namespace]);
    run(eventually("the Deployment has a pod", async || {
        let pods = plane.kubectl(&["get", "pods", "-n", &namespace, "-o", "name"]).unwrap();
        pods.stdout.contains("pod/web-").then_some(())
    }));
}

#[test]
fn a_control_plane_that_is_used_again_is_as_it_was_at_first() {
    let _alone = alone();
    let options = options("again").with_controllers().with_definitions(&[things()]);
    let plane = options.clone().start().unwrap();
    let (pid, first) = (plane.supervisor_pid(), objects(&plane));
    deployed(&plane);
    run(plane.create_nodes("node", 2)).unwrap();
    plane
        .apply(r#"{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}}"#)
        .unwrap();
    kubectl(&plane, &["label", "namespace", "default", "is=changed"]);
    kubectl(&plane, &["create", "configmap", "one", "-n", "kube-system"]);
    kubectl(&plane, &["delete", "lease", "-A", "--all"]);
    assert_ne!(objects(&plane), first);
    drop(plane);

    let plane = options.start().unwrap();
    assert_eq!(plane.supervisor_pid(), pid, "another one was started");
    run(eventually("it is as it was", async || (objects(&plane) == first).then_some(())));
    deployed(&plane);
    ends(&plane);
}

#[test]
fn two_at_a_time_have_one_each() {
    let _alone = alone();
    let both = || [options("two").start().unwrap(), options("two").start().unwrap()];
    let pids = |both: &[ControlPlane; 2]| {
        let mut pids = both.each_ref().map(ControlPlane::supervisor_pid);
        pids.sort_unstable();
        pids
    };
    let planes = both();
    let first = pids(&planes);
    assert_ne!(first[0], first[1]);
    drop(planes);
    // As soon as they are put back.
    let planes = both();
    assert_eq!(pids(&planes), first);
    planes.iter().for_each(ends);
}

/// A webhook that asks at this port.
fn webhook(name: &str, port: u16) -> String {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name}, "webhooks": [{
            "name": "asks.example.com", "failurePolicy": "Ignore", "timeoutSeconds": 1,
            "clientConfig": {"url": format!("https://127.0.0.1:{port}")},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["nodes"]}],
            "sideEffects": "None", "admissionReviewVersions": ["v1"]}]})
    .to_string()
}

#[test]
fn a_webhook_asks_again_where_it_did_and_one_that_came_is_gone() {
    let _alone = alone();
    let options = options("webhook").with_objects(&webhook("asks", 1));
    let plane = options.clone().start().unwrap();
    let pid = plane.supervisor_pid();
    let asks = |plane: &ControlPlane| {
        let url = "jsonpath={.items[*].webhooks[*].clientConfig.url}";
        let get = ["get", "validatingwebhookconfigurations", "-o", url];
        plane.kubectl(&get).unwrap().success().unwrap()
    };
    plane.apply(&webhook("asks", 2)).unwrap();
    plane.apply(&webhook("came", 3)).unwrap();
    assert_eq!(asks(&plane), "https://127.0.0.1:2 https://127.0.0.1:3");
    drop(plane);

    let plane = options.start().unwrap();
    assert_eq!(plane.supervisor_pid(), pid, "another one was started");
    run(eventually("it is as it was", async || {
        (asks(&plane) == "https://127.0.0.1:1").then_some(())
    }));
    ends(&plane);
}

#[test]
fn one_with_other_rules_or_that_was_hurt_is_not_used_again() {
    let _alone = alone();
    let role = r#"{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "looks"}, "rules": []}"#;
    for name in ["roles", "role", "kinds", "flows", "killed"] {
        let plane = options(name).with_objects(role).start().unwrap();
        let pid = plane.supervisor_pid();
        match name {
            "roles" => kubectl(
                &plane,
                &["create", "clusterrole", "reader", "--verb=get", "--resource=nodes"],
            ),
            "role" => {
                kubectl(&plane, &["label", "clusterrole", "looks", "is=changed"]);
            }
            "kinds" => plane.define(&[things()]).unwrap(),
            "flows" => drop(plane.apply(FLOW).unwrap()),
            _ => plane.restart(Part::ApiServer).unwrap(),
        }
        drop(plane);
        let its = PathBuf::from(format!("/proc/{pid}"));
        run(eventually("it has ended", async || (!its.exists()).then_some(())));
    }
    // Nor is there anything else that the next one could take.
    let next = options("roles").with_objects(role).start().unwrap();
    assert!(!objects_of(&next, "clusterroles").contains("reader"));
    ends(&next);
}

fn objects_of(plane: &ControlPlane, kind: &str) -> String {
    plane.kubectl(&["get", kind, "-o", "name"]).unwrap().success().unwrap()
}

#[test]
fn one_to_which_somebody_is_still_connected_is_not_used_again() {
    let _alone = alone();
    let plane = options("watched").start().unwrap();
    let pid = plane.supervisor_pid();
    let mut watching = std::process::Command::new("kubectl");
    plane.prepare(&mut watching);
    let mut watching = watching
        .args(["get", "namespaces", "--watch", "-o", "name"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Something came, so it is connected.
    let mut first = [0];
    std::io::Read::read_exact(watching.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop(plane);
    let next = options("watched").start().unwrap();
    assert_ne!(next.supervisor_pid(), pid);
    ends(&next);
    watching.kill().unwrap();
    watching.wait().unwrap();
}
