//! What is covered: each search is exhaustive within its bounds.

use crate::bounds::Bounds;
use crate::search::{Found, explore};
use std::time::Instant;
use tread_model::protocol::{AllGuards, Disrupts, Limits};

fn holds(bounds: &Bounds) {
    let began = Instant::now();
    let found = explore::<AllGuards>(bounds);
    let is_good = matches!(found, Found::Nothing { .. });
    println!("{found}, {:.1} s", began.elapsed().as_secs_f64());
    assert!(is_good, "{found}");
}

/// One node and so many replicas, each of which may be frozen for any time, die, and have its
/// writes lost, come late, or come twice.
fn one(replicas: usize, disrupts: Disrupts) -> Bounds {
    Bounds { replicas, ..Bounds::quiet(&[0], disrupts) }
}

/// Three nodes of two pools, whose Leases are renewed in time.
fn three(replicas: usize, disrupts: Disrupts) -> Bounds {
    Bounds { replicas, leases_end: false, ..Bounds::quiet(&[0, 0, 1], disrupts) }
}

#[test]
fn three_replicas_on_one_node() {
    for disrupts in [Disrupts::Nothing, Disrupts::Softly, Disrupts::Drain, Disrupts::Reboot] {
        holds(&one(3, disrupts));
    }
}

#[test]
fn three_replicas_three_nodes_and_two_pools() {
    holds(&three(3, Disrupts::Reboot));
}

#[test]
fn three_nodes_whose_steps_fail_while_a_newer_config_comes() {
    holds(&Bounds { newer: 1, failures: 1, ..three(1, Disrupts::Reboot) });
    holds(&Bounds { failures: 1, ..three(2, Disrupts::Reboot) });
    let two = Bounds { leases_end: false, ..Bounds::quiet(&[0, 0], Disrupts::Softly) };
    holds(&Bounds { failures: 2, ..two.clone() });
    // One boots in its turn, and the other one is begun again by a boot.
    let limits = Limits { pool: 1, all: 1, soft: 2, one_by_one: false };
    holds(&Bounds { failures: 2, retries: 1, limits, ..two });
}

#[test]
fn two_nodes_at_a_time() {
    let limits = Limits { pool: 1, all: 2, soft: 2, one_by_one: false };
    let two = Bounds { leases_end: false, ..Bounds::quiet(&[0, 0], Disrupts::Softly) };
    holds(&Bounds { limits, ..two });
    holds(&three(1, Disrupts::Softly));
    holds(&Bounds { limits, ..three(1, Disrupts::Reboot) });
}

#[test]
fn somebody_else_takes_the_lease_whenever_a_clock_lets_them() {
    holds(&Bounds { others: 1, ..one(2, Disrupts::Reboot) });
    holds(&Bounds { others: 2, ..one(1, Disrupts::Reboot) });
    holds(&Bounds { others: 1, ..one(2, Disrupts::Softly) });
    holds(&Bounds { others: 1, ..one(2, Disrupts::Nothing) });
}

#[test]
fn somebody_else_marks_the_node_at_any_time() {
    holds(&Bounds { marks: 1, ..one(2, Disrupts::Reboot) });
    holds(&Bounds { marks: 2, newer: 1, ..one(1, Disrupts::Drain) });
    holds(&Bounds { marks: 1, failures: 1, retries: 1, ..one(1, Disrupts::Reboot) });
    holds(&Bounds { marks: 1, failures: 1, ..one(1, Disrupts::Softly) });
    holds(&Bounds { marks: 1, others: 1, ..one(1, Disrupts::Reboot) });
}

#[test]
fn somebody_uncordons_the_node_at_any_time() {
    holds(&Bounds { uncordons: 1, ..one(2, Disrupts::Reboot) });
    let renewed = Bounds { leases_end: false, ..one(2, Disrupts::Drain) };
    holds(&Bounds { uncordons: 1, torn_reads: true, ..renewed });
    holds(&Bounds { uncordons: 2, marks: 1, ..one(1, Disrupts::Reboot) });
    holds(&Bounds { uncordons: 1, failures: 1, ..one(2, Disrupts::Softly) });
}

#[test]
fn node_updates_are_made_anew() {
    holds(&Bounds { updates_lost: 1, newer: 1, ..one(1, Disrupts::Reboot) });
    holds(&Bounds { updates_lost: 1, ..one(2, Disrupts::Nothing) });
    holds(&Bounds { updates_lost: 1, late_orders: true, ..one(1, Disrupts::Softly) });
}

