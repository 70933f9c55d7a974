//! `tread lease` against a real API server: nodes are shared with whoever else takes part.

use crate::replica::with_nodes;
use crate::story::{tread, written};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use tread_test_bed::{ControlPlane, Part, eventually};

const LEASE: [&str; 4] = ["-n", "medik8s-leases", "lease", "node-node-0"];

struct Cluster(ControlPlane);

impl Cluster {
    fn with_nodes() -> Cluster {
        Cluster(with_nodes())
    }

    fn lease(&self, args: &[&str]) -> (i32, String, String) {
        tread(&self.0, &[&["lease"], args].concat())
    }

    fn kubectl(&self, args: &[&str]) -> String {
        self.0.kubectl(args).unwrap().success().unwrap()
    }

    /// The one in the list.
    fn listed(&self, node: &str) -> Value {
        let (code, out, err) = self.lease(&["list", "-o", "json"]);
        assert_eq!((code, err.as_str()), (0, ""));
        let all: Value = serde_json::from_str(&out).unwrap();
        let found = all["items"].as_array().unwrap().iter().find(|it| it["node"] == node);
        found.cloned().unwrap_or_default()
    }
}

#[test]
fn a_node_is_taken_listed_made_to_last_longer_and_given_back() {
    let cluster = Cluster::with_nodes();
    let (code, out, _) = cluster.lease(&["list"]);
    assert_eq!((code, out.split_whitespace().next()), (0, Some("NODE")));
    let take = ["acquire", "node-0", "--holder", "alice", "--for", "1h", "--reason", "a disk"];
    let (code, out, err) = cluster.lease(&take);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("node-0 is held by alice until "), "{out}");
    let first = cluster.listed("node-0");
    assert_eq!((&first["holder"], &first["state"]), (&json!("alice"), &json!("Held")));
    assert_eq!(first["reason"], "a disk");
    let owner = cluster.kubectl(
        &[&["get"], &LEASE[..], &["-o", "jsonpath={.metadata.ownerReferences[0].kind}"]].concat(),
    );
    assert_eq!(owner, "Node");

    let (code, _, err) = cluster.lease(&["acquire", "node-0", "--holder", "bob"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("node-0 is not free: alice holds it (a disk), until "), "{err}");
    let (code, _, err) = cluster.lease(&["release", "node-0", "--holder", "bob"]);
    assert!(code == 3 && err.contains("alice holds it"), "{err}");

    assert_eq!(cluster.lease(&["acquire", "node-0", "--holder", "alice", "--for", "2h"]).0, 0);
    let longer = cluster.listed("node-0");
    assert!(longer["until"].as_str() > first["until"].as_str(), "{longer}");
    assert_eq!((&longer["since"], &longer["reason"]), (&first["since"], &first["reason"]));

    assert_eq!(cluster.lease(&["release", "node-0", "--holder", "alice"]).0, 0);
    assert_eq!(cluster.listed("node-0"), Value::Null);
    let (code, out, _) = cluster.lease(&["release", "node-0", "--holder", "alice"]);
    assert_eq!((code, out.as_str()), (0, "nobody holds node-0\n"));
    let (code, _, err) = cluster.lease(&["acquire", "node-7"]);
    assert!(code == 1 && err.contains("there is no node node-7"), "{err}");
    for command in ["acquire", "release"] {
        let (code, _, err) = cluster.lease(&[command, "node-0/../x"]);
        assert!(code == 1 && err.contains("is no name of a node"), "{err}");
    }
    for (flag, value) in [("--for", "1s"), ("--for", "soon"), ("--wait", "-1h"), ("--for", "9999h")]
    {
        let (code, _, err) = cluster.lease(&["acquire", "node-0", flag, value]);
        assert_eq!(code, 2, "{flag} {value}: {err}");
    }
}

#[test]
fn a_command_runs_while_its_node_is_held_and_ends_as_it_does() {
    let cluster = Cluster::with_nodes();
    let hold = ["hold", "node-0", "--holder", "alice", "--"];
    let list = [env!("CARGO_BIN_EXE_tread"), "lease", "list", "-o", "json"];
    let (code, out, err) = cluster.lease(&[&hold[..], &list].concat());
    assert_eq!((code, err.as_str()), (0, ""));
    let meanwhile: Value = serde_json::from_str(&out).unwrap();
    let held = &meanwhile["items"][0];
    assert_eq!((&held["node"], &held["state"]), (&json!("node-0"), &json!("Held")));
    assert!(held["holder"].as_str().unwrap().starts_with("alice/"), "{held}");
    assert_eq!(cluster.lease(&[&hold[..], &["sh", "-c", "exit 7"]].concat()).0, 7);
    assert_eq!(cluster.lease(&[&hold[..], &["sh", "-c", "kill -9 $$"]].concat()).0, 137);
    assert_eq!(cluster.listed("node-0"), Value::Null, "it is given back");
    let (code, _, err) = cluster.lease(&["hold", "node-0", "--", "/no/such/program"]);
    assert!(code == 125 && err.contains("/no/such/program cannot be run"), "{err}");
    assert_eq!(cluster.listed("node-0"), Value::Null);

    assert_eq!(cluster.lease(&["acquire", "node-0", "--holder", "bob"]).0, 0);
    let (code, out, err) = cluster.lease(&["hold", "node-0", "--", "echo", "it ran"]);
    assert_eq!((code, out.as_str()), (125, ""), "{err}");
    assert!(err.contains("bob holds it"), "{err}");
}

