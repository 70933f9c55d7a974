//! A busy machine makes no answer another one. These tests are alone in their
//! process, because they keep every processor busy.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::*;
use tread_engine::limits::Limits;
use tread_engine::sandbox::{Call, Speaker, Words};
use tread_model::verdict::{Failure, FailureKind, Layer};

const LOOP: &str = "(loop $again (br $again)) (unreachable)";

/// No other test of this program until it is dropped.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |it| it.get() as u32)
}

/// Runs something beside threads that leave it a small share of the processors.
fn beside<T>(threads: u32, act: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = act();
        done.store(true, Ordering::Relaxed);
        result
    })
}

/// How often a machine that has other things to do gets another chance to take
/// longer than the limit, and less than what hangs.
const CHANCES: usize = 4;

/// Tries it, with the patience that everybody has, beside as many threads as it
/// takes for it to be longer under way than it may compute. What `act` returns is
/// whether the wall clock ended it: that is right only after ten times the limit.
fn longer_than_it_may_compute(limit: Duration, mut act: impl FnMut() -> bool) {
    let hangs = limit * Limits::default().patience;
    let mut threads = 2 * cores();
    for _ in 0..CHANCES {
        let begun = Instant::now();
        let was_ended = beside(threads, &mut act);
        let took = begun.elapsed();
        assert!(!was_ended || took >= hangs, "ended by the wall clock after {took:?} of {hangs:?}");
        match was_ended {
            true => threads = (threads / 4).max(2),
            false if took > limit => return,
            false => threads *= 2,
        }
    }
}

/// Whether a failure is the wall clock's.
fn is_of_the_wall_clock(failure: &Failure) -> bool {
    failure.message.contains("little processor time")
}

#[test]
fn a_loop_is_out_of_fuel_however_long_it_waits_for_a_processor() {
    let _alone = alone();
    let fuel = 20_000_000;
    // What this fuel takes here, with room for a machine that is not always as
    // quick.
    let generous = sandbox(Limits { fuel, ..patient() });
    let module = generous.load(&classifying(LOOP).component(), None).unwrap();
    let begun = Instant::now();
    assert_eq!(ask(&generous, &module).unwrap_err().failure.kind, FailureKind::OutOfFuel);
    let deadline = begun.elapsed() * 4;

    let held = Limits { fuel, deadline, ..Limits::default() };
    longer_than_it_may_compute(deadline, || {
        let changes = changes(2, 16);
        let failed = ask_within(&generous, &module, Layer::Template, &changes, &held).unwrap_err();
        if is_of_the_wall_clock(&failed.failure) {
            return true;
        }
        assert_failure(&failed.failure, FailureKind::OutOfFuel, "fuel");
        assert!(failed.reproducible);
        false
    });
}

#[test]
fn a_loop_that_fuel_does_not_stop_ends_by_its_own_processor_time() {
    let _alone = alone();
    let deadline = Duration::from_millis(50);
    let held = Limits { fuel: u64::MAX >> 1, deadline, ..Limits::default() };
    let sandbox = sandbox(patient());
    let module = sandbox.load(&classifying(LOOP).component(), None).unwrap();
    longer_than_it_may_compute(deadline, || {
        let changes = changes(2, 16);
        let failed = ask_within(&sandbox, &module, Layer::Template, &changes, &held);
        let failure = failed.unwrap_err().failure;
        let of_the_wall_clock = is_of_the_wall_clock(&failure);
        if !of_the_wall_clock {
            assert_failure(&failure, FailureKind::Deadline, "of processor time");
        }
        of_the_wall_clock
    });
}

#[test]
fn compiling_is_not_too_slow_however_long_it_waits_for_a_processor() {
    let _alone = alone();
    let component = Guest { fields: long_to_compile(), ..Guest::default() }.component();
    let begun = Instant::now();
    sandbox(Limits::default()).load(&component, None).unwrap();
    let compile_time = begun.elapsed() * cores() * 4;
    // Its calls may take as long as they like.
    let limits = Limits { compile_time, deadline: Duration::from_secs(600), ..Limits::default() };
    longer_than_it_may_compute(compile_time, || {
        let failure = sandbox(limits.clone()).load(&component, None).err();
        let Some(failure) = failure else { return false };
        assert_failure(&failure, FailureKind::CompileTimeout, "little processor time");
        true
    });
}

fn long_to_compile() -> String {
    let add = "(i64.mul (i64.xor (local.get 0) (i64.const 7)) (local.get 0)) (local.set 0)";
    format!("(func (param i64) {})", add.repeat(300)).repeat(4)
}

#[test]
fn what_does_not_end_by_the_wall_clock_is_ended() {
    let _alone = alone();
    let sandbox = sandbox(Limits { fuel: u64::MAX >> 1, ..Limits::default() });
    let module = sandbox.load(&classifying(LOOP).component(), None).unwrap();
    let (changes, claims) = (changes(1, 0), described().claims);
    let changes: Vec<_> = changes.iter().collect();
    let call = Call {
        settings: "{}",
        changes: &changes,
        unchanged: &[],
        claims: &claims,
        layer: Layer::Template,
        speaker: Speaker::Policy,
        words: &Words::default(),
    };
    let impatient = Limits { patience: 0, ..sandbox.limits().clone() };
    let failed = sandbox.classify_within(&module, &call, &impatient).unwrap_err();
    assert_failure(&failed.failure, FailureKind::Deadline, "did not end within");
    assert!(!failed.reproducible);
}
