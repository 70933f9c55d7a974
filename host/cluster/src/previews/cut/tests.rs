use super::*;
use crate::previews::effects;
use tread_kube::api::disruption_plan::{PlanChange, PlanStep, Transition};
use tread_kube::api::shared::Shared;
use tread_model::plan::Step;

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
        steps: [Step::Drain, Step::Write, Step::Reboot]
            .iter()
            .map(|it| PlanStep::from(it).into())
            .collect(),
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
        way.steps = steps.iter().map(|it| PlanStep::from(it).into()).collect();
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
fn however_long_the_warnings_are_no_way_is_left_out_for_them() {
    let mut status = status(MOST_TRANSITIONS, 2);
    for way in &mut status.transitions {
        // Each of these is written as six characters.
        way.warnings = vec!["\u{1}".repeat(1024).into(); 22];
        way.warnings_left_out = 5;
    }
    let cut = cut(status);
    let size = serde_json::to_vec(&cut).unwrap().len();
    for way in &cut.transitions {
        let kept = i64::try_from(way.warnings.len()).unwrap();
        assert_eq!(kept + way.warnings_left_out, 27);
    }
    assert!(size <= LARGEST, "{size}");
    assert_eq!((cut.transitions.len(), cut.transitions_left_out), (MOST_TRANSITIONS, 0));
}
