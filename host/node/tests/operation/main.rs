//! Operations on a node with a real systemd: through failures, crashes and real boots.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod adoption;
mod anchors;
mod automount;
mod away;
mod carrying;
mod crashes;
#[path = "../support/cut.rs"]
mod cut;
mod cut_off;
mod figures;
mod full;
mod given_up;
mod half_read;
mod hanging;
mod ill;
mod node;
mod os;
mod permits;
mod power;
mod presets;
mod repeated;
mod seen;
mod selinux;
mod watched;

use node::{Bed, config, config_with, unit_with};
use tread_model::plan::Step;
use tread_node::documents::Documents;
use tread_node::operation::{Ended, OperationError};
use tread_node::progress::{Phase, StepState};
use tread_node::tree::{Syscall, Witness};
use tread_test_machine::End;

fn reload() -> Vec<Step> {
    vec![Step::Write, Step::Reload { unit: "a.service".to_owned() }]
}

fn restart() -> Vec<Step> {
    vec![Step::Write, Step::Restart { unit: "a.service".to_owned() }]
}

#[test]
fn a_reload_is_all_that_happens_where_the_plan_says_so() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let ended = bed.carry_out(&config("two"), &reload()).unwrap();
    assert_eq!(ended, Ended::Done);
    assert_eq!(bed.log(), ["start one", "reload two"]);
    assert_eq!(bed.machine.boots().len(), 1);
    let progress = bed.progress();
    assert_eq!(progress.phase, Phase::Done);
    let states: Vec<StepState> = progress.steps.iter().map(|step| step.state).collect();
    assert_eq!(states, [StepState::Done, StepState::Done]);
    assert!(!serde_json::to_string(&progress).unwrap().contains("two"), "it holds no contents");
}

#[test]
fn a_restart_reads_what_was_written() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    assert_eq!(bed.carry_out(&config("two"), &restart()).unwrap(), Ended::Done);
    assert_eq!(bed.log(), ["start one", "start two"]);
}

#[test]
fn a_planned_boot_happens_once_and_the_node_proves_itself_after_it() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    assert!(matches!(bed.carry_out_undrained(&config("two"), &steps), Err(OperationError::Drain)));
    assert_eq!(bed.until_it_boots(&config("two"), &steps), End::Reboot);
    bed.boot();
    assert_eq!(bed.go_on().unwrap(), Ended::Done);
    assert_eq!(bed.log(), ["start one", "start two"]);
    assert_eq!(bed.machine.boots().len(), 2);
}

#[test]
fn what_others_own_may_change_between_the_write_and_the_proof_and_what_is_the_configs_may_not() {
    const OF_OTHERS: &str = "/etc/kubernetes/kubelet-ca.crt";
    let with = |word: &str| {
        let files = [OF_OTHERS, "/etc/b.conf"].map(|path| {
            format!(r#"{{"path": "{path}", "contents": {{"source": "data:,{word}"}}}},"#)
        });
        config_with(word, &files.concat(), "")
    };
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    for (path, is_its_own) in [(OF_OTHERS, false), ("/etc/b.conf", true)] {
        let bed = Bed::with("one", &unit_with("/bin/true"));
        assert_eq!(bed.until_it_boots(&with("two"), &steps), End::Reboot);
        bed.boot();
        std::fs::write(bed.machine.root().unwrap().join(path.trim_start_matches('/')), "theirs")
            .unwrap();
        let ended = bed.go_on().unwrap();
        let is_degraded = matches!(&ended, Ended::Degraded { because } if because.contains(path));
        assert_eq!(is_degraded, is_its_own, "{path}: {ended:?}");
        assert_eq!(ended == Ended::Done, !is_its_own, "{path}: {ended:?}");
        assert_eq!(bed.text(path).as_deref(), Some("theirs"));
    }
}

#[test]
fn a_reload_that_fails_costs_one_boot_and_the_new_config_stays() {
    let bed = Bed::with("one", &unit_with("/bin/false"));
    assert_eq!(bed.until_it_boots(&config("two"), &reload()), End::Reboot);
    bed.boot();
    assert_eq!(bed.go_on().unwrap(), Ended::Done);
    assert_eq!(bed.log(), ["start one", "start two"]);
    assert_eq!(bed.machine.boots().len(), 2);
}

#[test]
fn a_config_with_which_the_node_is_not_well_is_gone_back_from_with_two_boots_in_all() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    assert_eq!(bed.until_it_boots(&config("bad"), &restart()), End::Reboot);
    bed.boot();
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    bed.boot();
    let Ended::WentBack { because } = bed.go_on().unwrap() else { panic!("it did not go back") };
    assert!(because.contains("a.service was well before, and is not"), "{because}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    assert_eq!(bed.machine.boots().len(), 3);
    assert_eq!(bed.progress().phase, Phase::WentBack);
    assert_eq!(bed.go_on().unwrap(), Ended::Nothing);
    // What went back is where the next plan begins.
    assert_eq!(bed.carry_out(&config("two"), &reload()).unwrap(), Ended::Done);
}

#[test]
fn a_node_whose_systemd_does_not_answer_after_the_boot_is_not_taken_for_well() {
    let mut bed = Bed::with("one", &unit_with("/bin/true"));
    bed.terms.proof = 1;
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    assert_eq!(bed.until_it_boots(&config("two"), &steps), End::Reboot);
    bed.boot();
    let Ended::Degraded { because } = bed.go_on_without_a_bus().unwrap() else {
        panic!("it was taken for well")
    };
    assert!(because.contains("neither logind nor systemd booted the node"), "{because}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"), "its files went back");
}

