//! A step in the middle of which whoever carries it out dies again and again.

use crate::node::{Bed, config, unit_with};
use crate::reload;
use std::io;
use std::sync::Arc;
use tread_node::operation::Ended;
use tread_node::progress::StepState;
use tread_node::tree::{Syscall, Witness};
use tread_test_machine::End;

/// The process is killed once it noted that a step begins.
struct KilledOnceItBegins;

impl Witness for KilledOnceItBegins {
    fn before(&self, _: &Syscall<'_>) -> io::Result<()> {
        Ok(())
    }

    fn after(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        match syscall {
            Syscall::Append { bytes, .. } if bytes.starts_with(b"{\"is\":\"begun\"") => {
                Err(io::Error::other("killed"))
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn a_step_in_which_the_process_dies_five_times_has_failed_and_costs_one_boot() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let killed = || Arc::new(KilledOnceItBegins);
    bed.carry_out_watched(&config("two"), &reload(), killed()).unwrap_err();
    for _ in 1..5 {
        bed.go_on_watched(killed()).unwrap_err();
    }
    assert_eq!(bed.machine.boots().len(), 1);
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    let step = bed.progress_at_rest().steps.pop().unwrap();
    assert_eq!(step.state, StepState::Failed);
    assert!(step.message.contains("was ended 5 times in the middle of it"), "{}", step.message);
    bed.boot();
    assert_eq!(bed.go_on().unwrap(), Ended::Done);
    assert_eq!(bed.log(), ["start one", "start two"], "nobody told the unit");
    assert_eq!(bed.machine.boots().len(), 2);
}

#[test]
fn a_node_that_dies_while_it_goes_back_by_its_units_boots_instead() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let no_more = || Arc::new(KilledOnceItBegins);
    bed.carry_out_watched(&config("two"), &reload(), no_more()).unwrap_err();
    bed.decide_to_go_back();
    for _ in 0..5 {
        bed.go_on_watched(no_more()).unwrap_err();
    }
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    bed.boot();
    assert!(matches!(bed.go_on().unwrap(), Ended::WentBack { .. }));
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    assert_eq!(bed.machine.boots().len(), 2);
}
