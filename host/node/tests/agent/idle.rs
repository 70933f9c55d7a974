//! What an agent costs that has nothing to do.
#![allow(clippy::print_stdout, reason = "a figure is shown by printing it")]

use crate::bed::Bed;
use std::time::Duration;

/// For how long it is watched, in seconds, unless `TREAD_IDLE` says otherwise: what polls every ten seconds
/// never sleeps for so long.
const WATCHED: u64 = 30;
/// What the last order left to do is over once it slept for so long.
const QUIET: u64 = 5;
/// How often it is watched, if something wakes it in between.
const LOOKS: usize = 5;
/// A page of the program counts once it was used, so that the first orders make it larger.
const MOST_KB: u64 = 16 << 10;
/// What it has of its own beside these.
const MOST_OWN_KB: u64 = 4 << 10;
/// Nearly all pages of the tests' own program are those of code that is not optimised, which
/// hosts do not run.
const MOST_KB_NOT_OPTIMISED: u64 = 24 << 10;

#[test]
fn an_idle_agent_is_small_and_sleeps() {
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    bed.adopt("one");
    let pid = bed.pid_of_agent().unwrap();
    let status = || bed.machine.run_well(["cat", &format!("{pid}/status")]).unwrap();
    let number = |status: &str, of_it: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(of_it)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let woken = || number(&status(), "voluntary_ctxt_switches");
    let seconds =
        std::env::var("TREAD_IDLE").ok().and_then(|it| it.parse().ok()).unwrap_or(WATCHED);
    let sleeps = |seconds: u64| {
        let before = woken();
        std::thread::sleep(Duration::from_secs(seconds));
        let times = woken() - before;
        println!("woken {times} times in {seconds} s");
        times <= 1 + seconds / 60
    };
    bed.machine.wait_for("the agent to be idle", || sleeps(QUIET)).unwrap();
    assert!((0..LOOKS).any(|_| sleeps(seconds)), "it is woken again and again");
    let (resident, own) = (number(&status(), "VmRSS:"), number(&status(), "RssAnon:"));
    println!("{resident} KB resident, {own} KB of them its own");
    let is_shipped = std::env::var_os("TREAD_NODE_PROGRAM").is_some();
    let most = if is_shipped { MOST_KB } else { MOST_KB_NOT_OPTIMISED };
    assert!(resident <= most && own <= MOST_OWN_KB, "{resident} KB, {own} KB of them its own");
}
