//! `tread plan -f` with several changes at once.

use crate::story::{cluster, config, plan, tread, written};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use std::path::PathBuf;
use tread_test_bed::ControlPlane;

#[tokio::test(flavor = "multi_thread")]
async fn several_changes_are_one_rollout_with_the_digest_that_it_has_in_the_cluster() {
    let plane = ControlPlane::start().unwrap();
    let _replica = cluster(&plane).await;
    let (one, other) = (config("50-a", "a", "1"), config("60-b", "b", "1"));
    let both = written("both.yaml", &format!("{one}---\n{other}"));
    let (first, second) = (written("one.yaml", &one), written("other.yaml", &other));
    let in_one = ["plan", "-o", "json", "-f", both.to_str().unwrap()];
    let (code, out, err) = tread(&plane, &in_one);
    assert_eq!(code, 0, "{out}{err}");
    let laptop: Value = serde_json::from_str(&out).unwrap();
    let in_two = ["plan", "-o", "json", "-f", first.to_str().unwrap(), "-f"];
    let (_, out, err) = tread(&plane, &[&in_two[..], &[second.to_str().unwrap()]].concat());
    let also: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));

    let digest = |plan: &Value| plan["status"]["transitions"][0]["digest"].clone();
    let changes =
        |plan: &Value| plan["status"]["transitions"][0]["changes"].as_array().unwrap().len();
    for said in [&laptop, &also] {
        let all = said["plans"].as_array().unwrap();
        let causes: Vec<&str> =
            all.iter().map(|it| it["cause"]["name"].as_str().unwrap()).collect();
        assert_eq!(causes, ["worker", "50-a", "60-b"], "what is rolled out comes first");
        assert_eq!(all.iter().map(changes).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(
            said["pools"],
            json!([{"pool": "worker", "effect": "reboot", "plan": all[0]["name"]}])
        );
        assert_eq!(digest(&all[0]), digest(&laptop["plans"][0]));
    }
    // For a person it is one plan, with a line for each change.
    let (_, out, _) = tread(&plane, &["plan", "-f", both.to_str().unwrap()]);
    assert_eq!(out.matches("Pool worker: ").count(), 1, "{out}");
    for cause in ["MachineConfig/50-a created   drain + reboot   file:/etc/a", "MachineConfig/60-b"]
    {
        assert!(out.contains(cause), "{out}");
    }

    plane.apply(&one).unwrap();
    plane.apply(&other).unwrap();
    let whole = plan(&plane, "MachineConfigPool/worker rollout").await;
    let status = serde_json::to_value(whole.status.as_ref().unwrap()).unwrap();
    assert_eq!(status["transitions"][0]["digest"], digest(&laptop["plans"][0]));
    assert_eq!(whole.name_any(), laptop["plans"][0]["name"]);
}

/// Renders the pool `worker` as OpenShift's operator does, and has it rolled out.
fn operated(plane: &ControlPlane) {
    let uid = ["get", "mcp", "worker", "-o", "jsonpath={.metadata.uid}"];
    let uid = plane.kubectl(&uid).unwrap().success().unwrap();
    let rendered = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "rendered-worker-1", "ownerReferences": [{
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
            "name": "worker", "uid": uid, "controller": true}]},
        "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [
            {"path": "/etc/motd", "mode": 0o644, "contents": {"source": "data:,hello"}}]}}},
    });
    plane.apply(&rendered.to_string()).unwrap();
    let current = "machineconfiguration.openshift.io/currentConfig=rendered-worker-1";
    plane.kubectl(&["annotate", "nodes", "--all", current]).unwrap().success().unwrap();
    let configuration = json!({"configuration":
        {"name": "rendered-worker-1", "source": [{"name": "00-worker"}]}});
    let to = ["patch", "mcp", "worker", "--type=merge", "-p"];
    let status = json!({"status": configuration}).to_string();
    let spec = json!({"spec": configuration}).to_string();
    for patch in [&[status.as_str(), "--subresource=status"][..], &[spec.as_str()]] {
        plane.kubectl(&[&to[..], patch].concat()).unwrap().success().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_answers_for_its_own_changes_and_not_for_what_was_pending() {
    let plane = ControlPlane::start().unwrap();
    let _replica = cluster(&plane).await;
    operated(&plane);
    let one = config("50-a", "a", "1");
    let keys = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n\
        metadata:\n  name: 60-keys\n  labels: {machineconfiguration.openshift.io/role: worker}\n\
        spec:\n  config:\n    ignition: {version: 3.4.0}\n    passwd:\n      users:\n      \
        - {name: core, sshAuthorizedKeys: [ssh-ed25519 AAAA]}\n";
    let both = written("both-of-it.yaml", &format!("{one}---\n{keys}"));
    let alone = written("alone.yaml", keys);
    let ask = |file: &PathBuf, more: &[&str]| {
        let args = ["plan", "--max", "reload", "-f", file.to_str().unwrap()];
        tread(&plane, &[&args[..], more].concat())
    };
    let (code, out, err) = ask(&both, &["-o", "json"]);
    assert!(code == 3 && err.contains("this is a reboot, because of file:/etc/a"), "{err}");
    let both: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(ask(&alone, &[]).0, 0);

    // What is pending already is part of the rollout, and not the pipeline's.
    plane.apply(&one).unwrap();
    plan(&plane, "MachineConfig/50-a created").await;
    let (code, out, err) = ask(&alone, &["-o", "json"]);
    assert_eq!(code, 0, "{out}{err}");
    let now: Value = serde_json::from_str(&out).unwrap();
    let causes: Vec<&Value> =
        now["plans"].as_array().unwrap().iter().map(|it| &it["cause"]["name"]).collect();
    assert_eq!(causes, ["worker", "60-keys"]);
    let digest = |said: &Value| said["plans"][0]["status"]["transitions"][0]["digest"].clone();
    assert_eq!(digest(&now), digest(&both));
    let (code, out, _) = ask(&alone, &[]);
    assert!(code == 0 && out.starts_with("Pool worker: drain + reboot\n"), "{out}");
    assert!(out.contains("\n      MachineConfig/60-keys created   none (tread: none)"), "{out}");
    let pending = "  Pending already, and not asked about:\n      MachineConfig/50-a created";
    assert!(out.contains(pending), "{out}");
}
