//! `tread nodes` and `tread rollout` against a real API server. What the service and its agents
//! write is played.

use crate::replica::{NODES, apply, with_nodes};
use crate::story::{tread, written};
use crate::support::{Bench, unread};
use nix::pty::{Winsize, openpty};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use tread_test_bed::{Access, ControlPlane, eventually};

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "tread.dev/v1alpha1", "kind": kind, "metadata": {"name": name},
        "spec": spec})
}

struct Cluster(ControlPlane);

impl Cluster {
    /// Two pools, of which one has three nodes.
    fn with_pools() -> Cluster {
        let plane = with_nodes();
        let pools = ["worker", "infra"];
        let rollouts = pools.map(|name| object("Rollout", name, json!({})));
        let updates = NODES.map(|name| object("NodeUpdate", name, json!({"pool": "worker"})));
        apply(&plane, &[&rollouts[..], &updates].concat());
        let cluster = Cluster(plane);
        let target = json!({"name": "rendered-2", "digest": "two"});
        cluster.statuses("rollout", &pools, json!({"target": target, "observedGeneration": 1}));
        let current = json!({"name": "rendered-1", "digest": "one"});
        cluster.statuses("nup", &NODES, json!({"current": current}));
        cluster
    }

    fn make(&self, kind: &str, name: &str, spec: Value) {
        self.0.apply(&object(kind, name, spec).to_string()).unwrap();
    }

    fn kubectl(&self, args: &[&str]) -> String {
        self.0.kubectl(args).unwrap().success().unwrap()
    }

    fn status(&self, kind: &str, name: &str, status: Value) {
        self.statuses(kind, &[name], status);
    }

    fn statuses(&self, kind: &str, names: &[&str], status: Value) {
        let patch = json!({"status": status}).to_string();
        let how = ["--subresource=status", "--type=merge", "-p", &patch];
        self.kubectl(&[&["patch", kind], names, &how].concat());
    }

    fn get(&self, kind: &str, name: &str) -> Value {
        serde_json::from_str(&self.kubectl(&["get", kind, name, "-o", "json"])).unwrap()
    }

    /// As the service does once it saw the newest spec.
    fn sees(&self, pool: &str, mut status: Value) {
        status["observedGeneration"] = self.get("rollout", pool)["metadata"]["generation"].clone();
        self.status("rollout", pool, status);
    }

    /// As the service orders it.
    fn orders(&self, node: &str, operation: &str, stage: &str) {
        let order = json!({"operation": operation, "disrupts": "Reboot", "token": 1, "stage": stage,
            "config": {"name": "rendered-2", "digest": "two"}});
        let patch = json!({"spec": {"order": order}}).to_string();
        self.kubectl(&["patch", "nup", node, "--type=merge", "-p", &patch]);
    }

    fn lease(&self, node: &str, holder: &str) {
        let space = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "medik8s-leases"}});
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": format!("node-{node}"), "namespace": "medik8s-leases"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600,
                "renewTime": "2999-01-01T00:00:00.000000Z"}});
        apply(&self.0, &[space, lease]);
    }

    fn tread(&self, args: &[&str]) -> (i32, String, String) {
        tread(&self.0, args)
    }

    /// What it printed; it has to go well, and to complain of nothing.
    fn said(&self, args: &[&str]) -> String {
        let (code, out, err) = self.tread(args);
        assert_eq!((code, err.as_str()), (0, ""), "{args:?}: {out}");
        out
    }
}

/// A command that goes on, and what it prints meanwhile.
struct Going {
    child: Child,
    out: PathBuf,
}

impl Going {
    fn on(plane: &ControlPlane, name: &str, args: &[&str]) -> Going {
        let out = written(name, "");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tread"));
        plane.prepare(&mut command);
        let file = || std::fs::File::create(&out).unwrap();
        command.args(args).stdin(Stdio::null()).stdout(file()).stderr(Stdio::null());
        Going { child: command.spawn().unwrap(), out }
    }