#[tokio::test]
async fn who_waits_for_a_node_gets_it_once_it_is_given_back() {
    let cluster = Cluster::with_nodes();
    assert_eq!(cluster.lease(&["acquire", "node-0", "--holder", "bob"]).0, 0);
    let mut waits = Command::new(env!("CARGO_BIN_EXE_tread"));
    cluster.0.prepare(&mut waits);
    let out = written("waits.out", "");
    let err = written("waits.err", "");
    let file = |path| std::fs::File::create(path).unwrap();
    let mut waits = waits
        .args([
            "lease", "hold", "node-0", "--holder", "alice", "--wait", "1h", "--", "echo", "it ran",
        ])
        .stdin(Stdio::null())
        .stdout(file(&out))
        .stderr(file(&err))
        .spawn()
        .unwrap();
    eventually("it waits", async || {
        let said = std::fs::read_to_string(&err).unwrap();
        said.contains("node-0 is not free yet: bob holds it").then_some(())
    })
    .await;
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "");
    assert_eq!(cluster.lease(&["release", "node-0", "--holder", "bob"]).0, 0);
    assert!(waits.wait().unwrap().success());
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "it ran\n");
}

#[tokio::test]
async fn a_command_is_told_to_end_when_its_node_is_taken_away() {
    let cluster = Cluster::with_nodes();
    let (out, err) = (written("lost.out", ""), written("lost.err", ""));
    let file = |path| std::fs::File::create(path).unwrap();
    let mut holds = Command::new(env!("CARGO_BIN_EXE_tread"));
    cluster.0.prepare(&mut holds);
    let script = "trap 'echo told; exit 0' TERM; echo runs; while :; do sleep 0.1; done";
    let mut holds = holds
        .args([
            "lease", "hold", "node-0", "--holder", "alice", "--for", "40s", "--", "sh", "-c",
            script,
        ])
        .stdin(Stdio::null())
        .stdout(file(&out))
        .stderr(file(&err))
        .spawn()
        .unwrap();
    let says = |path: &std::path::Path, words: &str| {
        std::fs::read_to_string(path).unwrap().contains(words).then_some(())
    };
    eventually("the command runs", async || says(&out, "runs")).await;
    // As somebody does who is sure of it.
    let other = json!({"spec": {"holderIdentity": "bob", "leaseDurationSeconds": 3600}});
    let other = other.to_string();
    let patch = [&["patch"], &LEASE[..], &["--type=merge", "-p", &other]].concat();
    cluster.kubectl(&patch);
    eventually("the command is told", async || says(&out, "told")).await;
    assert_eq!(holds.wait().unwrap().code(), Some(125));
    assert!(says(&err, "node-0 is not held any more: bob holds it").is_some());
    assert_eq!(cluster.listed("node-0")["holder"], "bob", "and stays bob's");
}

#[tokio::test]
async fn a_command_is_told_to_end_when_its_lease_was_removed_behind_its_back() {
    let cluster = Cluster::with_nodes();
    let out = written("removed.out", "");
    let mut holds = Command::new(env!("CARGO_BIN_EXE_tread"));
    cluster.0.prepare(&mut holds);
    let script = "trap 'exit 0' TERM; echo runs; while :; do sleep 0.1; done";
    let mut holds = holds
        .args(["lease", "hold", "node-0", "--for", "40s", "--", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the command runs", async || {
        std::fs::read_to_string(&out).unwrap().contains("runs").then_some(())
    })
    .await;
    cluster.kubectl(&[&["delete"], &LEASE[..]].concat());
    assert_eq!(holds.wait().unwrap().code(), Some(125));
    assert_eq!(cluster.listed("node-0"), Value::Null, "what it took again is given back");
}

#[tokio::test]
async fn a_command_is_told_to_end_before_its_lease_does_when_nobody_answers() {
    let cluster = Cluster::with_nodes();
    let (mut told, mut ends) = when_nobody_answers(&cluster).await;
    // On a busy machine the command may stand still until its Lease has ended.
    for _ in 0..4 {
        if told < ends {
            return;
        }
        cluster.kubectl(&[&["delete"], &LEASE[..]].concat());
        (told, ends) = when_nobody_answers(&cluster).await;
    }
    assert!(told < ends, "told at {told}, and the Lease ends at {ends}");
}

/// When a command was told to end, and when its Lease ends.
async fn when_nobody_answers(cluster: &Cluster) -> (i128, i128) {
    let out = written("hangs.out", "");
    let mut holds = Command::new(env!("CARGO_BIN_EXE_tread"));
    cluster.0.prepare(&mut holds);
    // It says when it was told, and goes on until whoever holds the node is gone.
    let script = "trap 'date +told:%s%N:' TERM; echo runs; while kill -0 $PPID; do sleep 0.1; done";
    let mut holds = holds
        .args(["lease", "hold", "node-0", "--for", "20s", "--", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let said = || std::fs::read_to_string(&out).unwrap();
    eventually("the command runs", async || said().contains("runs").then_some(())).await;
    let hangs = cluster.0.pause(Part::ApiServer).unwrap();
    let told: i128 = eventually("the command is told", async || {
        said().split("told:").nth(1)?.split_once(':')?.0.parse().ok()
    })
    .await;
    // It does not give the Lease back, so that it is seen when that ends.
    holds.kill().unwrap();
    holds.wait().unwrap();
    hangs.resume().unwrap();
    let lease = [&["get"], &LEASE[..], &["-o", "json"]].concat();
    let lease = eventually("the API server answers", async || {
        serde_json::from_str::<Value>(&cluster.0.kubectl(&lease).ok()?.success().ok()?).ok()
    })
    .await;
    let renewed: Timestamp = lease["spec"]["renewTime"].as_str().unwrap().parse().unwrap();
    let lasts = lease["spec"]["leaseDurationSeconds"].as_i64().unwrap();
    (told, renewed.as_nanosecond() + i128::from(lasts) * 1_000_000_000)
}