#[test]
fn node_updates_are_removed_while_their_nodes_are_updated() {
    for disrupts in [Disrupts::Softly, Disrupts::Drain, Disrupts::Reboot] {
        holds(&Bounds { updates_lost: 1, updates_lost_under_way: true, ..one(2, disrupts) });
    }
    let lost = Bounds { updates_lost: 1, updates_lost_under_way: true, ..one(1, Disrupts::Reboot) };
    holds(&Bounds { newer: 1, ..lost.clone() });
    holds(&Bounds { failures: 1, ..lost.clone() });
    holds(&Bounds { updates_lost: 2, marks: 1, ..lost });
}

#[test]
fn room_is_refused_at_any_time() {
    holds(&Bounds { room_is_refused: true, failures: 1, ..one(2, Disrupts::Softly) });
}

#[test]
fn what_is_read_is_old_in_part() {
    holds(&Bounds { torn_reads: true, leases_end: false, ..one(2, Disrupts::Reboot) });
    holds(&Bounds { torn_reads: true, ..one(2, Disrupts::Softly) });
    holds(&Bounds { torn_reads: true, newer: 1, failures: 1, ..one(1, Disrupts::Softly) });
}

#[test]
fn a_cache_decides_nothing() {
    holds(&Bounds { torn_reads: true, cached: true, ..one(1, Disrupts::Reboot) });
}

#[test]
fn clocks_are_slow() {
    holds(&Bounds { drift: true, ..one(3, Disrupts::Reboot) });
    holds(&Bounds { drift: true, others: 1, ..one(1, Disrupts::Reboot) });
}

#[test]
fn newer_configs_come() {
    holds(&Bounds { newer: 1, ..one(2, Disrupts::Reboot) });
    holds(&Bounds { newer: 2, late_orders: true, ..one(1, Disrupts::Reboot) });
    holds(&Bounds { newer: 1, others: 1, ..one(1, Disrupts::Reboot) });
}

#[test]
fn a_config_is_taken_back_that_failed_on_a_node() {
    holds(&Bounds { taken_back: 1, failures: 1, retries: 1, ..one(1, Disrupts::Reboot) });
    holds(&Bounds { taken_back: 1, failures: 2, retries: 1, ..one(1, Disrupts::Softly) });
}

#[test]
fn orders_come_late_and_agents_die() {
    holds(&Bounds { late_orders: true, agent_crashes: 2, ..one(2, Disrupts::Reboot) });
    holds(&Bounds { late_orders: true, newer: 1, agent_crashes: 1, ..one(2, Disrupts::Softly) });
}

#[test]
fn steps_boots_and_proofs_fail() {
    holds(&Bounds { failures: 2, retries: 1, ..one(2, Disrupts::Reboot) });
    holds(&Bounds { failures: 3, retries: 2, ..one(1, Disrupts::Softly) });
    holds(&Bounds { failures: 1, retries: 1, ..one(2, Disrupts::Drain) });
    holds(&Bounds { failures: 1, newer: 1, retries: 1, ..one(1, Disrupts::Reboot) });
}

#[test]
fn what_agents_reported_is_lost() {
    let two = Bounds { leases_end: false, ..Bounds::quiet(&[0, 0], Disrupts::Reboot) };
    holds(&Bounds { reports_lost: 2, ..two });
    holds(&Bounds { reports_lost: 1, ..one(2, Disrupts::Reboot) });
    holds(&Bounds { reports_lost: 1, failures: 1, ..one(1, Disrupts::Softly) });
}

/// One node for itself, to which others are that room comes and goes, with what else can go wrong.
fn alone(disrupts: Disrupts) -> Bounds {
    Bounds {
        room_is_refused: true,
        drift: true,
        marks: 1,
        failures: 1,
        agent_crashes: 1,
        reports_lost: 1,
        late_orders: true,
        ..one(1, disrupts)
    }
}

/// For whoever has time and memory: `TREAD_WHOLE=1`.
#[test]
fn everything_at_once_where_it_is_asked_for() {
    if std::env::var_os("TREAD_WHOLE").is_none() {
        return;
    }
    holds(&alone(Disrupts::Softly));
    for disrupts in [Disrupts::Softly, Disrupts::Reboot] {
        holds(&Bounds {
            drift: true,
            newer: 1,
            others: 1,
            failures: 1,
            retries: 1,
            ..one(1, disrupts)
        });
        holds(&Bounds { torn_reads: true, ..one(2, disrupts) });
        holds(&Bounds { newer: 1, failures: 1, late_orders: true, ..one(2, disrupts) });
        holds(&Bounds { others: 1, torn_reads: true, ..one(2, disrupts) });
        holds(&Bounds { failures: 1, newer: 1, ..three(1, disrupts) });
        holds(&Bounds { failures: 1, newer: 1, ..three(2, disrupts) });
        let limits = Limits { pool: 1, all: 2, soft: 2, one_by_one: false };
        holds(&Bounds { limits, ..three(1, disrupts) });
        holds(&Bounds { leases_end: true, ..three(2, disrupts) });
    }
}
