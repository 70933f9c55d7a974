//! A thread that raises the engine's epoch while policies run, so that calls look at
//! their clocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use wasmtime::EngineWeak;

/// How often a call can look at its clocks.
const TICK: Duration = Duration::from_millis(10);

/// After so many ticks without a call the thread ends.
const IDLE_TICKS: u32 = 100;

#[derive(Debug, Default)]
pub(crate) struct Ticker(Arc<State>);

#[derive(Debug, Default)]
struct State {
    calls: AtomicUsize,
    ticking: AtomicBool,
}

/// A call that runs; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticking<'t>(&'t State);

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Ticker {
    /// Begins a call. From then on a thread ticks. It goes on for a while after the
    /// call, so that calls in quick succession do not start a thread each.
    pub(crate) fn begin(&self, engine: &wasmtime::Engine) -> std::io::Result<Ticking<'_>> {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        let ticking = Ticking(&self.0);
        if !self.0.ticking.swap(true, Ordering::SeqCst) {
            let state = Arc::clone(&self.0);
            let engine = engine.weak();
            let spawned = std::thread::Builder::new()
                .name("tread-clock".to_owned())
                .stack_size(64 << 10)
                .spawn(move || tick(&state, &engine));
            if let Err(error) = spawned {
                self.0.ticking.store(false, Ordering::SeqCst);
                return Err(error);
            }
        }
        Ok(ticking)
    }
}

/// The number of ticks after which a time has passed for sure.
pub(crate) fn ticks(deadline: Duration) -> u64 {
    let ticks = deadline.as_nanos().div_ceil(TICK.as_nanos()).saturating_add(1);
    u64::try_from(ticks).unwrap_or(u64::MAX >> 1).min(u64::MAX >> 1)
}

fn tick(state: &State, engine: &EngineWeak) {
    let mut idle = 0;
    loop {
        std::thread::sleep(TICK);
        let Some(engine) = engine.upgrade() else { return };
        engine.increment_epoch();
        idle = if state.calls.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
        if idle < IDLE_TICKS {
            continue;
        }
        // This thread is about to end. If a call has begun meanwhile and counts on it,
        // it goes on, unless that call has started another thread.
        state.ticking.store(false, Ordering::SeqCst);
        let needed = state.calls.load(Ordering::SeqCst) > 0;
        if !needed || state.ticking.swap(true, Ordering::SeqCst) {
            return;
        }
        idle = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_never_cut_short() {
        for (millis, expected) in [(0, 1), (1, 2), (10, 2), (11, 3), (1000, 101)] {
            assert_eq!(ticks(Duration::from_millis(millis)), expected, "{millis}");
        }
        assert!(ticks(Duration::MAX) < u64::MAX);
    }
}
