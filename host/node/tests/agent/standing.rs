//! What stands, and orders that come meanwhile.

use crate::bed::{Bed, reload};
use std::process::{Child, Output, Stdio};
use tread_model::plan::Step;
use tread_node::orders::Does;
use tread_node::progress::Phase;
use tread_node::terms::Terms;

#[test]
fn a_refused_order_does_not_hide_what_stands() {
    let bed = Bed::with("one", |machine| machine);
    let stands = bed.stopped_in_its_reload(bed.agent());
    let root = bed.machine.root().unwrap();
    std::fs::write(root.join("var/other.json"), "{").unwrap();
    let current = "/var/lib/tread/bin/current/tread";
    let words = [current, "node", "apply", "--config", "/var/other.json", "--reboot"];
    assert_eq!(bed.machine.run(words).unwrap().status, Some(1));
    let known = bed.progress().unwrap();
    assert_eq!(known.operation, stands);
    assert!(!known.phase.is_end(), "{known:?}");
    // The next agent goes on with it before anything else.
    bed.let_go();
    let _agent = bed.agent();
    bed.ends(&stands, Phase::Done);
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("two"));
}

#[test]
fn of_admins_who_apply_at_the_same_instant_one_does_and_the_others_are_told_what_goes_on() {
    let bed = Bed::adopted("one");
    bed.put_files("one", "two", &reload());
    bed.hold();
    let apply = || {
        let mut admin = bed.machine.command(crate::bed::APPLY).unwrap();
        admin.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut admins: Vec<Child> = (0..4).map(|_| apply()).collect();
    bed.logs("reload two");
    let goes_on = bed.progress().unwrap().operation;
    let mut ended = 0;
    bed.machine
        .wait_for("three to be told", || {
            ended = admins.iter_mut().filter_map(|it| it.try_wait().unwrap()).count();
            ended == 3
        })
        .unwrap();
    bed.let_go();
    let ends: Vec<Output> = admins.into_iter().map(|it| it.wait_with_output().unwrap()).collect();
    let (well, not): (Vec<_>, Vec<_>) = ends.iter().partition(|end| end.status.success());
    assert_eq!((well.len(), not.len()), (1, 3), "{ends:?}");
    for end in not {
        let error = String::from_utf8_lossy(&end.stderr);
        assert!(error.contains(&format!("the node is busy with {goes_on}")), "{error}");
    }
    assert_eq!(bed.log(), ["start one", "reload two"]);
}

#[test]
fn what_cannot_be_gone_on_with_after_a_boot_says_why_and_is_tried_again() {
    let bed = Bed::with("one", |machine| machine);
    let agent = bed.agent();
    bed.adopt("one");
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    let id = bed.apply("one", "two", &steps, Terms::default());
    bed.goes_down(&id, agent);
    bed.machine.start().unwrap();
    bed.machine.wait_until_booted().unwrap();
    // Nobody knows by now whom a file is to belong to.
    let sh = |text: &str| drop(bed.machine.run_well(["sh", "-c", text]).unwrap());
    sh("mv /etc/passwd /var/passwd && mkdir /etc/passwd");
    let _agent = bed.agent();
    bed.reaches(&id, Phase::Stopped);
    let why = bed.progress().unwrap().message;
    assert!(why.contains("/etc/passwd"), "{why}");
    sh("rmdir /etc/passwd && mv /var/passwd /etc/passwd");
    bed.ends(&id, Phase::Done);
    assert_eq!(bed.log(), ["start one", "start two"]);
}

#[test]
fn to_go_on_where_nothing_stands_is_no_failure() {
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    let id = bed.order(Does::Resume, Terms::default());
    bed.is_taken_away(&id);
    bed.adopt("one");
}
