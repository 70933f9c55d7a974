//! The process of an operation killed at moments that nobody chose.

use crate::bed::{APPLY, Bed, PROGRAM, config, reload};
use std::process::Stdio;
use std::time::Duration;
use tread_node::change::Adopt;
use tread_node::operation_unit::UNIT;
use tread_node::orders::{Does, Given};
use tread_node::progress::Phase;
use tread_node::terms::{Asked, Terms};

/// How often, unless `TREAD_KILLS` says otherwise.
const KILLS: u64 = 10;

#[test]
fn killed_at_any_time_an_operation_ends_with_one_reload_more_at_most_and_no_boot() {
    let kills = std::env::var("TREAD_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(KILLS);
    let bed = Bed::with("one", |machine| machine.lifetime(Duration::from_secs(1800 + 60 * kills)));
    let _agent = bed.agent();
    bed.adopt("one");
    let (mut there, mut next, mut done) = ("one", "two", 0);
    for round in 0..kills {
        let before = bed.log().len();
        let id = bed.apply(there, next, &reload(), Terms::default());
        // A little later each time: through its start, its writing and its reload.
        let begun = || bed.progress().is_some_and(|it| it.operation == id) || bed.runs(UNIT);
        bed.machine.wait_for("the operation", begun).unwrap();
        std::thread::sleep(Duration::from_millis(round * 400 / kills));
        let _ = bed.machine.run(["systemctl", "kill", "--signal=KILL", UNIT]);
        bed.is_taken_away(&id);
        let logged = bed.log().split_off(before);
        let progress = bed.progress().unwrap();
        assert_eq!(progress.operation, id, "{round}");
        if progress.phase == Phase::WentBack {
            // It had not changed all names yet.
            assert!(logged.is_empty(), "{round}: {logged:?}");
            assert_eq!(bed.text("/etc/a.conf").as_deref(), Some(there), "{round}");
            continue;
        }
        assert_eq!(progress.phase, Phase::Done, "{round}: {progress:?}");
        let is_it = |line: &String| *line == format!("reload {next}");
        assert!((1..=2).contains(&logged.len()) && logged.iter().all(is_it), "{round}: {logged:?}");
        assert_eq!(bed.text("/etc/a.conf").as_deref(), Some(next), "{round}");
        done += 1;
        (there, next) = (next, there);
    }
    assert!(done > 0, "each time it was killed before anything took effect");
    assert_eq!(bed.machine.boots().len(), 1);
}

#[test]
fn admins_killed_while_they_hand_over_leave_nothing_in_the_way_of_the_next_one() {
    const ADMINS: u64 = 12;
    let bed = Bed::adopted("one");
    let apply = || {
        let there = bed.text("/etc/a.conf").unwrap();
        let next = if there == "one" { "two" } else { "one" };
        bed.put_files(&there, next, &reload());
        let mut command = bed.machine.command(APPLY).unwrap();
        (next, command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    for round in 0..ADMINS {
        let (_, mut admin) = apply();
        // A little later each time: before, while and after it hands over.
        std::thread::sleep(Duration::from_millis(round * 600 / ADMINS));
        admin.kill().unwrap();
        admin.wait().unwrap();
        // What it began, if it did, goes on.
        bed.machine.wait_for("the unit's end", || !bed.runs(UNIT)).unwrap();
    }
    // What the last of them handed over may begin only now: then the node is busy.
    let mut next = "";
    let applied = || {
        let (to, mut admin) = apply();
        next = to;
        admin.wait().unwrap().success()
    };
    bed.machine.wait_for("an admin whom nobody kills", applied).unwrap();
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some(next));
    let kept = bed.machine.run_well(["ls", "/var/lib/tread/node/orders"]).unwrap();
    assert_eq!(kept, "");
}

#[test]
fn killed_at_any_time_an_adoption_ends_with_what_differed_kept_and_known() {
    let kills = std::env::var("TREAD_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(6);
    let bed = Bed::with("one", |machine| machine.lifetime(Duration::from_secs(1800 + 60 * kills)));
    let _agent = bed.agent();
    for round in 0..kills {
        // Another config each time, which the node is said to have, and does not.
        let word = format!("round-{round}");
        let order = Does::Adopt {
            config: config(&word),
            differs: Adopt::Keep,
            drained: false,
            give_up: round % 2 == 1,
        };
        let id = bed.order(order, Terms::default());
        let begun = || bed.progress().is_some_and(|it| it.operation == id) || bed.runs(UNIT);
        bed.machine.wait_for("the adoption", begun).unwrap();
        std::thread::sleep(Duration::from_millis(round * 250 / kills));
        let _ = bed.machine.run(["systemctl", "kill", "--signal=KILL", UNIT]);
        bed.ends(&id, Phase::Done);
        assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"), "{round}");
        let check = bed.machine.run([PROGRAM, "node", "check"]).unwrap();
        assert_eq!(check.status, Some(0), "{round}: {check:?}");
        assert!(check.out.contains("0 of 1 paths differ"), "{round}: {check:?}");
    }
    assert_eq!(bed.machine.boots().len(), 1);
}

#[test]
fn a_step_in_the_middle_of_which_it_is_told_to_end_again_and_again_has_not_failed() {
    const TIMES: usize = 7;
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    bed.adopt("one");
    bed.hold();
    let id = bed.apply("one", "two", &reload(), Terms::default());
    let begun = |times: usize| {
        let log = bed.text("/var/lib/tread/node/operation/log").unwrap_or_default();
        log.matches(r#"{"is":"begun""#).count() == times
    };
    for times in 1..=TIMES {
        bed.machine.wait_for("the step to begin", || begun(times)).unwrap();
        let pid = bed.outer_pid(&id);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }
    bed.machine.wait_for("the step to begin", || begun(TIMES + 1)).unwrap();
    bed.let_go();
    bed.ends(&id, Phase::Done);
    assert_eq!(bed.log().last().map(String::as_str), Some("reload two"));
    assert_eq!(bed.machine.boots().len(), 1);
}

#[test]
fn an_adoption_that_is_killed_before_anything_took_effect_begins_again() {
    let bed = Bed::adopted("one");
    let order = Does::Adopt {
        config: config("other"),
        differs: Adopt::Keep,
        drained: false,
        give_up: false,
    };
    let terms = Terms { permits: Asked::Agent, ..Terms::default() };
    let given = Given { terms, ..Given::new("1", order) };
    bed.machine.run_well(["mkdir", "-p", "/var/lib/tread/node/orders"]).unwrap();
    let at = bed.machine.root().unwrap().join("var/lib/tread/node/orders/1");
    std::fs::write(at, serde_json::to_vec(&given).unwrap()).unwrap();
    let carries = || {
        let words = ["--unit", UNIT, "/var/lib/tread/bin/current/tread", "node", "carry-out", "1"];
        bed.machine.run_well(["systemd-run"].iter().chain(&words)).unwrap();
    };
    carries();
    bed.reaches("1", Phase::Waiting);
    let pid = bed.outer_pid("1");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    bed.machine.wait_for("its end", || !bed.runs(UNIT)).unwrap();
    bed.machine.run_well(["systemctl", "reset-failed", UNIT]).unwrap();
    carries();
    let _agent = bed.agent();
    bed.reaches("1", Phase::Done);
    let check = bed.machine.run([PROGRAM, "node", "check"]).unwrap();
    assert!(check.out.contains("0 of 1 paths differ"), "{check:?}");
}
