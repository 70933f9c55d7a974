//! What a rollout takes of the service and of the API server. With `TREAD_NODES=2000` it is
//! measured as SPECIFICATION.md states it.

#![allow(clippy::print_stdout, reason = "a figure is shown by printing it")]

use super::agent::{Agent, well};
use super::fixture::{Cluster, PACES, Replica};
use crate::judge::as_number;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tread_enforce::rollouts::Paces;
use tread_test_bed::ControlPlane;

/// The threads that a replica runs on, by the beginning of their names.
const THREADS: &str = "replica";
/// A thread's time is counted in so many parts of a second.
const TICKS: f64 = 100.0;

fn nodes() -> usize {
    std::env::var("TREAD_NODES").ok().and_then(|text| text.parse().ok()).unwrap_or(30)
}

/// The processor time of the threads of the replica so far.
fn used() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let ticks = threads.filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.ok()?.path().join("stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
        let own = name.starts_with(THREADS) || name.starts_with("tread-plans");
        let fields: Vec<&str> = rest.split(' ').collect();
        let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
        own.then_some(ticks(11)? + ticks(12)?)
    });
    Duration::from_secs_f64(ticks.sum::<f64>() / TICKS)
}

/// How many writes of rollouts the API server has taken: of tread's own objects, of the slots, of
/// configs and pools, and of Events.
fn writes(plane: &ControlPlane) -> f64 {
    let text = plane.kubectl(&["get", "--raw", "/metrics"]).unwrap().success().unwrap();
    let has = |line: &str, label: &str, values: &[&str]| {
        values.iter().any(|value| line.contains(&format!("{label}=\"{value}\"")))
    };
    let counted = text.lines().filter(|line| {
        let of_rollouts = has(line, "group", &["tread.dev", "events.k8s.io"])
            || has(line, "resource", &["configmaps", "machineconfigs", "machineconfigpools"]);
        line.starts_with("apiserver_request_total")
            && of_rollouts
            && has(line, "verb", &["POST", "PUT", "PATCH", "DELETE"])
            && has(line, "code", &["200", "201"])
    });
    counted.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// What a change took, and how many writes for each node.
async fn rolls_out(cluster: &Cluster, path: &str, what: &str) -> (Duration, f64) {
    let count = cluster.nodes.len();
    let (begun, before) = (Instant::now(), (used(), writes(&cluster.plane)));
    cluster.file("90-next", path, "2").await;
    cluster.all_have(path, "2").await;
    let (took, used) = (begun.elapsed(), used() - before.0);
    let writes = (writes(&cluster.plane) - before.1) / as_number(count);
    println!(
        "{count} nodes, {what}: {:.1} s, {:.2} s of a core, {writes:.1} writes a node",
        took.as_secs_f64(),
        used.as_secs_f64()
    );
    (took, writes)
}

/// A cluster of so many nodes as are wanted, all with what their pool is made of, and whoever rolls
/// out there.
struct Rolling {
    own: Runtime,
    agents: Runtime,
    cluster: Cluster,
    replica: Replica,
    played: Vec<Agent>,
}

impl Rolling {
    /// So many of the nodes may be down.
    fn begin(down: usize) -> Rolling {
        let own = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name(THREADS)
            .enable_all()
            .build()
            .unwrap();
        let agents = Runtime::new().unwrap();
        let count = nodes();
        let mut cluster = agents.block_on(Cluster::with(count, down));
        if count < 100 {
            // What a few nodes need takes no longer, and nobody waits for the rest.
            cluster.acts.terms.pass = Duration::from_secs(4);
        }
        let replica = {
            let _entered = own.enter();
            // As often as in a real cluster.
            let paces = Paces { again: Paces::default().again, ..PACES };
            agents.block_on(cluster.replica_on(own.handle(), paces))
        };
        let played = agents.block_on(async {
            let begun = Instant::now();
            let played = cluster.agents(&replica, well());
            cluster.all_have("/etc/first", "1").await;
            println!(
                "{count} nodes join in {:.1} s, {:.1} s of a core",
                begun.elapsed().as_secs_f64(),
                used().as_secs_f64()
            );
            played
        });
        Rolling { own, agents, cluster, replica, played }
    }

    fn end(self) {
        let Rolling { own, agents, cluster, replica, played } = self;
        let _entered = agents.enter();
        drop((played, replica, cluster));
        own.shutdown_background();
    }
}

#[test]
fn a_change_that_disrupts_nothing_reaches_all_nodes_for_little() {
    let rolling = Rolling::begin(1);
    let cluster = &rolling.cluster;
    rolling.agents.block_on(async {
        for (path, what) in [("/etc/none", "only written"), ("/etc/soft", "with a reload")] {
            let (took, writes) = rolls_out(cluster, path, what).await;
            // How far a pool is, is written once a second, whatever the number of nodes.
            let of_pool = 2.0 * took.as_secs_f64() / as_number(cluster.nodes.len());
            assert!(
                writes <= 12.0 + of_pool,
                "{what}: {writes}, and {of_pool} at most of the pool"
            );
        }
    });
    rolling.end();
}

#[test]
fn a_change_that_boots_all_nodes_keeps_their_budget_busy() {
    // As many as all pools together may have.
    let down = (nodes() / 10).max(1);
    let rolling = Rolling::begin(down);
    let cluster = &rolling.cluster;
    rolling.agents.block_on(async {
        rolls_out(cluster, "/etc/hard", "with a reboot").await;
        let (most, average) = cluster.judge.taken();
        println!(
            "{most} of {down} slots were taken at most, and {average:.1} on average until the last \
             node had one"
        );
        assert_eq!(most, down, "slots that were taken at most");
        cluster.judge.holds().await;
    });
    rolling.end();
}
