//! What an admin types, and what the units of the host do by themselves.

use super::{NEW, OLD, config, host};
use crate::node::{decided, plan};
use std::time::{Duration, Instant};
use tread_model::plan::Step;
use tread_test_machine::{Builder, Machine};

pub(super) const TREAD: &str = env!("CARGO_BIN_EXE_tread-node");

/// One that boots by itself, and that tread is to manage.
fn machine() -> Machine {
    started(host(&["rpm-ostree"]))
}

pub(super) fn started(host: Builder) -> Machine {
    let machine = host
        .file("/etc/a.conf", "one")
        .link(
            "/etc/systemd/system/tread-machine.target.wants/tread-resume.service",
            "/etc/systemd/system/tread-resume.service",
        )
        .lifetime(Duration::from_secs(4 * 3600))
        .make()
        .unwrap();
    machine.reboots_by_itself(true);
    machine.start().unwrap();
    machine.wait_until_booted().unwrap();
    machine
}

/// Waits until the operation is over.
pub(super) fn is_proved(machine: &Machine) {
    let operation = machine.root().unwrap().join("var/lib/tread/node/operation");
    machine.wait_for("the proof", || operation.symlink_metadata().is_err()).unwrap();
}

pub(super) fn put(machine: &Machine, path: &str, text: &str) {
    std::fs::write(machine.root().unwrap().join(path), text).unwrap();
}

pub(super) fn tread(machine: &Machine, args: &[&str]) -> String {
    let argv: Vec<&str> = [TREAD, "node"].iter().chain(args).copied().collect();
    machine.run_well(argv).unwrap()
}

#[test]
fn a_new_image_is_fetched_by_an_admin_and_booted_and_proved_by_the_units_of_the_host() {
    let machine = machine();
    let (now, next) = (config("one", OLD, &["quiet"]), config("two", NEW, &["nosmt"]));
    put(&machine, "var/now.json", &now.0[0].text);
    put(&machine, "var/next.json", &next.0[0].text);
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    put(&machine, "var/plan.json", &serde_json::to_string(&plan(&now, &next, &steps)).unwrap());

    tread(&machine, &["adopt", "--config", "/var/now.json"]);
    let apply = ["apply", "--config", "/var/next.json", "--plan", "/var/plan.json", "--no-drain"];
    let shown = tread(&machine, &[&apply[..], &["--dry-run"]].concat());
    assert!(shown.contains("stage kernel-arguments for the next boot"), "{shown}");
    assert!(shown.contains("stage os-image for the next boot"), "{shown}");
    let fetched = tread(&machine, &["fetch", "--config", "/var/next.json"]);
    assert!(fetched.contains("tread-operation.service carries"), "{fetched}");
    assert!(fetched.contains(&format!("the OS image {NEW} is on the node now")), "{fetched}");
    let there = tread(&machine, &["fetch", "--config", "/var/now.json"]);
    assert!(there.contains(&format!("the OS image {OLD} was on the node already")), "{there}");
    assert!(tread(&machine, &["status"]).contains("(fetched, nothing was changed)"));
    assert_eq!(machine.boots().len(), 1);

    // The machine goes down in the middle of this, so it runs as a unit of it.
    let argv = ["systemd-run", "--no-block", TREAD, "node"].into_iter().chain(apply);
    machine.run_well(argv.collect::<Vec<&str>>()).unwrap();
    machine.wait_for_boot(2).unwrap();
    is_proved(&machine);
    let status = tread(&machine, &["status"]);
    assert!(status.contains("(done)"), "{status}");
    let line = machine.run_well(["cat", "/proc/cmdline"]).unwrap();
    assert_eq!(line.trim(), "BOOT_IMAGE=/vmlinuz root=UUID=1 ro nosmt");
    assert!(tread(&machine, &["check"]).starts_with("0 of"));
    // Somebody changes it by hand.
    machine.run_well(["rpm-ostree", "kargs", "--delete-if-present=nosmt"]).unwrap();
    let said = machine.run([TREAD, "node", "check"]).unwrap();
    assert_eq!(said.status, Some(5), "{said:?}");
    assert!(said.out.contains("os-image: another deployment is staged"), "{said:?}");
    assert_eq!(machine.boots().len(), 2);
    // So does the watch, whose first check is one of everything; and it ends with what differs.
    machine.run_well(["systemctl", "restart", "tread-watch.service"]).unwrap();
    let status = || tread(&machine, &["status"]);
    let staged = || status().contains("  os-image: ");
    machine.wait_for("the watch to tell of it", staged).unwrap();
    machine.run_well(["rpm-ostree", "cleanup", "--pending"]).unwrap();
    machine.run_well(["systemctl", "restart", "tread-watch.service"]).unwrap();
    machine.wait_for("no drift", || status().contains("drift: none")).unwrap();
}

