//! What an admin is told in a terminal.

use crate::bed::{APPLY, Bed, PROGRAM, reload};
use std::process::Stdio;
use tread_model::plan::Step;
use tread_node::operation_unit::UNIT;
use tread_node::progress::Phase;

#[test]
fn what_is_refused_is_told_once() {
    let bed = Bed::adopted("one");
    bed.put_files("six", "two", &reload());
    let said = bed.machine.run(APPLY).unwrap();
    assert_eq!(said.status, Some(1));
    let errors = said.err.lines().filter_map(|line| line.split_once("error: "));
    let [(_, why)] = errors.collect::<Vec<_>>()[..] else { panic!("{said:?}") };
    let all = format!("{}{}", said.out, said.err);
    assert_eq!(all.matches(why).count(), 1, "{all}");
    assert_eq!(bed.progress().unwrap().phase, Phase::Refused);
}

#[test]
fn to_resume_in_a_terminal_goes_on_when_that_is_closed() {
    let bed = Bed::with("one", |machine| machine);
    let id = bed.stopped_in_its_reload(bed.agent());
    let mut admin = bed.machine.command([PROGRAM, "node", "resume"]).unwrap();
    let mut admin = admin.stdout(Stdio::null()).spawn().unwrap();
    bed.machine.wait_for("the unit", || bed.runs(UNIT)).unwrap();
    admin.kill().unwrap();
    admin.wait().unwrap();
    bed.let_go();
    bed.reaches(&id, Phase::Done);
    let nothing = || {
        let said = bed.machine.run([PROGRAM, "node", "resume"]).unwrap();
        said.out.contains("nothing to go on with") && said.status == Some(0)
    };
    bed.machine.wait_for("nothing to go on with", nothing).unwrap();
}

#[test]
fn a_dry_run_and_the_status_name_an_api_server_that_is_not_reached() {
    let bed = Bed::adopted("one");
    bed.put_files("one", "two", &reload());
    let named = ["--api-server", "127.0.0.1:1"];
    let words = |more: &[&'static str]| [&APPLY[..], &named, more].concat();
    let dry = bed.machine.run_well(words(&["--dry-run"])).unwrap();
    let says = "the API server at 127.0.0.1:1 is not reached now (Connection refused";
    assert!(dry.contains(says), "{dry}");
    let said = bed.machine.run_well(words(&[])).unwrap();
    let says = "the API server at 127.0.0.1:1 was not reached before the first write";
    assert!(said.contains(says), "{said}");
    let status = bed.machine.run_well([PROGRAM, "node", "status"]).unwrap();
    assert!(status.contains(says), "{status}");
}

#[test]
fn a_dry_run_shows_the_boot_that_comes_instead_of_a_plan_that_cannot_be_carried_out() {
    let bed = Bed::adopted("one");
    let steps = vec![Step::Write, Step::Reload { unit: "nosuch.service".to_owned() }];
    bed.put_files("one", "two", &steps);
    let dry = [&APPLY[..], &["--dry-run"]].concat();
    let said = bed.machine.run_well(dry).unwrap();
    assert!(said.contains("nosuch.service"), "{said}");
    assert!(said.contains("the node boots instead"), "{said}");
    assert!(said.contains("steps: drain, write, reboot, uncordon"), "{said}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
}
