//! Plans that are made together are those that each would be by itself, and no
//! policy is asked the same twice for them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::sync::Arc;
use std::time::Duration;
use support::{Guest, act, answering, claim, classifying, described, sandbox};
use tread_engine::limits::Limits;
use tread_engine::planner::{
    Answers, CallRecord, Remembered, Shadows, Together, Unplanned, plan, plan_together,
};
use tread_engine::policy::{Policy, PolicySet, Wishes};
use tread_engine::sandbox::Sandbox;
use tread_model::description::{Claim, Description};
use tread_model::digest::Sha256;
use tread_model::effect::Effect;
use tread_model::plan::Plan;
use tread_model::plan::compare::Shadow;
use tread_model::read::{Input, sides};
use tread_model::verdict::{FailureKind, Layer};

const ACTS: &[u8] = include_bytes!("../../../tests/contract/1.0.0/acts.wasm");
const ABSTAINS: &[u8] = include_bytes!("../../../tests/contract/1.0.0/abstains.wasm");

fn policy(component: &[u8]) -> Policy {
    let bytes = component.to_vec().into();
    Policy::new(bytes, None, Layer::Template, Wishes::default(), &Limits::default()).unwrap()
}

fn set(policies: Vec<Policy>) -> PolicySet {
    PolicySet::new(policies).unwrap()
}

