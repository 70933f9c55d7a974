//! What an agent costs that has nothing to do.
#![allow(clippy::print_stdout, reason = "a figure is shown by printing it")]

use crate::bed::Bed;

/// For how long it is watched, in seconds, unless `TREAD_IDLE` says otherwise: what polls every ten seconds
/// never sleeps for so long.
const WATCHED: u64 = 30;
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
    let times = bed.machine.woken("the agent", woken, seconds).unwrap();
    println!("woken {times} times in {seconds} s");
    assert!(times <= 1 + seconds / 60, "woken {times} times in {seconds} s");
    let (resident, own) = (number(&status(), "VmRSS:"), number(&status(), "RssAnon:"));
    println!("{resident} KB resident, {own} KB of them its own");
    let is_shipped = std::env::var_os("TREAD_NODE_PROGRAM").is_some();
    let most = if is_shipped { MOST_KB } else { MOST_KB_NOT_OPTIMISED };
    assert!(resident <= most && own <= MOST_OWN_KB, "{resident} KB, {own} KB of them its own");
}
