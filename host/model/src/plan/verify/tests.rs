use super::*;
use crate::change::Edit;
use crate::digest::Sha256;
use crate::plan::PolicyIdentity;
use crate::plan::{Decided, Said, Statement, build};
use crate::refuse::Refusal;
use crate::verdict::{Action, Answer, Failure, FailureKind, Verdict};
use proptest::prelude::*;
use serde_json::{Value, json};

fn digests() -> (Digest, Digest) {
    (Digest::of(b"old"), Digest::of(b"new"))
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let unit = prop_oneof!["[a-c]\\.service", Just(CA_TRUST_UNIT.to_owned())];
    let action = prop_oneof![
        unit.clone().prop_map(Action::Reload),
        unit.prop_map(Action::Restart),
        Just(Action::DaemonReload),
        Just(Action::Drain),
        Just(Action::Reboot),
    ];
    proptest::collection::vec(action, 0..4)
}

fn said() -> impl Strategy<Value = Said> {
    let verdict = |answer| Said::Verdict(Verdict { answer, reason: "Because.".to_owned() });
    prop_oneof![
        4 => actions().prop_map(move |actions| verdict(Answer::Act(actions))),
        2 => Just(verdict(Answer::Abstain)),
        1 => Just(verdict(Answer::Refuse)),
        1 => Just(Said::Failed(Failure {
            kind: FailureKind::Trap,
            message: "It panicked.".to_owned(),
        })),
    ]
}

fn policies() -> Vec<PolicyIdentity> {
    let policy = |name: &str, layer| PolicyIdentity {
        policy: name.to_owned(),
        layer,
        version: "1.0.0".to_owned(),
        digest: Sha256::of(name.as_bytes()),
        settings_digest: Sha256::of(b"{}"),
    };
    vec![
        policy("admin", Layer::Admin),
        policy("template", Layer::Template),
        policy("builtin", Layer::Builtin),
    ]
}

/// For each of some changes, what each policy says of it, if anything.
fn answers() -> impl Strategy<Value = Vec<(&'static str, Vec<Option<Said>>)>> {
    let id = prop_oneof![
        Just("file:/etc/a"),
        Just("unit:a.service"),
        Just("kernel-arguments"),
        Just("os-image"),
        Just("ssh-keys:core"),
    ];
    proptest::collection::btree_map(
        id,
        proptest::collection::vec(proptest::option::of(said()), 3),
        0..4,
    )
    .prop_map(|answers| answers.into_iter().collect())
}

fn planned(answers: Vec<(&str, Vec<Option<Said>>)>, refused: bool) -> Plan {
    let policies = policies();
    let decided = answers.into_iter().map(|(id, said)| Decided {
        id: id.to_owned(),
        edit: Edit::Changed,
        statements: said
            .into_iter()
            .zip(&policies)
            .filter_map(|(said, policy)| {
                said.map(|said| Statement { policy, may_relax: false, said })
            })
            .collect(),
        settled: None,
    });
    let refusal = Refusal {
        id: "fips".to_owned(),
        edit: Edit::Changed,
        field: "spec.fips".to_owned(),
        reason: "No running node can.".to_owned(),
    };
    let refusals = if refused { vec![refusal] } else { Vec::new() };
    build(digests(), decided.collect(), &refusals, Vec::new(), true)
}

/// Every place in a value where something else could stand, as JSON pointers.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                places(value, &format!("{at}/{name}"), all);
            }
        }
        Value::Array(items) => {
            all.push(at.to_owned());
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{index}"), all);
            }
        }
        _ => all.push(at.to_owned()),
    }
}

/// What could stand in place of a value.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => {
            let mut more = items.clone();
            more.push(items.first().cloned().unwrap_or(json!({"do": "write"})));
            let less = items.iter().skip(1).cloned().collect();
            let reversed = items.iter().rev().cloned().collect();
            vec![Value::Array(more), Value::Array(less), Value::Array(reversed)]
        }
        Value::Bool(it) => vec![Value::Bool(!it)],
        Value::String(text) => {
            let mut all: Vec<Value> = ["drain", "write", "reload", "restart", "reboot", "uncordon"]
                .into_iter()
                .chain(["a.service", "nothing", "apply", "refuse", "none", "admin", "builtin"])
                .map(Value::from)
                .collect();
            all.push(Value::from(format!("{text}x")));
            all.push(Value::from(text.replace(':', ":0")));
            all.push(Value::from(Digest::of(text.as_bytes()).to_string()));
            all.push(Value::from(Sha256::of(text.as_bytes()).to_string()));
            all
        }
        _ => vec![json!("x")],
    }
}

