//! What stands, and orders that come meanwhile.

use crate::bed::{Bed, reload};
use tread_node::operation_unit::UNIT;
use tread_node::orders::Does;
use tread_node::progress::Phase;
use tread_node::terms::Terms;

#[test]
fn a_refused_order_does_not_hide_what_stands() {
    let bed = Bed::with("one", |machine| machine);
    let agent = bed.agent();
    bed.adopt("one");
    bed.hold();
    let stands = bed.apply("one", "two", &reload(), Terms::default());
    bed.logs("reload two");
    agent.kill();
    bed.machine.run_well(["systemctl", "stop", UNIT]).unwrap();
    let root = bed.machine.root().unwrap();
    std::fs::write(root.join("var/other.json"), "{").unwrap();
    let current = "/var/lib/tread/bin/current/tread";
    let words = [current, "node", "apply", "--config", "/var/other.json", "--reboot"];
    assert_eq!(bed.machine.run(words).unwrap().status, Some(1));
    let known = bed.progress().unwrap();
    assert_eq!(known.operation, stands);
    assert!(!known.phase.is_end(), "{known:?}");
    // The next agent goes on with it before anything else.
    bed.let_go();
    let _agent = bed.agent();
    bed.ends(&stands, Phase::Done);
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("two"));
}

#[test]
fn to_go_on_where_nothing_stands_is_no_failure() {
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    let id = bed.order(Does::Resume, Terms::default());
    bed.is_taken_away(&id);
    bed.adopt("one");
}
