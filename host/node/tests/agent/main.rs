//! An agent confined as its container is, on a node with a real systemd and real boots.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bed;
mod cases;
mod full;
mod idle;
mod killed;
mod mixed;
#[path = "../support/program.rs"]
mod program;
mod removed;
mod retried;
mod seen;
mod standing;
mod versions;

use bed::{Bed, config, plan, reload};
use tread_model::plan::Step;
use tread_node::operation_unit::UNIT;
use tread_node::orders::Does;
use tread_node::progress::{Phase, StepState};
use tread_node::terms::{Asked, Terms};

#[test]
fn an_order_is_carried_out_on_the_host_by_an_agent_that_sees_nothing_of_it() {
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    bed.adopt("one");
    let id = bed.apply("one", "two", &reload(), Terms::default());
    bed.ends(&id, Phase::Done);
    assert_eq!(bed.log(), ["start one", "reload two"]);
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("two"));
    let steps = bed.progress().unwrap().steps;
    assert!(steps.iter().all(|step| step.state == StepState::Done), "{steps:?}");
    // What it started is on the host: its current program, and the units of the next boot.
    let unit = bed.text("/etc/systemd/system/tread-settle.service").unwrap();
    assert!(unit.contains("ExecStart=/var/lib/tread/bin/current/tread node settle"), "{unit}");
    bed.machine.run_well(["/var/lib/tread/bin/current/tread", "node", "check"]).unwrap();
}

#[test]
fn an_agent_has_no_capability_no_shell_and_no_file_of_the_host() {
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    bed.adopt("one");
    let pid = bed.pid_of_agent().unwrap();
    let status = bed.machine.run_well(["cat", &format!("{pid}/status")]).unwrap();
    for of_it in ["CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"] {
        assert!(status.contains(&format!("{of_it}:\t0000000000000000")), "{of_it}: {status}");
    }
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    let root = format!("{pid}/root");
    let listed = bed.machine.run_well(["ls", "-1", &format!("{root}/.")]).unwrap();
    assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), ["proc", "run", "tread", "var"]);
    let own = format!("{root}/proc");
    let others = bed.machine.run_well(["ls", &own]).unwrap();
    let processes = others.split_whitespace().filter(|name| name.parse::<u32>().is_ok());
    assert_eq!(processes.collect::<Vec<_>>(), ["1"], "it sees no process but itself");
}

#[test]
fn an_agent_ends_when_it_is_told_to() {
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    bed.adopt("one");
    let pid = bed.pid_of_agent().unwrap();
    bed.machine.run_well(["kill", "-TERM", pid.trim_start_matches("/proc/")]).unwrap();
    bed.machine.wait_for("its end", || bed.pid_of_agent().is_none()).unwrap();
}

#[test]
fn the_death_of_the_agent_interrupts_nothing_and_the_next_one_takes_nothing_twice() {
    let bed = Bed::with("one", |machine| machine);
    let id = bed.held_in_its_reload(bed.agent());
    bed.let_go();
    bed.reaches(&id, Phase::Done);
    let _next = bed.agent();
    bed.ends(&id, Phase::Done);
    assert_eq!(bed.log(), ["start one", "reload two"]);
}

#[test]
fn an_agent_that_its_own_plan_kills_with_its_runtime_finds_the_operation_done() {
    let runs = Bed::confined(&["agent"]).join(" ");
    let runtime = format!("[Service]\nExecStart={runs}\nKillMode=control-group\n");
    let bed = Bed::with("one", |machine| {
        machine.unit_at_boot("crio.service", &runtime).file("/var/lib/tread/orders/.keep", "")
    });
    bed.adopt("one");
    let invocation =
        || bed.machine.run_well(["systemctl", "show", "-PInvocationID", "crio"]).unwrap();
    let before = invocation();
    let steps = [Step::Write, Step::Restart { unit: "crio.service".to_owned() }];
    let id = bed.apply("one", "two", &steps, Terms::default());
    bed.ends(&id, Phase::Done);
    assert_ne!(invocation(), before, "its runtime was restarted, and the agent with it");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("two"));
}

