//! Commands of the host that run as units.

use crate::{PATIENCE, manager};
use std::process::Stdio;
use std::time::Duration;
use tread_node::systemd::{Command, CommandState, Limits, Manager, Outcome, What};
use tread_test_machine::Machine;

fn shell(name: &str, script: &str) -> Command {
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    Command { unit: Command::unit_of("op1", name), argv, limit: PATIENCE }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_once_and_its_end_is_known_until_it_is_forgotten() {
    let machine = Machine::build().boot().unwrap();
    let manager = manager(&machine);
    let command = shell("good", "echo ran >>/run/notes");
    let state = async || manager.command_state(&command.unit).await.unwrap();
    assert_eq!(state().await, CommandState::Unknown);
    manager.command(&command).await.unwrap();
    manager.command(&command).await.unwrap();
    assert_eq!(state().await, CommandState::Well);
    assert_eq!(machine.run_well(["cat", "/run/notes"]).unwrap(), "ran\n");
    manager.forget_command(&command.unit).await.unwrap();
    manager.command(&command).await.unwrap();
    assert_eq!(machine.run_well(["cat", "/run/notes"]).unwrap(), "ran\nran\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_hangs_or_is_missing_says_so() {
    let machine = Machine::build().boot().unwrap();
    let manager = manager(&machine);
    let fails = shell("fails", "echo why it failed >&2; exit 3");
    let problem = manager.command(&fails).await.unwrap_err();
    let exit = |exit| What::Command { exit, result: "exit-code".to_owned() };
    assert_eq!(problem.what, exit(Some(3)));
    assert!(problem.excerpt.iter().any(|line| line == "why it failed"), "{:?}", problem.excerpt);
    let text = problem.to_string();
    assert!(text.starts_with("run tread-op1-fails.service: the command ended with exit status 3."));
    // Somebody else may ask how it ended; after that it can be run again.
    let state = CommandState::Failed { exit: Some(3), result: "exit-code".to_owned() };
    assert_eq!(manager.command_state(&fails.unit).await.unwrap(), state);
    manager.forget_command(&fails.unit).await.unwrap();
    manager.command(&shell("fails", "true")).await.unwrap();

    let limit = Duration::from_secs(1);
    let hangs = Command { limit, ..shell("hangs", "exec sleep infinity") };
    let problem = manager.command(&hangs).await.unwrap_err();
    assert_eq!(problem.what, What::TimedOut { limit, cancelled: true });
    let killed = manager.command(&shell("killed", "kill -9 $$")).await.unwrap_err();
    assert_eq!(killed.what, What::Command { exit: None, result: "signal".to_owned() });
    let argv = vec!["/nowhere/program".to_owned()];
    let missing = Command { argv, ..shell("missing", "") };
    assert_eq!(manager.command(&missing).await.unwrap_err().what, exit(Some(203)));
}

/// What the child of the test below does: it starts the command and waits for it.
async fn as_the_child(address: String) {
    let manager = Manager::new(&address, Limits::default());
    let _ = manager.command(&shell("long", LONG)).await;
}

const LONG: &str = "echo ran >>/run/notes; until [ -e /run/go ]; do sleep 0.05; done; exit 4";

#[tokio::test(flavor = "multi_thread")]
async fn a_command_outlives_its_caller_and_is_found_again() {
    if let Ok(address) = std::env::var("TREAD_TEST_BUS") {
        return as_the_child(address).await;
    }
    let machine = Machine::build().boot().unwrap();
    let notes = machine.root().unwrap().join("run/notes");
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "commands::a_command_outlives_its_caller_and_is_found_again"])
        .env("TREAD_TEST_BUS", crate::address(&machine))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    machine.wait_for("the command to run", || notes.exists()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    let manager = manager(&machine);
    let command = shell("long", LONG);
    assert_eq!(manager.command_state(&command.unit).await.unwrap(), CommandState::Running);
    manager.forget_command(&command.unit).await.unwrap();
    let release = async { machine.run_well(["touch", "/run/go"]).unwrap() };
    let (ended, _) = tokio::join!(manager.command(&command), release);
    let failed = What::Command { exit: Some(4), result: "exit-code".to_owned() };
    assert_eq!(ended.unwrap_err().what, failed);
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "ran\n", "it ran once");
    // One that comes when it is over finds out how it ended.
    assert_eq!(manager.command(&command).await.unwrap_err().what, failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trust_store_is_updated_by_the_command_also_where_coreos_has_a_unit_for_it() {
    let script = "#!/bin/sh\necho command >>/run/notes\n";
    // Systemd skips it in each boot but the first, and where no anchor is left.
    let unit = "[Unit]\nConditionFirstBoot=true\n\
        ConditionDirectoryNotEmpty=/etc/pki/ca-trust/source/anchors/\n\
        [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/update-ca-trust extract\n";
    let machine =
        Machine::build().file_with_mode("/usr/bin/update-ca-trust", script, 0o755).boot().unwrap();
    let manager = manager(&machine);
    let root = machine.root().unwrap();
    let is_there = |path: &str| root.join(path.trim_start_matches('/')).exists();
    let update = async || manager.update_ca_trust("op1", is_there, PATIENCE).await.unwrap();
    assert!(
        matches!(update().await, Outcome::Done { note: Some(note), .. } if note == "by /usr/bin/update-ca-trust")
    );
    // Each time anew: what it reads may have changed.
    update().await;
    let name = "coreos-update-ca-trust.service";
    std::fs::write(root.join("etc/systemd/system").join(name), unit).unwrap();
    manager.daemon_reload(PATIENCE).await.unwrap();
    assert!(matches!(update().await, Outcome::Done { .. }));
    assert_eq!(machine.run_well(["cat", "/run/notes"]).unwrap(), "command\ncommand\ncommand\n");
}
