//! What a policy that was offered a secret can say: only what it could have said
//! before (law 10).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/mod.rs"]
mod support;

use serde_json::{Map, Value, json};
use std::borrow::Cow;
use support::*;
use tread_engine::limits::Limits;
use tread_engine::planner::{Answers, Planned, plan, plan_together};
use tread_engine::policy::{Policy, PolicySet, Wishes};
use tread_engine::sandbox::{Call, CallFailure, Reply, Sandbox, Speaker, Words};
use tread_model::change::{Change, Content, FileState, State};
use tread_model::config::NodeConfig;
use tread_model::description::{Claim, Declarations, Description, SettingsDescription};
use tread_model::effect::Effect;
use tread_model::read::{self, Input};
use tread_model::verdict::{FailureKind, Layer};

fn with_mode(mode: u32) -> Vec<Change<'static>> {
    let file = |text: &'static str, mode| {
        State::File(FileState {
            content: Content::Bytes(text.as_bytes().into()),
            mode,
            user: "root".into(),
            group: "root".into(),
        })
    };
    let change = |id: &str, mode| Change {
        id: id.to_owned(),
        before: file("one", mode),
        after: file("two", mode),
    };
    vec![change("file:/etc/a", mode), change("file:/etc/b", 0o644)]
}

const OPEN: u32 = 0o644;
const SECRET: u32 = 0o600;

/// Asks about a file of this mode and one that everybody may read.
fn asked(guest: &Guest, mode: u32, words: &Words) -> Result<Reply, CallFailure> {
    let sandbox = sandbox(patient());
    let module = sandbox.load(&guest.component(), None).expect("it can be loaded");
    let changes = with_mode(mode);
    let changes: Vec<&Change<'_>> = changes.iter().collect();
    let claims = described().claims;
    let call = Call {
        settings: "{}",
        changes: &changes,
        unchanged: &[],
        claims: &claims,
        layer: Layer::Template,
        speaker: Speaker::Policy,
        words,
    };
    sandbox.classify(&module, &call)
}

fn declared(reasons: &[&str]) -> Words {
    let reasons = reasons.iter().map(|&reason| reason.to_owned()).collect();
    Words::new(&Declarations { needs_secrets: true, reasons }, &[], "{}", &Map::new())
}

fn both(unit: &'static str) -> Guest {
    answering(vec![act(0, &[]), act(1, &[Action::Restart(unit)])])
}

fn reasons(reply: &Reply) -> Vec<&str> {
    let reasons = reply.verdicts.iter().map(|it| it.as_ref().unwrap().reason.as_str());
    reasons.collect()
}

#[test]
fn no_reason_of_a_call_with_a_secret_is_shown_unless_it_was_declared() {
    let known = |reasons: &[&str]| declared(&[reasons, &["a.service"]].concat());
    let reply = asked(&both("a.service"), SECRET, &known(&[])).unwrap();
    for reason in reasons(&reply) {
        assert!(reason.starts_with("The policy was offered a secret"), "{reason}");
    }
    let reply = asked(&both("a.service"), SECRET, &known(&["because"])).unwrap();
    assert_eq!(reasons(&reply), ["because", "because"]);
    let reply = asked(&both("a.service"), OPEN, &Words::default()).unwrap();
    assert_eq!(reasons(&reply), ["because", "because"]);
}

#[test]
fn what_an_admin_wrote_in_the_settings_is_shown() {
    let settings = r#"{"rules": [{"reason": "because", "unit": "a.service"}]}"#;
    let admins = serde_json::from_str(settings).unwrap();
    let words = Words::new(&Declarations::default(), &[], settings, &admins);
    assert_eq!(
        reasons(&asked(&both("a.service"), SECRET, &words).unwrap()),
        ["because", "because"]
    );
}

#[test]
fn a_unit_that_nobody_wrote_down_is_a_failure_that_does_not_name_it() {
    let failed = asked(&both("hunter2.service"), SECRET, &declared(&["because"])).unwrap_err();
    assert_failure(&failed.failure, FailureKind::InvalidUnit, "neither in its description");
    assert!(failed.failure.message.contains("file:/etc/b"), "{}", failed.failure);
    assert!(!failed.failure.message.contains("hunter2"), "{}", failed.failure);
    assert!(failed.reproducible);
    asked(&both("hunter2.service"), OPEN, &Words::default()).unwrap();
}

