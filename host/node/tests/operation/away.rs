//! A boot at which a mount is not there on which an operation was cut short.

use crate::node::{Bed, config, config_with, unit_with};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tread_model::plan::Step;
use tread_node::progress::Phase;
use tread_node::tree::{Syscall, Witness};
use tread_test_machine::Machine;

/// The process is killed once this name has changed.
pub(crate) struct KilledAfter(&'static str, AtomicBool);

impl KilledAfter {
    pub(crate) fn of(name: &'static str) -> Arc<KilledAfter> {
        Arc::new(KilledAfter(name, AtomicBool::default()))
    }
}

impl Witness for KilledAfter {
    fn before(&self, _: &Syscall<'_>) -> io::Result<()> {
        match self.1.load(Ordering::SeqCst) {
            true => Err(io::Error::other("killed")),
            false => Ok(()),
        }
    }

    fn after(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        let changed = match syscall {
            Syscall::Exchange { other, .. } => *other == self.0,
            Syscall::Link { to, .. } | Syscall::Rename { to, .. } => *to == self.0,
            _ => false,
        };
        self.1.fetch_or(changed, Ordering::SeqCst);
        self.before(syscall)
    }
}

const KUBELET: &str = "[Service]\nType=oneshot\nRemainAfterExit=yes\n\
    ExecStart=/bin/sh -c 'cat /etc/a.conf >> /var/read; echo >> /var/read'\n";

#[test]
fn a_mount_that_is_not_there_at_boot_keeps_no_kubelet_from_starting_and_is_settled_later() {
    let machine = Machine::build().unit_at_boot("kubelet.service", KUBELET);
    let bed = Bed::of(machine, "one", &unit_with("/bin/true"), &config("one"));
    crate::watched::adopted(&bed, &config("one"));
    let mount = || {
        bed.machine.run_well(["mkdir", "-p", "/var/other/core", "/home"]).unwrap();
        bed.machine.run_well(["mount", "--bind", "/var/other", "/home"]).unwrap();
    };
    mount();
    bed.machine.run_well(["sh", "-c", "echo -n one > /home/core/b"]).unwrap();
    let file =
        r#"{"path": "/home/core/b", "overwrite": true, "contents": {"source": "data:,two"}},"#;
    let to = config_with("two", file, "");
    let killed = KilledAfter::of("/home/core/b");
    bed.carry_out_watched(&to, &[Step::Write], killed).unwrap_err();
    assert_eq!(bed.text("/home/core/b").as_deref(), Some("two"));
    bed.machine.cut_power().unwrap();
    bed.boot();
    // It is up without /home: what it reads is whole.
    assert_eq!(bed.text("/home/core/b"), None);
    let state = |unit: &str| {
        bed.machine.run(["systemctl", "is-active", unit]).unwrap().out.trim().to_owned()
    };
    bed.machine.wait_for("the kubelet", || state("kubelet.service") == "active").unwrap();
    assert_ne!(state("tread-settle.service"), "failed");
    assert_eq!(bed.text("/var/read").as_deref(), Some("one\none\n"));
    // The machine has no multi-user.target, which starts it elsewhere. Its process may have failed
    // before systemd has seen that it started: the start itself is not waited for.
    bed.machine.run_well(["systemctl", "--no-block", "start", "tread-resume.service"]).unwrap();
    let said = || crate::watched::status(&bed);
    bed.machine.wait_for("its reason", || said().contains("/home/.tread-1 is not there")).unwrap();
    assert_eq!(bed.progress().phase, Phase::Stopped);
    mount();
    bed.machine.run_well(["systemctl", "--no-block", "restart", "tread-resume.service"]).unwrap();
    let back = || bed.progress().phase == Phase::WentBack;
    bed.machine.wait_for("the way back", back).unwrap();
    assert_eq!(bed.text("/home/core/b").as_deref(), Some("one"));
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
}

#[test]
fn what_is_settled_at_boot_is_read_by_systemd_once_and_holds_the_boot_up_no_longer() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    crate::watched::adopted(&bed, &config("one"));
    let killed = KilledAfter::of("/etc/a.conf");
    bed.carry_out_watched(&config("two"), &[Step::Write], killed).unwrap_err();
    bed.machine.cut_power().unwrap();
    bed.boot();
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    // What was said last may be on its way into the journal.
    bed.machine.run_well(["journalctl", "--sync"]).unwrap();
    let said = |of: &str| bed.machine.run_well(["journalctl", "-b", "-o", "cat", of]).unwrap();
    let settled = said("_SYSTEMD_UNIT=tread-settle.service");
    assert!(settled.contains("settled: the old config is whole again"), "{settled}");
    assert!(!settled.contains("systemd did not read"), "{settled}");
    let reloads = said("_PID=1").lines().filter(|line| line.starts_with("Reloading")).count();
    assert_eq!(reloads, 1);
}
