//! A process that is killed at one moment, for the tests of the journal and for those of
//! whole operations.

use super::{Syscall, Witness};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Kills the process before or after one change of the disk: from then on nothing is
/// done any more.
pub(crate) struct Cut {
    at: usize,
    seen: AtomicUsize,
}

impl Cut {
    pub(crate) fn at(at: usize) -> Arc<Cut> {
        Arc::new(Cut { at, seen: AtomicUsize::new(0) })
    }

    pub(crate) fn never() -> Arc<Cut> {
        Cut::at(usize::MAX)
    }

    /// How many moments there were to be killed in.
    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }

    fn step(&self) -> io::Result<()> {
        match self.seen.fetch_add(1, Ordering::SeqCst) >= self.at {
            true => Err(io::Error::other("killed")),
            false => Ok(()),
        }
    }
}

impl Witness for Cut {
    fn before(&self, _: &Syscall<'_>) -> io::Result<()> {
        self.step()
    }

    fn after(&self, _: &Syscall<'_>) -> io::Result<()> {
        self.step()
    }
}