proptest! {
    #[test]
    fn every_plan_is_verified_and_none_with_a_field_changed(
        answers in answers(),
        refused in any::<bool>(),
    ) {
        let plan = planned(answers, refused);
        let whole = serde_json::to_value(&plan).unwrap();
        let read = VerifiablePlan::read(whole.to_string().as_bytes()).unwrap();
        prop_assert_eq!(&read, &VerifiablePlan::from(&plan));
        prop_assert_eq!(read.computed_digest(), plan.digest);
        prop_assert_eq!(read.effect(), plan.effect);
        let alone = serde_json::to_vec(&read).unwrap();
        prop_assert_eq!(VerifiablePlan::read(&alone).unwrap(), read);

        let mut all = Vec::new();
        let covered =
            ["schema", "outcome", "effect", "drain", "reboot", "steps", "deciders", "from", "to"];
        for field in covered.into_iter().chain(["digest"]) {
            places(&whole[field], &format!("/{field}"), &mut all);
        }
        for place in all {
            let there = whole.pointer(&place).unwrap();
            for other in others(there).into_iter().filter(|other| other != there) {
                let mut changed = whole.clone();
                *changed.pointer_mut(&place).unwrap() = other.clone();
                let read = VerifiablePlan::read(changed.to_string().as_bytes());
                prop_assert!(read.is_err(), "{} = {} passes", place, other);
            }
        }
    }

    #[test]
    fn every_plan_that_was_made_may_be_carried_out_between_its_configs(answers in answers()) {
        let plan = planned(answers, false);
        let ids: Vec<String> = plan.changes.iter().map(|change| change.id.clone()).collect();
        let checked =
            VerifiablePlan::from(&plan).check(digests(), ids.iter().map(String::as_str));
        match plan.outcome {
            PlanOutcome::Refuse => prop_assert_eq!(checked, Err(PlanFault::Refused)),
            PlanOutcome::Nothing | PlanOutcome::Apply => prop_assert_eq!(checked, Ok(())),
        }
    }
}

/// A plan of these steps that an admin decided, or nobody.
fn made(steps: &[Step], by_admin: bool) -> VerifiablePlan {
    let (from, to) = digests();
    let deciders = if by_admin { vec![Decider::from(&policies()[0])] } else { Vec::new() };
    let outcome = PlanOutcome::Apply;
    let digest = plan_digest(outcome, &from, &to, &deciders, steps);
    VerifiablePlan { outcome, from, to, deciders, steps: steps.to_vec(), digest }
}

fn restart(unit: &str) -> Step {
    Step::Restart { unit: unit.to_owned() }
}

#[test]
fn the_plan_that_is_always_allowed_drains_and_boots_and_suits_every_change() {
    let (from, to) = digests();
    let plan = VerifiablePlan::always_allowed(from, to);
    let steps: Vec<String> = plan.steps.iter().map(Step::to_string).collect();
    assert_eq!(steps, ["drain", "write", "reboot", "uncordon"]);
    assert_eq!(plan.deciders, []);
    let changes = ["kernel-arguments", "os-image", "unit:a.service", "file:/etc/a"];
    assert_eq!(plan.check((from, to), changes), Ok(()));
}

#[test]
fn steps_that_no_plan_has_are_refused() {
    use Step::{Drain, Reboot, Uncordon, Write};
    let cases: &[(&[Step], bool, &str)] = &[
        (&[], false, "nothing is written"),
        (&[Step::DaemonReload], false, "nothing is written"),
        (&[Write, Write], false, "in their order"),
        (&[Step::DaemonReload, Write], false, "in their order"),
        (&[Write, restart("b.service"), restart("a.service")], false, "in their order"),
        (&[Write, restart("a.service"), restart("a.service")], false, "in their order"),
        (&[Drain, Write], false, "belong together"),
        (&[Write, Uncordon], false, "belong together"),
        (&[Write, Reboot], false, "only an admin"),
        (&[Drain, Write, restart("a.service"), Reboot, Uncordon], false, "absorbs"),
        (&[Write, restart("a b")], false, "is no complete unit name"),
        (&[Write, restart("a.service ")], true, "is no complete unit name"),
        (&[Write, restart("app@.service")], true, "is a template"),
        (&[Write, restart("-x.service")], true, "begins with -"),
        (&[Write, restart("reboot.target")], true, "ends or isolates the system"),
        (&[Write, restart("systemd-poweroff.service")], true, "ends or isolates the system"),
        (&[Write, Step::Reload { unit: "rescue.target".to_owned() }], true, "ends or isolates"),
        (&[Write, restart("multi-user.target")], false, "only an admin can have"),
        (&[Write, restart("dbus.service")], false, "only an admin can have"),
        (&[Write, restart("tread-operation.service")], true, "is tread's own"),
        (&[Write, restart(CA_TRUST_UNIT)], false, "is `update-ca-trust`"),
    ];
    for (steps, by_admin, expected) in cases {
        let fault = made(steps, *by_admin).verify().unwrap_err().to_string();
        assert!(fault.contains(expected), "{steps:?}: {fault}");
    }
    assert_eq!(made(&[Write, Reboot], true).verify(), Ok(()));
    assert_eq!(made(&[Write, restart("dbus.service")], true).verify(), Ok(()));
}

