//! How often, and how long, the disk was waited for.

use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tread_node::tree::{Syscall, Witness};

#[derive(Default)]
struct Seen {
    began: Option<Instant>,
    count: usize,
    took: Duration,
}

/// Sees each sync, and how long it took.
#[derive(Default)]
pub(crate) struct Syncs(Mutex<Seen>);

impl Syncs {
    /// How many there were, and how long they took together.
    pub(crate) fn so_far(&self) -> (usize, Duration) {
        let seen = self.0.lock().unwrap();
        (seen.count, seen.took)
    }
}

fn is_sync(syscall: &Syscall<'_>) -> bool {
    matches!(syscall, Syscall::Sync { .. } | Syscall::SyncFolder { .. })
}

impl Witness for Syncs {
    fn before(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        if is_sync(syscall) {
            self.0.lock().unwrap().began = Some(Instant::now());
        }
        Ok(())
    }

    fn after(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        if is_sync(syscall) {
            let mut seen = self.0.lock().unwrap();
            seen.count += 1;
            let took = seen.began.take().map(|began| began.elapsed()).unwrap_or_default();
            seen.took += took;
        }
        Ok(())
    }
}
