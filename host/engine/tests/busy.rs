//! A busy machine makes no answer another one. These tests are alone in their
//! process, because they keep every processor busy.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::*;
use tread_engine::limits::Limits;
use tread_engine::sandbox::{Call, Speaker, Words};
use tread_model::verdict::{FailureKind, Layer};

const LOOP: &str = "(loop $again (br $again)) (unreachable)";

/// Runs something beside threads that leave it a small share of the processors.
fn beside<T>(threads: usize, act: impl FnOnce() -> T) -> T {
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

/// Tries it beside more and more threads, until it takes longer by the wall
/// clock than it may compute.
fn until_it_takes_longer_than(deadline: Duration, mut act: impl FnMut()) {
    let mut threads = 8;
    loop {
        let begun = Instant::now();
        beside(threads, &mut act);
        if begun.elapsed() > deadline {
            return;
        }
        assert!(threads < 4096, "{threads} threads do not slow it down");
        threads *= 2;
    }
}

#[test]
fn a_loop_is_out_of_fuel_however_long_it_waits_for_a_processor() {
    let fuel = 20_000_000;
    // What this fuel takes here, with room for a machine that is not always as
    // quick.
    let generous = sandbox(Limits { fuel, ..Limits::default() });
    let module = generous.load(&classifying(LOOP).component(), None).unwrap();
    let begun = Instant::now();
    assert_eq!(ask(&generous, &module).unwrap_err().failure.kind, FailureKind::OutOfFuel);
    let deadline = begun.elapsed() * 4;

    let held = sandbox(Limits { fuel, deadline, patience: 10_000, ..Limits::default() });
    let module = held.load(&classifying(LOOP).component(), None).unwrap();
    until_it_takes_longer_than(deadline, || {
        let failed = ask(&held, &module).unwrap_err();
        assert_failure(&failed.failure, FailureKind::OutOfFuel, "fuel");
        assert!(failed.reproducible);
    });
}

#[test]
fn compiling_is_not_too_slow_however_long_it_waits_for_a_processor() {
    let component = Guest { fields: long_to_compile(), ..Guest::default() }.component();
    let begun = Instant::now();
    sandbox(Limits::default()).load(&component, None).unwrap();
    let threads = std::thread::available_parallelism().map_or(1, |it| it.get() as u32);
    let compile_time = begun.elapsed() * threads * 4;
    let limits = Limits { compile_time, patience: 10_000, ..Limits::default() };
    until_it_takes_longer_than(compile_time, || {
        sandbox(limits.clone()).load(&component, None).unwrap();
    });
}

fn long_to_compile() -> String {
    let add = "(i64.mul (i64.xor (local.get 0) (i64.const 7)) (local.get 0)) (local.set 0)";
    format!("(func (param i64) {})", add.repeat(300)).repeat(4)
}

#[test]
fn what_does_not_end_by_the_wall_clock_is_ended() {
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
