//! A disk that is full when an operation ends.

use crate::node::{Bed, config, unit_with};
use crate::reload;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tread_node::operation::Ended;
use tread_node::progress::Phase;
use tread_node::tree::{Syscall, Witness};

/// Once all is committed there is room for no new file and no last note, until what was staged
/// is gone.
#[derive(Default)]
struct FullAtTheEnd(AtomicBool);

fn says(bytes: &[u8], word: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(word)
}

impl Witness for FullAtTheEnd {
    fn before(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        let takes_room = match syscall {
            Syscall::Create { .. } => true,
            Syscall::Append { bytes, .. } => says(bytes, "finished"),
            _ => false,
        };
        match takes_room && self.0.load(Ordering::SeqCst) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn after(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        match syscall {
            Syscall::Append { bytes, .. } if says(bytes, "committed") => {
                self.0.store(true, Ordering::SeqCst);
            }
            Syscall::RemoveFolder { .. } => self.0.store(false, Ordering::SeqCst),
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn an_operation_at_whose_end_the_disk_is_full_is_done_and_says_so() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let full = Arc::new(FullAtTheEnd::default());
    assert_eq!(bed.carry_out_watched(&config("two"), &reload(), full).unwrap(), Ended::Done);
    assert_eq!(bed.log(), ["start one", "reload two"]);
    assert_eq!(bed.progress().phase, Phase::Done);
    assert_eq!(bed.go_on().unwrap(), Ended::Nothing);
    assert_eq!(bed.carry_out(&config("three"), &reload()).unwrap(), Ended::Done);
}