/// Asks, of a secret, a policy that had these units before, as who speaks in this layer.
fn asked_with(
    verdict: &[Action],
    units: usize,
    (mode, layer, speaker): (u32, Layer, Speaker),
) -> Result<Reply, CallFailure> {
    let units: Vec<String> = (0..units).map(|n| format!("u{n}.service")).collect();
    let settings = json!({ "units": units }).to_string();
    let words = Words::new(&Declarations::default(), &[], &settings, &Map::new());
    let sandbox = sandbox(Limits::default());
    let guest = answering(vec![act(0, verdict)]);
    let module = sandbox.load(&guest.component(), None).expect("it can be loaded");
    let (changes, claims) = (with_mode(mode), described().claims);
    let changes: Vec<&Change<'_>> = changes.iter().collect();
    let (settings, changes, unchanged, claims, words) =
        ("{}", &*changes, &[][..], &*claims, &words);
    sandbox.classify(&module, &Call { settings, changes, unchanged, claims, layer, speaker, words })
}

#[test]
fn a_choice_among_many_units_or_of_many_is_a_failure_after_a_secret_was_offered() {
    let policys = (SECRET, Layer::Template, Speaker::Policy);
    let four: Vec<Action> =
        ["u0.service", "u1.service", "u2.service", "u3.service"].map(Action::Restart).to_vec();
    let five = [four.clone(), vec![Action::Reload("u4.service")]].concat();
    let more = [four.clone(), vec![Action::DaemonReload]].concat();
    asked_with(&more, 16, policys).unwrap();
    let failed = asked_with(&four, 17, policys).unwrap_err();
    assert_failure(&failed.failure, FailureKind::InvalidUnit, "one of 17 units that are written");
    assert!(failed.failure.message.contains("16 are allowed"), "{}", failed.failure);
    let failed = asked_with(&five, 16, policys).unwrap_err();
    assert_failure(&failed.failure, FailureKind::InvalidUnit, "more than 4 units");
    assert!(failed.failure.message.contains("file:/etc/a"), "{}", failed.failure);
    // Whoever names none may know as many as there are.
    asked_with(&[Action::DaemonReload], 1000, policys).unwrap();
    // An order and repetitions tell nothing either.
    let [one, other] = ["u0.service", "u1.service"].map(Action::Restart);
    let plain = asked_with(&[one.clone(), other.clone()], 2, policys).unwrap();
    let telling = [other.clone(), one.clone(), other, one.clone(), one];
    assert_eq!(asked_with(&telling, 2, policys).unwrap().verdicts, plain.verdicts);
    for others in [
        (OPEN, Layer::Template, Speaker::Policy),
        (SECRET, Layer::Builtin, Speaker::Policy),
        (SECRET, Layer::Admin, Speaker::AdminsRules),
    ] {
        asked_with(&five, 17, others).unwrap();
    }
}

