use super::*;
use crate::policies::choose::{choose, choose_meanwhile};
use tread_kube::api::DisruptionPolicySpec;
use tread_kube::api::disruption_policy::{ConfigMapSource, Layer, Mode, Source};
use tread_model::digest::Sha256;
use tread_model::effect::Effect;

fn version(number: &str) -> Version {
    Version {
        name: "chrony".to_owned(),
        version: number.to_owned(),
        summary: "Restarts chronyd".to_owned(),
        claims: vec![Claim::on("file:/etc/chrony.conf", Effect::None, Effect::Restart)],
        digest: Sha256::of(number.as_bytes()),
        settings_digest: Sha256::of(b"{}"),
        warnings: Vec::new(),
    }
}

fn object() -> DisruptionPolicy {
    let config_map = ConfigMapSource {
        namespace: "apps".to_owned(),
        name: "chrony".to_owned(),
        ..Default::default()
    };
    let source = Source { config_map: Some(config_map), ..Source::default() };
    let spec = DisruptionPolicySpec {
        layer: Some(Layer::Template),
        source: Some(source),
        ..Default::default()
    };
    let mut object = DisruptionPolicy::new("apps.chrony", spec);
    object.metadata.generation = Some(3);
    object
}

fn bad(message: &str) -> Attempt {
    Attempt::Bad {
        failure: Failure { kind: FailureKind::OutOfFuel, message: message.to_owned() },
        digest: Some(Sha256::of(message.as_bytes())),
        claims: Vec::new(),
    }
}

/// The object after tread has looked at it, at this second.
fn seen(
    object: &DisruptionPolicy,
    newest: &Attempt,
    kept: Option<&Version>,
    second: i64,
) -> (DisruptionPolicy, Option<Note>) {
    let choice = choose(object, newest, kept, None);
    let kept = kept.map(|version| (version, "tread-last-good-1"));
    let found = Found { choice: &choice, newest, kept, name: "chrony", retry: None };
    let (status, note) = status(object, found, Timestamp::from_second(second).unwrap());
    let mut after = object.clone();
    after.status = Some(status);
    (after, note)
}

fn condition<'o>(object: &'o DisruptionPolicy, type_: &str) -> (&'o str, &'o str, &'o str) {
    let conditions = &object.status.as_ref().unwrap().conditions;
    let found = conditions.iter().find(|condition| condition.type_ == type_).unwrap();
    assert_eq!(found.observed_generation, Some(3));
    (&found.status, &found.reason, &found.message)
}

#[test]
fn a_version_that_was_loaded_fills_the_columns() {
    let newest = Attempt::Good(version("1.0.0"));
    let (after, note) = seen(&object(), &newest, Some(&version("1.0.0")), 1);
    let status = after.status.as_ref().unwrap();
    assert_eq!(status.state, Some(State::Loaded));
    assert_eq!(status.layer, Some(Layer::Template));
    assert_eq!(status.source.as_deref(), Some("apps/chrony"));
    assert_eq!(status.version.as_deref(), Some("1.0.0"));
    assert_eq!(status.claims_summary.as_deref(), Some("file:/etc/chrony.conf"));
    assert_eq!(status.effects.as_deref(), Some("none..restart"));
    assert_eq!(status.kept_in.as_deref(), Some("tread-last-good-1"));
    assert_eq!(status.observed_generation, Some(3));
    assert_eq!(condition(&after, "Loaded").0, "True");
    assert_eq!(condition(&after, "Approved").0, "True");
    let note = note.unwrap();
    assert_eq!((note.reason.word(), note.warns), ("PolicyLoaded", false));
    let named = format!(" Its digest is {}.", version("1.0.0").digest);
    assert_eq!(note.text, format!("chrony 1.0.0 was loaded and checked.{named}"));
    assert_eq!(status.newest_digest, status.digest);
}

#[test]
fn what_its_author_should_look_at_again_is_said_and_told() {
    let warnings = vec!["Rule 1 matches nothing.".to_owned()];
    let newest = Attempt::Good(Version { warnings, ..version("1.0.0") });
    let (after, note) = seen(&object(), &newest, None, 1);
    let digest = version("1.0.0").digest;
    let said = format!("was loaded and checked. Rule 1 matches nothing. Its digest is {digest}.");
    assert_eq!(condition(&after, "Loaded").2, format!("It {said}"));
    assert_eq!(note.unwrap().text, format!("chrony 1.0.0 {said}"));
}

