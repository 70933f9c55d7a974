//! Each guard is needed: without it, the search finds how a law is broken.

use crate::bounds::{Bounds, seconds};
use crate::search::{Found, explore};
use std::fs;
use std::path::{Path, PathBuf};
use tread_model::protocol::{Disrupts, Guards};

fn one(replicas: usize, disrupts: Disrupts) -> Bounds {
    Bounds { replicas, ..Bounds::quiet(&[0], disrupts) }
}

fn two(replicas: usize, disrupts: Disrupts) -> Bounds {
    Bounds { replicas, ..Bounds::quiet(&[0, 0], disrupts) }
}

/// Long enough for a boot that was not planned.
fn long_leases(mut bounds: Bounds) -> Bounds {
    bounds.terms.lease += seconds(2);
    bounds
}

fn breaks<G: Guards>(bounds: &Bounds) -> String {
    match explore::<G>(bounds) {
        Found::Broken { law, trace } => {
            println!("{law}, after {} steps:\n  {}", trace.len() - 1, trace.join("\n  "));
            law
        }
        found => panic!("nothing is broken: {found}"),
    }
}

/// A test that takes one guard out, and expects a law to break.
macro_rules! needed {
    ($($test:ident: without $guard:ident, $law:literal in $bounds:expr;)+) => {$(
        #[test]
        fn $test() {
            struct Without;
            impl Guards for Without {
                const $guard: bool = false;
            }
            let law = breaks::<Without>(&$bounds);
            assert!(law.contains($law), "{law}");
        }
    )+};
}

needed! {
    slots_that_are_written_blindly_break_the_budget:
        without SLOTS_BY_VERSION, "only with a slot" in two(2, Disrupts::Reboot);
    a_lease_that_is_written_blindly_is_taken_from_others:
        without LEASE_BY_VERSION, "only under its Lease" in Bounds { others: 1, ..one(2, Disrupts::Reboot) };
    an_order_that_is_written_blindly_overtakes_another:
        without ORDER_BY_VERSION, "only under its Lease" in Bounds { newer: 1, ..one(2, Disrupts::Reboot) };
    slots_without_a_limit_break_the_budget:
        without ROOM, "no more nodes are down" in two(1, Disrupts::Reboot);
    a_second_operation_is_not_begun:
        without CARRY_ON, "only with a slot" in one(2, Disrupts::Reboot);
    an_order_without_a_lease_disrupts:
        without LEASE, "only under its Lease" in one(1, Disrupts::Reboot);
    a_lease_of_others_is_not_taken:
        without OTHERS_LEASE, "somebody else works" in Bounds { others: 1, ..one(1, Disrupts::Softly) };
    a_permit_by_a_cache_is_wrong:
        without FRESH, "only with a slot" in Bounds { torn_reads: true, cached: true, newer: 1, ..one(2, Disrupts::Reboot) };
    a_permit_as_long_as_the_lease_outlives_it:
        without ENDS_BEFORE_LEASE, "only under its Lease" in one(1, Disrupts::Reboot);
    a_permit_that_lasts_from_its_arrival_outlives_the_lease:
        without FROM_QUESTION, "only under its Lease" in Bounds { others: 1, ..one(1, Disrupts::Reboot) };
    a_permit_for_an_earlier_question_outlives_the_lease:
        without ONE_QUESTION, "only under its Lease" in one(1, Disrupts::Reboot);
    an_order_of_an_earlier_lease_finds_another_node:
        without TOKEN, "only a cordoned node" in Bounds { others: 1, ..one(1, Disrupts::Reboot) };
    a_node_that_another_replica_cordons_again_is_drained_again:
        without SAME_CORDON, "only a drained node" in Bounds { uncordons: 1, ..one(2, Disrupts::Reboot) };
    an_order_that_ended_is_not_carried_out_again:
        without ONCE, "boots once" in Bounds { late_orders: true, newer: 1, ..one(1, Disrupts::Reboot) };
    an_agent_that_was_not_asked_may_have_begun:
        without AGENTS_WORD, "while the agent is at it" in Bounds { newer: 1, ..one(1, Disrupts::Reboot) };
    a_replica_that_may_still_evict_does_so_without_the_lease:
        without HANDS_OFF, "only under its Lease" in Bounds { newer: 1, ..one(2, Disrupts::Reboot) };
    a_cordon_of_another_operation_stays:
        without OWN_CORDON, "while the agent is at it" in Bounds { newer: 1, ..one(2, Disrupts::Reboot) };
    a_node_that_somebody_else_has_is_not_uncordoned:
        without OTHERS_MARKS, "while somebody else has the node" in Bounds { marks: 1, ..one(1, Disrupts::Reboot) };
    an_order_that_is_older_than_what_its_agent_took_is_waited_for:
        without OUTLIVED, "the end is out of reach" in Bounds { updates_lost: 1, ..one(1, Disrupts::Nothing) };
    an_order_that_is_lost_is_over_by_its_agents_word:
        without LOST_ORDER, "before the proof" in Bounds { updates_lost: 1, updates_lost_under_way: true, ..one(1, Disrupts::Reboot) };
    an_order_that_is_not_closed_begins_again:
        without CLOSED, "only under its Lease" in Bounds { reports_lost: 1, ..one(2, Disrupts::Reboot) };
    a_node_is_not_given_back_unproved:
        without PROOF, "before the proof" in one(1, Disrupts::Reboot);
    a_boot_that_was_not_ordered_waits:
        without ESCALATION, "a slot of its own" in long_leases(Bounds { failures: 1, ..one(1, Disrupts::Softly) });
    a_node_that_failed_keeps_its_slot:
        without FAILED_KEEPS_SLOT, "before the proof" in Bounds { failures: 1, ..one(1, Disrupts::Reboot) };
}

#[test]
fn no_guard_is_taken_out_but_in_tests() {
    let host = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut found = Vec::new();
    for folder in fs::read_dir(host).unwrap() {
        sources(&folder.unwrap().path().join("src"), &mut found);
    }
    assert!(found.len() > 100, "{}", found.len());
    let guards = found.iter().filter(|path| {
        fs::read_to_string(path)
            .unwrap()
            .lines()
            .any(|line| line.starts_with("impl") && line.contains("Guards for"))
    });
    let guards: Vec<_> = guards.map(|path| path.strip_prefix(host).unwrap()).collect();
    assert_eq!(guards, [Path::new("model/src/protocol/guards.rs")]);
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(path),
        }
    }
}
