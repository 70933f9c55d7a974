//! An operation that is degraded, and an order for which it is given up.

use crate::bed::{Agent, Bed, PROGRAM, config};
use std::io::Write as _;
use tread_node::change::Adopt;
use tread_node::operation_unit::UNIT;
use tread_node::orders::Does;
use tread_node::progress::{Phase, Progress};
use tread_node::terms::Terms;

/// A node on which an operation is degraded: its file was changed in the middle of it. Whoever
/// attends it, and what it is called.
fn degraded(bed: &Bed) -> (Agent<'_>, String) {
    let id = bed.stopped_in_its_reload(bed.agent());
    bed.let_go();
    put(bed, "by hand");
    let agent = bed.agent();
    bed.ends(&id, Phase::Degraded);
    (agent, id)
}

fn put(bed: &Bed, text: &str) {
    std::fs::write(bed.machine.root().unwrap().join("etc/a.conf"), text).unwrap();
}

/// To this config by the plan that is always allowed, for which an operation is given up.
fn again(bed: &Bed, named: &str, word: &str) -> String {
    let order = Does::Apply { config: config(word), plan: None, accept: Vec::new(), drained: true };
    bed.order_that_gives_up(Some(named), order, Terms::default())
}

fn stands(bed: &Bed) -> bool {
    bed.machine.root().unwrap().join("var/lib/tread/node/operation").exists()
}

/// What an order was refused for while another one's operation stood.
fn refused(bed: &Bed, id: &str) -> String {
    bed.is_taken_away(id);
    let tree = tread_node::tree::Tree::open(&bed.machine.disk()).unwrap();
    let refused = Progress::read_refused(&tree).unwrap().unwrap();
    assert_eq!(refused.operation, id);
    refused.message
}

#[test]
fn an_operation_that_is_degraded_is_given_up_only_for_an_order_that_names_it() {
    let bed = Bed::with("one", |machine| machine);
    let (agent, failed) = degraded(&bed);
    let id = again(&bed, "order-99", "three");
    assert!(refused(&bed, &id).contains("settled first"), "{}", refused(&bed, &id));
    assert!(stands(&bed));

    // What somebody changed is not overwritten: it is named, and nothing stands any more.
    let id = again(&bed, &failed, "three");
    bed.ends(&id, Phase::Refused);
    let why = bed.progress().unwrap().message;
    assert!(why.contains("/etc/a.conf") && why.contains("was given up before"), "{why}");
    assert!(!stands(&bed));
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("by hand"));
    let status = bed.machine.run_well([PROGRAM, "node", "status"]).unwrap();
    assert!(status.contains("by hand: /etc/a.conf"), "{status}");

    put(&bed, "two");
    let id = again(&bed, &id, "three");
    let _agent = bed.reboots(&id, agent);
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("three"));
    assert_eq!(bed.log().last().map(String::as_str), Some("start three"));
    assert_eq!(bed.machine.boots().len(), 2);
}

#[test]
fn a_node_that_has_the_config_boots_all_the_same_where_an_operation_is_given_up_for_it() {
    let bed = Bed::with("one", |machine| machine);
    let (agent, failed) = degraded(&bed);
    put(&bed, "two");
    let order = Does::Adopt {
        config: config("two"),
        differs: Adopt::Overwrite,
        drained: true,
        give_up: false,
    };
    let id = bed.order_that_gives_up(Some(&failed), order, Terms::default());
    let agent = bed.reboots(&id, agent);

    // By the plan that is always allowed too.
    let id = again(&bed, &failed, "two");
    let _agent = bed.reboots(&id, agent);
    assert_eq!(bed.machine.boots().len(), 3);
}

#[test]
fn an_operation_that_is_degraded_stands_where_an_adoption_does_not_name_it() {
    let bed = Bed::with("one", |machine| machine);
    let (_agent, failed) = degraded(&bed);
    for named in [Some("order-99"), None] {
        let order = Does::Adopt {
            config: config("three"),
            differs: Adopt::Overwrite,
            drained: true,
            give_up: false,
        };
        let id = bed.order_that_gives_up(named, order, Terms::default());
        assert!(refused(&bed, &id).contains("settled first"), "{}", refused(&bed, &id));
        assert!(stands(&bed));
        assert_eq!(bed.progress().unwrap().operation, failed);
        assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("by hand"));
    }
    assert_eq!(bed.machine.boots().len(), 1);
}

