//! What a rollout takes of the service and of the API server. `tests/size --only-rollouts` measures it
//! with 2,000 nodes, as SPECIFICATION.md states it, and makes a table of the rows that are printed here.

#![allow(clippy::print_stdout, reason = "a figure is shown by printing it")]

use super::agent::{ANSWERED, Agent, well};
use super::fixture::{Cluster, PACES, Replica};
use crate::judge::as_number;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tread_enforce::rollouts::Paces;
use tread_test_bed::ControlPlane;

/// The threads that a replica runs on, by the beginning of their names.
const THREADS: &str = "replica";
/// From so many nodes on it is measured, on a machine that does nothing else.
const MEASURED: usize = 1000;
/// How much of the budget is in use at least, on average, for as long as a node waits for its slot.
const BUSY: f64 = 0.75;
/// The same of a few nodes, whose slots change hands faster than a machine answers that does more.
const BUSY_OF_FEW: f64 = 0.5;
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

/// What a change took.
struct Took {
    nodes: usize,
    /// Until all nodes had it.
    time: Duration,
    /// Of a core, by the service.
    used: Duration,
    /// For each node.
    writes: f64,
    /// Of each agent.
    questions: f64,
}

impl Took {
    /// A row of the table. `busy` is how many slots were taken, where nodes are drained.
    fn row(&self, what: &str, busy: &str) {
        let (time, used) = (self.time.as_secs_f64(), self.used.as_secs_f64());
        let Took { nodes, writes, questions, .. } = self;
        println!(
            "| {nodes} | {what} | {time:.1} s | {used:.2} s | {writes:.1} | {questions:.1} | {busy} |"
        );
    }
}

/// What a change takes.
async fn rolls_out(cluster: &Cluster, path: &str) -> Took {
    let count = cluster.nodes.len();
    let (begun, before) = (Instant::now(), (used(), writes(&cluster.plane)));
    let answered = ANSWERED.load(Ordering::Relaxed);
    cluster.file("90-next", path, "2").await;
    cluster.all_have(path, "2").await;
    let (time, used) = (begun.elapsed(), used() - before.0);
    let writes = (writes(&cluster.plane) - before.1) / as_number(count);
    let questions = as_number(ANSWERED.load(Ordering::Relaxed) - answered) / as_number(count);
    Took { nodes: count, time, used, writes, questions }
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
            let took = rolls_out(cluster, path).await;
            took.row(what, "");
            // How far a pool is, is written once a second, whatever the number of nodes.
            let of_pool = 2.0 * took.time.as_secs_f64() / as_number(cluster.nodes.len());
            let writes = took.writes;
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
        let took = rolls_out(cluster, "/etc/hard").await;
        // For as long as a node waits for one.
        let (most, average) = cluster.judge.taken();
        took.row("with a reboot", &format!("{average:.1} on average, {most} at most, of {down}"));
        assert_eq!(most, down, "slots that were taken at most");
        let busy = if took.nodes < MEASURED { BUSY_OF_FEW } else { BUSY };
        let share = average / as_number(down);
        assert!(share >= busy, "{share:.2} of the budget was in use, and {busy} is the least");
        cluster.judge.holds().await;
    });
    rolling.end();
}
