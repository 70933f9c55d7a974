//! What somebody removes or replaces below `/var/lib/tread` while an agent serves.

use crate::bed::{Bed, reload};
use tread_node::progress::Phase;
use tread_node::terms::{Asked, Terms};

#[test]
fn an_agent_whose_folders_are_removed_or_replaced_goes_on_serving() {
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    bed.adopt("one");
    let pid = bed.pid_of_agent().unwrap();
    let sh = |text: &str| drop(bed.machine.run_well(["sh", "-c", text]).unwrap());
    let (mut there, mut next) = ("one", "two");
    let mut applied = |what: &str| {
        let terms = Terms { permits: Asked::Agent, ..Terms::default() };
        let id = bed.apply(there, next, &reload(), terms);
        bed.ends(&id, Phase::Done);
        assert_eq!(bed.text("/etc/a.conf").as_deref(), Some(next), "{what}");
        assert_eq!(bed.pid_of_agent().as_ref(), Some(&pid), "{what}");
        std::mem::swap(&mut there, &mut next);
    };
    for (what, done) in [
        ("its orders and permits are gone", "rm -rf /var/lib/tread/orders /var/lib/tread/permits"),
        (
            "a folder stands in the place of a file",
            "cd /var/lib/tread/node && rm progress && mkdir -p progress/x",
        ),
        (
            "a folder stands in the place of the program",
            "cd /var/lib/tread/bin/current/ && rm tread && mkdir -p tread/x",
        ),
        (
            "a folder stands in the place of the link to it",
            "cd /var/lib/tread/bin && rm current && mkdir -p current/x",
        ),
        (
            "somebody was killed who handed an order over",
            "echo secret > /var/lib/tread/node/orders/stale",
        ),
        ("the orders that were handed over are gone", "rm -rf /var/lib/tread/node/orders"),
    ] {
        sh(done);
        applied(what);
    }
    let none =
        || bed.machine.run_well(["ls", "/var/lib/tread/node/orders"]).is_ok_and(|it| it.is_empty());
    bed.machine.wait_for("no order is kept that has ended", none).unwrap();
    // What it cannot put right it says again and again, until somebody else did. The agent makes
    // the folder anew at once: whoever wants a file there has to be quicker once.
    sh("until rm -r /var/lib/tread/orders && (set -C; : > /var/lib/tread/orders); do :; done");
    sh("rm /var/lib/tread/orders");
    applied("a file stood in the place of its orders");
}