#[test]
fn the_same_again_is_the_same_status_and_no_event() {
    for newest in [Attempt::Good(version("1.0.0")), bad("it loops")] {
        let (first, _) = seen(&object(), &newest, None, 1);
        let (second, note) = seen(&first, &newest, None, 99);
        assert_eq!(note, None);
        assert_eq!(second, first, "or every look would be a write");
    }
}

#[test]
fn a_bad_new_version_says_who_decides_and_tells_its_author() {
    let (loaded, _) = seen(&object(), &Attempt::Good(version("1.0.0")), None, 1);
    let (after, note) = seen(&loaded, &bad("it loops"), Some(&version("1.0.0")), 2);
    let status = after.status.as_ref().unwrap();
    assert_eq!(status.state, Some(State::LastGood));
    assert_eq!(status.version.as_deref(), Some("1.0.0"), "the one that decides");
    let (value, reason, message) = condition(&after, "Loaded");
    assert_eq!((value, reason), ("False", "OutOfFuel"));
    let digest = Sha256::of(b"it loops").to_string();
    let named = format!(" Its digest is {digest}.");
    assert_eq!(message, format!("it loops. The version before, 1.0.0, goes on deciding.{named}"));
    assert_eq!(status.newest_digest, Some(digest), "and not the one that decides");
    assert_eq!(status.failure.as_ref().unwrap().name, "out-of-fuel");
    let note = note.unwrap();
    assert_eq!((note.reason.word(), note.warns), ("PolicyLastGood", true));
    assert!(note.text.starts_with("out-of-fuel: it loops."), "{note:?}");
    // Another bad version is told of, too; and so is the good one at last.
    let (again, note) = seen(&after, &bad("it loops again"), Some(&version("1.0.0")), 3);
    assert_eq!(note.unwrap().reason.word(), "PolicyLastGood");
    let (mended, note) = seen(&again, &Attempt::Good(version("1.0.1")), None, 4);
    assert_eq!(note.unwrap().reason.word(), "PolicyLoaded");
    assert_eq!(mended.status.unwrap().failure, None);
}

#[test]
fn without_a_good_version_it_says_that_claims_cost_reboots() {
    let (loaded, _) = seen(&object(), &Attempt::Good(version("1.0.0")), None, 1);
    let (after, note) = seen(&loaded, &bad("it loops"), None, 2);
    let status = after.status.as_ref().unwrap();
    assert_eq!((status.state, status.digest.as_ref()), (Some(State::Failed), None));
    assert_eq!(status.claims.len(), 1, "what it claimed is still known");
    assert_eq!(status.effects.as_deref(), Some("reboot"), "whatever it might have answered");
    assert!(condition(&after, "Loaded").2.contains("every change that it claims costs a reboot"));
    assert_eq!(note.unwrap().reason.word(), "PolicyFailed");
    let (never, _) = seen(&object(), &bad("it loops"), None, 1);
    assert!(condition(&never, "Loaded").2.contains("It decides nothing."));
}

#[test]
fn a_policy_that_is_only_tried_wakes_nobody_and_says_that_it_costs_nothing() {
    let last = version("1.0.0");
    let (mut tried, _) = seen(&object(), &Attempt::Good(last.clone()), None, 1);
    for (mode, kept, decides, expected) in [
        (Mode::Enforce, None, "reboots", "every change that it claims costs a reboot."),
        (Mode::Enforce, Some(&last), "last-good", "The version before, 1.0.0, goes on deciding."),
        (Mode::Shadow, None, "nobody", "It is only tried: it decides nothing, and costs nothing."),
        (
            Mode::Shadow,
            Some(&last),
            "nobody",
            "The version before, 1.0.0, goes on being tried: it decides nothing, and costs nothing.",
        ),
    ] {
        tried.spec.mode = mode;
        let newest = bad("it loops");
        assert_eq!(choose(&tried, &newest, kept, None).decides(mode), decides, "{mode:?}");
        let (after, note) = seen(&tried, &newest, kept, 2);
        let said = condition(&after, "Loaded").2;
        assert!(said.contains(expected), "{said}");
        assert!(note.unwrap().text.contains(expected), "its author is told the same");
    }
    // A version that waits, for its turn or for an admin, does not change that.
    let said = waiting_behind(&tried, 1, Timestamp::from_second(3).unwrap());
    let waits = said.conditions.iter().find(|it| it.reason == WAITING).unwrap();
    assert!(waits.message.ends_with("Until then 1.0.0 goes on being tried."), "{waits:?}");
    let claims = vec![Claim::on("file:/**", Effect::None, Effect::None)];
    let wide = Attempt::Good(Version { claims, ..version("2.0.0") });
    let (after, _) = seen(&tried, &wide, Some(&last), 4);
    let said = condition(&after, "Approved").2;
    assert!(said.starts_with("The new version, 2.0.0, is not tried until an admin"), "{said}");
    assert!(said.ends_with("The version before, 1.0.0, goes on being tried."), "{said}");
}