    async fn says(&self, words: &str) {
        eventually(words, async || text(&self.out).contains(words).then_some(())).await;
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        // One that has ended is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn cells(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

const OPERATION: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn nodes_are_listed_with_what_they_do_have_and_want_and_who_holds_them() {
    let cluster = Cluster::with_pools();
    cluster.orders("node-1", OPERATION, "Go");
    cluster.status(
        "nup",
        "node-1",
        json!({"operation": OPERATION, "phase": "Begun", "step": "reload crio.service",
            "since": "2026-10-21T07:28:00.000000Z", "message": "1 of 3"}),
    );
    cluster.lease("node-1", "tread/0000");
    cluster.lease("node-2", "alice");
    let waits = json!([{"node": "node-2", "why": "alice holds it"}]);
    cluster.sees("worker", json!({"waiting": waits}));

    let out = cluster.said(&["nodes"]);
    let lines: Vec<Vec<&str>> = out.lines().map(cells).collect();
    let heads = ["NODE", "POOL", "PHASE", "STEP", "CONFIG", "WANTED", "SINCE", "HOLDER", "MESSAGE"];
    assert_eq!(lines[0], heads);
    assert_eq!(lines[1], ["node-0", "worker", "-", "-", "rendered-1", "rendered-2", "-", "-", "-"]);
    let busy = [
        "node-1",
        "worker",
        "Begun",
        "reload crio.service",
        "rendered-1",
        "rendered-2",
        "2026-10-21T07:28:00Z",
        "tread",
        "1 of 3",
    ];
    assert_eq!(lines[2], busy);
    assert_eq!(lines[3][7..], ["alice", "waits: alice holds it"]);
    assert_eq!(cluster.said(&["nodes", "--pool", "worker"]).lines().count(), lines.len());
    let (code, _, err) = cluster.tread(&["nodes", "--pool", "workers"]);
    assert!(code == 2 && err.contains("no Rollout workers"), "{code} {err}");

    let json: Value = serde_json::from_str(&cluster.said(&["nodes", "-o", "json"])).unwrap();
    let node = &json["items"][1];
    assert_eq!(node["holder"], "tread/0000");
    assert_eq!((&node["isUnderWay"], &node["operation"]), (&json!(true), &json!(OPERATION)));
    assert!(cluster.said(&["nodes", "-o", "yaml"]).starts_with("items:"));
}

#[tokio::test]
async fn a_watch_of_nodes_has_a_line_for_each_change_where_nobody_looks() {
    let cluster = Cluster::with_pools();
    let watch = Going::on(&cluster.0, "nodes.out", &["nodes", "--watch"]);
    watch.says("node-2").await;
    assert_eq!(text(&watch.out).lines().count(), 4, "{}", text(&watch.out));
    cluster.orders("node-0", OPERATION, "Prepare");
    watch.says("node-0   worker   Prepare   -   rendered-1   rendered-2").await;
    cluster.lease("node-0", "alice");
    watch.says("alice").await;
    cluster.status("nup", "node-0", json!({"operation": OPERATION, "phase": "Waiting"}));
    watch.says("node-0   worker   Waiting").await;
    cluster.kubectl(&["delete", "nup", "node-2"]);
    watch.says("node-2 is gone").await;
    let out = text(&watch.out);
    assert!(out.lines().skip(4).all(|line| !line.starts_with("node-1")), "{out}");
    assert!(!out.contains('\u{1b}'), "{out}");

    let watch = Going::on(&cluster.0, "nodes.json", &["nodes", "--watch", "-o", "json"]);
    watch.says("node-1").await;
    for line in text(&watch.out).lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!(row["pool"], "worker");
    }
}

#[tokio::test]
async fn a_watch_on_a_terminal_is_a_table_that_stays_with_what_is_under_way_on_top() {
    let cluster = Cluster::with_pools();
    let size = Winsize { ws_row: 10, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(&size, None).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tread"));
    cluster.0.prepare(&mut command);
    command.args(["nodes", "--watch"]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(terminal.slave).spawn().unwrap();
    // It holds the other end too, which would never close.
    drop(command);
    let screen = Arc::new(Mutex::new(Vec::new()));
    let reader = std::thread::spawn({
        let (screen, mut master) = (screen.clone(), File::from(terminal.master));
        move || {
            let mut part = [0; 4096];
            while let Ok(read @ 1..) = master.read(&mut part) {
                screen.lock().unwrap().extend_from_slice(&part[..read]);
            }
        }
    });
    let shows = async |first: &str| {
        eventually(first, async || {
            let all = String::from_utf8_lossy(&screen.lock().unwrap()).into_owned();
            let last = all.rsplit("\u{1b}[H\u{1b}[2J").next().unwrap_or_default().to_owned();
            let is_first = last.lines().nth(1).is_some_and(|line| line.starts_with(first));
            is_first.then_some(last)
        })
        .await
    };
    shows("node-0").await;
    cluster.orders("node-2", OPERATION, "Prepare");
    let last = shows("node-2   worker   Prepare").await;
    assert!(last.contains("3 nodes: 1 under way, 2 not yet"), "{last}");
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
}

#[test]
fn a_status_says_who_is_next_and_who_waits_for_whom() {
    let cluster = Cluster::with_pools();
    cluster.orders("node-0", OPERATION, "Go");
    cluster.status(
        "nup",
        "node-0",
        json!({"operation": OPERATION, "phase": "Degraded",
        "message": "crio.service does not start"}),
    );
    let status = json!({
        "message": "halted, since 1 node failed", "nodes": 3, "updated": 1, "underWay": 0,
        "failed": 1, "next": ["node-1"], "moreWaiting": 4,
        "waiting": [{"node": "node-2", "why": "alice holds it (a disk), until 12:00",
            "since": "2026-10-21T07:28:00Z"}],
        "draining": [{"node": "node-1", "podsLeft": 3, "lateSince": "2026-10-21T07:28:00Z",
            "blocked": ["a/db: the PodDisruptionBudget db allows no disruption now"]}],
        "missing": [{"address": "192.0.2.1", "fetched": "2026-10-21T07:28:00Z"}],
        "conditions": [{"type": "Updated", "status": "False", "reason": "Halted",
            "message": "1 of 3 nodes has it", "lastTransitionTime": "2026-10-21T07:28:00Z"}],
    });
    cluster.sees("worker", status);
    let out = cluster.said(&["rollout", "status", "worker"]);
    let expected = "\
worker: halted, since 1 node failed
  config: rendered-2
  nodes: 3, of which 1 have it, 0 are under way, 1 failed
  failed: node-0: Degraded, crio.service does not start
  once you saw why: `tread rollout retry worker` begins them again
  next: node-1
  drains: node-1: 3 pods have to move; it takes too long since 2026-10-21T07:28:00Z
    a/db: the PodDisruptionBudget db allows no disruption now
  waits: node-2: alice holds it (a disk), until 12:00; its change waits since 2026-10-21T07:28:00Z
  and 4 more wait
  missing: a machine at 192.0.2.1 fetched the config at 2026-10-21T07:28:00Z, and registered no node
  Updated is False: 1 of 3 nodes has it
";
    assert_eq!(out, expected);
    let all = cluster.said(&["rollout", "status"]);
    let lines: Vec<Vec<&str>> = all.lines().map(cells).collect();
    assert_eq!(lines[1][0], "infra");
    let of_worker =
        ["worker", "rendered-2", "3", "1", "0", "1", "no", "halted, since 1 node failed"];
    assert_eq!(lines[2], of_worker);
    let json = cluster.said(&["rollout", "status", "worker", "-o", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["pool"], &json["isSeen"]), (&json!("worker"), &json!(true)));
    assert_eq!(json["status"]["waiting"][0]["node"], "node-2");
    let (code, _, err) = cluster.tread(&["rollout", "status", "workers"]);
    assert_eq!(code, 2);
    assert!(err.contains("no Rollout workers") && err.contains("infra, worker"), "{err}");
}

#[test]
fn a_node_that_went_back_or_refused_its_order_is_named_with_why() {
    let cluster = Cluster::with_pools();
    for (node, phase, why) in
        [("node-0", "WentBack", "crio.service"), ("node-1", "TurnedBack", "/etc/a")]
    {
        cluster.orders(node, OPERATION, "Closed");
        let status = json!({"operation": OPERATION, "phase": phase, "message": why,
            "since": "2026-01-01T00:00:00.000000Z"});
        cluster.status("nup", node, status);
    }
    let named =
        ["  failed: node-0: WentBack, crio.service\n", "  failed: node-1: TurnedBack, /etc/a\n"];
    let out = cluster.said(&["rollout", "status", "worker"]);
    assert!(named.iter().all(|it| out.contains(it)), "{out}");
    let out = cluster.said(&["rollout", "retry", "worker"]);
    assert!(out.contains("are begun again\n  node-0, node-1\n"), "{out}");
    // It was told to turn back; and what failed for another config is over.
    let withdrawn = json!({"spec": {"order": {"withdrawn": true}}}).to_string();
    cluster.kubectl(&["patch", "nup", "node-1", "--type=merge", "-p", &withdrawn]);
    cluster.sees("worker", json!({"target": {"name": "rendered-3", "digest": "three"}}));
    let out = cluster.said(&["rollout", "status", "worker"]);
    assert!(!out.contains("failed: node-"), "{out}");
}

#[test]
fn a_pool_is_paused_resumed_and_retried_by_what_an_admin_says() {
    let cluster = Cluster::with_pools();
    cluster.orders("node-1", OPERATION, "Go");
    let out = cluster.said(&["rollout", "pause", "worker"]);
    assert!(out.contains("worker is paused: no more nodes are begun"), "{out}");
    assert!(out.contains("under way, and finished first: node-1"), "{out}");
    assert_eq!(cluster.get("rollout", "worker")["spec"]["paused"], true);
    assert_eq!(cluster.get("rollout", "infra")["spec"]["paused"], json!(false));
    assert_eq!(cluster.said(&["rollout", "pause", "worker"]), "worker is paused already\n");
    let status = cluster.said(&["rollout", "status", "worker"]);
    for part in ["not seen yet: ", "paused: no node is begun", "under way: node-1: Go"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    assert_eq!(
        cluster.said(&["rollout", "resume", "--all"]),
        "infra is not paused\nworker goes on\n"
    );
    assert_eq!(cluster.get("rollout", "worker")["spec"]["paused"], false);

    let before = "2026-01-01T00:00:00.000000Z";
    cluster.status(
        "nup",
        "node-1",
        json!({"operation": OPERATION, "phase": "Degraded",
        "since": before}),
    );
    let out = cluster.said(&["rollout", "retry", "worker"]);
    assert!(out.contains("are begun again\n  node-1\n"), "{out}");
    // The API server's time, and not this machine's: that of an object made right now.
    let asked = cluster.get("rollout", "worker")["spec"]["retryFailedBefore"].clone();
    cluster.make("Rollout", "later", json!({}));
    let later = cluster.get("rollout", "later")["metadata"]["creationTimestamp"].clone();
    let earlier = cluster.get("rollout", "worker")["metadata"]["creationTimestamp"].clone();
    assert!(earlier.as_str() <= asked.as_str() && asked.as_str() <= later.as_str(), "{asked}");
    // A node whose clock is ahead is not begun again by that.
    let ahead = "2999-01-01T00:00:00.000000Z";
    cluster.status("nup", "node-1", json!({"since": ahead}));
    let (code, _, err) = cluster.tread(&["rollout", "retry", "worker"]);
    assert_eq!(code, 0);
    assert!(err.contains("node-1 failed at 2999-01-01T00:00:00Z by its own clock"), "{err}");

    for args in
        [&["rollout", "pause"][..], &["rollout", "retry"], &["rollout", "pause", "a", "--all"]]
    {
        assert_eq!(cluster.tread(args).0, 2, "{args:?}");
    }
    for verb in ["pause", "resume", "retry", "stop"] {
        let (code, _, err) = cluster.tread(&["rollout", verb, "workers"]);
        assert!(code == 2 && err.contains("no Rollout workers"), "{verb}: {err}");
    }
}

#[test]
fn all_pools_are_paused_also_if_nobody_reads_on() {
    let cluster = Cluster::with_pools();
    let ended = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tread"));
        cluster.0.prepare(&mut command);
        command.args(args);
        unread(command)
    };
    let are_paused =
        || ["infra", "worker"].map(|pool| cluster.get("rollout", pool)["spec"]["paused"] == true);
    assert_eq!(ended(&["rollout", "pause", "--all"]), (0, String::new()));
    assert_eq!(are_paused(), [true; 2]);
    assert_eq!(ended(&["rollout", "resume", "--all"]), (0, String::new()));
    assert_eq!(are_paused(), [false; 2]);
    // Whoever waits for the end by the exit code is not told that it came.
    cluster.orders("node-0", OPERATION, "Go");
    let stop = ["rollout", "stop", "--timeout", "0s"];
    assert_eq!(ended(&stop), (3, String::new()));
    assert_eq!(are_paused(), [true; 2]);
}

#[tokio::test]
async fn a_stop_waits_until_nothing_is_under_way_and_no_lease_and_cordon_is_left() {
    let cluster = Cluster::with_pools();
    cluster.orders("node-0", OPERATION, "Go");
    cluster.status("nup", "node-0", json!({"operation": OPERATION, "phase": "Begun"}));
    cluster.lease("node-0", "tread/0000");
    cluster.lease("node-1", "alice");
    let mark = format!("tread.dev/cordoned-for={OPERATION}");
    cluster.kubectl(&["annotate", "node", "node-0", &mark]);
    let mut stop = Going::on(&cluster.0, "stop.out", &["rollout", "stop"]);
    stop.says("infra: tread has not seen yet that it is paused").await;
    for pool in ["worker", "infra"] {
        assert_eq!(cluster.get("rollout", pool)["spec"]["paused"], true);
        cluster.sees(pool, json!({"underWay": 1}));
    }
    // A node that has a slot, and no order yet.
    stop.says("  infra: tread counts 1 under way\n").await;
    for pool in ["worker", "infra"] {
        cluster.sees(pool, json!({"underWay": 0}));
    }
    stop.says("waiting for:\n  node-0: Begun\n  node-0: tread's cordon is still there\n").await;
    cluster.status("nup", "node-0", json!({"phase": "Done"}));
    stop.says("node-0: Done").await;
    cluster.orders("node-0", OPERATION, "Closed");
    stop.says("waiting for:\n  node-0: tread's cordon is still there\n").await;
    cluster.kubectl(&["annotate", "node", "node-0", "tread.dev/cordoned-for-"]);
    stop.says("waiting for:\n  node-0: tread still holds its Lease\n").await;
    assert!(stop.child.try_wait().unwrap().is_none(), "it waits");
    cluster.kubectl(&["-n", "medik8s-leases", "delete", "lease", "node-node-0"]);
    assert_eq!(stop.child.wait().unwrap().code(), Some(0));
    let out = text(&stop.out);
    let end = "nothing is under way, and no cordon and no Lease of tread's is left\n";
    assert!(out.ends_with(end), "{out}");
    assert!(!out.contains("node-1"), "others' Leases are theirs: {out}");
}

#[test]
fn a_stop_says_what_is_left_when_its_time_is_over_or_a_node_failed() {
    let cluster = Cluster::with_pools();
    cluster.orders("node-0", OPERATION, "Go");
    let (code, out, err) = cluster.tread(&["rollout", "stop", "--timeout", "0s"]);
    assert_eq!((code, err.as_str()), (3, ""), "{out}");
    assert!(out.contains("the time is over; this is left:\n"), "{out}");
    assert!(out.contains("  node-0: Go\n"), "{out}");
    assert!(!out.contains("kubectl uncordon"), "{out}");

    for pool in ["worker", "infra"] {
        cluster.sees(pool, json!({}));
    }
    cluster.status(
        "nup",
        "node-0",
        json!({"operation": OPERATION, "phase": "Degraded",
        "message": "crio.service does not start"}),
    );
    let mark = format!("tread.dev/cordoned-for={OPERATION}");
    cluster.kubectl(&["annotate", "node", "node-0", &mark]);
    let (code, out, _) = cluster.tread(&["rollout", "stop"]);
    assert_eq!(code, 3, "it is not waited for: {out}");
    assert!(out.contains("  node-0: Degraded, crio.service does not start\n"), "{out}");
    assert!(out.contains("`kubectl uncordon NODE`"), "{out}");
    // Another pool has nothing to do with that.
    assert_eq!(cluster.tread(&["rollout", "stop", "infra"]).0, 0);
    assert_eq!(cluster.tread(&["rollout", "stop", "--timeout", "soon"]).0, 2);
    // Its mark goes once somebody has uncordoned it, as was said.
    cluster.kubectl(&["annotate", "node", "node-0", "tread.dev/cordoned-for-"]);
    let (code, out, _) = cluster.tread(&["rollout", "stop"]);
    assert_eq!(code, 0, "{out}");
}

#[test]
fn where_tread_rolls_out_nothing_it_is_said_so_with_what_to_do() {
    let plane = ControlPlane::start().unwrap();
    for args in [
        &["nodes"][..],
        &["nodes", "--watch"],
        &["rollout", "status"],
        &["rollout", "pause", "worker"],
        &["rollout", "resume", "--all"],
        &["rollout", "retry", "worker"],
        &["rollout", "stop"],
    ] {
        let (code, out, err) = tread(&plane, args);
        assert_eq!((code, out.as_str()), (1, ""), "{args:?}: {err}");
        for part in ["mode advise", "`tread plans`", "`tread manifests --mode enforce`"] {
            assert!(err.contains(part), "{args:?}: {part}: {err}");
        }
    }
}

fn as_somebody(who: &Access, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tread"));
    who.prepare(&mut command);
    let output = command.args(args).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn who_may_look_and_not_write_is_told_what_to_ask_for() {
    let cluster = Cluster::with_pools();
    let eve = cluster.0.impersonate("eve", &[]).unwrap();
    for args in [&["nodes"][..], &["nodes", "--watch"], &["rollout", "status"]] {
        let (code, err) = as_somebody(&eve, args);
        assert_eq!(code, Some(1), "{args:?}: {err}");
        assert!(err.contains("tread-view.NAMESPACE"), "{args:?}: {err}");
    }
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "look"}, "rules": [{"apiGroups": ["tread.dev"],
        "resources": ["nodeupdates", "rollouts"], "verbs": ["get", "list", "watch"]}]});
    cluster.0.apply(&role.to_string()).unwrap();
    let bind = ["create", "clusterrolebinding", "look", "--clusterrole=look", "--user=eve"];
    cluster.kubectl(&bind);
    let (code, err) = as_somebody(&eve, &["nodes"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("warning: who holds which node is not known: leases"), "{err}");
    // What nobody may see is not said to be over.
    let right = ["create", "clusterrole", "write", "--verb=patch", "--resource=rollouts.tread.dev"];
    cluster.kubectl(&right);
    let mallory = cluster.0.impersonate("mallory", &[]).unwrap();
    for role in ["look", "write"] {
        let (name, of) = (format!("mallory-{role}"), format!("--clusterrole={role}"));
        cluster.kubectl(&["create", "clusterrolebinding", &name, &of, "--user=mallory"]);
    }
    let patch = json!({"spec": {"paused": true}}).to_string();
    cluster.kubectl(&["patch", "rollout", "worker", "--type=merge", "-p", &patch]);
    cluster.sees("worker", json!({}));
    let (code, err) = as_somebody(&mallory, &["rollout", "stop", "worker"]);
    assert_eq!(code, Some(3), "{err}");
    for part in ["which nodes tread cordoned is not known", "who holds which node is not known"] {
        assert!(err.contains(part), "{err}");
    }
    for verb in ["pause", "retry", "stop"] {
        let pool = if verb == "stop" { "infra" } else { "worker" };
        if verb == "pause" {
            let patch = json!({"spec": {"paused": false}}).to_string();
            cluster.kubectl(&["patch", "rollout", "worker", "--type=merge", "-p", &patch]);
        }
        let (code, err) = as_somebody(&eve, &["rollout", verb, pool]);
        assert_eq!(code, Some(1), "{err}");
        assert!(err.contains("`kubectl auth can-i patch rollouts.tread.dev`"), "{verb}: {err}");
    }
}

#[test]
fn the_role_for_laptops_is_enough_to_look_where_tread_rolls_out() {
    const ROLE: &str = "tread-read.tread-system";
    let cluster = Cluster::with_pools();
    let args = ["manifests", "--mode=enforce", "--image=tread", "-o", "json"];
    let list = Bench::new().tread(&args).json();
    let is_role = |it: &&Value| it["metadata"]["name"] == ROLE;
    let role = list["items"].as_array().unwrap().iter().find(is_role).unwrap();
    cluster.0.apply(&role.to_string()).unwrap();
    let of = format!("--clusterrole={ROLE}");
    cluster.kubectl(&["create", "clusterrolebinding", "alice", &of, "--user=alice"]);
    let alice = cluster.0.impersonate("alice", &[]).unwrap();
    cluster.lease(NODES[0], "tread/1");
    for args in [&["nodes"][..], &["rollout", "status"], &["rollout", "status", "worker"]] {
        let (code, err) = as_somebody(&alice, args);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{args:?}");
    }
    let (code, err) = as_somebody(&alice, &["rollout", "pause", "worker"]);
    assert!(code == Some(1) && err.contains("patch rollouts.tread.dev"), "{err}");
}

#[test]
fn the_objects_of_the_page_for_operators_are_those_that_an_api_server_takes() {
    let cluster = Cluster::with_pools();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../enforce/OPERATING.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> = page.split("```yaml\n").skip(1).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let (object, _) = block.split_once("```").unwrap();
        let apply = ["apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", "-"];
        let ran = cluster.0.admin().kubectl_with_input(&apply, object).unwrap();
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{object}");
    }
    // Each field of the spec is explained there, and no other.
    let crd = cluster.get("crd", "rollouts.tread.dev");
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let fields = spec["properties"].as_object().unwrap();
    let table = page.split("\n## ").find(|part| part.starts_with("What the fields")).unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let mut explained: Vec<&str> = rows.collect();
    explained.sort_unstable();
    assert_eq!(explained, fields.keys().map(String::as_str).collect::<Vec<_>>());
}
