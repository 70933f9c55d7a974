//! A mount that systemd makes once somebody looks below it.

use crate::away::KilledAfter;
use crate::node::{Bed, config, config_with, plan, unit_with};
use crate::watched::{PROGRAM, adopted};
use tread_model::plan::Step;
use tread_node::documents::Documents;
use tread_node::progress::Phase;
use tread_test_machine::Machine;

const AUTOMOUNT: &str = "[Automount]\nWhere=/data\n";
const MOUNT: &str = "[Mount]\nWhat=/var/other\nWhere=/data\nType=none\nOptions=bind\n";
const FILE: &str =
    r#"{"path": "/data/it/b", "overwrite": true, "contents": {"source": "data:,two"}},"#;

/// A machine with such a mount, at which nobody has looked yet.
fn bed() -> Bed {
    let machine = Machine::build()
        .unit("data.automount", AUTOMOUNT)
        .unit("data.mount", MOUNT)
        .file("/var/other/it/b", "one");
    let bed = Bed::of(machine, "one", &unit_with("/bin/true"), &config("one"));
    // The machine has only few devices. By this one systemd speaks with the kernel of such mounts,
    // and it looks for it once.
    bed.machine.run_well(["mknod", "/dev/autofs", "c", "10", "235"]).unwrap();
    bed.machine.run_well(["systemctl", "daemon-reexec"]).unwrap();
    bed.machine.run_well(["systemctl", "start", "data.automount"]).unwrap();
    assert_eq!(state(&bed, "data.automount"), "active");
    assert_eq!(state(&bed, "data.mount"), "inactive");
    bed
}

fn state(bed: &Bed, unit: &str) -> String {
    bed.machine.run(["systemctl", "is-active", unit]).unwrap().out.trim().to_owned()
}

/// Nobody looks below it any more.
fn idle(bed: &Bed) {
    bed.machine.run_well(["systemctl", "stop", "data.mount"]).unwrap();
    assert_eq!(state(bed, "data.automount"), "active");
}

/// As an admin would on the machine: the kernel makes such a mount for nobody from outside.
fn applied(bed: &Bed, from: &Documents, to: &Documents) {
    let root = bed.machine.root().unwrap();
    let plan = serde_json::to_vec(&plan(from, to, &[Step::Write])).unwrap();
    std::fs::write(root.join("var/plan.json"), plan).unwrap();
    std::fs::write(root.join("var/next.json"), &to.0[0].text).unwrap();
    let words = ["node", "apply", "--config", "/var/next.json", "--plan", "/var/plan.json"];
    bed.machine.run_well([&[PROGRAM], &words[..]].concat()).unwrap();
}

#[test]
fn what_is_below_a_mount_that_is_made_once_somebody_looks_is_seen_and_changed_there() {
    let bed = bed();
    adopted(&bed, &config("one"));
    let with = config_with("one", FILE, "");
    applied(&bed, &config("one"), &with);
    assert_eq!(bed.text("/var/other/it/b").as_deref(), Some("two"));
    idle(&bed);
    // What no config has any more is what it was before.
    applied(&bed, &with, &config("one"));
    assert_eq!(bed.text("/var/other/it/b").as_deref(), Some("one"));
}

#[test]
fn what_is_settled_before_the_network_makes_no_such_mount_and_who_resumes_does() {
    let bed = bed();
    adopted(&bed, &config("one"));
    bed.machine.run_well(["ls", "/data/it/b"]).unwrap();
    let killed = KilledAfter::of("/data/it/b");
    bed.carry_out_watched(&config_with("two", FILE, ""), &[Step::Write], killed).unwrap_err();
    assert_eq!(bed.text("/var/other/it/b").as_deref(), Some("two"));
    idle(&bed);
    let settled = bed.machine.run([PROGRAM, "node", "settle"]).unwrap();
    assert!(settled.out.contains("settled but for one mount: /data/"), "{settled:?}");
    assert_eq!(state(&bed, "data.mount"), "inactive");
    assert_eq!(bed.text("/var/other/it/b").as_deref(), Some("two"));
    bed.machine.run_well(["systemctl", "--no-block", "start", "tread-resume.service"]).unwrap();
    let back = || bed.progress().phase == Phase::WentBack;
    bed.machine.wait_for("the way back", back).unwrap();
    assert_eq!(bed.text("/var/other/it/b").as_deref(), Some("one"));
}