#[test]
fn a_node_that_waits_for_a_boot_says_so_and_the_units_of_the_host_prove_it_after_that() {
    let machine = machine();
    let (now, next) = (config("one", OLD, &[]), config("two", OLD, &["nosmt"]));
    put(&machine, "var/now.json", &now.0[0].text);
    put(&machine, "var/next.json", &next.0[0].text);
    let plan = decided(plan(&now, &next, &[Step::Write]));
    put(&machine, "var/plan.json", &serde_json::to_string(&plan).unwrap());
    tread(&machine, &["adopt", "--config", "/var/now.json"]);
    let said =
        tread(&machine, &["apply", "--config", "/var/next.json", "--plan", "/var/plan.json"]);
    assert!(said.contains("boot the node when it suits"), "{said}");
    assert!(tread(&machine, &["status"]).contains("(waits for a boot)"));
    assert!(tread(&machine, &["status", "-o", "json"]).contains(r#""phase": "WaitsForBoot""#));
    assert!(tread(&machine, &["check"]).contains("waits for one"));
    assert_eq!(machine.boots().len(), 1);
    machine.run_well(["systemctl", "--no-block", "reboot"]).unwrap();
    machine.wait_for_boot(2).unwrap();
    is_proved(&machine);
    assert!(tread(&machine, &["status"]).contains("(done)"));
    assert!(tread(&machine, &["check"]).starts_with("0 of"));
}

/// What the files say, and what is booted: `two a.example/os@sha256:new nosmt`.
fn state(machine: &Machine) -> String {
    let said = |argv: &[&str]| machine.run_well(argv.iter().copied()).unwrap();
    let id = said(&["cat", "/run/stand-in/booted"]);
    let image = said(&["cat", &format!("/var/lib/stand-in/deployments/{}/image", id.trim())]);
    let line = said(&["cat", "/proc/cmdline"]);
    let of_config = if line.contains("nosmt") { " nosmt" } else { "" };
    format!("{} {}{of_config}", said(&["cat", "/etc/a.conf"]), image.trim())
}

#[test]
fn when_the_power_is_cut_at_any_moment_files_image_and_arguments_end_old_or_new_together() {
    let machine = machine();
    let configs = [config("one", OLD, &[]), config("two", NEW, &["nosmt"])];
    let states = [format!("one {OLD}"), format!("two {NEW} nosmt")];
    put(&machine, "var/now.json", &configs[0].0[0].text);
    tread(&machine, &["adopt", "--config", "/var/now.json"]);
    let begin = |there: usize| {
        let (from, to) = (&configs[there], &configs[1 - there]);
        let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
        put(&machine, "var/next.json", &to.0[0].text);
        put(&machine, "var/plan.json", &serde_json::to_string(&plan(from, to, &steps)).unwrap());
        let argv = ["systemd-run", "--no-block", TREAD, "node", "apply", "--no-drain"];
        let files = ["--config", "/var/next.json", "--plan", "/var/plan.json"];
        machine.run_well(argv.into_iter().chain(files).collect::<Vec<&str>>()).unwrap();
    };
    let is_over = || {
        let operation = machine.root().map(|root| root.join("var/lib/tread/node/operation"));
        let is_up = operation.as_ref().is_ok_and(|it| it.parent().is_some_and(|it| it.is_dir()));
        is_up && operation.is_ok_and(|it| it.symlink_metadata().is_err())
    };
    let began = Instant::now();
    begin(0);
    machine.wait_for_boot(2).unwrap();
    machine.wait_for("the operation to end", is_over).unwrap();
    let whole = began.elapsed();
    assert_eq!(state(&machine), states[1]);

    let cuts = std::env::var("TREAD_CUTS").ok().and_then(|it| it.parse().ok()).unwrap_or(4);
    let mut there = 1;
    for cut in 0..cuts {
        let boots = machine.boots().len();
        begin(there);
        let moment = whole.mul_f64(f64::from(cut * 2 + 1) / f64::from(cuts * 2));
        std::thread::sleep(moment);
        // It may be on its way down by itself just then.
        if machine.cut_power().is_ok() {
            machine.start().unwrap();
        }
        machine.wait_for("the operation to end", is_over).unwrap();
        machine.wait_until_booted().unwrap();
        let ended = state(&machine);
        let index = states.iter().position(|state| *state == ended);
        there = index.unwrap_or_else(|| panic!("cut {cut} after {moment:?}: {ended}"));
        let more = machine.boots().len() - boots;
        assert!(more <= 3, "cut {cut} after {moment:?}: {more} boots, one of them for the cut");
    }
}
