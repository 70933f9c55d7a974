//! `tread pools` against a real API server.

use crate::story::{tread, written};
use serde_json::{Value, json};
use tread_kube::api::{crds, machines};
use tread_test_bed::ControlPlane;

const MACHINES: &str = "openshift-machine-api";
const PREFIX: &str = "machineconfiguration.openshift.io";

fn role(name: &str) -> String {
    format!("node-role.kubernetes.io/{name}")
}

fn rendered(pool: &str) -> String {
    format!("rendered-{pool}-00000000000000000000000000000001")
}

/// A cluster with the pools worker, infra and gpu, each with what was rendered for it.
fn openshift() -> ControlPlane {
    let plane = ControlPlane::start().unwrap();
    for crd in [crds::crds(), crds::openshift(), machines::definitions().unwrap()].concat() {
        plane.apply(&serde_saphyr::to_string(&crd).unwrap()).unwrap();
    }
    let kubectl = |args: &[&str]| plane.kubectl(args).unwrap().success().unwrap();
    kubectl(&["wait", "--for=condition=Established", "--timeout=120s", "crd", "--all"]);
    kubectl(&["create", "namespace", MACHINES]);
    for pool in ["worker", "infra", "gpu"] {
        apply(
            &plane,
            &json!({"apiVersion": format!("{PREFIX}/v1"), "kind": "MachineConfigPool",
            "metadata": {"name": pool}, "spec": {
                "nodeSelector": {"matchLabels": {role(pool): ""}},
                "configuration": {"name": rendered(pool)}}}),
        );
        let uid = kubectl(&["get", "mcp", pool, "-o", "jsonpath={.metadata.uid}"]);
        apply(
            &plane,
            &json!({"apiVersion": format!("{PREFIX}/v1"), "kind": "MachineConfig",
            "metadata": {"name": rendered(pool), "ownerReferences": [{
                "apiVersion": format!("{PREFIX}/v1"), "kind": "MachineConfigPool",
                "name": pool, "uid": uid, "controller": true}]},
            "spec": {"config": {"ignition": {"version": "3.4.0"}}}}),
        );
    }
    plane
}

fn apply(plane: &ControlPlane, object: &Value) {
    plane.apply(&object.to_string()).unwrap();
}

fn node(plane: &ControlPlane, name: &str, roles: &[&str], has: &str, state: &str) {
    let labels: Value = roles.iter().map(|it| (role(it), json!(""))).collect();
    apply(
        plane,
        &json!({"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": name, "labels": labels, "annotations": {
            format!("{PREFIX}/currentConfig"): rendered(has),
            format!("{PREFIX}/firstPivotConfig"): rendered(has),
            format!("{PREFIX}/state"): state}}}),
    );
}

/// A MachineSet, and the Secret with the user data of its machines: a stub of this pool.
fn machine_set(plane: &ControlPlane, name: &str, secret: &str, stub: &str, labels: &Value) {
    apply(
        plane,
        &json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": name, "namespace": MACHINES},
        "spec": {"replicas": 1, "template": {"spec": {
            "metadata": {"labels": labels},
            "providerSpec": {"value": {"userDataSecret": {"name": secret}}}}}}}),
    );
    let url = format!("https://api-int.example:22623/config/{stub}");
    let stub = json!({"ignition": {"version": "3.2.0",
        "config": {"merge": [{"source": url}]}}});
    apply(
        plane,
        &json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": secret, "namespace": MACHINES},
        "stringData": {"userData": stub.to_string()}}),
    );
}

