//! How many policies run at the same time.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// So many calls may run; further ones wait.
#[derive(Debug)]
pub(crate) struct Slots {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug)]
struct State {
    free: u32,
    /// How many wait: waking somebody is a system call even if nobody waits.
    waiting: u32,
}

/// A slot that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Slot<'s>(&'s Slots);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.free += 1;
        let waiting = state.waiting > 0;
        drop(state);
        if waiting {
            self.0.freed.notify_one();
        }
    }
}

impl Slots {
    pub(crate) fn new(count: u32) -> Slots {
        let state = State { free: count.max(1), waiting: 0 };
        Slots { state: Mutex::new(state), freed: Condvar::new() }
    }

    /// Takes a slot, or gives up when none was free for so long.
    pub(crate) fn take(&self, patience: Duration) -> Option<Slot<'_>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.free == 0 {
            state.waiting += 1;
            (state, _) = self
                .freed
                .wait_timeout_while(state, patience, |state| state.free == 0)
                .unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.free = state.free.checked_sub(1)?;
        Some(Slot(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_comes_back_when_it_is_dropped() {
        let slots = Slots::new(2);
        let one = slots.take(Duration::ZERO);
        let two = slots.take(Duration::ZERO);
        assert!(one.is_some() && two.is_some());
        assert!(slots.take(Duration::ZERO).is_none());
        drop(one);
        assert!(slots.take(Duration::ZERO).is_some());
    }

    #[test]
    fn whoever_waits_gets_the_slot_that_is_freed() {
        let slots = Slots::new(1);
        let taken = slots.take(Duration::ZERO);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| slots.take(Duration::from_secs(60)).is_some());
            drop(taken);
            assert!(waiting.join().unwrap());
        });
    }
}
