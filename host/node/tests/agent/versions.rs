//! Another version of tread in the middle of an operation.

use crate::bed::{Bed, reload};
use crate::program::program;
use std::io::Write as _;
use tread_node::journal::STATE;
use tread_node::operation_unit::UNIT;
use tread_node::progress::Phase;
use tread_node::terms::Terms;

/// Another build of the program: what follows an executable is not looked at.
fn another(bed: &Bed) -> String {
    let path = bed.machine.disk().join("var/another");
    std::fs::copy(program(), &path).unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"another build").unwrap();
    "/var/another".to_owned()
}

#[test]
fn an_operation_is_finished_by_the_program_that_began_it_and_the_next_one_is_by_the_new_one() {
    let bed = Bed::with("one", |machine| machine);
    let current = || {
        let path = "/var/lib/tread/bin/current";
        bed.machine.run_well(["readlink", path]).unwrap().trim().to_owned()
    };
    // The agent is upgraded, and somebody stops what goes on.
    let id = bed.stopped_in_its_reload(bed.agent());
    let first = current();
    let program = another(&bed);
    let agent = bed.agent_with(&program);
    bed.machine.wait_for("the operation to go on", || bed.runs(UNIT)).unwrap();
    let exec = bed.machine.run_well(["systemctl", "show", "-PExecStart", UNIT]).unwrap();
    assert!(exec.contains(&first), "{exec}");
    bed.let_go();
    bed.ends(&id, Phase::Done);
    assert_eq!(current(), first);
    let id = bed.apply("two", "six", &reload(), Terms::default());
    bed.ends(&id, Phase::Done);
    let second = current();
    assert_ne!(second, first);
    let there = bed.machine.run_well(["ls", "/var/lib/tread/bin"]).unwrap();
    assert!(there.contains(&second) && !there.contains(&first), "the old one is gone: {there}");
    agent.kill();
    // And back again: an older version does what it knows.
    let _agent = bed.agent();
    let id = bed.apply("six", "one", &reload(), Terms::default());
    bed.ends(&id, Phase::Done);
    assert_eq!(current(), first);
}

#[test]
fn an_older_version_touches_nothing_of_a_newer_ones_operation_and_names_the_version() {
    let bed = Bed::with("one", |machine| machine);
    bed.stopped_in_its_reload(bed.agent());
    let record = bed.machine.disk().join(STATE.trim_start_matches('/')).join("operation/record");
    let text = std::fs::read_to_string(&record).unwrap();
    let newer = text.replacen("tread.dev/journal/v1", "tread.dev/journal/v2", 1);
    std::fs::write(&record, newer.replacen("\"tread\":\"0.1.0\"", "\"tread\":\"9.9.9\"", 1))
        .unwrap();
    let current = "/var/lib/tread/bin/current/tread";
    for verb in ["settle", "resume"] {
        let said = bed.machine.run([current, "node", verb]).unwrap();
        assert_eq!(said.status, Some(1), "{verb}: {said:?}");
        assert!(said.err.contains("start tread 9.9.9 or later"), "{verb}: {said:?}");
    }
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("two"), "nothing was taken back");
    bed.let_go();
}