#[test]
fn an_approval_that_is_missing_says_how_to_give_it() {
    let wide = Version {
        claims: vec![Claim::on("file:/**", Effect::None, Effect::None)],
        ..version("1.0.0")
    };
    let (after, note) = seen(&object(), &Attempt::Good(wide), None, 1);
    let (value, reason, message) = condition(&after, "Approved");
    assert_eq!((value, reason), ("False", "NeedsApproval"));
    let command = "kubectl patch disruptionpolicy apps.chrony --type merge -p '{\"spec\":{\"approved\":true}}'";
    assert!(message.contains(command), "{message}");
    assert_eq!(note.unwrap().reason.word(), "PolicyNeedsApproval");
}

#[test]
fn what_is_switched_off_or_pinned_away_for_a_moment_stays_kept_and_known() {
    let last = version("1.0.0");
    let (object, _) = seen(&object(), &Attempt::Good(last.clone()), Some(&last), 1);
    let (object, _) = seen(&object, &bad("a"), Some(&last), 2);
    let known = |object: &DisruptionPolicy| {
        let status = object.status.clone().unwrap();
        (status.kept_in, status.digest, status.settings_digest)
    };
    let before = known(&object);
    assert_eq!(before.0.as_deref(), Some("tread-last-good-1"));
    let mut off = object.clone();
    off.spec.mode = Mode::Disabled;
    let untried = |message: &str| {
        let failure = Failure { kind: FailureKind::Missing, message: message.to_owned() };
        Attempt::Bad { failure, digest: None, claims: Vec::new() }
    };
    let (gone, _) = seen(&off, &untried("its ConfigMap is gone"), None, 3);
    assert_eq!(known(&gone), (None, None, None));
    let (mut off, _) = seen(&off, &untried(""), None, 3);
    assert_eq!(known(&off), before);
    assert_eq!(columns(&off), ("file:/etc/chrony.conf".to_owned(), "none..restart".to_owned()));
    // Switched on again while the newest is bad, the one before decides.
    off.spec.mode = Mode::Enforce;
    assert_eq!(choose(&off, &bad("a"), Some(&last), None).state, State::LastGood);
    let choice = choose(&off, &bad("a"), None, None);
    let Deciding::Reboots(claims) = choice.deciding else { panic!("{choice:?}") };
    assert_eq!(claims[0].changes, "file:/etc/chrony.conf");
    let mut pinned = object;
    pinned.spec.digest = Some(Sha256::of(b"another").to_string());
    let (pinned, _) = seen(&pinned, &bad("a"), None, 3);
    assert_eq!(known(&pinned), before);
    assert_eq!(columns(&pinned), ("file:/etc/chrony.conf".to_owned(), "reboot".to_owned()));
}

#[test]
fn a_version_that_waits_does_not_take_the_copy_of_one_that_cannot_be_loaded_for_a_moment() {
    let last = version("1.0.0");
    let (loaded, _) = seen(&object(), &Attempt::Good(last.clone()), Some(&last), 1);
    let wide = vec![Claim::on("file:/**", Effect::None, Effect::None)];
    let wide = Attempt::Good(Version { claims: wide, ..version("2.0.0") });
    let meanwhile = |object: &DisruptionPolicy, second: i64| {
        let choice = choose_meanwhile(object, &wide, None);
        let found =
            Found { choice: &choice, newest: &wide, kept: None, name: "chrony", retry: None };
        let (status, note) = status(object, found, Timestamp::from_second(second).unwrap());
        (DisruptionPolicy { status: Some(status), ..object.clone() }, note)
    };
    let known = |object: &DisruptionPolicy| {
        let status = object.status.clone().unwrap();
        (status.kept_in, status.digest, status.settings_digest, status.claims)
    };
    let (after, note) = meanwhile(&loaded, 2);
    assert_eq!(known(&after), known(&loaded));
    assert_eq!(columns(&after), ("file:/etc/chrony.conf".to_owned(), "reboot".to_owned()));
    let (value, reason, message) = condition(&after, "Approved");
    assert_eq!((value, reason), ("False", "NeedsApproval"));
    assert!(message.starts_with("The new version, 2.0.0, decides nothing until"), "{message}");
    assert!(
        message.ends_with("until then every change that it claims costs a reboot."),
        "{message}"
    );
    assert_eq!(note.unwrap().reason, Reason::PolicyNeedsApproval);
    let (again, note) = meanwhile(&after, 3);
    assert_eq!((&again, note), (&after, None), "or every look would be a write");
    // Once it is loaded it decides.
    let (mended, _) = seen(&again, &wide, Some(&last), 4);
    assert_eq!(mended.status.as_ref().unwrap().state, Some(State::LastGood));
    assert_eq!(known(&mended), known(&loaded));
}

