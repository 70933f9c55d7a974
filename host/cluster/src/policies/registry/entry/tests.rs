//! How an entry comes from one state to the next.

use super::*;
use crate::policies::load::{Body, Terms};
use crate::policies::registry::chosen::idle;
use crate::policies::registry::origin::Origin;
use serde_json::{Map, json};
use tread_kube::api::disruption_policy::Layer as SpecLayer;
use tread_model::digest::Sha256;

fn recipe(version: &str) -> Recipe {
    let (uid, key) = ("1".to_owned(), None);
    let place = ("apps".to_owned(), "a".to_owned());
    Recipe {
        origin: Origin::ConfigMap { place, uid, resource_version: version.to_owned(), key },
        settings: Map::new(),
        pin: None,
        terms: Terms {
            layer: Layer::Template,
            limits: None,
            may_relax: false,
            read_secrets: false,
        },
    }
}

fn bad(kind: FailureKind) -> Loaded {
    Loaded::bad(Failure { kind, message: String::new() })
}

fn runs(entry: &mut Entry, recipe: &Recipe) {
    let task = tokio::spawn(std::future::pending::<()>()).abort_handle();
    let job = Box::new(Running { what: recipe.clone(), task });
    entry.loading = Loading::Runs { job, is_outdated: false, since: Instant::now() };
}

/// Loads it; how long it is waited before it is loaded again.
fn fails(entry: &mut Entry, recipe: &Recipe, kind: FailureKind) -> Option<Duration> {
    let now = Instant::now();
    runs(entry, recipe);
    entry.loaded(recipe.clone(), bad(kind), now);
    let Due::Tried(again) = entry.due(recipe, now) else { panic!("it was tried") };
    again.map(|again| again - now)
}

#[tokio::test]
async fn what_fails_for_lack_of_time_is_loaded_again_later_each_time_and_what_is_bad_is_not() {
    let (mut entry, one) = (Entry::new(), recipe("1"));
    assert_eq!(entry.due(&one, Instant::now()), Due::Load);
    let mut waits = (0..10).map(|_| fails(&mut entry, &one, FailureKind::CompileTimeout).unwrap());
    let (first, second) = (waits.next().unwrap(), waits.next().unwrap());
    assert_eq!((first, second), (TRY_AGAIN.0, TRY_AGAIN.0 * 2));
    assert_eq!(waits.last(), Some(TRY_AGAIN.1));
    assert_eq!(entry.due(&one, Instant::now() + TRY_AGAIN.1), Due::Load);
    assert_eq!(fails(&mut entry, &recipe("2"), FailureKind::InvalidSettings), None);
    assert_eq!(entry.due(&recipe("3"), Instant::now()), Due::Load);
}

#[tokio::test]
async fn a_new_version_waits_behind_another_and_one_that_is_tried_again_does_not() {
    let (mut entry, one, two) = (Entry::new(), recipe("1"), recipe("2"));
    runs(&mut entry, &one);
    assert_eq!(entry.waits_behind_another(), None, "there is none before it");
    fails(&mut entry, &one, FailureKind::CompileTimeout);
    runs(&mut entry, &one);
    assert_eq!(entry.waits_behind_another(), None, "it is the same");
    runs(&mut entry, &two);
    assert!(entry.waits_behind_another().is_some());
    fails(&mut entry, &two, FailureKind::InvalidSettings);
    assert_eq!(entry.waits_behind_another(), None, "it was tried");
}

#[tokio::test]
async fn what_is_written_all_the_time_is_loaded_and_not_called_bad_for_it() {
    let (mut entry, one, two) = (Entry::new(), recipe("1"), recipe("2"));
    assert!(fails(&mut entry, &one, FailureKind::InvalidSettings).is_none());
    runs(&mut entry, &two);
    // Another version is there before this one is loaded.
    assert_eq!(entry.due(&recipe("3"), Instant::now()), Due::Runs);
    entry.loaded(two, bad(FailureKind::CompileTimeout), Instant::now());
    assert_eq!(entry.tried().unwrap().recipe, one);
    assert_eq!(entry.due(&recipe("3"), Instant::now()), Due::Load);
    // What an admin says takes effect at once.
    runs(&mut entry, &recipe("3"));
    let settings = json!({"a": 1}).as_object().unwrap().clone();
    let changed = Recipe { settings, ..recipe("3") };
    assert_eq!(entry.due(&changed, Instant::now()), Due::Load);
}

#[tokio::test]
async fn what_was_not_to_be_loaded_any_more_is_not_noted() {
    let (mut entry, one) = (Entry::new(), recipe("1"));
    entry.loaded(one.clone(), bad(FailureKind::InvalidSettings), Instant::now());
    assert!(entry.tried().is_none());
    runs(&mut entry, &one);
    entry.forget();
    entry.loaded(one, bad(FailureKind::InvalidSettings), Instant::now());
    assert!(entry.tried().is_none());
    let here = Recipe { origin: Origin::Here(Body::Builtin("a".to_owned())), ..recipe("1") };
    let failure = Failure { kind: FailureKind::Missing, message: String::new() };
    entry.cannot_be_loaded(here.clone(), failure);
    assert_eq!(entry.due(&here, Instant::now()), Due::Tried(None));
}