/// It restarts for each letter of the secret a unit of which the name tells that letter, and has all such
/// names in the defaults of its settings.
#[test]
fn a_policy_that_may_read_a_secret_cannot_spell_it_by_names_of_units() {
    const LETTERS: u8 = 8;
    let letter = |n: u8| char::from(b'a' + n);
    let names = (0..LETTERS).flat_map(|place| {
        (0..=255u8).map(move |byte| {
            format!("p{}{}{}.path", letter(place), letter(byte >> 4), letter(byte & 15))
        })
    });
    let names: Vec<String> = names.collect();
    let body = "(loop $next
        (global.set $byte (i32.load8_u
            (i32.add (i32.load offset=52 (local.get $changes)) (global.get $i))))
        (global.set $name (i32.add (i32.const 120000) (i32.mul (global.get $i) (i32.const 16))))
        (i32.store8 (global.get $name) (i32.const 112))
        (i32.store8 offset=1 (global.get $name) (i32.add (i32.const 97) (global.get $i)))
        (i32.store8 offset=2 (global.get $name)
            (i32.add (i32.const 97) (i32.shr_u (global.get $byte) (i32.const 4))))
        (i32.store8 offset=3 (global.get $name)
            (i32.add (i32.const 97) (i32.and (global.get $byte) (i32.const 15))))
        (i64.store offset=4 align=1 (global.get $name) (i64.load align=1 (i32.const 119000)))
        (global.set $action (i32.add (i32.const 110000) (i32.mul (global.get $i) (i32.const 12))))
        (i32.store (global.get $action) (i32.const 1))
        (i32.store offset=4 (global.get $action) (global.get $name))
        (i32.store offset=8 (global.get $action) (i32.const 9))
        (global.set $i (i32.add (global.get $i) (i32.const 1)))
        (br_if $next (i32.lt_u (global.get $i) (i32.load offset=56 (local.get $changes)))))
        (i32.store (i32.const 118000) (i32.const 0))
        (i32.store (i32.const 118004) (i32.const 1))
        (i32.store (i32.const 118008) (i32.const 110000))
        (i32.store (i32.const 118012) (global.get $i))
        (i32.store (i32.const 118016) (i32.const 0))
        (i32.store (i32.const 118020) (i32.const 0))
        (i32.store (i32.const 118100) (i32.const 118000))
        (i32.store (i32.const 118104) (i32.const 1))
        (i32.const 118100)";
    let globals = ["i", "byte", "name", "action"]
        .map(|name| format!("(global ${name} (mut i32) (i32.const 0))"))
        .concat();
    let defaults = json!({ "units": names }).to_string();
    let settings = Some(SettingsDescription { defaults, schema: "{}".to_owned() });
    let described = Description { settings, ..described() };
    let guest = Guest {
        fields: format!(r#"{globals} (data (i32.const 119000) ".path")"#),
        section: Some(serde_json::to_vec(&described).unwrap()),
        exported: described,
        ..classifying(body)
    };
    let component = guest.component();
    let told = |secret: &str, mode: u32| {
        let wishes = Wishes { read_secrets: true, ..Wishes::default() };
        let component = Cow::Owned(component.clone());
        let policy =
            Policy::new(component, None, Layer::Template, wishes, &Limits::default()).unwrap();
        let sides = ["one", secret].map(|text| with_files(&[("/etc/a", mode, text)]));
        let plan = serde_json::from_str::<Value>(&planned_between(policy, sides)).unwrap();
        (plan["steps"].to_string(), plan["changes"].to_string())
    };
    // It works as it is meant to where there is no secret.
    assert!(told("hunter2!", OPEN).0.contains("pagi.path"), "{}", told("hunter2!", OPEN).0);
    let (steps, changes) = told("hunter2!", SECRET);
    assert!(changes.contains("one of 2048 units"), "{changes}");
    assert!(!format!("{steps}{changes}").contains(".path"), "{steps}{changes}");
    assert_eq!(told("password", SECRET).0, steps);
}

#[test]
fn neither_a_panic_nor_a_log_nor_a_broken_answer_of_such_a_call_is_told() {
    let fields = r#"(data (i32.const 120000) "hunter2")"#.to_owned();
    let says = "(call $log (i32.const 120000) (i32.const 7))";
    let panics = Guest { fields: fields.clone(), ..classifying(&format!("{says} (unreachable)")) };
    let no_unit = answering(vec![act(0, &[Action::Restart("hunter2")])]);
    for (guest, kind) in [(panics, FailureKind::Trap), (no_unit, FailureKind::InvalidUnit)] {
        let open = asked(&guest, OPEN, &Words::default()).unwrap_err();
        assert_failure(&open.failure, kind, "hunter2");
        let withheld = asked(&guest, SECRET, &Words::default()).unwrap_err();
        assert_failure(&withheld.failure, kind, "It was offered secrets");
        assert_eq!(withheld.log, [""; 0]);
    }
    let body = format!(
        "{says} (i32.store (i32.const 0) (i32.const 0))
        (i32.store (i32.const 4) (i32.const 0)) (i32.const 0)"
    );
    let speaks = Guest { fields, ..classifying(&body) };
    assert_eq!(asked(&speaks, OPEN, &Words::default()).unwrap().log, ["hunter2"]);
    assert_eq!(asked(&speaks, SECRET, &Words::default()).unwrap().log, [""; 0]);
}

fn declaring(declares: Declarations) -> Guest {
    let verdicts = vec![Says { change: 0, answer: Answer::Abstain, reason: b"" }];
    Guest { declares: Some(declares), version: "1.1.0", ..answering(verdicts) }
}

fn needy() -> Declarations {
    Declarations { needs_secrets: true, reasons: vec!["it is read when it starts".to_owned()] }
}