#[test]
fn an_admin_lists_explains_and_checks_pools_by_what_tread_prints() {
    let plane = openshift();
    let ran = |args: &[&str]| tread(&plane, &[&["pools"], args].concat());
    node(&plane, "worker-1", &["worker"], "worker", "Done");
    node(&plane, "worker-2", &["worker"], "worker", "Degraded");
    node(&plane, "infra-1", &["infra", "worker"], "infra", "Done");
    node(&plane, "infra-2", &["worker"], "infra", "Done");
    node(&plane, "both", &["infra", "gpu"], "infra", "Done");
    let labelled = json!({role("infra"): ""});
    machine_set(&plane, "right", "infra-user-data-managed", "infra", &labelled);
    let (code, out, err) = ran(&[]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let table: Vec<Vec<&str>> =
        out.lines().take(4).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        table,
        [
            vec!["NAME", "NODES", "UPDATED", "HELD", "STRAYED", "DEGRADED", "CONFIG", "PLAN"],
            vec!["gpu", "0", "0", "1", "0", "0", &rendered("gpu"), "-"],
            vec!["infra", "1", "1", "1", "1", "0", &rendered("infra"), "-"],
            vec!["worker", "3", "2", "0", "0", "1", &rendered("worker"), "-"],
        ]
    );
    assert!(out.contains("Node infra-2 booted into pool infra"), "{out}");
    let command = "kubectl label node infra-2 --overwrite node-role.kubernetes.io/infra=";
    assert!(out.contains(command), "{out}");

    let (code, out, _) = ran(&["explain", "infra-2"]);
    assert_eq!(code, 0);
    for words in ["Node infra-2 counts in pool worker.", "rendered for pool infra", command] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let (_, out, _) = ran(&["explain", "both"]);
    assert!(out.contains("is in the pools gpu, infra, and OpenShift leaves it alone"), "{out}");
    let (_, out, _) = ran(&["explain", "infra-1", "-o", "json"]);
    let explained: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&explained["pool"], &explained["stray"]), (&json!("infra"), &Value::Null));
    let (code, _, err) = ran(&["explain", "nobody"]);
    assert!(code == 1 && err.contains("there is no node nobody"), "{err}");

    // Labels, and the pool by the URL, are what they have to be.
    let (code, out, err) = ran(&["check"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    // What the Secret is called says nothing.
    machine_set(&plane, "wrong", "own-stub", "infra", &json!({}));
    let (code, out, _) = ran(&["check"]);
    assert_eq!(code, 3, "{out}");
    let said = "New machines of openshift-machine-api/wrong boot into pool infra and will count in \
                pool worker";
    assert!(out.contains(said), "{out}");
    let (_, out, _) = ran(&["check", "-o", "json"]);
    let checked: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&checked["fine"], &checked["unknown"]), (&json!(1), &json!([])));
    let patch = &checked["machineSets"][0]["patch"]["spec"]["template"]["spec"]["metadata"];
    assert_eq!(patch["labels"], labelled);
    // By the name of the Secret alone the list cannot tell.
    let (_, out, _) = ran(&["-o", "json"]);
    let listed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(listed["machineSets"], json!([]));
    assert_eq!(listed["strays"][0]["node"], "infra-2");
    let command = checked["machineSets"][0]["prevents"].as_str().unwrap();
    let mut shell = std::process::Command::new("sh");
    plane.prepare(&mut shell);
    assert!(shell.args(["-c", command]).status().unwrap().success());
    assert_eq!(ran(&["check"]).0, 0);

    // User data that names no pool is not guessed at.
    machine_set(&plane, "odd", "odd-user-data", "", &json!({}));
    let (code, out, _) = ran(&["check"]);
    assert!(code == 1 && out.contains("no URL of a pool's config"), "{out}");

    // Who may not list nodes is told whom to ask.
    plane.kubectl(&["create", "serviceaccount", "nobody"]).unwrap().success().unwrap();
    let token = plane.kubectl(&["create", "token", "nobody"]).unwrap().success().unwrap();
    let config = plane.kubectl(&["config", "view", "--minify", "--raw", "-o", "json"]).unwrap();
    let mut config: Value = serde_json::from_str(&config.success().unwrap()).unwrap();
    config["users"][0]["user"] = json!({"token": token.trim()});
    let path = written("nobody.json", &config.to_string());
    let (code, out, err) = ran(&["--kubeconfig", path.to_str().unwrap()]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("you may not list machineconfigpools: an admin can bind"), "{err}");
}
