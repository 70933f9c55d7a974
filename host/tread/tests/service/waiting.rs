//! What `tread plan -f` waits for, and what it does not wait for.

use crate::front::{Fate, Front};
use crate::replica::{NAMESPACE, installed};
use crate::story::{cluster, config, ship, written};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use tread_test_bed::ControlPlane;

/// A user who may do what the role for laptops allows, but not this.
fn everything_but(plane: &ControlPlane, user: &str, resource: &str, verb: &str) {
    let installed = format!("tread-read.{NAMESPACE}");
    let installed = ["get", "clusterrole", &installed, "-o", "json"];
    let installed = plane.kubectl(&installed).unwrap().success().unwrap();
    let mut role: Value = serde_json::from_str(&installed).unwrap();
    role["metadata"] = json!({"name": user});
    for rule in role["rules"].as_array_mut().unwrap() {
        let is_other = rule["resources"] != json!([resource]);
        rule["verbs"].as_array_mut().unwrap().retain(|it| is_other || *it != verb);
    }
    plane.apply(&role.to_string()).unwrap();
    let role = format!("--clusterrole={user}");
    let bind = ["create", "clusterrolebinding", user, &role, &format!("--user={user}")];
    plane.kubectl(&bind).unwrap().success().unwrap();
}

fn as_user(plane: &ControlPlane, user: &str, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tread"));
    plane.impersonate(user, &[]).unwrap().prepare(&mut command);
    let output = command.args(args).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_listed_and_not_read_ends_a_preview_with_what_to_do() {
    let plane = installed();
    let _replica = cluster(&plane).await;
    ship(&plane).await;
    let file = written("rights.yaml", &config("50-a", "a", "1"));
    let ask = ["plan", "-f", file.to_str().unwrap()];

    everything_but(&plane, "eve", "configmaps", "get");
    let (code, err) = as_user(&plane, "eve", &ask);
    assert_eq!(code, Some(1), "{err}");
    let named = "configmaps apps/ours: configmaps \"ours\" is forbidden";
    assert!(err.contains(named), "{err}");
    assert!(
        err.contains("an admin can bind tread's ClusterRole tread-read.NAMESPACE to you"),
        "{err}"
    );
    assert!(err.lines().any(|it| it == "  kubectl auth can-i get configmaps -n apps"), "{err}");
    // One sentence, and not what each watch has to say.
    assert!(!err.contains("WARN"), "{err}");

    everything_but(&plane, "mallory", "machineconfigs", "get");
    let (code, err) = as_user(&plane, "mallory", &ask);
    assert_eq!(code, Some(1), "{err}");
    let line = "  kubectl auth can-i get machineconfigs.machineconfiguration.openshift.io";
    assert!(err.lines().any(|it| it == line), "{err}");

    // Whoever has all of it gets an answer, and may list what else there is.
    everything_but(&plane, "alice", "", "");
    for args in [&ask[..], &["bootimages"], &["pools"], &["plans"], &["policies", "--cluster"]] {
        let (code, err) = as_user(&plane, "alice", args);
        assert!(code == Some(0) && !err.contains("forbidden"), "{args:?}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_that_waits_says_for_what_and_goes_on() {
    let plane = installed();
    let _replica = cluster(&plane).await;
    ship(&plane).await;
    let front = Front::start(plane.client().await.unwrap()).await;
    front.set(|_, path| match path.ends_with("/configmaps/ours") {
        true => Fate::Waits,
        false => Fate::Passes,
    });
    let kubeconfig = written("front.kubeconfig", &front.kubeconfig());
    let file = written("waits.yaml", &config("50-a", "a", "1"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_tread"))
        .args(["plan", "-o", "json", "-f"])
        .args([file.as_path(), "--kubeconfig".as_ref(), kubeconfig.as_path()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut lines = String::new();
    // On a busy machine it waits for other things before.
    while !lines.ends_with("\n  configmaps apps/ours: no answer yet\n") {
        assert!(said.read_line(&mut lines).unwrap() > 0, "{lines}");
    }
    assert!(lines.starts_with("warning: waiting for the cluster:\n"), "{lines}");
    front.set(|_, _| Fate::Passes);
    let output = child.wait_with_output().unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(output.status.success(), "{rest}");
    let plans: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plans["plans"][0]["pool"], "worker");
}
