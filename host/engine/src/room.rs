//! What the compiled code of policies takes of the host's memory.

use crate::failure::no_room;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tread_model::verdict::Failure;

/// So many bytes, for all policies together.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    most: usize,
    taken: Arc<AtomicUsize>,
}

/// A part of it, which is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl Room {
    pub(crate) fn new(most: usize) -> Room {
        Room { most, taken: Arc::default() }
    }

    pub(crate) fn take(&self, bytes: usize) -> Result<Taken, Failure> {
        let fits = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.most);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(Taken { bytes, of: Arc::clone(&self.taken) }),
            Err(taken) => Err(no_room(format!(
                "compiled it takes {} KiB, and of the {} KiB that all policies may take together \
                 {} are left: remove another policy, or make this one smaller",
                bytes.div_ceil(1024),
                self.most >> 10,
                self.most.saturating_sub(taken) >> 10
            ))),
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_there_for_nobody_else_until_it_is_given_back() {
        let room = Room::new(10 << 10);
        let first = room.clone().take(6 << 10).unwrap();
        let failure = room.take(5 << 10).unwrap_err();
        let expected = "5 KiB, and of the 10 KiB that all policies may take together 4 are left";
        assert!(failure.message.contains(expected), "{failure}");
        let second = room.take(4 << 10).unwrap();
        assert!(room.take(1).is_err());
        drop(first);
        assert!(room.take(6 << 10).is_ok());
        drop(second);
        assert!(room.take(10 << 10).is_ok());
        assert!(room.take(usize::MAX).is_err());
    }
}
