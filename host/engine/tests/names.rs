//! Every way of failing can happen, by the name that stands for it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::borrow::Cow;
use std::time::Duration;
use support::*;
use tread_engine::limits::Limits;
use tread_engine::planner::plan;
use tread_engine::policy::{Policy, PolicySet, Wishes};
use tread_engine::sandbox::{Allocator, Sandbox};
use tread_model::config::NodeConfig;
use tread_model::digest::Sha256;
use tread_model::effect::Effect;
use tread_model::plan::{ChangeOutcome, Plan};
use tread_model::read::{Input, sides};
use tread_model::verdict::{Failure, FailureKind, Layer};

const LOOP: &str = "(loop $again (br $again)) (unreachable)";

/// Makes a policy fail in this way. A new way does not compile without a line
/// of its own.
fn failing(kind: FailureKind) -> Failure {
    let few = Limits { fuel: 5_000_000, ..patient() };
    let asked =
        |limits: &Limits, guest: Guest| fails_within(&sandbox(patient()), &guest, limits).failure;
    let classified = |body: &str| asked(&few, classifying(body));
    let answered = |verdicts| asked(&few, answering(verdicts));
    let loaded = |limits: Limits, component: &[u8]| {
        sandbox(limits).load(component, None).expect_err("it cannot be loaded")
    };
    let good = || Guest::default().component();
    match kind {
        FailureKind::OutOfFuel => classified(LOOP),
        FailureKind::Deadline => {
            let deadline = Duration::from_millis(30);
            asked(&Limits { fuel: u64::MAX >> 1, deadline, ..few }, classifying(LOOP))
        }
        FailureKind::Memory => classified("(drop (memory.grow (i32.const 65000))) (unreachable)"),
        FailureKind::Stack => asked(
            &few,
            Guest {
                fields: "(func $deep (param i64) (result i64)
                    (i64.add (call $deep (local.get 0)) (local.get 0)))"
                    .to_owned(),
                ..classifying("(drop (call $deep (i64.const 1))) (unreachable)")
            },
        ),
        FailureKind::Trap => classified("(unreachable)"),
        FailureKind::BadOutput => answered(vec![act(0, &[]), act(0, &[])]),
        FailureKind::UnknownChange => answered(vec![act(2, &[])]),
        FailureKind::InvalidUnit => answered(vec![act(0, &[Action::Reload("crio")])]),
        FailureKind::BeyondClaim => answered(vec![act(0, &[Action::Reboot])]),
        FailureKind::InvalidSettings => {
            let guest = Guest { settings_errors: vec!["no"], ..Guest::default() };
            let sandbox = sandbox(few);
            let module = sandbox.load(&guest.component(), None).unwrap();
            sandbox.check_settings(&module, "{\"a\":1}").unwrap_err()
        }
        FailureKind::ForbiddenImport => {
            let text = r#"(component (import "read" (func (result string))))"#;
            loaded(few, &wat::parse_str(text).unwrap())
        }
        FailureKind::TooLarge => loaded(Limits { module_bytes: 10, ..few }, &good()),
        FailureKind::NotAComponent => loaded(few, b"not a component"),
        FailureKind::CompileTimeout => {
            loaded(Limits { compile_time: Duration::ZERO, ..few }, &good())
        }
        FailureKind::CompileFailed => {
            let mut component = good();
            let shift = component.windows(3).position(|it| it == [0x41, 0x10, 0x76]);
            component[shift.expect("a shift by 16")] = 0x42;
            loaded(few, &component)
        }
        FailureKind::DigestMismatch => {
            sandbox(few).load(&good(), Some(&Sha256::of(b"other"))).unwrap_err()
        }
        FailureKind::WrongWorld => {
            loaded(few, &Guest { version: "2.0.0", ..Guest::default() }.component())
        }
        FailureKind::BadDescription => {
            loaded(few, &Guest { section: None, ..Guest::default() }.component())
        }
        FailureKind::Missing => {
            missing("test").check(&sandbox(few)).expect_err("there is no module").clone()
        }
        // No engine can be set up with such a stack.
        FailureKind::NoRoom => loaded(Limits { stack_bytes: 0, ..few }, &good()),
    }
}

fn component(name: &str) -> Vec<u8> {
    let described = tread_model::description::Description { name: name.to_owned(), ..described() };
    let section = Some(serde_json::to_vec(&described).unwrap());
    Guest { exported: described, section, ..Guest::default() }.component()
}

fn policy(name: &str, layer: Layer) -> Policy {
    let bytes = Cow::Owned(component(name));
    Policy::new(bytes, None, layer, Wishes::default(), &Limits::default()).unwrap()
}

fn missing(name: &str) -> Policy {
    let known = policy(name, Layer::Template);
    let message = "the ConfigMap app/policies is gone".to_owned();
    Policy::missing(known.identity, known.claims, message).unwrap()
}

