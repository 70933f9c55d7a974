//! A node that is not well after a boot, though nothing of tread's fails: the machine goes down, what a
//! unit needs does not start, or somebody changed what was written.

use crate::node::{Bed, config, config_with, unit_with};
use crate::restart;
use tread_model::plan::Step;
use tread_node::operation::Ended;
use tread_node::progress::Phase;
use tread_test_machine::{End, Machine};

const BOOT: [Step; 4] = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];

/// In how many boots the node began to prove itself, or to go back.
fn tried(bed: &Bed) -> usize {
    let log = bed.text("/var/lib/tread/node/operation/log").unwrap_or_default();
    log.lines().filter(|line| line.contains("\"is\":\"tried\"")).count()
}

/// The machine goes down while the node proves itself, and comes again.
fn goes_down_in_the_proof(bed: &Bed) {
    let before = tried(bed);
    bed.until_on_the_way(|| tried(bed) > before);
    bed.machine.cut_power().unwrap();
    bed.boot();
}

#[test]
fn a_machine_that_goes_down_in_each_proof_goes_back_and_does_not_boot_for_ever() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    // It never is well, so that the proof takes as long as it may.
    assert_eq!(bed.until_it_boots(&config("bad"), &restart()), End::Reboot);
    bed.boot();
    for _ in 0..3 {
        goes_down_in_the_proof(&bed);
        assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("bad"), "it is proved once more");
    }
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    bed.boot();
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    // One crash with the old config does not keep it from being proved.
    goes_down_in_the_proof(&bed);
    let Ended::WentBack { because } = bed.go_on().unwrap() else { panic!("it did not go back") };
    assert!(because.contains("the node went down in 3 boots before it had proved"), "{because}");
}

#[test]
fn a_machine_that_goes_down_with_the_old_config_too_is_said_to_be_degraded_and_is_tried_anew() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    assert_eq!(bed.until_it_boots(&config("two"), &BOOT), End::Reboot);
    bed.boot();
    bed.decide_to_go_back();
    for _ in 0..3 {
        goes_down_in_the_proof(&bed);
    }
    let Ended::Degraded { because } = bed.go_on().unwrap() else { panic!("it is not degraded") };
    assert!(because.contains("the node went down in 3 boots before it had gone back"), "{because}");
    assert_eq!(bed.progress().phase, Phase::Degraded);
    // An admin looked after it.
    assert!(matches!(bed.go_on().unwrap(), Ended::WentBack { .. }));
}

#[test]
fn a_node_that_is_not_well_goes_back_although_somebody_changed_a_name_meanwhile() {
    let mut bed = Bed::with("one", &unit_with("/bin/true"));
    bed.terms.proof = 5;
    let file = r#"{"path": "/etc/b.conf", "contents": {"source": "data:,ours"}},"#;
    assert_eq!(bed.until_it_boots(&config_with("bad", file, ""), &restart()), End::Reboot);
    bed.boot();
    std::fs::write(bed.machine.root().unwrap().join("etc/b.conf"), "theirs").unwrap();
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    bed.boot();
    let Ended::WentBack { because } = bed.go_on().unwrap() else { panic!("it did not go back") };
    assert!(because.contains("somebody else changed /etc/b.conf meanwhile"), "{because}");
    assert!(because.contains("a.service was well before, and is not"), "{because}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    assert_eq!(bed.text("/etc/b.conf").as_deref(), Some("theirs"));
}

#[test]
fn a_unit_of_the_plan_that_is_enabled_and_does_not_start_is_not_well() {
    const NEEDED: &str = "[Service]\nType=oneshot\nRemainAfterExit=yes\n\
        ExecStart=/bin/sh -c '! grep -q bad /etc/a.conf'\n";
    let unit = "[Unit]\nRequires=needed.service\nAfter=needed.service\n\
        [Service]\nExecStart=/bin/sleep infinity\n";
    let machine = Machine::build().unit("needed.service", NEEDED);
    let mut bed = Bed::of(machine, "one", unit, &config("one"));
    bed.terms.proof = 5;
    let restart = |unit: &str| Step::Restart { unit: unit.to_owned() };
    let steps = [Step::Write, restart("a.service"), restart("needed.service")];
    assert_eq!(bed.until_it_boots(&config("bad"), &steps), End::Reboot);
    bed.boot();
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    bed.boot();
    let Ended::WentBack { because } = bed.go_on().unwrap() else { panic!("it did not go back") };
    assert!(because.contains("a.service was well before, and is not"), "{because}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
}