/// What stands under CLAIMS and EFFECTS.
fn columns(object: &DisruptionPolicy) -> (String, String) {
    let status = object.status.clone().unwrap();
    (status.claims_summary.unwrap(), status.effects.unwrap())
}

#[test]
fn what_waits_or_comes_with_tread_shows_what_it_claims_when_it_is_switched_off_too() {
    // What comes with tread is not kept: its bytes are at hand.
    let (mut off, _) = seen(&object(), &Attempt::Good(version("1.0.0")), None, 1);
    off.status.as_mut().unwrap().kept_in = None;
    off.spec.mode = Mode::Disabled;
    let failure = Failure { kind: FailureKind::Missing, message: String::new() };
    let untried = Attempt::Bad { failure, digest: None, claims: Vec::new() };
    let (off, _) = seen(&off, &untried, None, 2);
    assert_eq!(columns(&off), ("file:/etc/chrony.conf".to_owned(), "none..restart".to_owned()));
    let (again, note) = seen(&off, &untried, None, 3);
    assert_eq!((again, note), (off, None), "or every look would be a write");

    let wide = vec![Claim::on("file:/**", Effect::None, Effect::Reload)];
    let wide = Attempt::Good(Version { claims: wide, ..version("1.0.0") });
    let (waits, _) = seen(&object(), &wide, None, 1);
    assert_eq!(waits.status.as_ref().unwrap().state, Some(State::NeedsApproval));
    assert_eq!(columns(&waits), ("file:/**".to_owned(), "none..reload".to_owned()));
}

#[test]
fn a_disabled_policy_is_known_as_such() {
    let mut object = object();
    object.spec.mode = Mode::Disabled;
    let (after, note) = seen(&object, &Attempt::Good(version("1.0.0")), None, 1);
    assert_eq!(condition(&after, "Loaded").0, "Unknown");
    assert_eq!(note.unwrap().reason.word(), "PolicyDisabled");
}

#[test]
fn a_column_is_cut_with_a_count() {
    let all: Vec<Claim> = (0..10)
        .map(|n| {
            Claim::on(format!("file:/etc/some/where/{n}.conf"), Effect::Reload, Effect::Reload)
        })
        .collect();
    assert_eq!(
        claims_summary(&all),
        "file:/etc/some/where/0.conf, file:/etc/some/where/1.conf and 8 more"
    );
    let long = Claim::on(format!("file:/{}", "a".repeat(500)), Effect::None, Effect::None);
    assert!(claims_summary(&[long]).len() <= LONGEST_SUMMARY);
    assert_eq!(effects(&all), "reload");
    assert_eq!((claims_summary(&[]), effects(&[])), (String::new(), String::new()));
}

#[test]
fn the_last_change_is_when_what_decides_became_another_and_what_others_wrote_stays() {
    let newest = Attempt::Good(version("1.0.0"));
    let (mut object, _) = seen(&object(), &newest, None, 1);
    let status = object.status.as_mut().unwrap();
    status.decisions = Some(7);
    status.pending_plans = Some("2 gentler".to_owned());
    let next = Attempt::Good(version("1.0.1"));
    for (second, newest, changed) in [(2, &newest, 1), (3, &next, 3), (4, &next, 3)] {
        (object, _) = seen(&object, newest, None, second);
        let status = object.status.as_ref().unwrap();
        let changed = Time(Timestamp::from_second(changed).unwrap());
        assert_eq!(status.last_change, Some(changed));
        assert_eq!(status.decisions, Some(7));
        assert_eq!(status.pending_plans.as_deref(), Some("2 gentler"));
    }
}