#[test]
fn an_agent_hears_orders_while_a_degraded_operation_of_a_later_version_stands() {
    let bed = Bed::with("one", |machine| machine);
    let (agent, failed) = degraded(&bed);
    agent.kill();
    let log = bed.machine.root().unwrap().join("var/lib/tread/node/operation/log");
    let mut log = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    log.write_all(b"{\"is\":\"of-a-later-version\",\"boot\":\"1\"}\n").unwrap();
    let _agent = bed.agent();
    for named in [Some(failed.as_str()), None] {
        let order =
            Does::Apply { config: config("three"), plan: None, accept: Vec::new(), drained: true };
        let id = bed.order_that_gives_up(named, order, Terms::default());
        let why = refused(&bed, &id);
        assert!(why.contains("a newer tread may have written it"), "{named:?}: {why}");
    }
    assert!(stands(&bed));
    let known = bed.progress().unwrap();
    assert_eq!((known.operation, known.phase), (failed, Phase::Degraded));
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("by hand"));
}

#[test]
fn an_operation_that_is_on_its_way_is_given_up_for_no_order() {
    let bed = Bed::with("one", |machine| machine);
    let goes_on = bed.stopped_in_its_reload(bed.agent());
    let id = again(&bed, &goes_on, "three");
    let _agent = bed.agent();
    // It is gone on with first: its unit is told once more.
    bed.let_go();
    bed.reaches(&id, Phase::Booting);
    assert_eq!(bed.log(), ["start one", "reload two", "reload two"]);
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("three"));
}

#[test]
fn killed_or_told_to_end_while_it_gives_up_what_stands_an_adoption_ends_with_what_is_there() {
    const ROUNDS: u64 = 6;
    let bed = Bed::with("one", |machine| machine);
    let mut agent = Some(bed.agent());
    bed.adopt("one");
    for round in 0..ROUNDS {
        // Something stands, and somebody changed its file.
        let (there, next) = (format!("is-{round}"), format!("to-{round}"));
        put(&bed, &there);
        let keep =
            |config, give_up| Does::Adopt { config, differs: Adopt::Keep, drained: false, give_up };
        let id = bed.order(keep(config(&there), false), Terms::default());
        bed.ends(&id, Phase::Done);
        bed.hold();
        let stood = bed.apply(&there, &next, &crate::bed::reload(), Terms::default());
        bed.logs(&format!("reload {next}"));
        agent.take().unwrap().kill();
        bed.machine.run_well(["systemctl", "stop", UNIT]).unwrap();
        bed.let_go();
        put(&bed, "by hand");
        agent = Some(bed.agent());
        bed.ends(&stood, Phase::Degraded);

        let id = bed.order(keep(config(&next), true), Terms::default());
        let begun = || {
            let known = bed.progress().is_some_and(|it| it.operation == id);
            known || bed.runs(UNIT)
        };
        bed.machine.wait_for("the adoption", begun).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(round / 2 * 60));
        let signal = if round % 2 == 0 { "--signal=KILL" } else { "--signal=TERM" };
        let _ = bed.machine.run(["systemctl", "kill", signal, UNIT]);
        bed.ends(&id, Phase::Done);
        if stands(&bed) {
            // Killed once it had said so, before its record was gone: an agent that begins ends that.
            agent.take().unwrap().kill();
            agent = Some(bed.agent());
            bed.machine.wait_for("the record to be gone", || !stands(&bed)).unwrap();
        }
        assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("by hand"), "{round}");
        let check = bed.machine.run([PROGRAM, "node", "check"]).unwrap();
        assert_eq!(check.status, Some(0), "{round}: {check:?}");
    }
    assert_eq!(bed.machine.boots().len(), 1);
}
