use super::*;
use crate::previews::names::LONGEST_NAME;

#[test]
fn a_plan_is_named_after_its_pool_and_cause_and_never_like_an_earlier_one() {
    let pool = crate::pools::Pool { name: "worker".to_owned(), ..Default::default() };
    let work = |since: &str| Work {
        pool: std::sync::Arc::new(pool.clone()),
        ways: Vec::new(),
        to: Default::default(),
        to_name: String::new(),
        target: None,
        parts: Vec::new(),
        operated: true,
        rollout_paused: false,
        single_replica: false,
        since: since.to_owned(),
        doubt: None,
    };
    let cause = |name: &str, event| Cause {
        kind: "MachineConfig".to_owned(),
        name: name.to_owned(),
        event,
    };
    let first = name(&work("rendered-1"), &cause("99-a", CauseEvent::Created));
    assert!(first.starts_with("worker.mc.99-a."), "{first}");
    assert_eq!(first, name(&work("rendered-1"), &cause("99-a", CauseEvent::Created)));
    assert_ne!(first, name(&work("rendered-2"), &cause("99-a", CauseEvent::Created)));
    assert_ne!(first, name(&work("rendered-1"), &cause("99-a", CauseEvent::Deleted)));
    let long = name(&work("x"), &cause(&"a".repeat(253), CauseEvent::Created));
    assert!(long.len() <= 253, "{long}");
    // No API server takes it, but it may stand in a file that a laptop plans.
    let foreign = name(&work("x"), &cause(&"€".repeat(253), CauseEvent::Created));
    assert!(foreign.len() <= 253, "{foreign}");
    let odd = name(
        &work("x"),
        &cause(&format!("{}.b", "a".repeat(LONGEST_NAME - 11)), CauseEvent::Created),
    );
    assert!(!odd.contains(".."), "{odd}");
}