#[test]
fn a_unit_that_cannot_do_what_is_asked_is_named_before_anything_is_written() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let missing = vec![Step::Write, Step::Restart { unit: "missing.service".to_owned() }];
    let error = bed.carry_out_undrained(&config("two"), &missing).unwrap_err().to_string();
    assert!(error.contains("missing.service") && error.contains("--reboot"), "{error}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
}

#[test]
fn what_cannot_be_carried_out_as_planned_becomes_the_plan_that_is_always_allowed() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let missing = vec![Step::Write, Step::Restart { unit: "missing.service".to_owned() }];
    assert_eq!(bed.until_it_boots(&config("two"), &missing), End::Reboot);
    bed.boot();
    assert_eq!(bed.go_on().unwrap(), Ended::Done);
    assert_eq!(bed.log(), ["start one", "start two"]);
    let steps: Vec<String> = bed.progress().steps.into_iter().map(|step| step.step).collect();
    assert_eq!(steps, ["drain", "write", "reboot", "uncordon"]);
}

/// As [`config`], with a password of `core`.
fn with_password(word: &str, hash: &str) -> Documents {
    let mut with = config(word);
    let users =
        format!(r#""passwd": {{"users": [{{"name": "core", "passwordHash": "{hash}"}}]}},"#);
    with.0[0].text = with.0[0].text.replace("\"storage\":", &format!("{users} \"storage\":"));
    with
}

#[test]
fn a_password_changes_in_an_operation_and_is_told_to_nobody() {
    const HASH: &str = "$6$salt$IxDD3jeSOb5eB1CX5LBsqZFVkJdido3OUILO5Ifz5iwMuTS4XMS130MTSuDDl3aCI6WouIL9AjRbLCelDCy.g.";
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let root = bed.machine.root().unwrap();
    let add = |path: &str, line: &str| {
        let at = root.join(path);
        let text = std::fs::read_to_string(&at).unwrap();
        std::fs::write(at, format!("{text}{line}\n")).unwrap();
    };
    let mut with = config("two");
    let users =
        format!(r#""passwd": {{"users": [{{"name": "core", "passwordHash": "{HASH}"}}]}},"#);
    with.0[0].text = with.0[0].text.replace("\"storage\":", &format!("{users} \"storage\":"));
    let error = bed.carry_out(&with, &reload()).unwrap_err().to_string();
    assert!(error.contains("the host has no user `core`") && !error.contains(HASH), "{error}");
    add("etc/passwd", "core:x:1000:1000::/home/core:/bin/sh");
    add("etc/shadow", "core:!:1:0:99999:7:::");
    assert_eq!(bed.carry_out(&with, &reload()).unwrap(), Ended::Done);
    let asked = std::process::Command::new("chroot")
        .arg(&root)
        .args(["getent", "shadow", "core"])
        .output()
        .unwrap();
    let line = String::from_utf8(asked.stdout).unwrap();
    let fields: Vec<&str> = line.trim_end().split(':').collect();
    assert_eq!(fields[1], HASH);
    assert_ne!(fields[2], "1");
    assert_eq!(fields[3..], ["0", "99999", "7", "", "", ""]);
    let progress = serde_json::to_string(&bed.progress()).unwrap();
    assert!(!progress.contains("$6$"), "{progress}");
    assert_eq!(bed.carry_out(&config("three"), &reload()).unwrap(), Ended::Done);
    assert!(std::fs::read_to_string(root.join("etc/shadow")).unwrap().contains("\ncore:!:"));
}
