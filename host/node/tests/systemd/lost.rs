//! While the bus or systemd is started anew.

use crate::{PATIENCE, manager};
use tread_node::systemd::{Active, Ask, Outcome};
use tread_test_machine::Machine;

#[tokio::test(flavor = "multi_thread")]
async fn the_bus_may_be_started_anew_between_two_questions() {
    let unit = "[Service]\nExecStart=/bin/sleep infinity\nExecReload=/bin/true\n";
    let machine = Machine::build().unit_at_boot("good.service", unit).boot().unwrap();
    let manager = manager(&machine);
    assert_eq!(manager.facts("good.service").await.unwrap().active, Active::Active);
    machine.run_well(["systemctl", "restart", "dbus.service"]).unwrap();
    assert_eq!(manager.facts("good.service").await.unwrap().active, Active::Active);
    machine.run_well(["systemctl", "daemon-reexec"]).unwrap();
    let outcome = manager.unit_step(Ask::Reload, "good.service", PATIENCE).await.unwrap();
    assert_eq!(outcome, Outcome::Done { did: Ask::Reload, note: None });
}

/// A unit whose restart ends when told so, and notes each start.
const SLOW: &str = "[Service]\n\
    ExecStartPre=/bin/sh -c 'echo started >>/run/notes; until [ -e /run/go ]; do sleep 0.05; done'\n\
    ExecStart=/bin/sleep infinity\n";

async fn a_restart_goes_on_while(disturb: &[&str]) {
    let machine = Machine::build().unit("slow.service", SLOW).boot().unwrap();
    machine.run_well(["touch", "/run/go"]).unwrap();
    machine.run_well(["systemctl", "start", "slow.service"]).unwrap();
    machine.run_well(["rm", "/run/go", "/run/notes"]).unwrap();
    let manager = manager(&machine);
    let restart = manager.unit_step(Ask::Restart, "slow.service", PATIENCE);
    let notes = machine.root().unwrap().join("run/notes");
    let meanwhile = async {
        while !notes.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        tokio::task::block_in_place(|| {
            machine.run_well(disturb).unwrap();
            machine.run_well(["touch", "/run/go"]).unwrap();
        });
    };
    let (outcome, ()) = tokio::join!(restart, meanwhile);
    assert_eq!(outcome.unwrap(), Outcome::Done { did: Ask::Restart, note: None });
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "started\n", "it was restarted once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_waited_for_while_systemd_is_executed_anew() {
    a_restart_goes_on_while(&["systemctl", "daemon-reexec"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_waited_for_while_the_bus_is_started_anew() {
    a_restart_goes_on_while(&["systemctl", "restart", "dbus.service"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_that_is_not_there_is_named() {
    let limits = tread_node::systemd::Limits {
        answer: std::time::Duration::from_millis(300),
        ..Default::default()
    };
    let manager = tread_node::systemd::Manager::new("unix:path=/nowhere/socket", limits);
    let problem = manager.facts("a.service").await.unwrap_err().to_string();
    assert!(problem.starts_with("look-at a.service: "), "{problem}");
    assert!(problem.contains("unix:path=/nowhere/socket"), "{problem}");
}
