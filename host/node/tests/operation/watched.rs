//! The watch as a service of a real systemd: installed by adoption, found by status, quiet.
#![allow(clippy::print_stdout, reason = "a figure is shown by printing it")]

use crate::figures::typical;
use crate::node::{Bed, config, unit_with};
use crate::reload;
use std::path::PathBuf;
use std::process::Command;
use tread_model::plan::Step;
use tread_node::documents::Documents;
use tread_node::operation::Ended;

pub(crate) const PROGRAM: &str = "/usr/local/bin/tread";

/// Has the machine's own systemd watch this config, as an admin would.
pub(crate) fn adopted(bed: &Bed, config: &Documents) {
    let root = bed.machine.root().unwrap();
    let program = root.join(PROGRAM.trim_start_matches('/'));
    let built = std::env::var_os("TREAD_NODE_PROGRAM");
    let built = built.unwrap_or_else(|| env!("CARGO_BIN_EXE_tread-node").into());
    // By another process: one that is begun meanwhile would keep the file open for writing.
    assert!(Command::new("cp").arg(built).arg(program).status().unwrap().success());
    std::fs::write(root.join("var/now.json"), &config.0[0].text).unwrap();
    let said = bed.machine.run_well([PROGRAM, "node", "adopt", "--config", "/var/now.json"]);
    assert!(said.unwrap().contains("adopted"));
}

/// Has the watch look at once: how often it may is not what is asked here.
fn quick(bed: &Bed) {
    let at = bed.machine.root().unwrap().join("etc/systemd/system/tread-watch.service.d");
    std::fs::create_dir_all(&at).unwrap();
    let text = format!("[Service]\nExecStart=\nExecStart={PROGRAM} node watch --apart 0\n");
    std::fs::write(at.join("quick.conf"), text).unwrap();
}

pub(crate) fn status(bed: &Bed) -> String {
    bed.machine.run_well([PROGRAM, "node", "status"]).unwrap()
}

fn shows(bed: &Bed, what: &str) {
    bed.machine.wait_for(what, || status(bed).contains(what)).unwrap();
}

/// What the kernel says of the process that watches.
fn watcher(bed: &Bed, field: &str) -> u64 {
    let show = ["systemctl", "show", "--value", "-p", "MainPID", "tread-watch.service"];
    let pid = bed.machine.run_well(show).unwrap();
    let at = PathBuf::from(format!("/proc/{}/status", pid.trim()));
    let text = bed.machine.run_well(["cat", at.to_str().unwrap()]).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn adoption_starts_the_watch_and_status_tells_what_it_found_also_after_it_was_killed() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    quick(&bed);
    adopted(&bed, &config("one"));
    shows(&bed, "drift: none");
    let file = bed.machine.root().unwrap().join("etc/a.conf");
    std::fs::write(&file, "by hand").unwrap();
    shows(&bed, "drift: 1 path differs");
    let said = status(&bed);
    assert!(said.contains("/etc/a.conf: its contents differ") && !said.contains("by hand"));
    let killed = ["systemctl", "kill", "--signal=KILL", "tread-watch.service"];
    bed.machine.run_well(killed).unwrap();
    std::fs::write(&file, "one").unwrap();
    // systemctl may wait for ever where systemd starts the unit again by itself at the same time.
    let again = ["systemctl", "--no-block", "restart", "tread-watch.service"];
    bed.machine.run_well(again).unwrap();
    shows(&bed, "drift: none");
    // What is written by an operation is no drift, and what it wrote is watched then.
    assert_eq!(bed.carry_out(&config("two"), &reload()).unwrap(), Ended::Done);
    shows(&bed, "drift: none");
    std::fs::write(&file, "one").unwrap();
    shows(&bed, "drift: 1 path differs");
}

#[test]
fn the_idle_watch_of_a_typical_node_is_not_woken() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let all = bed.carry_out(&typical("one"), &[Step::Write, Step::DaemonReload]).unwrap();
    assert_eq!(all, Ended::Done);
    adopted(&bed, &typical("one"));
    shows(&bed, "drift: none");
    let seconds = std::env::var("TREAD_IDLE_SECONDS").ok().and_then(|it| it.parse().ok());
    let woken = || watcher(&bed, "voluntary_ctxt_switches");
    // What polls every ten seconds never sleeps for so long.
    let seconds = seconds.unwrap_or(30);
    let times = bed.machine.woken("the watch", woken, seconds).unwrap();
    println!("woken {times} times in {seconds} s");
    assert!(times <= 1 + seconds / 60, "woken {times} times in {seconds} s");
    println!("resident: {} kB, at most {} kB", watcher(&bed, "VmRSS"), watcher(&bed, "VmHWM"));
}
