//! A machine boots, reboots, loses its power, and leaves nothing behind.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tread_test_machine::{End, Machine};

#[test]
fn a_machine_boots_a_systemd_of_its_own_and_runs_commands() {
    let machine = Machine::build().file("/etc/greeting", "hello\n").boot().unwrap();
    assert_eq!(machine.run_well(["cat", "/etc/greeting"]).unwrap(), "hello\n");
    assert_eq!(machine.run_well(["cat", "/proc/1/comm"]).unwrap(), "systemd\n");
    assert!(!Path::new("/etc/greeting").exists());
    let root = machine.root().unwrap();
    assert_eq!(std::fs::read_to_string(root.join("etc/greeting")).unwrap(), "hello\n");
    assert!(machine.bus().unwrap().exists());
    let said = machine.run(["sh", "-c", "echo out; echo err >&2; exit 3"]).unwrap();
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (Some(3), "out\n", "err\n"));
}

#[test]
fn a_reboot_keeps_the_disk_and_changes_the_boot_id() {
    let machine = Machine::build().boot().unwrap();
    let boot_id = || machine.run_well(["cat", "/proc/sys/kernel/random/boot_id"]).unwrap();
    let first = boot_id();
    machine.run_well(["touch", "/etc/kept", "/run/forgotten"]).unwrap();
    machine.run(["systemctl", "reboot"]).unwrap();
    let boot = machine.wait_for_reboot().unwrap();
    assert_ne!(boot_id(), first);
    assert_eq!(boot_id().trim(), boot.id);
    let boots = machine.boots();
    assert_eq!((boots.len(), boots[0].end, boots[1].end), (2, Some(End::Reboot), None));
    machine.run_well(["test", "-e", "/etc/kept"]).unwrap();
    machine.run_well(["test", "!", "-e", "/run/forgotten"]).unwrap();
    assert!(machine.disk().join("etc/kept").exists());
}

#[test]
fn a_machine_reboots_by_itself_when_told_so() {
    let machine = Machine::build().make().unwrap();
    machine.reboots_by_itself(true);
    machine.start().unwrap();
    machine.wait_until_running().unwrap();
    machine.run(["systemctl", "reboot"]).unwrap();
    let boot = machine.wait_for_boot(2).unwrap();
    assert_eq!(machine.boots().last(), Some(&boot));
    machine.run(["systemctl", "poweroff"]).unwrap();
    assert_eq!(machine.wait_for_end_of(2).unwrap(), End::PowerOff);
}

#[test]
fn a_power_cut_ends_everything_at_once_and_the_disk_is_booted_again() {
    let machine = Machine::build().boot().unwrap();
    machine.run_well(["systemd-run", "--unit=long", "sleep", "1000"]).unwrap();
    machine.run_well(["touch", "/etc/kept"]).unwrap();
    machine.cut_power().unwrap();
    assert!(machine.start().is_ok() && machine.start().is_err(), "only one boot at a time");
    machine.wait_until_running().unwrap();
    machine.run_well(["test", "-e", "/etc/kept"]).unwrap();
    assert_ne!(machine.run(["systemctl", "is-active", "long"]).unwrap().status, Some(0));
}

#[test]
fn machines_run_side_by_side() {
    let machines: Vec<Machine> = ["one", "two"]
        .into_iter()
        .map(|name| {
            let machine = Machine::build().file("/etc/name", name).make().unwrap();
            machine.start().unwrap();
            machine
        })
        .collect();
    for (machine, name) in machines.iter().zip(["one", "two"]) {
        machine.wait_until_running().unwrap();
        assert_eq!(machine.run_well(["cat", "/etc/name"]).unwrap(), name);
    }
}

#[test]
fn a_unit_that_fails_at_boot_is_named() {
    let unit = "[Service]\nType=oneshot\nExecStart=false\n";
    let machine = Machine::build().unit_at_boot("bad.service", unit).make().unwrap();
    machine.start().unwrap();
    assert_eq!(machine.wait_until_booted().unwrap(), "degraded");
    let error = machine.wait_until_running().unwrap_err().to_string();
    assert!(error.contains("bad.service"), "{error}");
}

/// Where a machine keeps what it is made of.
fn places(machine: &Machine) -> [PathBuf; 2] {
    [machine.disk().parent().unwrap().to_owned(), machine.cgroup().to_owned()]
}

#[test]
fn a_test_that_panics_leaves_nothing_behind() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let panicked = std::thread::spawn(move || {
        let machine = Machine::build().boot().unwrap();
        sender.send(places(&machine)).unwrap();
        panic!("as a test does that fails");
    })
    .join();
    assert!(panicked.is_err());
    // A control group that is gone had no process left.
    for place in receiver.recv().unwrap() {
        assert!(!place.exists(), "{}", place.display());
    }
}

fn wait_until_gone(places: &[PathBuf]) {
    let end = Instant::now() + Duration::from_secs(300);
    while places.iter().any(|place| place.exists()) {
        assert!(Instant::now() < end, "{places:?} are still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_machine_that_outlives_its_time_is_killed() {
    let is_killed = |seconds| {
        let machine = Machine::build().lifetime(Duration::from_secs(seconds)).make().unwrap();
        let end = machine.start().and_then(|()| machine.wait_for_end());
        wait_until_gone(&places(&machine));
        matches!(end, Ok(End::PowerCut))
    };
    // Where this machine is busy, its time may be over before it begins to boot.
    assert!(is_killed(1) || is_killed(60));
}

/// This program again, with one test only.
fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env("TREAD_MACHINE_CHILD", "1");
    command
}

#[test]
fn tests_that_are_killed_leave_nothing_behind() {
    if std::env::var_os("TREAD_MACHINE_CHILD").is_some() {
        let machine = Machine::build().boot().unwrap();
        for place in places(&machine) {
            println!("place {}", place.display());
        }
        println!("end");
        loop {
            std::thread::park();
        }
    }
    let mut child =
        again("tests_that_are_killed_leave_nothing_behind").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let said: Vec<String> = lines.take_while(|line| line != "end").collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let places: Vec<PathBuf> =
        said.iter().filter_map(|line| line.split_once("place ")).map(|it| it.1.into()).collect();
    assert_eq!(places.len(), 2, "{said:?}");
    wait_until_gone(&places);
}

#[test]
fn whoever_is_not_root_is_told_so() {
    if std::env::var_os("TREAD_MACHINE_CHILD").is_some() {
        println!("missing: {}", tread_test_machine::missing().unwrap());
        return;
    }
    // Where nobody may read what cargo built, a copy in a place for all is run.
    let copy = tempfile::Builder::new().prefix("tread-nobody-").tempdir().unwrap();
    let program = copy.path().join("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(copy.path(), open).unwrap();
    let said = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program)
        .args(["--exact", "whoever_is_not_root_is_told_so", "--nocapture"])
        .env("TREAD_MACHINE_CHILD", "1")
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("missing: A machine for tests needs root"), "{said}");
}
