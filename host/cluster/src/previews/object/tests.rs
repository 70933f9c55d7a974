use super::*;

fn change(id: usize, verdict: &str) -> Shared<PlanChange> {
    Shared::from(PlanChange {
        id: format!("file:/etc/{id}"),
        edit: "added".to_owned(),
        verdict: verdict.to_owned(),
        actions: Vec::new(),
        policy: None,
        reason: "r".repeat(1000),
        advice: None,
    })
}

fn status(ways: usize, changes: usize) -> DisruptionPlanStatus {
    let way = Transition {
        steps: [Step::Drain, Step::Write, Step::Reboot].iter().map(PlanStep::from).collect(),
        changes: (0..changes).map(|id| change(id, "fallback")).collect(),
        ..Transition::default()
    };
    DisruptionPlanStatus { transitions: vec![way; ways], ..DisruptionPlanStatus::default() }
}

#[test]
fn what_fits_is_not_cut() {
    let status = status(3, 100);
    assert_eq!(cut(status.clone()), status);
}

#[test]
fn long_lists_are_cut_with_a_count_and_steps_never_are() {
    let cut = cut(status(30, 5000));
    assert!(serde_json::to_vec(&cut).unwrap().len() <= LARGEST);
    assert_eq!(cut.transitions.len(), MOST_TRANSITIONS);
    assert_eq!(cut.transitions_left_out, 10);
    for way in &cut.transitions {
        assert_eq!(way.steps.len(), 3);
        assert_eq!(way.changes.len() + usize::try_from(way.changes_left_out).unwrap(), 5000);
        assert!(!way.changes.is_empty());
    }
}

#[test]
fn a_way_with_more_steps_than_an_object_holds_is_left_out_as_a_whole() {
    let restarts = |count: usize| {
        let unit = |n: usize| Step::Restart { unit: format!("{}{n}.service", "a".repeat(200)) };
        (0..count).map(unit).collect::<Vec<_>>()
    };
    let words = |steps: &[Step]| Some(effects::words(steps));
    let mut status = status(3, 10);
    for (way, count) in status.transitions.iter_mut().zip([100, 200, 20_000]) {
        let steps = restarts(count);
        way.steps = steps.iter().map(PlanStep::from).collect();
        way.summary = effects::words(&steps);
        way.operator = words(&steps);
    }
    status.effect = words(&restarts(20_000));
    status.tread = words(&restarts(20_000));
    let cut = cut(status.clone());
    assert!(serde_json::to_vec(&cut).unwrap().len() <= LARGEST);
    let steps: Vec<usize> = cut.transitions.iter().map(|way| way.steps.len()).collect();
    assert_eq!((steps.as_slice(), cut.transitions_left_out), (&[100, 200][..], 1));
    // The worst way comes first: the others go with it, rather than look like all.
    status.transitions.reverse();
    let cut = super::cut(status);
    assert!(serde_json::to_vec(&cut).unwrap().len() <= LARGEST);
    assert_eq!((cut.transitions.len(), cut.transitions_left_out), (0, 3));
    assert!(cut.effect.unwrap().starts_with("restart a"));
}

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
        single_replica: false,
        since: since.to_owned(),
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
