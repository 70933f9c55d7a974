//! While names change, one by one.

use crate::bed::{Bed, plan_of};
use tread_model::plan::Step;
use tread_node::change::Adopt;
use tread_node::documents::{Document, Documents};
use tread_node::operation_unit::UNIT;
use tread_node::orders::Does;
use tread_node::progress::Phase;
use tread_node::terms::Terms;

/// So many that the process can be stopped between two of them.
const FILES: usize = 600;

fn many(word: &str) -> Documents {
    let file = |index| {
        format!(r#"{{"path": "/etc/many/{index}", "contents": {{"source": "data:,{word}"}}}}"#)
    };
    let files: Vec<String> = (0..FILES).map(file).collect();
    let text = format!(
        r#"{{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {{"name": "rendered-worker-1",
                          "labels": {{"machineconfiguration.openshift.io/role": "worker"}}}},
            "spec": {{"config": {{"ignition": {{"version": "3.4.0"}},
                                  "storage": {{"files": [{}]}}}}}}}}"#,
        files.join(",")
    );
    Documents(vec![Document { name: "config.yaml".to_owned(), text }])
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
    let plan = Some(Box::new(plan_of(&many("one"), &many("two"), &[Step::Write])));
    let order = Does::Apply { config: many("two"), plan, accept: Vec::new(), drained: true };
    let id = bed.order(order, Terms::default());
    bed.machine.wait_for("the operation", || bed.runs(UNIT)).unwrap();
    let says = |index: usize, word: &str| {
        bed.text(&format!("/etc/many/{index}")).is_some_and(|text| text == word)
    };
    // Names change in the order of their paths: `/etc/many/0` is first, 99 last.
    while !says(0, "two") {}
    bed.signal(UNIT, "STOP");
    assert!(says(99, "one"), "it was stopped too late to see anything");
    let restart = ["systemctl", "restart", "--no-block", "kubelet.service"];
    bed.machine.run_well(restart).unwrap();
    let settles = || bed.state("tread-settle.service") == "activating";
    bed.machine.wait_for("tread-settle to wait", settles).unwrap();
    bed.signal(UNIT, "TERM");
    bed.signal(UNIT, "CONT");
    bed.ends(&id, Phase::Done);
    let read = || bed.text("/var/read").unwrap_or_default();
    bed.machine.wait_for("the kubelet", || read().lines().count() == 2).unwrap();
    assert_eq!(read(), "1\n2\n", "it read one whole config each time");
    assert!((0..FILES).all(|index| says(index, "two")));
}
