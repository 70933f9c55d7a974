//! The process of an operation killed at moments that nobody chose.

use crate::bed::{APPLY, Bed, reload};
use std::process::Stdio;
use std::time::Duration;
use tread_node::operation_unit::UNIT;
use tread_node::progress::Phase;
use tread_node::terms::Terms;

/// How often, unless `TREAD_KILLS` says otherwise.
const KILLS: u64 = 10;

#[test]
fn killed_at_any_time_an_operation_ends_with_one_reload_more_at_most_and_no_boot() {
    let kills = std::env::var("TREAD_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(KILLS);
    let bed = Bed::with("one", |machine| machine.lifetime(Duration::from_secs(900 + 10 * kills)));
    let _agent = bed.agent();
    bed.adopt("one");
    let (mut there, mut next) = ("one", "two");
    for round in 0..kills {
        let before = bed.log().len();
        let id = bed.apply(there, next, &reload(), Terms::default());
        // A little later each time: through its start, its writing and its reload.
        let begun = || bed.progress().is_some_and(|it| it.operation == id) || bed.runs(UNIT);
        bed.machine.wait_for("the operation", begun).unwrap();
        std::thread::sleep(Duration::from_millis(round * 400 / kills));
        let _ = bed.machine.run(["systemctl", "kill", "--signal=KILL", UNIT]);
        bed.ends(&id, Phase::Done);
        let told = bed.log().split_off(before);
        let is_it = |line: &String| *line == format!("reload {next}");
        assert!((1..=2).contains(&told.len()) && told.iter().all(is_it), "{round}: {told:?}");
        assert_eq!(bed.text("/etc/a.conf").as_deref(), Some(next), "{round}");
        (there, next) = (next, there);
    }
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
