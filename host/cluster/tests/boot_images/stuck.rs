//! Machines of an image that is too old, which wait for their node.

use super::fixture::{Cluster, aws};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use tread_cluster::boot_images::machine::Key;
use tread_cluster::boot_images::selector;
use tread_cluster::boot_images::stuck::{Stuck, Waiting, machines_join};

const SETS: &str = "machinesets.machine.openshift.io";
const MACHINES: &str = "openshift-machine-api";

fn ago(minutes: i64) -> String {
    (Timestamp::now() - SignedDuration::from_mins(minutes)).to_string()
}

fn machine(cluster: &Cluster, name: &str, set: &str, phase: &str, minutes: i64) {
    let there =
        json!({"type": "InstanceExists", "status": "True", "lastTransitionTime": ago(minutes)});
    cluster.apply(&json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {"name": name, "namespace": MACHINES, "labels": {"set": set}},
        "spec": {}, "status": {"phase": phase, "conditions": [there]},
    }));
}

fn patch(cluster: &Cluster, kind: &str, name: &str, patch: &Value) {
    let patch = patch.to_string();
    cluster.kubectl(&["-n", MACHINES, "patch", kind, name, "--type=merge", "-p", &patch]);
}

/// A MachineSet whose machines have their nodes.
fn set(cluster: &Cluster, name: &str, version: &str) {
    let vouched = json!({"annotations": {"tread.dev/boot-image": version}});
    cluster.machine_set(name, vouched, &aws("ami-1"));
    let selector = json!({"spec": {"selector": {"matchLabels": {"set": name}}},
        "status": {"replicas": 1, "readyReplicas": 1}});
    patch(cluster, SETS, name, &selector);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_of_an_old_image_that_gets_no_node_after_a_scale_up_is_named_with_the_cause() {
    let cluster = Cluster::openshift().await;
    set(&cluster, "old", "412.86.202308081056-0");
    set(&cluster, "new", "9.6.20250523-0");
    let running = cluster.run();
    cluster.until("MachinesJoin", "True", "AsExpected").await;

    // The machines are there before the numbers are, as with the machine API.
    machine(&cluster, "old-stuck", "old", "Provisioned", 30);
    machine(&cluster, "old-young", "old", "Provisioned", 1);
    machine(&cluster, "old-running", "old", "Running", 30);
    machine(&cluster, "old-provisioning", "old", "Provisioning", 30);
    // Its name begins that of another, which is told of before.
    machine(&cluster, "old-stuc", "old", "Provisioned", 1);
    machine(&cluster, "new-stuck", "new", "Provisioned", 30);
    // What would be read as another selector, or as none.
    for (name, value) in [("more", "a,x!=y"), ("never", "in (a)")] {
        set(&cluster, name, "412.86.202308081056-0");
        let odd = json!({"spec": {"selector": {"matchLabels": {"set": value}}}});
        patch(&cluster, SETS, name, &odd);
    }
    for name in ["old", "new", "more", "never"] {
        patch(&cluster, SETS, name, &json!({"spec": {"replicas": 5}}));
    }
    let status = cluster.until("MachinesJoin", "False", "MachineStuck").await;
    let message = Cluster::message(&status, "MachinesJoin");
    for word in [
        "openshift-machine-api/old-stuck",
        "made by openshift-machine-api/old",
        "412.86.202308081056-0",
        "below the limit, OpenShift 4.13.0",
        "`tread bootimages patch openshift-machine-api/old`",
    ] {
        assert!(message.contains(word), "{word}: {message}");
    }
    for word in ["young", "old-running", "old-provisioning", "new-stuck"] {
        assert!(!message.contains(word), "{word}: {message}");
    }
    cluster.says("MachinesJoin", "openshift-machine-api/more: set=a,x!=y in its matchLabels").await;
    cluster
        .says("MachinesJoin", "openshift-machine-api/never: set=in (a) in its matchLabels")
        .await;
    cluster.event("MachineStuck").await;
    let reported = || {
        let field = "--field-selector=reason=MachineStuck";
        let path =
            "-o=jsonpath={range .items[*]}{.involvedObject.kind}/{.involvedObject.name} {end}";
        let about = cluster.kubectl(&["get", "events", "-A", field, path]);
        let mut about: Vec<String> = about.split_whitespace().map(str::to_owned).collect();
        about.sort();
        about
    };
    tread_test_bed::eventually("both are told", async || (reported().len() == 2).then_some(()))
        .await;
    assert_eq!(reported(), ["Machine/old-stuck", "MachineSet/old"]);

    // An admin waits for less.
    cluster.spec(r#"{"stuckAfterMinutes": 1}"#);
    cluster.says("MachinesJoin", "old-young").await;

    tread_test_bed::eventually("one whose name begins another's is told", async || {
        reported().iter().any(|it| it == "Machine/old-stuc").then_some(())
    })
    .await;

    // They get their nodes.
    for name in ["old-stuck", "old-stuc", "old-young"] {
        let node = json!({"status": {"phase": "Running", "nodeRef": {"name": name}}});
        patch(&cluster, "machines.machine.openshift.io", name, &node);
    }
    patch(&cluster, SETS, "old", &json!({"status": {"readyReplicas": 3}}));
    cluster.until("MachinesJoin", "True", "AsExpected").await;
    drop(running);
}

#[test]
fn only_a_machine_that_is_there_without_a_node_waits() {
    let read = |status: Value| {
        let object = json!({
            "metadata": {"name": "a", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": status,
        });
        Waiting::read(&serde_json::from_value::<DynamicObject>(object).unwrap())
    };
    let since = |status: Value| read(status).map(|it| it.since.to_string());
    let there = |kind: &str, status: &str| json!([{"type": kind, "status": status, "lastTransitionTime": "2026-01-01T01:00:00Z"}]);
    let provisioned = |conditions: Value| json!({"phase": "Provisioned", "conditions": conditions});
    for (status, expected) in [
        (Value::Null, None),
        (json!({"phase": "Provisioning"}), None),
        (json!({"phase": "Running"}), None),
        (json!({"phase": 7}), None),
        (json!({"phase": "Provisioned", "nodeRef": {"name": "n"}}), None),
        (provisioned(Value::Null), Some("2026-01-01T00:00:00Z")),
        (provisioned(json!("garbage")), Some("2026-01-01T00:00:00Z")),
        (provisioned(there("InstanceExists", "True")), Some("2026-01-01T01:00:00Z")),
        (provisioned(there("InfrastructureReady", "True")), Some("2026-01-01T01:00:00Z")),
        (provisioned(there("InstanceExists", "False")), Some("2026-01-01T00:00:00Z")),
    ] {
        assert_eq!(since(status.clone()).as_deref(), expected, "{status}");
    }
}

fn stuck(name: &str, since: &str) -> Stuck {
    Stuck {
        resource: Key { kind: SETS, namespace: MACHINES.to_owned(), name: "set".to_owned() },
        resource_uid: "1".to_owned(),
        machine: Waiting {
            name: name.to_owned(),
            uid: name.to_owned(),
            since: since.parse().unwrap(),
        },
        image: "it is too old; openshift-machine-api/m-3, made by anybody".to_owned(),
    }
}

#[test]
fn five_machines_are_named_and_the_others_counted() {
    let all = |count: usize| -> Vec<Stuck> {
        (0..count).map(|number| stuck(&format!("m-{number}"), "2026-01-01T00:00:00Z")).collect()
    };
    let message = machines_join(&all(7), &["x: y".to_owned()]).message;
    for (name, named) in [("/m-0,", true), ("/m-4,", true), ("/m-5,", false), ("/m-6,", false)] {
        assert_eq!(message.contains(name), named, "{name}: {message}");
    }
    assert!(message.contains("; and 2 more. "), "{message}");
    assert!(message.ends_with(". Machines cannot be looked for of x: y"), "{message}");
    assert!(!machines_join(&all(5), &[]).message.contains("more"));
}

#[test]
fn only_what_kubernetes_takes_for_labels_is_asked_for() {
    let query = |key: &str, value: &str| {
        selector::query(&[(key.to_owned(), value.to_owned())].into_iter().collect())
    };
    let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
    let prefix = format!("{}.{}", "a".repeat(200), "b".repeat(52));
    for (key, value) in [
        ("set", "a"),
        ("set", ""),
        ("A_b.c-9", "Z_y.x-0"),
        ("machine.openshift.io/cluster-api-machineset", "x-worker-eu-west-1a"),
        (&longest, &longest),
        (&format!("{prefix}/a"), "a"),
    ] {
        assert_eq!(query(key, value), Ok(format!("{key}={value}")));
    }
    for (key, value) in [
        ("z", "in (a)"),
        ("z", "a,x!=y"),
        ("z", "=a"),
        ("z", " a"),
        ("z", "-a"),
        ("z", "a-"),
        ("z", "ä"),
        ("z", &too_long),
        ("", "a"),
        ("!z", "a"),
        ("a,b", "a"),
        ("a b", "a"),
        (&too_long, "a"),
        ("/a", "a"),
        ("a/", "a"),
        ("a/b/c", "a"),
        ("A.io/a", "a"),
        ("a..io/a", "a"),
        ("-a.io/a", "a"),
        (&format!("{prefix}c/a"), "a"),
    ] {
        let said = query(key, value).unwrap_err();
        assert!(said.contains("in its matchLabels is no label"), "{said}");
    }
    let all = [("a".to_owned(), "b".to_owned()), ("c".to_owned(), String::new())];
    assert_eq!(selector::query(&all.into_iter().collect()), Ok("a=b,c=".to_owned()));
}
