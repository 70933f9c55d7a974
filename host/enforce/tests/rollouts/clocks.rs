//! Clocks that are wrong: replicas go by the API server's.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use std::process::Command;

/// By how many seconds the clock of this process is off, as a test has told it.
const OFF: &str = "TREAD_CLOCK_IS_OFF_BY";
/// What is tried with such a clock.
const ROLLS_OUT: &str =
    "rollouts::pools::three_replicas_that_all_act_roll_out_one_config_and_keep_the_budget";
const JOINS: &str =
    "rollouts::joining::claims::a_node_that_registers_again_joins_again_under_its_name_alone";

/// By how many seconds the clock of this process is off from those of nodes.
pub(super) fn off_by() -> i64 {
    std::env::var(OFF).ok().and_then(|off| off.parse().ok()).unwrap_or_default()
}

/// That the clock is off from the API server's as was told, which has just made this node.
pub(super) fn is_off(node: &Node) {
    let made = node.metadata.creation_timestamp.as_ref().unwrap().0;
    let off = Timestamp::now().as_second() - made.as_second();
    assert!((off - off_by()).abs() < 500, "the clock is off by {off} s, not by {} s", off_by());
}

/// Tries this where the clock of replicas is off by so many seconds.
fn tried(what: &str, off: i64) {
    let said = Command::new("faketime")
        .args(["-f", &format!("{off:+}s")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", what, "--nocapture"])
        .env(OFF, off.to_string())
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .output()
        .unwrap_or_else(|why| {
            panic!("faketime is needed ({why}). On Debian: apt-get install faketime")
        });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&said.stdout), text(&said.stderr));
    assert!(said.status.success(), "{off:+} s:\n{out}\n{err}");
    assert!(out.contains("1 passed"), "it was not tried: {out}");
}

#[test]
fn replicas_whose_clocks_are_ten_minutes_off_keep_every_law() {
    for off in [600, -600] {
        tried(ROLLS_OUT, off);
    }
}

#[test]
fn machines_that_a_replica_with_a_wrong_clock_serves_join() {
    // A claim of one that is behind would only end sooner.
    tried(JOINS, 600);
}