#[test]
fn what_a_component_declares_has_to_be_what_its_section_says() {
    let sandbox = sandbox(Limits::default());
    let component = declaring(needy()).component();
    sandbox.load(&component, None).unwrap();
    let policy = Policy::new(
        Cow::Owned(component),
        None,
        Layer::Template,
        Wishes::default(),
        &Limits::default(),
    );
    assert_eq!(policy.unwrap().declarations, needy());

    let mut says_more = Guest { version: "1.1.0", ..Guest::default() }.component();
    let section = serde_json::to_vec(&needy()).unwrap();
    append_section(&mut says_more, "tread:declarations", &section);
    let failure = sandbox.load(&says_more, None).unwrap_err();
    assert_failure(&failure, FailureKind::BadDescription, "declare different things");

    for reason in ["", "two\nlines", &"x".repeat(513)] {
        let declares = Declarations { needs_secrets: false, reasons: vec![reason.to_owned()] };
        let failure = sandbox.load(&declaring(declares).component(), None).unwrap_err();
        assert_failure(&failure, FailureKind::BadDescription, "one line of 512 bytes");
    }
}

fn machine_config(text: &str) -> String {
    with_files(&[("/etc/a", SECRET, text)])
}

fn with_files(files: &[(&str, u32, &str)]) -> String {
    let file = |(path, mode, text): &(&str, u32, &str)| {
        let source = format!("data:,{text}");
        serde_json::json!({"path": path, "mode": mode, "contents": {"source": source}})
    };
    let files: Vec<_> = files.iter().map(file).collect();
    serde_json::json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": "a", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}},
    })
    .to_string()
}

fn planned(policy: Policy) -> String {
    planned_between(policy, [machine_config("one"), machine_config("two")])
}

fn planned_between(policy: Policy, sides: [String; 2]) -> String {
    let input = |text: &'static str| [Input { name: "a", bytes: text.as_bytes() }];
    let [old, new] = sides.map(|text| input(text.leak()));
    let (old, new) = read::sides(&old, &new).unwrap();
    let (old, new): (NodeConfig<'_>, NodeConfig<'_>) = (old.config, new.config);
    let sandbox: Sandbox = sandbox(Limits::default());
    let policies = PolicySet::new(vec![policy]).unwrap();
    let Planned { plan, .. } = plan(&sandbox, &policies, &old, &new, Vec::new()).unwrap();
    serde_json::to_string(&plan).unwrap()
}

#[test]
fn a_policy_that_needs_secrets_and_may_not_read_them_says_who_can_change_that() {
    let policy = |declares, read_secrets| {
        let component = Cow::Owned(declaring(declares).component());
        let wishes = Wishes { read_secrets, ..Wishes::default() };
        Policy::new(component, None, Layer::Template, wishes, &Limits::default()).unwrap()
    };
    let sentence = "it may not read this file: `--read-secrets test`, in a cluster \
                    `spec.readSecrets: true`, lets it";
    assert!(policy(needy(), false).misses_secrets());
    let plan = planned(policy(needy(), false));
    assert!(plan.contains(sentence), "{plan}");
    for (declares, reads) in [(needy(), true), (Declarations::default(), false)] {
        let plan = planned(policy(declares, reads));
        assert!(!plan.contains("may not read"), "{plan}");
    }
}

/// It says what it sees of the new side in the reason of a verdict.
#[test]
fn a_policy_sees_tokens_that_say_nothing() {
    let body = "(call $log (i32.load offset=52 (local.get $changes))
        (i32.load offset=56 (local.get $changes))) (unreachable)";
    let guest = classifying(body).component();
    let wishes = Wishes::default();
    let policy =
        Policy::new(Cow::Owned(guest), None, Layer::Template, wishes, &Limits::default()).unwrap();
    let plan = planned(policy);
    assert!(plan.contains("trap: secret:2"), "{plan}");
}

