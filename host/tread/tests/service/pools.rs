//! `tread pools`, and who is warned of machines that will stray, against a real API server.

use crate::openshift::{apply, asked, kubectl};
use crate::replica::{MACHINES, Replica, installed};
use crate::story::{tread, tried, warned, written};
use serde_json::{Value, json};
use tread_test_bed::{ControlPlane, eventually};

const PREFIX: &str = "machineconfiguration.openshift.io";

fn role(name: &str) -> String {
    format!("node-role.kubernetes.io/{name}")
}

fn rendered(pool: &str) -> String {
    format!("rendered-{pool}-00000000000000000000000000000001")
}

/// A cluster with the pools worker, infra and gpu, each with what was rendered for it.
fn pools() -> ControlPlane {
    let plane = installed();
    for pool in ["worker", "infra", "gpu"] {
        apply(
            &plane,
            &json!({"apiVersion": format!("{PREFIX}/v1"), "kind": "MachineConfigPool",
            "metadata": {"name": pool}, "spec": {
                "nodeSelector": {"matchLabels": {role(pool): ""}},
                "configuration": {"name": rendered(pool)}}}),
        );
        let uid = kubectl(&plane, &["get", "mcp", pool, "-o", "jsonpath={.metadata.uid}"]);
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

/// A MachineSet whose machines get the user data of this Secret, and nodes with these labels.
pub fn machine_set(name: &str, secret: &str, labels: &Value) -> Value {
    json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": name, "namespace": MACHINES},
        "spec": {"replicas": 1, "template": {"spec": {
            "metadata": {"labels": labels},
            "providerSpec": {"value": {"userDataSecret": {"name": secret}}}}}}})
}

/// The same, applied, and the Secret: a stub of this pool.
fn with_stub(plane: &ControlPlane, name: &str, secret: &str, stub: &str, labels: &Value) {
    apply(plane, &machine_set(name, secret, labels));
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
    let plane = pools();
    let ran = |args: &[&str]| tread(&plane, &[&["pools"], args].concat());
    node(&plane, "worker-1", &["worker"], "worker", "Done");
    node(&plane, "worker-2", &["worker"], "worker", "Degraded");
    node(&plane, "infra-1", &["infra", "worker"], "infra", "Done");
    node(&plane, "infra-2", &["worker"], "infra", "Done");
    node(&plane, "both", &["infra", "gpu"], "infra", "Done");
    let labelled = json!({role("infra"): ""});
    with_stub(&plane, "right", "infra-user-data-managed", "infra", &labelled);
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
    with_stub(&plane, "wrong", "own-stub", "infra", &json!({}));
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
    with_stub(&plane, "odd", "odd-user-data", "", &json!({}));
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

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_passes_on_what_is_said_of_machines_that_will_stray() {
    let plane = pools();
    let replica = Replica::start(&plane);
    replica.ready().await;
    asked(&replica).await;
    let says = "New machines of openshift-machine-api/infra-a boot into pool infra and will count \
                in pool worker";
    let wrong = machine_set("infra-a", "infra-user-data-managed", &json!({}));
    let made = warned(&plane, &wrong.to_string(), says).await;
    assert!(made.contains("what each machine will go through: "), "{made}");
    let command = "what prevents it: kubectl patch machinesets.machine.openshift.io -n \
                   openshift-machine-api infra-a --type=merge -p ";
    assert!(made.contains(command), "{made}");
    let labels = json!({role("infra"): ""});
    let right = machine_set("infra-b", "infra-user-data-managed", &labels);
    let ran = tried(&plane, &right.to_string());
    assert!(ran.code == 0 && !ran.stderr.contains("boot into pool"), "{}", ran.stderr);

    // One whose name the API server makes up is called by that name.
    let mut unnamed = wrong.clone();
    unnamed["metadata"] = json!({"generateName": "infra-", "namespace": MACHINES});
    let said = eventually("one without a name", async || {
        let create = ["create", "--dry-run=server", "--validate=false", "-f", "-"];
        let ran = plane.admin().kubectl_with_input(&create, &unnamed.to_string()).unwrap();
        ran.stderr.contains("boot into pool infra").then_some(ran.stderr)
    })
    .await;
    let begins = "New machines of openshift-machine-api/infra-";
    let rest = said.split_once(begins).unwrap().1.split(' ').next().unwrap();
    assert!(rest.len() == 5 && rest.chars().all(|c| c.is_ascii_alphanumeric()), "{said}");

    // Who scales it up by the subresource is warned, and who scales it down is not.
    apply(&plane, &wrong);
    let scale = |replicas: &str| {
        let to = format!("--replicas={replicas}");
        let name = "machinesets.machine.openshift.io/infra-a";
        plane.kubectl(&["-n", MACHINES, "scale", "--dry-run=server", name, &to]).unwrap()
    };
    let said = eventually("it is scaled up", async || {
        let ran = scale("3");
        ran.stderr.contains(says).then_some(ran.stderr)
    })
    .await;
    assert!(said.contains(command), "{said}");
    let down = scale("0");
    assert!(down.code == 0 && !down.stderr.contains("boot into pool"), "{}", down.stderr);

    let (_, metrics) = replica.get("/metrics").await.unwrap();
    let forbidden = metrics.lines().find(|line| line.contains("code=\"403\""));
    assert_eq!(forbidden, None, "its own rights are enough");
}