#[test]
fn what_waits_to_be_loaded_says_so_once_and_when_it_fails_when_it_is_tried_again() {
    let mut waits = object();
    let first = waiting(&waits, 7, Timestamp::from_second(1).unwrap());
    assert_eq!(first.state, Some(State::Loading));
    waits.status = Some(first.clone());
    let (value, reason, message) = condition(&waits, "Loaded");
    assert_eq!((value, reason), ("Unknown", WAITING));
    assert!(message.contains("7 others wait"), "{message}");
    assert_eq!(waiting(&waits, 3, Timestamp::from_second(9).unwrap()), first);
    // A version that failed to compile is not tried again at once.
    let newest = bad("it takes too long");
    let choice = choose(&waits, &newest, None, None);
    let at = Timestamp::from_second(100).unwrap();
    let retry = Some(Retry { at, tries: 2 });
    let found = Found { choice: &choice, newest: &newest, kept: None, name: "chrony", retry };
    let (status, note) = status(&waits, found, Timestamp::from_second(40).unwrap());
    let failure = status.failure.unwrap();
    assert_eq!((failure.tries, failure.retry_at), (Some(2), Some(Time(at))));
    assert_eq!(note.unwrap().reason, Reason::PolicyFailed);
}

#[test]
fn a_new_version_that_waits_is_told_of_once_and_the_one_before_stays_listed() {
    let (mut waits, _) = seen(&object(), &Attempt::Good(version("1.0.0")), None, 1);
    let before = waits.status.clone().unwrap();
    let said = waiting_behind(&waits, 7, Timestamp::from_second(2).unwrap());
    let same = |it: &DisruptionPolicyStatus| {
        (it.state, it.version.clone(), it.digest.clone(), it.observed_generation)
    };
    assert_eq!(same(&said), same(&before));
    waits.status = Some(said.clone());
    let (value, reason, message) = condition(&waits, "Loaded");
    assert_eq!((value, reason), ("Unknown", WAITING));
    let expected = "7 others wait. Until then 1.0.0 goes on deciding.";
    assert!(message.ends_with(expected), "{message}");
    assert_eq!(waiting_behind(&waits, 3, Timestamp::from_second(9).unwrap()), said);
    // Once it is there, that is what is said.
    let (now, _) = seen(&waits, &Attempt::Good(version("1.0.1")), None, 10);
    assert_eq!(condition(&now, "Loaded").0, "True");
}

#[test]
fn bad_settings_leave_those_before_and_a_question_ends_a_sentence() {
    let last = version("1.0.0");
    let (loaded, _) = seen(&object(), &Attempt::Good(last.clone()), None, 1);
    let message =
        "spec.settings: unknown setting \"restrat\": did you mean \"restart\"?".to_owned();
    let failure = Failure { kind: FailureKind::InvalidSettings, message: message.clone() };
    let bad = |digest| Attempt::Bad { failure: failure.clone(), digest, claims: Vec::new() };
    let (after, _) = seen(&loaded, &bad(Some(last.digest)), Some(&last), 2);
    let (_, reason, said) = condition(&after, "Loaded");
    assert_eq!(reason, "InvalidSettings");
    let digest = last.digest;
    let then = format!("The settings before go on deciding. Its digest is {digest}.");
    assert_eq!(said, format!("{message} {then}"));
    // They came with another module.
    let (after, _) = seen(&loaded, &bad(Some(Sha256::of(b"other"))), Some(&last), 2);
    let said = condition(&after, "Loaded").2;
    assert!(said.contains("? The version before, 1.0.0, goes on deciding."), "{said}");
}

#[test]
fn rules_that_say_nothing_are_invalid_also_by_their_reason() {
    let mut object = object();
    (object.spec.source, object.spec.rules) = (None, Some(Vec::new()));
    let message = "spec.rules[0].actions[0].unit: \"a\" is no unit".to_owned();
    let failure = Failure { kind: FailureKind::InvalidSettings, message };
    let (after, _) =
        seen(&object, &Attempt::Bad { failure, digest: None, claims: Vec::new() }, None, 1);
    assert_eq!(after.status.as_ref().unwrap().state, Some(State::Invalid));
    let (_, reason, said) = condition(&after, "Loaded");
    assert_eq!(reason, "Invalid");
    assert_eq!(said, "spec.rules[0].actions[0].unit: \"a\" is no unit. It decides nothing.");
}
