//! A boot that cannot settle what it finds, and an admin who gives it up.

use crate::away::KilledAfter;
use crate::node::{Bed, config, unit_with};
use crate::watched::{PROGRAM, adopted, status};
use tread_model::plan::Step;
use tread_test_machine::Machine;

const KUBELET: &str = "[Service]\nExecStart=/bin/sleep infinity\n";

#[test]
fn what_a_boot_cannot_settle_keeps_the_kubelet_away_until_an_admin_gives_it_up() {
    let machine = Machine::build().unit_at_boot("kubelet.service", KUBELET);
    let bed = Bed::of(machine, "one", &unit_with("/bin/true"), &config("one"));
    adopted(&bed, &config("one"));
    let killed = KilledAfter::of("/etc/a.conf");
    bed.carry_out_watched(&config("two"), &[Step::Write], killed).unwrap_err();
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("two"));
    let chattr = |how: &str| drop(bed.machine.run_well(["chattr", how, "/etc/a.conf"]).unwrap());
    chattr("+i");
    bed.machine.cut_power().unwrap();
    bed.boot();
    let state = |unit: &str| {
        bed.machine.run(["systemctl", "is-active", unit]).unwrap().out.trim().to_owned()
    };
    assert_eq!(state("tread-settle.service"), "failed");
    assert_eq!(state("kubelet.service"), "inactive", "it would read half a config");
    // The machine has no multi-user.target, which starts it elsewhere. Its process may have failed
    // before systemd has seen that it started: the start itself is not waited for.
    bed.machine.run_well(["systemctl", "--no-block", "start", "tread-resume.service"]).unwrap();
    let shown = || status(&bed);
    bed.machine.wait_for("its reason", || shown().contains("/etc/a.conf: Operation not")).unwrap();
    assert!(shown().contains("tread node adopt --config CONFIG --give-up"), "{}", shown());
    bed.machine.run_well(["systemctl", "stop", "tread-resume.service"]).unwrap();

    // What cannot begin ends nothing.
    let undrained = ["node", "adopt", "--config", "/var/now.json", "--give-up", "--overwrite"];
    let refused = bed.machine.run([&[PROGRAM], &undrained[..]].concat()).unwrap();
    assert_eq!(refused.status, Some(1), "{refused:?}");
    assert!(refused.err.contains("--no-drain"), "{refused:?}");
    assert!(shown().contains("/etc/a.conf: Operation not"), "{}", shown());

    let words = ["node", "adopt", "--config", "/var/now.json", "--give-up", "--keep"];
    let given_up = bed.machine.run([&[PROGRAM], &words[..]].concat()).unwrap();
    chattr("-i");
    assert_eq!(given_up.status, Some(0), "{given_up:?}");
    assert!(given_up.out.contains("by hand: /etc/a.conf"), "{given_up:?}");
    assert!(shown().contains("by hand: /etc/a.conf"), "{}", shown());
    assert!(shown().contains("(done)"), "{}", shown());
    bed.machine.run_well(["systemctl", "start", "kubelet.service"]).unwrap();
    assert_eq!(state("kubelet.service"), "active");
    // What it names as the way to mend it does.
    let line = shown().lines().find(|line| line.starts_with("by hand:")).unwrap().to_owned();
    let mend = line.split_once("put it there: ").unwrap().1;
    bed.machine.run_well(["sh", "-c", mend]).unwrap();
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    assert!(!shown().contains("by hand"), "{}", shown());
}
