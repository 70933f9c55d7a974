//! What is counted of rollouts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::api::node_update::UpdateDisrupts;
use tread_kube::metrics::{InPool, Metrics, NodesOf, UpdatesBy, WaitingFor};
use tread_model::rollout::Why;

/// For how long nodes were down: what was seen last holds until the next look.
#[derive(Debug)]
pub(super) struct Downtime {
    since: Instant,
    down: usize,
}

impl Downtime {
    pub(super) fn new(now: Instant) -> Downtime {
        Downtime { since: now, down: 0 }
    }

    /// Counts what has passed since the last look; from now on so many are down.
    pub(super) fn passes(&mut self, metrics: &Metrics, now: Instant, down: usize) {
        let passed = now.saturating_duration_since(self.since);
        metrics.unavailable.inc_by(all_together(passed, self.down));
        *self = Downtime { since: now, down };
    }
}

fn all_together(passed: Duration, nodes: usize) -> f64 {
    let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
    passed.as_secs_f64() * f64::from(nodes)
}

/// Counts a node that was brought to a config.
pub(super) fn brought(metrics: &Metrics, pool: &str, disrupts: UpdateDisrupts) {
    let by = UpdatesBy { pool: pool.to_owned(), disrupts: word(disrupts) };
    metrics.updates.get_or_create(&by).inc();
    if disrupts != UpdateDisrupts::Reboot {
        let pool = InPool { pool: pool.to_owned() };
        metrics.node_reboots_avoided.get_or_create(&pool).inc();
    }
}

/// Counts a boot.
pub(super) fn booted(metrics: &Metrics, pool: &str) {
    metrics.node_reboots.get_or_create(&InPool { pool: pool.to_owned() }).inc();
}

fn word(disrupts: UpdateDisrupts) -> &'static str {
    match disrupts {
        UpdateDisrupts::Nothing => "nothing",
        UpdateDisrupts::Softly => "softly",
        UpdateDisrupts::Drain => "drain",
        UpdateDisrupts::Reboot => "reboot",
    }
}

/// How the nodes of a pool stand that tread rolls out.
pub(super) const STATES: [&str; 8] =
    ["updated", "waiting", "held", "needs-agent", "preparing", "updating", "needs-boot", "failed"];

/// The pools of which it is said how many of their nodes stand how.
#[derive(Debug, Default)]
pub(super) struct Gauges(BTreeSet<String>);

impl Gauges {
    /// Says it of a pool: the state of each node, and why each that waits does.
    pub(super) fn set<'w>(
        &mut self,
        metrics: &Metrics,
        pool: &str,
        states: impl Iterator<Item = &'static str>,
        waits: impl Iterator<Item = &'w Why>,
    ) {
        self.0.insert(pool.to_owned());
        let (states, reasons) = (counted(states), counted(waits.map(Why::word)));
        let number = |all: &BTreeMap<&str, i64>, of: &str| all.get(of).copied().unwrap_or_default();
        for state in STATES {
            let of = NodesOf { pool: pool.to_owned(), state };
            metrics.rollout_nodes.get_or_create(&of).set(number(&states, state));
        }
        for reason in Why::WORDS {
            let of = WaitingFor { pool: pool.to_owned(), reason };
            metrics.rollout_waiting.get_or_create(&of).set(number(&reasons, reason));
        }
    }

    /// Says it of no other pools any more than of these.
    pub(super) fn keep(&mut self, metrics: &Metrics, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|pool| {
            let is_there = is_there(pool);
            if !is_there {
                for state in STATES {
                    metrics.rollout_nodes.remove(&NodesOf { pool: pool.clone(), state });
                }
                for reason in Why::WORDS {
                    metrics.rollout_waiting.remove(&WaitingFor { pool: pool.clone(), reason });
                }
            }
            is_there
        });
    }
}

fn counted<'a>(all: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, i64> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::rollout::Few;

    #[test]
    fn no_part_of_a_second_is_lost_in_which_a_node_was_down() {
        let metrics = Metrics::new();
        let begun = Instant::now();
        let mut downtime = Downtime::new(begun);
        // Nobody was down before the first look.
        downtime.passes(&metrics, begun + Duration::from_secs(100), 2);
        let mut now = begun + Duration::from_secs(100);
        for _ in 0..40 {
            now += Duration::from_millis(1_900);
            downtime.passes(&metrics, now, 2);
        }
        downtime.passes(&metrics, now, 0);
        downtime.passes(&metrics, now + Duration::from_secs(3600), 1);
        let seconds = metrics.unavailable.get();
        assert!((seconds - 152.0).abs() < 0.001, "2 nodes for 40 times 1.9 s: {seconds}");
    }

    #[test]
    fn nodes_that_wait_are_counted_by_their_reason_until_their_pool_is_gone() {
        let metrics = Metrics::new();
        let mut gauges = Gauges::default();
        let waits = [
            Why::Held("somebody has it".to_owned()),
            Why::Held("another one has it".to_owned()),
            Why::Pool(Few::default(), 1),
        ];
        let states = ["held", "held", "waiting", "updated"];
        gauges.set(&metrics, "worker", states.into_iter(), waits.iter());
        let text = metrics.text().unwrap();
        for line in [
            "tread_rollout_waiting_nodes{pool=\"worker\",reason=\"held\"} 2",
            "tread_rollout_waiting_nodes{pool=\"worker\",reason=\"room\"} 1",
            "tread_rollout_waiting_nodes{pool=\"worker\",reason=\"window\"} 0",
            "tread_rollout_nodes{pool=\"worker\",state=\"held\"} 2",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        gauges.keep(&metrics, |_| false);
        assert!(!metrics.text().unwrap().contains("pool=\"worker\""));
    }

    #[test]
    fn a_plan_without_a_boot_spares_its_node_one() {
        let metrics = Metrics::new();
        for disrupts in [UpdateDisrupts::Softly, UpdateDisrupts::Drain, UpdateDisrupts::Reboot] {
            brought(&metrics, "worker", disrupts);
        }
        booted(&metrics, "worker");
        let text = metrics.text().unwrap();
        assert!(text.contains("tread_node_reboots_avoided_total{pool=\"worker\"} 2"), "{text}");
        assert!(text.contains("tread_node_reboots_total{pool=\"worker\"} 1"), "{text}");
    }
}
