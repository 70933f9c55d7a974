//! Killed at any moment of an adoption: also on a node on which nobody settles at boot yet.

use crate::crashes::Runs;
use crate::cut::Cut;
use crate::node::{Bed, config, unit_with};
use std::sync::Arc;
use tread_node::applied::Applied;
use tread_node::boot_units;
use tread_node::change::Adopt;
use tread_node::journal::Journal;
use tread_node::tree::{Tree, Unwatched, Witness};

/// Moments of settling at which that is killed too.
const SECOND: [usize; 6] = [0, 6, 12, 20, 30, usize::MAX];

fn tree(bed: &Bed, witness: Arc<dyn Witness>) -> Tree {
    bed.tree(witness)
}

/// Whether the next boot settles what it finds, before a kubelet starts.
fn settles_at_boot(bed: &Bed) -> bool {
    let root = bed.machine.root().unwrap().join("etc/systemd/system");
    let there = |path: &str| root.join(path).symlink_metadata().is_ok();
    there(boot_units::SETTLE)
        && there("sysinit.target.wants/tread-settle.service")
        && there("kubelet.service.requires/tread-settle.service")
}

/// A node that tread never managed, as far as its units go.
fn reset(bed: &Bed) {
    let journal = Journal::open(&tree(bed, Arc::new(Unwatched))).unwrap();
    if journal.standing().unwrap().is_some() {
        journal.take_back("the next run begins", false).unwrap();
        journal.finish().unwrap();
    }
    let root = bed.machine.root().unwrap();
    for target in boot_units::targets() {
        // It may be gone already.
        let _ = std::fs::remove_file(root.join(target.path.trim_start_matches('/')));
    }
    std::fs::write(root.join("etc/a.conf"), "one").unwrap();
}

fn applied(bed: &Bed) -> String {
    let applied = Applied::read(&tree(bed, Arc::new(Unwatched))).unwrap().unwrap();
    applied.documents.0[0].text.clone()
}

#[test]
fn killed_at_any_moment_of_an_adoption_no_boot_finds_half_of_it_without_a_unit_that_settles_it() {
    let runs = Runs::usually(40);
    let machine = tread_test_machine::Machine::build().lifetime(runs.lifetime());
    let bed = Bed::of(machine, "one", &unit_with("/bin/true"), &config("one"));
    for what in [Adopt::Overwrite, Adopt::Keep] {
        let whole = Cut::never();
        reset(&bed);
        bed.adopt_with_units(&config("two"), what, whole.clone());
        let moments = whole.seen();
        assert!(moments > 50, "{moments}");
        let (mut old, mut new, mut own) = (0, 0, 0);
        for (run, at) in Runs::usually(40).spread(moments).enumerate() {
            reset(&bed);
            let before = applied(&bed);
            bed.adopt_with_units(&config("two"), what, Cut::at(at));
            let standing = {
                let journal = Journal::open(&tree(&bed, Arc::new(Unwatched))).unwrap();
                journal.standing().unwrap().map(|standing| standing.record.id)
            };
            if standing.is_some_and(|id| id != "adopt-again") {
                // Nobody has to settle what tread wrote of its own: the order is said again.
                bed.adopt_with_units(&config("two"), what, Arc::new(Unwatched));
                assert_eq!(applied(&bed), config("two").0[0].text, "killed at {at} of {moments}");
                own += 1;
            }
            let said = || format!("{what:?}, killed at {at} of {moments}");
            let second = SECOND[run % SECOND.len()];
            if settles_at_boot(&bed)
                && let Ok(journal) = Journal::open(&tree(&bed, Cut::at(second)))
            {
                let _ = journal.settle();
            }
            if settles_at_boot(&bed) {
                let journal = Journal::open(&tree(&bed, Arc::new(Unwatched))).unwrap();
                journal.settle().unwrap();
                drop(journal);
                let (has, knows) = (bed.text("/etc/a.conf").unwrap(), applied(&bed));
                let is_new = knows == config("two").0[0].text;
                assert!(is_new || knows == before, "{}", said());
                let expected = if is_new && what == Adopt::Overwrite { "two" } else { "one" };
                assert_eq!(has, expected, "{}, then at {second}", said());
                if is_new { new += 1 } else { old += 1 }
            } else {
                // What that boot reads is whole.
                let has = bed.text("/etc/a.conf").unwrap();
                assert_eq!(has, "one", "{}, then at {second}: nobody settles it", said());
                old += 1;
            }
        }
        assert!(old > 5, "{what:?}: {old} old, {new} new");
        assert!(own > 2 || what == Adopt::Keep, "{own}");
    }
    assert_eq!(bed.machine.boots().len(), 1);
}
