use super::*;
use crate::pools::Pool;
use crate::previews::{Part, Side, Way, WayPlan, WayPlanned, Work};
use std::sync::Arc;
use tread_kube::api::disruption_plan::{CauseEvent, Nodes};
use tread_model::change::Edit;
use tread_model::digest::Digest;
use tread_model::operator::{Because, Forecast};
use tread_model::plan::{ChangeOutcome, PlannedChange, SCHEMA, Step};
use tread_model::refuse::LOCK_OUT;
use tread_model::verdict::Action;

fn cause() -> Cause {
    Cause { kind: "MachineConfig".to_owned(), name: "99-a".to_owned(), event: CauseEvent::Changed }
}

/// A preview of a change of /etc/a that nobody answers for, or that needs nothing.
pub(crate) fn preview(pool: &str, nodes: i64, reboots: bool, operator: Option<Effect>) -> Preview {
    let action = reboots.then_some(Step::Reboot);
    let steps = match reboots {
        true => vec![Step::Drain, Step::Write, Step::Reboot, Step::Uncordon],
        false => vec![Step::Write],
    };
    let change = PlannedChange {
        id: "file:/etc/a".to_owned(),
        edit: Edit::Changed,
        outcome: if reboots { ChangeOutcome::Fallback } else { ChangeOutcome::Decided },
        actions: action.into_iter().collect(),
        decided_by: None,
        reason: "because".to_owned(),
        also: Vec::new(),
        advice: None,
        answers: Vec::new(),
        instead_of: None,
        difference: None,
        decided: reboots.then_some(Action::Reboot).into_iter().collect(),
    };
    let plan = Plan {
        schema: SCHEMA,
        outcome: PlanOutcome::Apply,
        effect: if reboots { Effect::Reboot } else { Effect::None },
        summary: String::new(),
        drain: reboots,
        reboot: reboots,
        steps,
        changes: vec![change],
        policies: Vec::new(),
        deciders: Vec::new(),
        warnings: Vec::new(),
        reproducible: true,
        digest: Digest::of(b""),
        from: Digest::of(b""),
        to: Digest::of(b""),
    };
    let operator = operator.map(|effect| Forecast {
        effect,
        summary: if effect == Effect::Reboot { "drain + reboot" } else { "none" }.to_owned(),
        drain: effect == Effect::Reboot,
        reboot: effect == Effect::Reboot,
        actions: Vec::new(),
        because: vec![Because {
            id: "file:/etc/a".to_owned(),
            effect,
            rule: "no entry matches".to_owned(),
        }],
    });
    let way = Way {
        from: Some(Side::default()),
        from_name: "rendered-1".to_owned(),
        nodes: Nodes { count: nodes, ..Nodes::default() },
    };
    let work = Work {
        pool: Arc::new(Pool { name: pool.to_owned(), ..Pool::default() }),
        ways: vec![way.clone()],
        to: Side::default(),
        to_name: String::new(),
        target: None,
        parts: vec![Part { cause: cause(), body: None, mirrors: false }],
        operated: operator.is_some(),
        rollout_paused: false,
        single_replica: false,
        since: String::new(),
        doubt: None,
    };
    let plan = Ok(WayPlan { plan: plan.into(), operator, shadow: None });
    let ways = vec![WayPlanned { way, plan }];
    Preview {
        work,
        ways,
        ids: vec![None],
        calls: Vec::new(),
        secrets: BTreeSet::new(),
        offered_secrets: false,
        earlier: None,
    }
}

#[test]
fn a_line_says_what_happens_to_how_many_nodes_and_who_could_avoid_it() {
    let lines = warnings(&[preview("worker", 3, true, None)], &cause());
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    let begin =
        "tread: pool worker, 3 nodes: drain + reboot, because of file:/etc/a (no policy answers)";
    assert!(line.starts_with(begin), "{line}");
    assert!(line.contains("an admin can say so with a rule"), "{line}");
    let lines = warnings(&[preview("worker", 1, false, None)], &cause());
    assert_eq!(lines, ["tread: pool worker, 1 node: none"]);
}

