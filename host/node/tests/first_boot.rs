//! The unit that a machine is served for its first boot, in a real systemd.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use serde_json::json;
use tread_model::boot_images::{Limits, Release, Stream};
use tread_model::config::Source;
use tread_model::contents::decode;
use tread_model::joining::first_boot::{FirstBoot, SETTINGS, UNIT, add};
use tread_test_machine::{Builder, Machine};

const OLD: &str = "ID=\"rhcos\"\nVERSION=\"412.86.202308081056-0\"\nVERSION_ID=\"4.12\"\n";
const NEW: &str = "ID=\"rhcos\"\nVERSION=\"416.94.202402051952-0\"\nVERSION_ID=\"4.16\"\n";
const KUBELET: &str = "[Service]\nExecStart=/bin/sleep infinity\n";
/// The kernel's command line is that of the machine that the tests run on: this puts another one
/// in its place, where a test wants that.
const COMMAND_LINE: &str = "[Unit]\nDefaultDependencies=no\nBefore=sysinit.target\nConditionPathExists=/etc/cmdline\n\
    [Service]\nType=oneshot\nExecStart=mount --bind /etc/cmdline /proc/cmdline\n";

/// A machine as Ignition leaves it: what it was served is on its disk.
fn served(os_release: &str, passing: Option<&'static str>) -> Builder {
    let stream = Stream { name: "rhel-9".to_owned(), own: true };
    let limits = Limits::of(Release::parse("4.22.0"), &stream, &[]);
    let first_boot = FirstBoot { limits, passing, pool: "infra".to_owned(), reports_to: None };
    let mut spec = json!({});
    add(&mut spec, &first_boot).unwrap();
    let config = &spec["config"];
    let list = |path: &str| config.pointer(path).unwrap().as_array().unwrap().clone();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let mut builder = Machine::build()
        .unit_at_boot("kubelet.service", KUBELET)
        .unit_at_boot("test-command-line.service", COMMAND_LINE)
        .file("/etc/os-release", os_release);
    for file in list("/storage/files") {
        let source = Source { url: Some(text(&file["contents"]["source"]).into()), gzip: false };
        let bytes = decode(&source).unwrap().unwrap().into_owned();
        let mode = u32::try_from(file["mode"].as_u64().unwrap()).unwrap();
        builder = builder.file_with_mode(text(&file["path"]), bytes, mode);
    }
    for link in list("/storage/links") {
        builder = builder.link(text(&link["path"]), text(&link["target"]));
    }
    for unit in list("/systemd/units") {
        builder = builder.unit(&text(&unit["name"]), &text(&unit["contents"]));
    }
    builder
}

fn boot(builder: Builder) -> Machine {
    let machine = builder.make().unwrap();
    machine.start().unwrap();
    machine.wait_until_booted().unwrap();
    machine
}

fn boot_again(machine: &Machine) {
    machine.run(["systemctl", "reboot"]).unwrap();
    machine.wait_for_reboot().unwrap();
}

/// What systemd says of the kubelet, and whether the unit was run in this boot.
fn says(machine: &Machine) -> (String, bool) {
    let said = |words: &[&str]| machine.run(words.iter().copied()).unwrap().out.trim().to_owned();
    let kubelet = said(&["systemctl", "is-active", "kubelet.service"]);
    let begun =
        said(&["systemctl", "show", "--value", "-p", "ExecMainStartTimestampMonotonic", UNIT]);
    (kubelet, begun != "0")
}

fn has(machine: &Machine, path: &str) -> bool {
    machine.run(["test", "-e", path]).unwrap().status == Some(0)
}

/// What it said: to the console, and to the log that tells it here.
fn logged(machine: &Machine) -> String {
    machine.run_well(["journalctl", "--no-pager", "--output=cat", "--unit", UNIT]).unwrap()
}

const ISSUE: &str = "/etc/issue.d/50-tread-boot-image.issue";

#[test]
fn a_machine_of_an_old_image_starts_no_kubelet_until_the_command_line_passes_it() {
    let machine = boot(served(OLD, None));
    assert_eq!(says(&machine), ("inactive".to_owned(), true));
    let failed = machine.run(["systemctl", "is-failed", UNIT]).unwrap().out;
    assert_eq!(failed.trim(), "failed");
    let log = logged(&machine);
    assert!(log.contains("keeps this machine out of its cluster"), "{log}");
    let issue = machine.run_well(["cat", ISSUE]).unwrap();
    assert!(issue.contains("412.86.202308081056-0") && issue.contains("tread.skew=off"), "{issue}");
    // Nor does whoever starts it by hand.
    assert_ne!(machine.run(["systemctl", "start", "kubelet.service"]).unwrap().status, Some(0));
    assert_eq!(says(&machine).0, "inactive");
    // It was let in nowhere: the next boot is its first one still.
    boot_again(&machine);
    assert_eq!(says(&machine), ("inactive".to_owned(), true));
    machine.run_well(["sh", "-c", "echo quiet tread.skew=off >/etc/cmdline"]).unwrap();
    boot_again(&machine);
    assert_eq!(says(&machine), ("active".to_owned(), true));
    assert!(!has(&machine, ISSUE) && !has(&machine, SETTINGS));
    // From now on it is not looked at again, whatever the command line says.
    machine.run_well(["rm", "/etc/cmdline"]).unwrap();
    boot_again(&machine);
    assert_eq!(says(&machine), ("active".to_owned(), false));
}

#[test]
fn a_machine_of_a_new_image_is_looked_at_once_and_its_kubelet_starts_after_that() {
    let machine = boot(served(NEW, None));
    assert_eq!(says(&machine), ("active".to_owned(), true));
    let times =
        ["systemctl", "show", "--value", "-p", "ActiveEnterTimestampMonotonic", "kubelet.service"];
    let kubelet: u64 = machine.run_well(times).unwrap().trim().parse().unwrap();
    let ended = ["systemctl", "show", "--value", "-p", "ExecMainExitTimestampMonotonic", UNIT];
    let ended: u64 = machine.run_well(ended).unwrap().trim().parse().unwrap();
    assert!(0 < ended && ended <= kubelet, "{ended} {kubelet}");
    assert!(!has(&machine, ISSUE) && !has(&machine, SETTINGS));
    // What it boots later is no boot image: nobody asks.
    machine.run_well(["sh", "-c", "echo VERSION=412.86.202308081056-0 >/etc/os-release"]).unwrap();
    boot_again(&machine);
    assert_eq!(says(&machine), ("active".to_owned(), false));
}

#[test]
fn in_the_mode_none_a_machine_of_an_old_image_is_only_warned_of() {
    let machine = boot(served(OLD, Some("spec.mode of BootImages cluster is None")));
    assert_eq!(says(&machine), ("active".to_owned(), true));
    assert!(machine.run_well(["cat", ISSUE]).unwrap().contains("joins its cluster all the same"));
    let log = logged(&machine);
    assert!(log.contains("spec.mode of BootImages cluster is None"), "{log}");
    boot_again(&machine);
    assert_eq!(says(&machine), ("active".to_owned(), false));
}
