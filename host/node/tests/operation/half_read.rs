//! The power is cut in the middle of a write: the next boot finds some names old and others new.

use crate::away::KilledAfter;
use crate::node::{Bed, config, unit_with};
use crate::{reload, watched};
use tread_model::plan::Step;
use tread_node::operation::{Ended, OperationError};
use tread_test_machine::{End, Machine};

const BOOT: [Step; 4] = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];

/// Cuts the power once the first name has changed, and boots.
fn cut_short(bed: &Bed, steps: &[Step]) {
    let killed = KilledAfter::of("/etc/a.conf");
    bed.carry_out_watched(&config("two"), steps, killed).unwrap_err();
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("two"));
    bed.machine.cut_power().unwrap();
    bed.boot();
}

fn why(ended: Ended) -> String {
    let Ended::WentBack { because } = ended else { panic!("it did not go back: {ended:?}") };
    because
}

#[test]
fn a_boot_that_found_names_mixed_is_followed_by_one_more_which_waits_for_a_permit() {
    for steps in [&reload()[..], &BOOT] {
        let bed = Bed::with("one", &unit_with("/bin/true"));
        cut_short(&bed, steps);
        let waits = bed.go_on_without_a_permit_to_boot();
        let Err(OperationError::Forbidden(because)) = waits else { panic!("{waits:?}") };
        assert!(because.contains("went down in the middle of the write"), "{because}");
        assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"), "its files are back");
        assert_eq!(bed.machine.boots().len(), 2);
        assert_eq!(bed.until_it_boots_again(), End::Reboot);
        bed.boot();
        let because = why(bed.go_on().unwrap());
        assert!(because.contains("came up with some of the new ones"), "{because}");
        assert_eq!(bed.log(), ["start one", "start two", "start one"]);
        assert_eq!(bed.machine.boots().len(), 3);
        assert_eq!(bed.go_on().unwrap(), Ended::Nothing);
        // What went back is where the next plan begins.
        assert_eq!(bed.carry_out(&config("two"), &reload()).unwrap(), Ended::Done);
    }
}

#[test]
fn what_was_settled_before_the_network_was_read_before_that_too() {
    let bed = Bed::of(Machine::build(), "one", &unit_with("/bin/true"), &config("one"));
    watched::adopted(&bed, &config("one"));
    cut_short(&bed, &reload());
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"), "it is settled");
    // What was said last may be on its way into the journal.
    bed.machine.run_well(["journalctl", "--sync"]).unwrap();
    let of = ["journalctl", "-b", "-o", "cat", "_SYSTEMD_UNIT=tread-settle.service"];
    let said = bed.machine.run_well(of).unwrap();
    assert!(said.contains("its files go back, and the node boots once more"), "{said}");
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    bed.boot();
    why(bed.go_on().unwrap());
    assert_eq!(bed.log(), ["start one", "start one", "start one"]);
}

#[test]
fn what_nobody_has_to_be_told_of_costs_no_boot_where_its_write_was_cut_short() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    cut_short(&bed, &[Step::Write]);
    why(bed.go_on().unwrap());
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    assert_eq!(bed.machine.boots().len(), 2);
}

#[test]
fn a_write_that_was_cut_short_before_any_name_changed_costs_no_boot() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let killed = KilledAfter::of("/var/lib/tread/node/.tread-1/0.old");
    bed.carry_out_watched(&config("two"), &BOOT, killed).unwrap_err();
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    bed.machine.cut_power().unwrap();
    bed.boot();
    why(bed.go_on().unwrap());
    assert_eq!(bed.machine.boots().len(), 2);
}

#[test]
fn a_node_that_went_down_on_its_way_back_by_units_boots_once_more_for_what_read_the_new_files() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    bed.until_staged(&config("two"), &BOOT);
    bed.decide_to_go_back();
    bed.machine.cut_power().unwrap();
    bed.boot();
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    bed.boot();
    let because = why(bed.go_on().unwrap());
    assert!(because.contains("it was cut off; the node went down before"), "{because}");
    assert_eq!(bed.log(), ["start one", "start two", "start one"]);
}
