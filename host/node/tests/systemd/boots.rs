//! Boots that are asked for.

use crate::{PATIENCE, manager};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tread_node::systemd::{Manager, Problem, Reboot, boot_id};
use tread_test_machine::{Builder, Machine};

/// A boot that is being asked for, and what was said about it.
struct Asked {
    task: tokio::task::JoinHandle<Problem>,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Asked {
    fn of(manager: Manager, how: Reboot) -> Asked {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&notes);
        let task = tokio::spawn(async move {
            let note = move |note| noted.lock().unwrap().push(note);
            manager.reboot(how, note, || Err(std::io::Error::other("never in a test"))).await
        });
        Asked { task, notes }
    }

    fn said(&self) -> String {
        self.notes.lock().unwrap().join("\n")
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn id_of(machine: &Machine) -> String {
    let root = machine.root().unwrap();
    boot_id(|path| std::fs::read_to_string(root.join(path))).unwrap()
}

fn boot(builder: Builder) -> Machine {
    tokio::task::block_in_place(|| builder.boot()).unwrap()
}

/// Somebody who does not want the machine to go down before `/run/go` is there.
fn inhibit(machine: &Machine) {
    let held = "touch /run/held; until [ -e /run/go ]; do sleep 0.05; done";
    let words = [
        "systemd-run",
        "--unit=inhibits",
        "systemd-inhibit",
        "--what=shutdown:sleep",
        "--who=a tester",
        "--why=busy",
        "--mode=block",
        "sh",
        "-c",
        held,
    ];
    machine.run_well(words).unwrap();
    let held = machine.root().unwrap().join("run/held");
    machine.wait_for("the inhibitor", || held.exists()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boot_by_logind_waits_for_who_inhibits_it() {
    let machine = boot(Machine::build());
    let first = id_of(&machine);
    inhibit(&machine);
    let blocking = manager(&machine).inhibitors().await.unwrap();
    assert_eq!(
        (blocking.len(), blocking[0].who.as_str(), blocking[0].why.as_str()),
        (1, "a tester", "busy")
    );
    let asked = Asked::of(manager(&machine), Reboot { inhibited: PATIENCE, ..Reboot::default() });
    machine.wait_for("the note", || asked.said().contains("a tester (PID ")).unwrap();
    assert!(asked.said().ends_with("): busy"), "nothing was asked yet: {}", asked.said());
    assert_eq!(machine.boots().len(), 1);
    machine.run_well(["touch", "/run/go"]).unwrap();
    tokio::task::block_in_place(|| machine.wait_for_reboot()).unwrap();
    assert!(asked.said().ends_with("asking logind for a boot"), "{}", asked.said());
    assert_ne!(id_of(&machine), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_inhibits_a_boot_for_too_long_is_overruled_and_named() {
    let machine = boot(Machine::build());
    inhibit(&machine);
    let how = Reboot { inhibited: Duration::from_millis(300), ..Reboot::default() };
    let asked = Asked::of(manager(&machine), how);
    tokio::task::block_in_place(|| machine.wait_for_reboot()).unwrap();
    assert!(
        asked.said().contains("booting although it is inhibited by a tester"),
        "{}",
        asked.said()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_logind_systemd_boots() {
    let target = "[Unit]\nRequires=dbus.service\nAfter=dbus.service\nAllowIsolate=yes\n";
    let machine = boot(
        Machine::build()
            .target("bare.target")
            .unit("bare.target", target)
            .link("/etc/systemd/system/systemd-logind.service", "/dev/null"),
    );
    let asked = Asked::of(manager(&machine), Reboot::default());
    tokio::task::block_in_place(|| machine.wait_for_reboot()).unwrap();
    let said = asked.said();
    assert!(said.contains("logind does not boot the node: "), "{said}");
    assert!(said.ends_with("asking systemd's reboot.target for a boot"), "{said}");
}