fn good(bytes: &[u8]) -> Loaded {
    let version = Version {
        name: "a".to_owned(),
        version: "1".to_owned(),
        summary: String::new(),
        claims: Vec::new(),
        digest: Sha256::of(bytes),
        settings_digest: Sha256::of(b"{}"),
        warnings: Vec::new(),
    };
    let identity = PolicyIdentity {
        policy: "a".to_owned(),
        layer: Layer::Template,
        version: "1".to_owned(),
        digest: version.digest,
        settings_digest: version.settings_digest,
    };
    let failure = Failure { kind: FailureKind::Trap, message: String::new() };
    let policy = Policy::broken(identity, Vec::new(), failure).unwrap();
    let attempt = Attempt::Good(version);
    Loaded { attempt, policy: Some(Arc::new(policy)), ..bad(FailureKind::Trap) }
}

#[tokio::test]
async fn what_decided_stays_at_hand_while_newer_versions_wait_or_are_bad() {
    let mut entry = Entry::new();
    let loads = |entry: &mut Entry, version: &str, loaded: Loaded| {
        runs(entry, &recipe(version));
        entry.loaded(recipe(version), loaded, Instant::now());
        entry.last.as_ref().map(|last| last.version.digest)
    };
    assert_eq!(loads(&mut entry, "0", good(b"0")), None);
    assert_eq!(loads(&mut entry, "1", good(b"1")), None, "the one before never decided");
    let object = Arc::new(DisruptionPolicy::new("a", DisruptionPolicySpec::default()));
    let mut before = idle(&object, "");
    before.choice.deciding = Deciding::Newest;
    entry.before = Some(before.clone());
    let first = Some(Sha256::of(b"1"));
    assert_eq!(loads(&mut entry, "2", good(b"2")), first);
    before.choice.deciding = Deciding::LastGood;
    entry.before = Some(before);
    assert_eq!(loads(&mut entry, "3", bad(FailureKind::Trap)), first);
    assert_eq!(loads(&mut entry, "4", good(b"4")), first);
    assert_eq!(loads(&mut entry, "5", bad(FailureKind::Trap)), first);
}

#[test]
fn what_an_admin_takes_back_counts_before_the_policy_is_loaded_again() {
    let spec = |layer, given: bool| DisruptionPolicySpec {
        layer: Some(layer),
        may_relax: given,
        read_secrets: given,
        ..DisruptionPolicySpec::default()
    };
    let loaded = |layer, given: bool| {
        let identity = PolicyIdentity {
            policy: "a".to_owned(),
            layer,
            version: "1".to_owned(),
            digest: Sha256::of(b"a"),
            settings_digest: Sha256::of(b"{}"),
        };
        let failure = Failure { kind: FailureKind::Trap, message: String::new() };
        let mut policy = Policy::broken(identity, Vec::new(), failure).unwrap();
        policy.may_relax = given && layer == Layer::Template;
        policy.read_secrets = given;
        Arc::new(policy)
    };
    let rights = |it: &Policy| (it.identity.layer, it.may_relax, it.read_secrets);
    let mut entry = Entry::new();
    let relaxes = loaded(Layer::Template, true);
    let mut takes_part = |policy: &Arc<Policy>, name: &str, spec: &DisruptionPolicySpec| {
        let first = entry.taking_part(policy, name, spec);
        assert!(
            Arc::ptr_eq(&first, &entry.taking_part(policy, name, spec)),
            "plans would be made anew"
        );
        first
    };
    let same = takes_part(&relaxes, "a", &spec(SpecLayer::Template, true));
    assert!(Arc::ptr_eq(&same, &relaxes));
    let less = takes_part(&relaxes, "a", &spec(SpecLayer::Template, false));
    assert_eq!(rights(&less), (Layer::Template, false, false));
    let renamed = takes_part(&relaxes, "b", &spec(SpecLayer::Template, true));
    assert_eq!((renamed.identity.policy.as_str(), renamed.may_relax), ("b", true));
    let (was_admins, template) = (loaded(Layer::Admin, true), spec(SpecLayer::Template, true));
    assert_eq!(rights(&takes_part(&was_admins, "a", &template)), (Layer::Template, false, true));
    // What is granted counts as soon as it is loaded with that.
    let (plain, admins) = (loaded(Layer::Template, false), spec(SpecLayer::Admin, true));
    assert!(Arc::ptr_eq(&takes_part(&plain, "a", &admins), &plain));
}
