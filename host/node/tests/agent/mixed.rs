//! While names change, one by one.

use crate::bed::{Bed, plan_of, with_files};
use inotify::{Inotify, WatchMask};
use rustix::process::{Signal, kill_process};
use tread_model::plan::Step;
use tread_node::change::Adopt;
use tread_node::documents::Documents;
use tread_node::journal::STATE;
use tread_node::operation_unit::UNIT;
use tread_node::orders::Does;
use tread_node::progress::Phase;
use tread_node::terms::Terms;

/// So many that the process can be stopped between two of them.
const FILES: usize = 2000;

fn many(word: &str) -> Documents {
    let file = |index| {
        format!(r#"{{"path": "/etc/many/{index}", "contents": {{"source": "data:,{word}"}}}}"#)
    };
    let files: Vec<String> = (0..FILES).map(file).collect();
    with_files(&files.join(","))
}

/// A kubelet that says what it read when it was started.
const KUBELET: &str = "[Service]\nType=oneshot\nRemainAfterExit=yes\n\
    ExecStart=/bin/sh -c 'cat /etc/many/* | sed \"s/one/1\\\\n/g; s/two/2\\\\n/g\" | sort -u | tr -d \"\\\\n\" >> /var/read; echo >> /var/read'\n";

#[test]
fn a_kubelet_that_is_restarted_while_names_are_mixed_waits_and_a_process_told_to_end_goes_on() {
    let bed = Bed::with("one", |mut machine| {
        for index in 0..FILES {
            machine = machine.file(format!("/etc/many/{index}"), "one");
        }
        machine.unit_at_boot("kubelet.service", KUBELET)
    });
    let _agent = bed.agent();
    let adopt =
        Does::Adopt { config: many("one"), differs: Adopt::Ask, drained: false, give_up: false };
    let id = bed.order(adopt, Terms::default());
    bed.ends(&id, Phase::Done);
    let says = |index: usize, word: &str| {
        bed.text(&format!("/etc/many/{index}")).is_some_and(|text| text == word)
    };
    // Of names that change, and of how far the operation is.
    let mut notices = Inotify::init().unwrap();
    for folder in ["etc/many", STATE.trim_start_matches('/')] {
        let at = bed.machine.root().unwrap().join(folder);
        notices.watches().add(at, WatchMask::MOVED_TO | WatchMask::CREATE).unwrap();
    }
    // Whoever looks may be too late on a busy machine: then with the next order.
    let mut from = "one";
    let (id, to) = loop {
        let to = if from == "one" { "two" } else { "one" };
        let plan = Some(Box::new(plan_of(&many(from), &many(to), &[Step::Write])));
        let order = Does::Apply { config: many(to), plan, accept: Vec::new(), drained: true };
        let id = bed.order(order, Terms::default());
        let pid = bed.outer_pid(&id);
        // Names change in the order of their paths: `/etc/many/0` is first, 99 last.
        while !says(0, to) {
            let progress = bed.progress();
            let goes_on =
                progress.as_ref().is_none_or(|now| now.operation != id || !now.phase.is_end());
            assert!(goes_on || says(0, to), "{progress:?}");
            notices.read_events_blocking(&mut [0; 4096]).unwrap();
        }
        if kill_process(pid, Signal::STOP).is_ok() && says(99, from) {
            break (id, to);
        }
        // Where there is such a process no longer, the operation is over.
        let _ = kill_process(pid, Signal::CONT);
        bed.ends(&id, Phase::Done);
        from = to;
    };
    let restart = ["systemctl", "restart", "--no-block", "kubelet.service"];
    bed.machine.run_well(restart).unwrap();
    let settles = || bed.state("tread-settle.service") == "activating";
    bed.machine.wait_for("tread-settle to wait", settles).unwrap();
    bed.signal(UNIT, "TERM");
    bed.signal(UNIT, "CONT");
    bed.ends(&id, Phase::Done);
    let read = || bed.text("/var/read").unwrap_or_default();
    // What it read comes in two pieces: the line's end is the second one.
    bed.machine.wait_for("the kubelet", || read().matches('\n').count() == 2).unwrap();
    let whole = if to == "two" { "1\n2\n" } else { "1\n1\n" };
    assert_eq!(read(), whole, "it read one whole config each time");
    assert!((0..FILES).all(|index| says(index, to)));
}