#[test]
fn beside_the_operator_a_line_says_what_the_operator_does_and_what_would_be_gentler() {
    let lines = warnings(&[preview("worker", 3, false, Some(Effect::Reboot))], &cause());
    assert_eq!(
        lines,
        [
            "tread: pool worker, 3 nodes: drain + reboot (tread: none), because of file:/etc/a (no entry matches)"
        ]
    );
    let lines = warnings(&[preview("worker", 3, true, Some(Effect::None))], &cause());
    assert_eq!(lines, ["tread: pool worker, 3 nodes: none"]);
}

#[test]
fn what_is_left_out_of_the_change_and_who_is_locked_out_is_told_once_and_nothing_else() {
    let noted = |pool: &str| {
        let mut preview = preview(pool, 3, true, None);
        if let Ok(way) = &mut preview.ways[0].plan {
            Arc::make_mut(&mut way.plan).warnings =
                ["99-a, spec.config.x: is left out", "50-b, spec.config.y", "else"]
                    .map(str::to_owned)
                    .into();
            Arc::make_mut(&mut way.plan).warnings.push(format!("{LOCK_OUT}core"));
        }
        preview
    };
    let lines = warnings(&[noted("a"), noted("b")], &cause());
    let expected =
        ["tread: pool a: lock-out: core", "tread: pool a: 99-a, spec.config.x: is left out"];
    assert_eq!(lines[2..], expected);
    // However much there is besides, the gravest is told before the rest is cut.
    let mut much = noted("a");
    much.secrets = BTreeSet::from(["file:/etc/a".to_owned()]);
    if let Ok(way) = &mut much.ways[0].plan {
        let notes = (0..100).map(|n| format!("99-a, field {n}: is left out"));
        Arc::make_mut(&mut way.plan).warnings = notes.chain([format!("{LOCK_OUT}core")]).collect();
    }
    let lines = warnings(&[much], &cause());
    assert_eq!(lines[1], "tread: pool a: lock-out: core");
    assert_eq!(lines.len(), 2 + 1 + MOST_NOTES - 1);
}

#[test]
fn the_five_most_disturbed_pools_are_named_and_the_others_counted() {
    let mut previews: Vec<Preview> =
        (0..7).map(|number| preview(&format!("p{number}"), number, number == 2, None)).collect();
    let lines = warnings(&previews, &cause());
    assert_eq!(lines.len(), 6);
    assert!(lines[0].starts_with("tread: pool p2, "), "{lines:?}");
    assert!(lines[1].starts_with("tread: pool p6, "), "{lines:?}");
    assert_eq!(lines[5], "tread: and 2 more pools with 1 node");
    previews.truncate(5);
    assert_eq!(warnings(&previews, &cause()).len(), 5);
}

#[test]
fn what_is_paused_or_not_known_is_said_and_what_is_no_change_is_not() {
    let mut paused = preview("worker", 3, true, None);
    paused.work.pool = Arc::new(Pool { paused: true, ..Pool::clone(&paused.work.pool) });
    let lines = warnings(&[paused], &cause());
    assert!(lines[0].contains("(paused: not before it is unpaused)"), "{lines:?}");

    let mut waits = preview("worker", 3, true, None);
    waits.work.rollout_paused = true;
    let lines = warnings(&[waits], &cause());
    assert!(lines[0].contains("(its Rollout is paused: not before it is resumed)"), "{lines:?}");

    let mut unknown = preview("worker", 3, true, None);
    let why = "MachineConfig 99-a: spec.config: is no object\nand more";
    unknown.ways[0].plan = Err(why.to_owned().into());
    let lines = warnings(&[unknown], &cause());
    let expected = "tread: pool worker, 3 nodes: count on drain + reboot: MachineConfig 99-a: \
                    spec.config: is no object";
    assert_eq!(lines, [expected]);

    let mut nothing = preview("worker", 3, false, None);
    if let Ok(way) = &mut nothing.ways[0].plan {
        Arc::make_mut(&mut way.plan).outcome = PlanOutcome::Nothing;
        Arc::make_mut(&mut way.plan).changes.clear();
    }
    assert_eq!(warnings(&[nothing], &cause()), [""; 0]);
    let mut other = preview("worker", 3, true, None);
    other.work.parts[0].cause.name = "99-b".to_owned();
    assert_eq!(warnings(&[other], &cause()), [""; 0]);
}