fn config(files: &[(&str, &str)]) -> String {
    let file = |(path, text): &(&str, &str)| {
        format!(r#"{{"path":"{path}","contents":{{"source":"data:,{text}"}}}}"#)
    };
    let files: Vec<String> = files.iter().map(file).collect();
    let files = files.join(",");
    format!(r#"{{"ignition":{{"version":"3.4.0"}},"storage":{{"files":[{files}]}}}}"#)
}

/// A plan by itself, and as one of those that share answers.
fn both(
    sandbox: &Sandbox,
    policies: &PolicySet,
    shadows: Option<&Shadows>,
    answers: &Answers,
    [old, new]: [&str; 2],
) -> (Plan, Plan, Option<Shadow>, Vec<CallRecord>) {
    let input = |text| [Input { name: "a.json", bytes: str::as_bytes(text) }];
    let (old, new) = (input(old), input(new));
    let (old, new) = sides(&old, &new).unwrap();
    let (old, new) = (&old.config, &new.config);
    let alone = plan(sandbox, policies, old, new, Vec::new()).unwrap().plan;
    let planned =
        plan_together(sandbox, policies, shadows, answers, (old, new), Vec::new()).unwrap();
    let Together { plan, shadow, calls, .. } = planned;
    (alone, Arc::unwrap_or_clone(plan), shadow, calls)
}

fn asked(calls: &[CallRecord]) -> Vec<&str> {
    calls.iter().map(|call| call.policy.as_str()).collect()
}

#[test]
fn what_many_pools_get_is_asked_once_and_what_only_one_gets_for_that_one() {
    let (sandbox, policies) = (sandbox(Limits::default()), set(vec![policy(ACTS)]));
    let answers = Answers::default();
    let acts = ("/etc/acts/reload", "a.service");
    for (own, new, calls) in [
        (("/etc/own", "one"), vec![acts], 1),
        (("/etc/own", "two"), vec![acts], 0),
        // Nobody claims what is new beside it.
        (("/etc/own", "two"), vec![acts, ("/etc/beside", "")], 0),
        (("/etc/own", "two"), vec![("/etc/acts/reload", "b.service")], 1),
        (("/etc/own", "two"), vec![("/etc/acts/restart", "a.service")], 1),
        (("/etc/own", "two"), vec![acts, ("/etc/acts/restart", "a.service")], 1),
        // It had something else there before.
        (("/etc/acts/reload", "c.service"), vec![acts], 1),
        (("/etc/acts/reload", "a.service"), vec![], 1),
    ] {
        let old = config(&[own]);
        let mut files = if own.0 == "/etc/own" { vec![own] } else { vec![] };
        files.extend(new);
        let sides = [old.as_str(), &config(&files)];
        let (alone, together, _, made) = both(&sandbox, &policies, None, &answers, sides);
        assert_eq!(made.len(), calls, "{files:?}");
        assert_eq!(together, alone, "{files:?}");
    }
}

#[test]
fn an_admins_policy_is_offered_what_another_one_answered_as_a_change_alone() {
    let admins = |name: &str, with_unchanged: bool, guest: Guest| {
        let claim = Claim { with_unchanged, ..claim("file:/etc/*", Effect::None, Effect::None) };
        let exported = Description { name: name.to_owned(), claims: vec![claim], ..described() };
        let section = Some(serde_json::to_vec(&exported).unwrap());
        let component = Guest { exported, section, ..guest }.component().into();
        let (wishes, limits) = (Wishes::default(), Limits::default());
        Policy::new(component, None, Layer::Admin, wishes, &limits).unwrap()
    };
    // It traps where it is offered anything beside the change; an empty list stands where nothing was
    // written.
    let alone = "(if (local.get $unchanged-len) (then (unreachable))) (i32.const 100000)";
    let policies = set(vec![
        admins("first", false, answering(vec![act(0, &[])])),
        admins("second", true, classifying(alone)),
    ]);
    let sides = [config(&[]), config(&[("/etc/a", "a")])];
    let sides = [sides[0].as_str(), &sides[1]];
    let sandbox = sandbox(Limits::default());
    let (_, _, _, calls) = both(&sandbox, &policies, None, &Answers::default(), sides);
    assert_eq!(asked(&calls), ["first", "second"]);
    assert!(calls.iter().all(|call| call.failure.is_none()), "{calls:?}");
}

#[test]
fn whoever_decides_is_not_asked_again_for_what_is_only_tried() {
    let (sandbox, policies) = (sandbox(Limits::default()), set(vec![policy(ACTS)]));
    let tried = policy(ABSTAINS).named(
        "tried".to_owned(),
        String::new(),
        policies.policies()[0].claims.clone(),
    );
    let shadows =
        Shadows { with: policies.with(vec![tried]).unwrap(), policies: vec![], warnings: vec![] };
    let sides = [config(&[]), config(&[("/etc/acts/reload", "a.service")])];
    let sides = [sides[0].as_str(), &sides[1]];
    let answers = Answers::default();
    let (alone, plan, shadow, calls) = both(&sandbox, &policies, Some(&shadows), &answers, sides);
    assert_eq!((asked(&calls), plan), (vec!["acts", "tried"], alone));
    assert!(shadow.is_some());
    let (.., calls) = both(&sandbox, &policies, Some(&shadows), &answers, sides);
    assert_eq!(asked(&calls), Vec::<&str>::new());
}

#[test]
fn what_failed_for_lack_of_time_is_asked_again_and_what_always_fails_is_not() {
    let slow =
        Limits { fuel: u64::MAX >> 1, deadline: Duration::from_millis(30), ..Limits::default() };
    let forever = "(loop $again (br $again)) (unreachable)";
    for (limits, body, failure, again) in [
        (slow, forever, FailureKind::Deadline, 1),
        (Limits::default(), "(unreachable)", FailureKind::Trap, 0),
    ] {
        let sandbox = sandbox(limits);
        let guest: Guest = classifying(body);
        let policies = set(vec![policy(&guest.component())]);
        let sides = [config(&[]), config(&[("/etc/a", "a")])];
        let sides = [sides[0].as_str(), &sides[1]];
        let answers = Answers::default();
        for calls in [1, again] {
            let (alone, plan, _, made) = both(&sandbox, &policies, None, &answers, sides);
            assert_eq!(made.len(), calls, "{failure:?}");
            assert!(made.iter().all(|call| call.failure == Some(failure)), "{made:?}");
            assert_eq!((plan.effect, plan.reproducible), (alone.effect, alone.reproducible));
            assert!(plan.changes[0].reason.contains(failure.name()), "{}", plan.changes[0].reason);
        }
    }
}

#[test]
fn those_who_ask_the_same_at_the_same_time_share_one_call() {
    let (sandbox, policies) = (sandbox(Limits::default()), set(vec![policy(ACTS)]));
    let sides = [config(&[]), config(&[("/etc/acts/reload", "a.service")])];
    let sides = [sides[0].as_str(), &sides[1]];
    let answers = Answers::default();
    let calls: usize = std::thread::scope(|scope| {
        let one = || both(&sandbox, &policies, None, &answers, sides).3.len();
        let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(calls, 1);
}

#[test]
fn a_plan_of_more_changes_than_it_may_have_is_not_made_and_nobody_is_asked() {
    let (sandbox, policies) = (sandbox(Limits::default()), set(vec![policy(ACTS)]));
    let made = |answers: &Answers| {
        let (old, new) =
            (config(&[]), config(&[("/etc/acts/reload", "a.service"), ("/etc/b", "b")]));
        let input = |text| [Input { name: "a.json", bytes: str::as_bytes(text) }];
        let (old, new) = (input(&old), input(&new));
        let (old, new) = sides(&old, &new).unwrap();
        let sides = (&old.config, &new.config);
        plan_together(&sandbox, &policies, None, answers, sides, Vec::new())
            .map(|planned| planned.calls.len())
    };
    assert_eq!(made(&Answers::to_at_most(2)), Ok(1));
    let too_many = made(&Answers::to_at_most(1)).unwrap_err();
    assert_eq!(too_many, Unplanned::TooMany { changes: 2, most: 1 });
    assert!(too_many.to_string().starts_with("2 changes: planned as a reboot"), "{too_many}");
    let ended = Answers::default();
    ended.end();
    assert_eq!(made(&ended), Err(Unplanned::Ended));

    // What the host refuses by itself is as much to tell.
    let users = (0..50).map(|number| format!("{{\"name\": \"user-{number}\"}}"));
    let users = users.collect::<Vec<_>>().join(",");
    let ignition = "\"ignition\": {\"version\": \"3.4.0\"}";
    let old = format!("{{{ignition}}}");
    let new = format!("{{{ignition}, \"passwd\": {{\"users\": [{users}]}}}}");
    let input = |text| [Input { name: "a.json", bytes: str::as_bytes(text) }];
    let (old, new) = (input(&old), input(&new));
    let (old, new) = sides(&old, &new).unwrap();
    let (answers, sides) = (Answers::to_at_most(49), (&old.config, &new.config));
    let made = plan_together(&sandbox, &policies, None, &answers, sides, Vec::new());
    let too_many = Unplanned::TooMany { changes: 50, most: 49 };
    assert_eq!(made.map(|_| ()).unwrap_err(), too_many);
}

#[test]
fn when_nobody_waits_any_more_no_other_policy_is_asked() {
    let slow =
        Limits { fuel: u64::MAX >> 1, deadline: Duration::from_millis(300), ..Limits::default() };
    let sandbox = sandbox(slow);
    let guest: Guest = classifying("(loop $again (br $again)) (unreachable)");
    let policy = policy(&guest.component());
    let name = |number: usize| {
        let claims = policy.claims.clone();
        policy.clone().named(format!("slow-{number}"), String::new(), claims)
    };
    let policies = set((0..1000).map(name).collect());
    let (old, new) = (config(&[]), config(&[("/etc/a", "a")]));
    let input = |text| [Input { name: "a.json", bytes: str::as_bytes(text) }];
    let (old, new) = (input(&old), input(&new));
    let (old, new) = sides(&old, &new).unwrap();
    let answers = Answers::default();
    let begun = std::time::Instant::now();
    let (sides, all) = ((&old.config, &new.config), &answers);
    let made = std::thread::scope(|scope| {
        let making = scope
            .spawn(|| plan_together(&sandbox, &policies, None, all, sides, Vec::new()).map(|_| ()));
        std::thread::sleep(Duration::from_millis(50));
        answers.end();
        making.join().unwrap()
    });
    assert_eq!(made, Err(Unplanned::Ended));
    // All of them would take a thousand times their deadline.
    assert!(begun.elapsed() < Duration::from_millis(300) * 500, "{:?}", begun.elapsed());
}

#[test]
fn a_plan_whose_digest_nobody_looks_at_is_the_same_but_for_that() {
    let (sandbox, policies) = (sandbox(Limits::default()), set(vec![policy(ACTS)]));
    let own = ("/etc/own", "one");
    for new in [
        vec![own],
        vec![own, ("/etc/acts/reload", "a.service")],
        vec![("/etc/own", "two"), ("/etc/b", "b")],
        vec![],
    ] {
        let sides = [config(&[own]), config(&new)];
        let sides = [sides[0].as_str(), &sides[1]];
        let answers = Answers::default().in_short();
        let (alone, together, ..) = both(&sandbox, &policies, None, &answers, sides);
        let without = |plan: Plan| (plan.outcome, plan.steps, plan.changes, plan.summary);
        assert_eq!(without(together), without(alone), "{new:?}");
    }
}

#[test]
fn of_configs_and_plans_nothing_is_digested_by_sha256() {
    let sandbox = sandbox(Limits::default());
    let (component, digest) = (ACTS.into(), Some(Sha256::of(ACTS)));
    let (wishes, limits) = (Wishes::default(), Limits::default());
    let own = Policy::new(component, digest, Layer::Builtin, wishes, &limits).unwrap();
    let policies = set(vec![own]);
    let planned = |path: &str| {
        let (old, new) = (config(&[]), config(&[(path, "a"), ("/etc/b", "b")]));
        let input = |text| [Input { name: "a.json", bytes: str::as_bytes(text) }];
        let (old, new) = (input(&old), input(&new));
        let (old, new) = sides(&old, &new).unwrap();
        plan(&sandbox, &policies, &old.config, &new.config, Vec::new()).unwrap().plan.digest
    };
    let digested = Sha256::digested();
    assert!(digested > ACTS.len());
    // Nor is a policy that comes with the program, whose digest is known.
    assert_ne!(planned("/etc/a"), planned("/etc/c"));
    assert_eq!(Sha256::digested(), digested);
}

#[test]
fn what_was_answered_is_remembered_for_later_plans_and_what_was_said_of_a_secret_is_not() {
    let slow =
        Limits { fuel: u64::MAX >> 1, deadline: Duration::from_millis(30), ..Limits::default() };
    let forever = classifying("(loop $again (br $again)) (unreachable)").component();
    let with_mode = |mode: u32| {
        config(&[("/etc/acts/reload", "a.service")])
            .replace("\"contents\"", &format!("\"mode\":{mode},\"contents\""))
    };
    for (limits, component, mode, later) in [
        (Limits::default(), ACTS, 0o644, 0),
        (Limits::default(), ACTS, 0o600, 1),
        // On another machine it may have been in time.
        (slow, forever.as_slice(), 0o644, 1),
    ] {
        let (sandbox, policies) = (sandbox(limits), set(vec![policy(component)]));
        let remembered = Arc::new(Remembered::default());
        let sides = [config(&[]), with_mode(mode)];
        let sides = [sides[0].as_str(), &sides[1]];
        for calls in [1, later] {
            let answers = Answers::default().remembering(Arc::clone(&remembered));
            let (alone, plan, _, made) = both(&sandbox, &policies, None, &answers, sides);
            assert_eq!(made.len(), calls, "{mode:o}");
            assert_eq!((plan.outcome, plan.steps), (alone.outcome, alone.steps), "{mode:o}");
        }
        // The same component as another policy is asked itself.
        let other = set(vec![policy(component)]);
        let answers = Answers::default().remembering(remembered);
        assert_eq!(both(&sandbox, &other, None, &answers, sides).3.len(), 1, "{mode:o}");
    }
}

#[test]
fn policies_that_are_asked_side_by_side_say_what_they_say_one_by_one() {
    let sandbox = sandbox(Limits::default());
    let name = |number: usize| {
        let component = if number.is_multiple_of(5) { ABSTAINS } else { ACTS };
        let claims = policy(ACTS).claims;
        policy(component).named(format!("policy-{number:02}"), String::new(), claims)
    };
    let policies = set((0..40).map(name).collect());
    let sides = [
        config(&[]),
        config(&[("/etc/acts/reload", "a.service"), ("/etc/acts/restart", "b.service")]),
    ];
    let sides = [sides[0].as_str(), &sides[1]];
    for _ in 0..20 {
        let answers = Answers::default().for_one_plan();
        let (alone, plan, _, calls) = both(&sandbox, &policies, None, &answers, sides);
        assert_eq!(plan, alone);
        let names: Vec<String> = (0..40).map(|number| format!("policy-{number:02}")).collect();
        assert_eq!(asked(&calls), names, "each once, in the order of their names");
    }
    // Several plans at the same time share the work, and none waits for another in vain.
    let answers = Answers::default();
    let calls: usize = std::thread::scope(|scope| {
        let one = || both(&sandbox, &policies, None, &answers, sides).3.len();
        let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(calls, 40);
}
