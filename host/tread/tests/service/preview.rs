//! `tread plan -f` with several changes at once.

use crate::replica::installed;
use crate::story::{cluster, cluster_of_nothing, config, plan, tread, written};
use crate::support::unread;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use tread_kube::api::crds;
use tread_kube::api::words::{OPERATORS_DAEMON, OPERATORS_NAMESPACE};
use tread_test_bed::{ControlPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn several_changes_are_one_rollout_with_the_digest_that_it_has_in_the_cluster() {
    let plane = installed();
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

/// What is rendered for the pool `worker`.
fn rendered() -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "rendered-worker-1"},
        "spec": {"config": {"ignition": {"version": "3.4.0"},
            "storage": {"files": [{"path": "/etc/motd", "mode": 0o644, "overwrite": true,
                "contents": {"source": "data:,hello"}}]}}},
    })
}

/// Renders the pool `worker` as OpenShift's operator does, and has it rolled out.
fn operated(plane: &ControlPlane) {
    let mut rendered = rendered();
    rendered["spec"]["osImageURL"] = json!("quay.example/os@sha256:1");
    settle(plane, "worker", rendered, &["00-worker"]);
}

/// Gives all nodes of a pool a config that was rendered for it.
fn settle(plane: &ControlPlane, pool: &str, mut rendered: Value, sources: &[&str]) {
    let uid = ["get", "mcp", pool, "-o", "jsonpath={.metadata.uid}"];
    let uid = plane.kubectl(&uid).unwrap().success().unwrap();
    rendered["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "name": pool, "uid": uid, "controller": true}]);
    plane.apply(&rendered.to_string()).unwrap();
    let name = rendered["metadata"]["name"].as_str().unwrap();
    let current = format!("machineconfiguration.openshift.io/currentConfig={name}");
    let nodes = format!("node-role.kubernetes.io/{pool}");
    plane.kubectl(&["annotate", "nodes", "-l", &nodes, &current]).unwrap().success().unwrap();
    let sources: Vec<Value> = sources.iter().map(|name| json!({"name": name})).collect();
    let configuration = json!({"configuration": {"name": name, "source": sources}});
    let to = ["patch", "mcp", pool, "--type=merge", "-p"];
    let status = json!({"status": configuration}).to_string();
    let spec = json!({"spec": configuration}).to_string();
    for patch in [&[status.as_str(), "--subresource=status"][..], &[spec.as_str()]] {
        plane.kubectl(&[&to[..], patch].concat()).unwrap().success().unwrap();
    }
}

fn corpus(name: &str) -> Value {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/openshift");
    serde_json::from_slice(&std::fs::read(dir.join(name)).unwrap()).unwrap()
}

/// A pool with a node, and what OpenShift's operator made of `role` rolled out.
fn openshift(plane: &ControlPlane, pool: &str, role: &str, selector: &Value) {
    let label = format!("node-role.kubernetes.io/{pool}");
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": format!("{pool}-0"), "labels": {&label: ""}}});
    plane.apply(&node.to_string()).unwrap();
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "metadata": {"name": pool},
        "spec": {"machineConfigSelector": selector, "nodeSelector": {"matchLabels": {label: ""}}},
    });
    plane.apply(&object.to_string()).unwrap();
    let configs = corpus(&format!("{role}.json"));
    plane.apply(&configs.to_string()).unwrap();
    let items = configs["items"].as_array().unwrap();
    let sources: Vec<&str> =
        items.iter().map(|it| it["metadata"]["name"].as_str().unwrap()).collect();
    let mut rendered = corpus(&format!("rendered-{role}.json"));
    rendered["metadata"]["name"] = json!(format!("rendered-{pool}-1"));
    settle(plane, pool, rendered, &sources);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_plane_and_pools_of_several_roles_are_previewed() {
    const ROLE: &str = "machineconfiguration.openshift.io/role";
    let plane = installed();
    let _replica = cluster(&plane).await;
    openshift(&plane, "worker", "worker", &json!({"matchLabels": {ROLE: "worker"}}));
    openshift(&plane, "master", "master", &json!({"matchLabels": {ROLE: "master"}}));
    let roles = json!({"matchExpressions": [
        {"key": ROLE, "operator": "In", "values": ["worker", "gpu", "gpu-a100"]}]});
    openshift(&plane, "gpu", "worker", &roles);
    let of_role = |role: &str, name: &str| {
        config(name, name, "1").replace("role: worker", &format!("role: {role}"))
    };
    let changed = |text: &str| {
        let file = written("openshift.yaml", text);
        let (code, out, err) = tread(&plane, &["plan", "-o", "json", "-f", file.to_str().unwrap()]);
        assert_eq!(code, 0, "{out}{err}");
        let said: Value = serde_json::from_str(&out).unwrap();
        let of = |plan: &Value| {
            let way = &plan["status"]["transitions"][0];
            let ids = |list: &Value| -> Vec<String> {
                let all = list.as_array().unwrap().iter();
                all.map(|it| it["id"].as_str().unwrap().to_owned()).collect()
            };
            assert_eq!(ids(&way["changes"]), ids(&way["operatorBecause"]), "{plan}");
            (plan["pool"].as_str().unwrap().to_owned(), ids(&way["changes"]))
        };
        said["plans"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let one = |pool: &str, id: &str| vec![(pool.to_owned(), vec![id.to_owned()])];
    assert_eq!(changed(&of_role("master", "a")), one("master", "file:/etc/a"));
    assert_eq!(changed(&of_role("gpu", "b")), one("gpu", "file:/etc/b"));
    plane.apply(&of_role("gpu", "50-b")).unwrap();
    plan(&plane, "MachineConfig/50-b created").await;
    let both = changed(&of_role("gpu-a100", "c"));
    assert_eq!(both.last(), one("gpu", "file:/etc/c").first(), "{both:?}");

    let mirrors = "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: \
        {name: quay}\nspec: {imageDigestMirrors: [{source: quay.example/a, mirrors: [m.example/a]}]}\n";
    let registries = "file:/etc/containers/registries.conf".to_owned();
    let all = changed(mirrors);
    for pool in ["master", "worker", "gpu"] {
        assert!(all.contains(&(pool.to_owned(), vec![registries.clone()])), "{pool}: {all:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_the_operator_both_truths_are_told_with_their_reasons() {
    let plane = installed();
    let _replica = cluster(&plane).await;
    operated(&plane);
    let text = "%5Bcrio.runtime%5D%0Alog_level%20%3D%20%22debug%22%0A";
    let change = config("50-log", "crio/crio.conf.d/01-log", text);
    let file = written("log.yaml", &change);
    let args = ["plan", "--max", "restart", "-f", file.to_str().unwrap()];
    let (code, out, err) = tread(&plane, &args);
    let id = "file:/etc/crio/crio.conf.d/01-log";
    let rule = "no entry of nodeDisruptionPolicy matches; an admin can add one (`tread policy";
    assert_eq!(code, 3, "{err}");
    assert!(err.contains(&format!("because of {id} ({rule}")), "{err}");
    assert!(err.contains("by OpenShift's operator; tread would do: reload crio.service"), "{err}");
    for part in [
        "Pool worker: drain + reboot\n",
        &format!("\n  by OpenShift's operator, because of {id} ({rule}"),
        "\n  tread would do: reload crio.service\n",
        &format!("\n    OpenShift's operator: drain + reboot\n      {id}: reboot: {rule}"),
        "\n    steps of tread, if it rolled this out: write, reload crio.service\n",
        &format!("\n    {id}: "),
    ] {
        assert!(out.contains(part), "{part:?} in {out}");
    }

    plane.apply(&change).unwrap();
    let made = plan(&plane, "MachineConfig/50-log created").await;
    let status = serde_json::to_value(made.status.as_ref().unwrap()).unwrap();
    let because = &status["transitions"][0]["operatorBecause"];
    assert_eq!(
        (because[0]["id"].as_str(), because[0]["effect"].as_str()),
        (Some(id), Some("reboot"))
    );
    assert!(status["because"].as_str().unwrap().contains(rule), "{status}");
    let (_, out, _) = tread(&plane, &["plans"]);
    assert!(out.contains(&format!("{id} ({rule}")), "{out}");
    let (_, out, _) = tread(&plane, &["plans", &made.name_any()]);
    assert!(out.contains(&format!("{id}: reboot: {rule}")), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_answers_for_its_own_changes_and_not_for_what_was_pending() {
    let plane = installed();
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
    // Nor is one of several that cost as much hidden by another.
    let three = ["a", "b", "c"].map(|it| config(&format!("5-{it}"), it, "1")).join("---\n");
    let three = written("three.yaml", &three);
    let (code, _, err) = tread(&plane, &["plan", "--max", "none", "-f", three.to_str().unwrap()]);
    assert_eq!(code, 3, "{err}");
    for id in ["file:/etc/a", "file:/etc/b", "file:/etc/c"] {
        assert!(err.contains(id), "{id}: {err}");
    }
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

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_on_a_cluster_fails_also_if_nobody_reads_the_plan() {
    let plane = installed();
    let _replica = cluster(&plane).await;
    // More than is kept back before it is written.
    let many: Vec<String> =
        (0..60).map(|it| config(&format!("5-{it}"), &format!("a{it}"), "1")).collect();
    let file = written("unread.yaml", &many.join("---\n"));
    for output in ["human", "json", "yaml"] {
        let args = ["plan", "--max", "restart", "-o", output, "-f", file.to_str().unwrap()];
        let (code, out, err) = tread(&plane, &args);
        assert!(code == 3 && out.len() > 8192, "{code}, {} bytes: {err}", out.len());
        let mut command = Command::new(env!("CARGO_BIN_EXE_tread"));
        plane.prepare(&mut command);
        command.args(args);
        let (code, err) = unread(command);
        assert!(code == 3 && err.contains("more disruptive than --max restart"), "{code}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_going_back_to_advise_a_pipeline_is_judged_by_what_the_operator_will_do() {
    let plane = installed();
    let _replica = cluster(&plane).await;
    // As tread renders it: no MachineConfig has an OS image.
    settle(&plane, "worker", rendered(), &["00-worker"]);
    plane.define(&crds::enforcing()).unwrap();
    left_behind(&plane);
    let text = "%5Bcrio.runtime%5D%0Alog_level%20%3D%20%22debug%22%0A";
    let file = written("back.yaml", &config("50-log", "crio/crio.conf.d/01-log", text));
    let ask = ["plan", "--max", "restart", "-f", file.to_str().unwrap()];
    // There is nobody else yet who rolls out.
    let (code, out, err) = tread(&plane, &ask);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("Pool worker: reload crio.service\n"), "{out}");
    let degraded = |expected: i64| {
        let (code, out, err) = tread(&plane, &["pools", "-o", "json"]);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        let pools: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(pools["items"][0]["degraded"], expected, "{out}");
    };
    degraded(1);

    plane.apply(&operators_daemon().to_string()).unwrap();
    let (code, out, err) = tread(&plane, &ask);
    assert_eq!(code, 3, "{out}{err}");
    assert!(err.contains("by OpenShift's operator; tread would do: reload crio.service"), "{err}");
    assert!(out.starts_with("Pool worker: drain + reboot\n"), "{out}");
    // What agents said last counts no more.
    degraded(0);
    for args in [&["nodes"][..], &["rollout", "status"], &["rollout", "pause", "worker"]] {
        let (code, _, err) = tread(&plane, args);
        assert!(code == 0 && err.contains("nobody follows its Rollouts"), "{args:?}: {err}");
    }

    // Whoever may not see who rolls out is told so, and what the operator does is what counts.
    let all_but_apps = [
        "",
        "apiextensions.k8s.io",
        "config.openshift.io",
        "coordination.k8s.io",
        "machineconfiguration.openshift.io",
        "nodemaintenance.medik8s.io",
        "operator.openshift.io",
        "policy",
        "tread.dev",
    ];
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "looks"}, "rules": [{"apiGroups": all_but_apps, "resources": ["*"],
            "verbs": ["get", "list", "watch"]}]});
    plane.apply(&role.to_string()).unwrap();
    let bind = ["create", "clusterrolebinding", "looks", "--clusterrole=looks", "--user=eve"];
    plane.kubectl(&bind).unwrap().success().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tread"));
    plane.impersonate("eve", &[]).unwrap().prepare(&mut command);
    let output = command.args(ask).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("who rolls out here is not known"), "{err}");
}

/// What stays of the mode enforce where its definitions are kept: an agent said last that its node
/// had failed.
fn left_behind(plane: &ControlPlane) {
    let uid = ["get", "node", "node-0", "-o", "jsonpath={.metadata.uid}"];
    let uid = plane.kubectl(&uid).unwrap().success().unwrap();
    let object = |kind: &str, metadata: Value, spec: Value| {
        json!({"apiVersion": "tread.dev/v1alpha1", "kind": kind, "metadata": metadata,
            "spec": spec})
    };
    let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": "node-0", "uid": uid}]);
    let update = json!({"name": "node-0", "ownerReferences": owner});
    for object in [
        object("Rollout", json!({"name": "worker"}), json!({})),
        object("NodeUpdate", update, json!({"pool": "worker"})),
    ] {
        plane.apply(&object.to_string()).unwrap();
    }
    let status = json!({"status": {"phase": "Degraded",
        "current": {"name": "rendered-worker-1", "digest": "0"}}});
    let patch = ["patch", "nup", "node-0", "--subresource=status", "--type=merge", "-p"];
    let status = status.to_string();
    let patch = [&patch[..], &[&status]].concat();
    plane.kubectl(&patch).unwrap().success().unwrap();
}

/// OpenShift's operator has rolled out since that is there.
fn operators_daemon() -> Value {
    let labels = json!({"app": OPERATORS_DAEMON});
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": OPERATORS_DAEMON, "namespace": OPERATORS_NAMESPACE},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "one", "image": "one"}]}}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_a_drain_names_who_would_block_it() {
    let plane = ControlPlane::options().with_controllers().start().unwrap();
    let _replica = cluster_of_nothing(&plane).await;
    let labels = json!({"app": "db"});
    for object in [
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "db-0", "namespace": "default", "labels": labels},
            "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "example.com/c"}]}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "db", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}),
    ] {
        eventually("it is applied", async || plane.apply(&object.to_string()).ok()).await;
    }
    eventually("the budget has counted its pod", async || {
        let counted = ["get", "pdb", "db", "-o", "jsonpath={.status.expectedPods}"];
        (plane.kubectl(&counted).unwrap().stdout == "1").then_some(())
    })
    .await;
    let change = written("drains.yaml", &config("50-a", "a", "1"));
    let (code, out, err) = tread(&plane, &["plan", "-f", change.to_str().unwrap()]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let says = "blocks a drain: default/db-0 on node-1, by the PodDisruptionBudget default/db: \
        it wants 1 healthy pods, and there are to be 1";
    assert!(out.contains(says), "{out}");
    plane.apply(&config("50-a", "a", "1")).unwrap();
    // The service reads nobody's pods here.
    eventually("the DisruptionPlan names the budget", async || {
        let all = ["get", "dplan", "-o", "jsonpath={.items[*].status.drainBlockers[*].budget}"];
        (plane.kubectl(&all).unwrap().stdout.trim() == "default/db").then_some(())
    })
    .await;
}
