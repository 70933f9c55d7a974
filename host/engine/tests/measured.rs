//! What a call takes is known exactly: fuel, and memory at its peak.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use support::*;
use tread_engine::limits::Limits;
use tread_model::verdict::FailureKind;

const PAGE: usize = 64 << 10;

#[test]
fn memory_is_counted_from_the_first_page_to_the_last_that_a_call_grows() {
    let sandbox = sandbox(Limits::default());
    let constants = sandbox.load(&Guest::default().component(), None).unwrap();
    let pages = Guest::default().pages as usize;
    assert_eq!(ask(&sandbox, &constants).unwrap().spent.unwrap().memory, pages * PAGE);
    let growing = classifying(
        "(drop (memory.grow (i32.const 7))) (i32.store (i32.const 60008) (i32.const 0))
         (i32.const 60004)",
    );
    let growing_pages = growing.pages as usize;
    let growing = sandbox.load(&growing.component(), None).unwrap();
    for _ in 0..2 {
        let reply = ask(&sandbox, &growing).unwrap();
        assert_eq!(reply.spent.unwrap().memory, (growing_pages + 7) * PAGE);
    }
}

#[test]
fn an_empty_call_does_not_classify_and_always_uses_the_same() {
    let sandbox = sandbox(Limits::default());
    let module = sandbox.load(&classifying("(unreachable)").component(), None).unwrap();
    let spent = sandbox.empty_call(&module).unwrap();
    assert!(spent.fuel > 0 && spent.memory > 0, "{spent:?}");
    assert_eq!(sandbox.empty_call(&module), Ok(spent));
    assert!(ask(&sandbox, &module).is_err());
}

#[test]
fn an_instance_can_be_made_without_a_question() {
    let sandbox = sandbox(Limits::default());
    let module = sandbox.load(&classifying("(unreachable)").component(), None).unwrap();
    // More often than there is room at one time: each gives its room back.
    for _ in 0..20 {
        assert_eq!(sandbox.instantiate(&module), Ok(()));
    }
    let failure = ask(&sandbox, &module).unwrap_err().failure;
    assert_eq!(failure.kind, FailureKind::Trap);
}