/// Another unit of fuel, and of memory, is another letter of an alphabet.
#[test]
fn what_a_call_with_a_secret_used_is_told_to_nobody_however_it_ends() {
    let burns = "(drop (memory.grow (i32.const 7)))
        (global.set $n (i32.const 100000))
        (loop $again (global.set $n (i32.sub (global.get $n) (i32.const 1)))
            (br_if $again (global.get $n)))";
    let nothing = "(i32.store (i32.const 60008) (i32.const 0)) (i32.const 60004)";
    let wants = |pages| format!("(drop (memory.grow (i32.const {pages}))) (unreachable)");
    for (body, fails) in [
        (format!("{burns} {nothing}"), None),
        (format!("{burns} (unreachable)"), Some(FailureKind::Trap)),
        (wants(5000), Some(FailureKind::Memory)),
        ("(loop $again (br $again)) (unreachable)".to_owned(), Some(FailureKind::OutOfFuel)),
    ] {
        let fields = "(global $n (mut i32) (i32.const 0))".to_owned();
        let guest = Guest { fields, ..classifying(&body) };
        let spent = |mode| match asked(&guest, mode, &Words::default()) {
            Ok(reply) => (None, reply.spent, String::new()),
            Err(failed) => {
                (Some(failed.failure.kind), failed.spent, failed.failure.message.clone())
            }
        };
        let (open, secret) = (spent(OPEN), spent(SECRET));
        assert_eq!((open.0, secret.0), (fails, fails), "{body}");
        assert!(open.1.is_some_and(|spent| spent.fuel > 0 && spent.memory > 0), "{open:?}");
        assert_eq!(secret.1, None, "{body}");
        let more = format!("{} more bytes", 5000 << 16);
        assert_eq!(open.2.contains(&more), fails == Some(FailureKind::Memory), "{open:?}");
        assert!(!secret.2.contains("more bytes"), "{secret:?}");
    }
    // Nor in the answers to what nobody else was asked.
    let wrong = both("hunter2.service");
    assert_eq!(asked(&wrong, SECRET, &declared(&["because"])).unwrap_err().spent, None);
}

#[test]
fn of_a_plan_for_which_a_policy_was_offered_a_secret_it_is_known_that_it_was() {
    let policy = |layer, read_secrets| {
        let verdicts = vec![Says { change: 0, answer: Answer::Abstain, reason: b"" }];
        let component = Cow::Owned(answering(verdicts).component());
        let wishes = Wishes { read_secrets, ..Wishes::default() };
        Policy::new(component, None, layer, wishes, &Limits::default()).unwrap()
    };
    for (policy, offered) in [
        (policy(Layer::Template, false), false),
        (policy(Layer::Template, true), true),
        (policy(Layer::Builtin, false), true),
    ] {
        let sides = [machine_config("one"), machine_config("two")];
        let input = |text: &'static str| [Input { name: "a", bytes: text.as_bytes() }];
        let [old, new] = sides.map(|text| input(text.leak()));
        let (old, new) = read::sides(&old, &new).unwrap();
        let sides = (&old.config, &new.config);
        let sandbox: Sandbox = sandbox(Limits::default());
        let policies = PolicySet::new(vec![policy]).unwrap();
        let answers = Answers::default();
        // The second one is told what the first one was.
        for calls in [1, 0] {
            let planned = plan_together(&sandbox, &policies, None, &answers, sides, Vec::new());
            let planned = planned.unwrap();
            assert_eq!((planned.offered_secrets, planned.calls.len()), (offered, calls));
            assert!(planned.calls.iter().all(|call| call.used.is_none() == offered));
        }
    }
}

#[test]
fn what_was_secret_stays_so_for_others_where_an_admin_answers_that_all_may_read_it() {
    let policy = |name: &str, layer, claim: Claim| {
        let described = Description { name: name.to_owned(), claims: vec![claim], ..described() };
        let section = Some(serde_json::to_vec(&described).unwrap());
        let verdicts = vec![act(0, &[])];
        let component = Guest { exported: described, section, verdicts, ..Guest::default() };
        let wishes = Wishes { read_secrets: layer == Layer::Template, ..Wishes::default() };
        let component = Cow::Owned(component.component());
        Policy::new(component, None, layer, wishes, &Limits::default()).unwrap()
    };
    for (before, offered) in [(SECRET, true), (OPEN, false)] {
        let admins =
            policy("admins", Layer::Admin, claim("file:/etc/a", Effect::None, Effect::None));
        let others = claim("file:/etc/**", Effect::None, Effect::None);
        let others = Claim { with_unchanged: true, ..others };
        let others = policy("others", Layer::Template, others);
        let old = with_files(&[("/etc/a", before, "one"), ("/etc/b", OPEN, "one")]);
        let new = with_files(&[("/etc/a", OPEN, "onee"), ("/etc/b", OPEN, "two")]);
        let input = |text: String| [Input { name: "a", bytes: text.leak().as_bytes() }];
        let (old, new) = (input(old), input(new));
        let (old, new) = read::sides(&old, &new).unwrap();
        let policies = PolicySet::new(vec![admins, others]).unwrap();
        let (answers, sides) = (Answers::default(), (&old.config, &new.config));
        let sandbox: Sandbox = sandbox(Limits::default());
        let planned = plan_together(&sandbox, &policies, None, &answers, sides, Vec::new());
        assert_eq!(planned.unwrap().offered_secrets, offered, "{before:o}");
    }
}