#[test]
fn an_operation_whose_process_is_killed_goes_on_by_itself() {
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    bed.adopt("one");
    bed.hold();
    let id = bed.apply("one", "two", &reload(), Terms::default());
    bed.logs("reload two");
    bed.machine.run_well(["systemctl", "kill", "--signal=KILL", UNIT]).unwrap();
    let restarts = ["systemctl", "show", "-PNRestarts", UNIT];
    let again = || bed.machine.run_well(restarts).is_ok_and(|it| it.trim() == "1");
    bed.machine.wait_for("the unit to be started again", again).unwrap();
    bed.let_go();
    bed.ends(&id, Phase::Done);
    let log = bed.log();
    assert!(log.len() <= 3 && log.last().unwrap() == "reload two", "{log:?}");
}

#[test]
fn what_disrupts_waits_for_the_agent_and_goes_on_once_one_is_there() {
    let bed = Bed::adopted("one");
    let terms = Terms { permits: Asked::Agent, ..Terms::default() };
    // An admin hands it over while no agent is there.
    let program = "/var/lib/tread/bin/current/tread";
    bed.machine.run_well(["mkdir", "-p", "/var/lib/tread/node/orders"]).unwrap();
    let plan = Some(Box::new(plan("one", "two", &reload())));
    let order = Does::Apply { config: config("two"), plan, accept: Vec::new(), drained: true };
    let given = tread_node::orders::Given { terms, ..tread_node::orders::Given::new("1", order) };
    let at = bed.machine.root().unwrap().join("var/lib/tread/node/orders/1");
    std::fs::write(at, serde_json::to_vec(&given).unwrap()).unwrap();
    let unit = format!("--unit={UNIT}");
    bed.machine.run_well(["systemd-run", &unit, program, "node", "carry-out", "1"]).unwrap();
    bed.reaches("1", Phase::Waiting);
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"), "nothing is written before");
    let _agent = bed.agent();
    bed.reaches("1", Phase::Done);
    assert_eq!(bed.log(), ["start one", "reload two"]);
}

#[test]
fn a_planned_boot_is_taken_through_and_the_agent_after_it_takes_the_order_away() {
    let bed = Bed::with("one", |machine| machine);
    let agent = bed.agent();
    bed.adopt("one");
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    let id = bed.apply("one", "two", &steps, Terms::default());
    let _agent = bed.reboots(&id, agent);
    assert_eq!(bed.log(), ["start one", "start two"]);
    assert_eq!(bed.machine.boots().len(), 2);
}

#[test]
fn an_order_that_cannot_be_carried_out_is_refused_with_the_reason_and_the_next_one_is_taken() {
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    bed.adopt("one");
    let missing = [Step::Write, Step::Restart { unit: "missing.service".to_owned() }];
    let id = bed.apply_undrained("one", "two", &missing);
    bed.ends(&id, Phase::Refused);
    let message = bed.progress().unwrap().message;
    assert!(message.contains("missing.service"), "{message}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    let id = bed.apply("one", "two", &reload(), Terms::default());
    bed.ends(&id, Phase::Done);
}

#[test]
fn another_order_with_the_id_of_one_that_has_ended_is_refused() {
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    bed.adopt("one");
    let order = |from: &str, to: &str| Does::Apply {
        config: config(to),
        plan: Some(Box::new(plan(from, to, &reload()))),
        accept: Vec::new(),
        drained: true,
    };
    let id = bed.order(order("one", "two"), Terms::default());
    bed.ends(&id, Phase::Done);
    let again = |order: Does, phase: Phase| {
        bed.put_order(&id, None, order, Terms::default());
        bed.is_taken_away(&id);
        assert_eq!(bed.progress().unwrap().phase, phase, "{:?}", bed.progress());
    };
    again(order("one", "two"), Phase::Done);
    again(order("two", "three"), Phase::Refused);
    let why = bed.progress().unwrap().message;
    assert!(why.contains("an order that has ended has the id") && why.contains(&id), "{why}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("two"));
    assert_eq!(bed.log(), ["start one", "reload two"]);
}

#[test]
fn an_admin_who_leaves_the_terminal_does_not_stop_what_was_begun() {
    let bed = Bed::adopted("one");
    bed.put_files("one", "two", &reload());
    bed.hold();
    let mut admin = bed.machine.command(bed::APPLY).unwrap().spawn().unwrap();
    bed.logs("reload two");
    admin.kill().unwrap();
    admin.wait().unwrap();
    bed.let_go();
    let done = || bed.progress().is_some_and(|it| it.phase == Phase::Done);
    bed.machine.wait_for("the operation to be done", done).unwrap();
    assert_eq!(bed.log(), ["start one", "reload two"]);
}