#[test]
fn a_plan_for_other_configs_or_too_gentle_for_a_change_is_not_carried_out() {
    let (from, to) = digests();
    let soft = made(&[Step::Write], false);
    let fault = soft.check((to, to), []).unwrap_err();
    assert_eq!(fault, PlanFault::From { planned: from, there: to });
    let fault = soft.check((from, from), []).unwrap_err();
    assert_eq!(fault, PlanFault::To { planned: to, given: from });
    for (change, needed) in [
        ("kernel-arguments", "reboot"),
        ("kernel-type", "reboot"),
        ("os-image", "reboot"),
        ("extensions", "reboot"),
        ("unit:a.service", "daemon-reload"),
        ("file:/etc/systemd/system/a.service.d/10.conf", "daemon-reload"),
    ] {
        let fault = soft.check((from, to), [change]).unwrap_err();
        assert_eq!(fault, PlanFault::TooGentle { change: change.to_owned(), needed });
    }
    assert_eq!(made(&[Step::Write], true).check((from, to), ["kernel-arguments"]), Ok(()));
    assert_eq!(soft.check((from, to), ["file:/etc/a"]), Ok(()));
}

#[test]
fn a_step_that_this_version_does_not_know_is_no_plan() {
    let mut plan = serde_json::to_value(made(&[Step::Write], false)).unwrap();
    plan["steps"][0]["do"] = json!("explode");
    let fault = VerifiablePlan::read(plan.to_string().as_bytes()).unwrap_err().to_string();
    assert!(fault.contains("explode"), "{fault}");
}

#[test]
fn a_plan_of_another_version_is_refused_with_its_form_and_with_what_to_do() {
    let version = env!("CARGO_PKG_VERSION");
    let plan = serde_json::to_value(planned(Vec::new(), false)).unwrap();
    let refused = |plan: &Value| VerifiablePlan::read(plan.to_string().as_bytes()).unwrap_err();
    let mut older = plan.clone();
    older.as_object_mut().unwrap().remove("deciders");
    let mut newer = plan.clone();
    newer["steps"] = json!([{"do": "live-patch"}]);
    for (plan, says) in [(&older, "missing field `deciders`"), (&newer, "live-patch")] {
        let fault = refused(plan).to_string();
        let all = [says, "`tread.dev/plan/v1`", "another version made it", version];
        assert!(all.iter().all(|it| fault.contains(it)), "{fault}");
    }
    // Of another form nothing else is read.
    let fault = refused(&json!({"schema": "tread.dev/plan/v7", "stages": []})).to_string();
    let all = ["`tread.dev/plan/v7`", "`tread.dev/plan/v1`", "tread plan OLD NEW", version];
    assert!(all.iter().all(|it| fault.contains(it)), "{fault}");
    let long =
        refused(&json!({"schema": format!("\u{1b}[31m{}", "x".repeat(1 << 20))})).to_string();
    assert!(long.len() < 500 && !long.contains('\u{1b}'), "{long}");
}

#[test]
fn steps_that_another_reader_would_take_for_others_are_no_plan() {
    let plan = serde_json::to_value(made(&[Step::Write, restart("a.service")], false)).unwrap();
    assert!(VerifiablePlan::read(plan.to_string().as_bytes()).is_ok());
    for (at, step) in [
        (0, json!({"do": "write", "unit": "a.service"})),
        (0, json!({"do": 1})),
        (0, json!(["write"])),
        (1, json!({"do": 5, "unit": "a.service"})),
        (1, json!({"do": "restart", "unit": "a.service", "when": "never"})),
        (1, json!(["restart", "a.service"])),
    ] {
        let mut changed = plan.clone();
        changed["steps"][at] = step;
        let read = VerifiablePlan::read(changed.to_string().as_bytes());
        assert!(read.is_err(), "{changed}");
    }
    for field in ["steps", "digest", "from", "deciders", "outcome"] {
        let (text, value) = (plan.to_string(), &plan[field]);
        let twice = text.replacen('{', &format!("{{\"{field}\":{value},"), 1);
        let read = VerifiablePlan::read(twice.as_bytes());
        assert!(read.unwrap_err().to_string().contains("duplicate"), "{field}");
    }
}

#[test]
fn a_digest_says_which_plan_it_is_and_not_who_made_it() {
    // Whoever can hand in a plan can invent an admin: nothing in a plan proves one.
    let invented = made(&[Step::Write], true);
    let (from, to) = digests();
    assert_eq!(invented.check((from, to), ["kernel-arguments"]), Ok(()));
}
