//! A boot that hangs before the kubelet is started.

use crate::node::{config, plan};
use std::time::Duration;
use tread_model::plan::Step;
use tread_test_machine::{End, Machine};

const TREAD: &str = env!("CARGO_BIN_EXE_tread-node");

/// As a unit that waits for a network which the config has spoilt.
const WAITS: &str = "[Unit]\nBefore=kubelet.service\n\
    [Service]\nType=oneshot\nRemainAfterExit=yes\nTimeoutStartSec=infinity\n\
    ExecStart=/bin/sh -c 'while grep -q bad /etc/a.conf; do sleep 0.2; done'\n";
const KUBELET: &str = "[Service]\nExecStart=/bin/sleep infinity\n";

#[test]
fn a_boot_that_hangs_before_the_kubelet_starts_is_gone_back_from_by_the_units_of_the_host() {
    let machine = Machine::build()
        .lifetime(Duration::from_secs(3600))
        .unit_at_boot("waits.service", WAITS)
        .unit_at_boot("kubelet.service", KUBELET)
        .file("/etc/a.conf", "one")
        // The machine has no multi-user.target, which starts it elsewhere.
        .link(
            "/etc/systemd/system/tread-machine.target.wants/tread-resume.service",
            "/etc/systemd/system/tread-resume.service",
        )
        .make()
        .unwrap();
    machine.reboots_by_itself(true);
    machine.start().unwrap();
    machine.wait_until_booted().unwrap();
    let put = |path: &str, text: &str| {
        std::fs::write(machine.root().unwrap().join(path), text).unwrap();
    };
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    put("var/now.json", &config("one").0[0].text);
    put("var/next.json", &config("bad").0[0].text);
    let plan = plan(&config("one"), &config("bad"), &steps);
    put("var/plan.json", &serde_json::to_string(&plan).unwrap());
    machine.run_well([TREAD, "node", "adopt", "--config", "/var/now.json"]).unwrap();
    // The machine goes down in the middle of this, so it runs as a unit of it.
    let runs = ["systemd-run", "--no-block", TREAD, "node", "apply", "--no-drain"];
    let files = ["--config", "/var/next.json", "--plan", "/var/plan.json"];
    let terms = ["--well-for", "1", "--proof", "10"];
    machine.run_well([&runs[..], &files, &terms].concat()).unwrap();
    assert_eq!(machine.wait_for_end_of(1).unwrap(), End::Reboot);
    assert_eq!(machine.wait_for_end_of(2).unwrap(), End::Reboot, "it is proved, and goes back");
    machine.wait_for_boot(3).unwrap();
    let operation = machine.root().unwrap().join("var/lib/tread/node/operation");
    machine.wait_for("the proof", || operation.symlink_metadata().is_err()).unwrap();
    let status = machine.run_well([TREAD, "node", "status"]).unwrap();
    assert!(status.contains("kubelet.service was well before, and is not"), "{status}");
    assert_eq!(machine.run_well(["cat", "/etc/a.conf"]).unwrap(), "one");
    assert_eq!(machine.boots().len(), 3);
}