#[test]
fn every_name_of_a_failure_is_one_that_a_policy_can_get() {
    for kind in FailureKind::ALL {
        let failure = failing(*kind);
        assert_eq!(failure.kind, *kind, "{}: {failure}", kind.name());
        assert!(!failure.message.trim().is_empty(), "{}", kind.name());
        assert!(failure.to_string().starts_with(&format!("{}: ", kind.name())), "{failure}");
    }
}

/// Calls that wait longer for a slot than two calls could take are given up.
#[test]
fn more_calls_than_slots_for_too_long_have_no_room() {
    let options = tread_engine::sandbox::Options { slots: 1, ..Default::default() };
    let sandbox = Sandbox::new(options).unwrap();
    let module = sandbox.load(&classifying(LOOP).component(), None).unwrap();
    assert_eq!(sandbox.allocator(), Ok(Allocator::Pooling));
    let limits = Limits {
        fuel: u64::MAX >> 1,
        deadline: Duration::from_millis(1),
        deadline_per_mib: Duration::from_secs(3600),
        ..Limits::default()
    };
    let asked = |count, bytes| {
        let changes = changes(count, bytes);
        let failed = ask_within(&sandbox, &module, Layer::Template, &changes, &limits).unwrap_err();
        failed.failure.kind
    };
    let one_has_no_room = || {
        std::thread::scope(|scope| {
            // What is offered makes this one long; the others are short.
            let long = scope.spawn(|| asked(1, 200));
            let mut found = Vec::new();
            while !long.is_finished() && !found.contains(&FailureKind::NoRoom) {
                found.push(asked(2, 16));
            }
            found.push(long.join().unwrap());
            for kind in &found {
                assert!(matches!(kind, FailureKind::NoRoom | FailureKind::Deadline), "{found:?}");
            }
            found.contains(&FailureKind::NoRoom)
        })
    };
    // Who waited while this machine stood still may find the slot free.
    assert!((0..20).any(|_| one_has_no_room()));
}

/// What is planned where `/etc/a`, which this policy claims, and `/opt/a` change.
fn planned_with(policy: Policy) -> Plan {
    let config = |contents: &str| {
        format!(
            "{{\"ignition\":{{\"version\":\"3.4.0\"}},\"storage\":{{\"files\":[{{\"path\":\"/etc/a\",\
             \"contents\":{{\"source\":\"data:,{contents}\"}}}},{{\"path\":\"/opt/a\",\
             \"contents\":{{\"source\":\"data:,{contents}\"}}}}]}}}}"
        )
    };
    let (old, new) = (config("a"), config("b"));
    let input = |text| [Input { name: "a.json", bytes: str::as_bytes(text) }];
    let (old, new) = (input(&old), input(&new));
    let (old, new) = sides(&old, &new).unwrap();
    let (old, new): (NodeConfig<'_>, NodeConfig<'_>) = (old.config, new.config);
    let set = PolicySet::new(vec![policy]).unwrap();
    let sandbox = sandbox(Limits::default());
    plan(&sandbox, &set, &old, &new, Vec::new()).unwrap().plan
}

#[test]
fn a_module_that_is_gone_costs_a_reboot_for_what_it_claimed() {
    let plan = planned_with(missing("gone"));
    assert_eq!(plan.effect, Effect::Reboot);
    let outcomes: Vec<_> = plan.changes.iter().map(|it| (it.id.as_str(), it.outcome)).collect();
    assert_eq!(
        outcomes,
        [("file:/etc/a", ChangeOutcome::Failed), ("file:/opt/a", ChangeOutcome::Fallback)]
    );
    assert!(plan.changes[0].reason.contains("missing: the ConfigMap app/policies is gone"));
    assert!(plan.reproducible);
}

#[test]
fn a_policy_that_failed_to_load_for_lack_of_time_or_room_makes_a_plan_that_others_may_not_get() {
    use FailureKind::{BadDescription, CompileTimeout, Deadline, Missing, NoRoom, Stack, TooLarge};
    for (kind, elsewhere) in [
        (BadDescription, true),
        (Missing, true),
        (TooLarge, true),
        (CompileTimeout, false),
        (Deadline, false),
        (NoRoom, false),
        (Stack, false),
    ] {
        let known = policy("fails", Layer::Template);
        let failure = Failure { kind, message: "why".to_owned() };
        let failing = Policy::broken(known.identity, known.claims, failure).unwrap();
        assert_eq!(planned_with(failing).reproducible, elsewhere, "{}", kind.name());
    }
}

#[test]
fn two_policies_of_one_name_are_refused_in_whatever_layers_with_what_to_do() {
    use Layer::{Admin, Builtin, Template};
    for (one, two, words) in [
        (Template, Template, "two policies of the template layer are named same: rename one"),
        (Template, Builtin, "the name of a built-in one: rename yours"),
        (Builtin, Admin, "the name of a built-in one: rename yours"),
        (Admin, Template, "one of the template layer are both named same"),
    ] {
        let error = PolicySet::new(vec![policy("same", one), policy("same", two)]).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    let set = PolicySet::new(vec![policy("one", Template), policy("two", Builtin)]).unwrap();
    assert_eq!(set.policies().len(), 2);
}
