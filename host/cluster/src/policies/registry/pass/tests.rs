//! How looks follow one another.

use super::*;
use crate::policies::choose::Choice;
use crate::policies::current::Current;
use crate::policies::read;
use crate::policies::register::Withdrawal;
use crate::policies::registry::carry::Written;
use crate::policies::registry::known::Moment;
use crate::policies::registry::settings::Settings;
use crate::policies::snapshot::PolicyMap;
use kube::api::Preconditions;
use kube::{Client, Config};
use serde_json::{Map, json};
use tokio::sync::watch;
use tread_engine::policy::{Policy, PolicySet};
use tread_kube::leadership::Leading;
use tread_model::plan::PolicyIdentity;
use tread_model::verdict::Layer;

/// A registry of which nothing is answered that it asks, and what says whether it leads.
fn registry() -> (Registry, watch::Sender<bool>) {
    let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let (leads, following) = watch::channel(true);
    let leading = Leading::without_election(following, None);
    let nobody = Current::new(PolicySet::default(), None, false);
    let publish = watch::channel(Arc::new(nobody)).0;
    (Registry::new(Settings::of_test(&client, leading), publish), leads)
}

fn recipe() -> Recipe {
    Recipe {
        origin: Origin::Here(Body::Rules(json!([]))),
        settings: Map::new(),
        pin: None,
        terms: Terms { layer: Layer::Admin, limits: None, may_relax: false, read_secrets: false },
    }
}

/// A version whose bytes are these.
fn version(bytes: &str) -> Version {
    Version {
        name: "a".to_owned(),
        version: "1".to_owned(),
        summary: String::new(),
        claims: Vec::new(),
        digest: Sha256::of(bytes.as_bytes()),
        settings_digest: Sha256::of(b"{}"),
        warnings: Vec::new(),
    }
}

/// Has this version as the newest.
fn loads(entry: &mut Entry, version: &Version) {
    let identity = PolicyIdentity {
        policy: "a".to_owned(),
        layer: Layer::Admin,
        version: "1".to_owned(),
        digest: version.digest,
        settings_digest: version.settings_digest,
    };
    let failure = Failure { kind: FailureKind::Trap, message: String::new() };
    let policy = Policy::broken(identity, Vec::new(), failure.clone()).unwrap();
    let loaded = Loaded {
        attempt: Attempt::Good(version.clone()),
        policy: Some(Arc::new(policy)),
        ..Loaded::bad(failure)
    };
    let task = tokio::spawn(std::future::pending::<()>()).abort_handle();
    let job = Box::new(Running { what: recipe(), task });
    entry.loading = Loading::Runs { job, is_outdated: false, since: Instant::now() };
    entry.loaded(recipe(), loaded, Instant::now());
}

fn object() -> Arc<DisruptionPolicy> {
    let mut object = DisruptionPolicy::new("a", Default::default());
    object.metadata.uid = Some("1".to_owned());
    Arc::new(object)
}

fn seen() -> Preconditions {
    Preconditions { uid: Some("u".to_owned()), resource_version: Some("1".to_owned()) }
}

#[tokio::test]
async fn a_copy_that_is_being_removed_is_written_anew_after_that() {
    let (mut registry, _leads) = registry();
    let (mut entry, object, version) = (Entry::new(), object(), version("a"));
    loads(&mut entry, &version);

    // The version before comes back while the status that names it no more is being written.
    let place = kept::place("1", &version);
    registry.removing.insert(place.clone());
    registry.copy(&object, &mut entry, &recipe());
    assert!(entry.copying.is_none());
    // What was known of it is known no more.
    entry.copied(version, Ok((place, seen())), Instant::now());
    registry.entries.insert("1".to_owned(), entry);
    registry.wrote(Written::default());
    let mut entry = registry.entries.remove("1").unwrap();
    assert!(matches!(entry.copy, Copy::Nothing));
    registry.copy(&object, &mut entry, &recipe());
    assert!(entry.copying.is_some());
}

#[tokio::test]
async fn of_the_copies_that_no_status_names_one_goes_before_the_next_is_written() {
    let (mut registry, _leads) = registry();
    let (mut entry, object) = (Entry::new(), object());
    let (first, second, third) = (version("a"), version("b"), version("c"));
    loads(&mut entry, &second);
    let place = kept::place("1", &first);
    let named_by = |place: &str| {
        let mut named = DisruptionPolicy::clone(&object);
        named.status.get_or_insert_default().kept_in = Some(place.to_owned());
        Arc::new(named)
    };

    // It goes by the status that names another one.
    entry.copied(first.clone(), Ok((place.clone(), seen())), Instant::now());
    registry.copy(&named_by(&place), &mut entry, &recipe());
    assert!(entry.copying.take().is_some() && registry.swept.copies.is_empty());

    registry.copy(&object, &mut entry, &recipe());
    assert!(entry.copying.is_none());
    let sweep = registry.sweep();
    let [Write::Sweep { place: goes, as_seen }] = sweep.as_slice() else { panic!("{sweep:?}") };
    assert_eq!((goes, as_seen), (&place, &seen()));
    let done = vec![format!("copy {place}")];
    registry.wrote(Written { done, ..Written::default() });
    registry.copy(&object, &mut entry, &recipe());
    assert!(entry.copying.as_ref().is_some_and(|it| it.what == second));

    // What is being written comes to its end: it may be there already.
    loads(&mut entry, &third);
    registry.copy(&object, &mut entry, &recipe());
    assert!(entry.copying.as_ref().is_some_and(|it| it.what == second));
    // One without an answer may be there as well.
    entry.copied(second.clone(), Err(NotCopied::Refused), Instant::now());
    registry.copy(&object, &mut entry, &recipe());
    assert!(entry.copying.is_none());
    assert!(registry.swept.copies.contains_key(&kept::place("1", &second)));
}

#[tokio::test]
async fn who_leads_again_does_not_believe_in_copies_of_before() {
    let (mut registry, leads) = registry();
    let policy = json!({"metadata": {"name": "a", "uid": "1"},
        "spec": {"rules": [{"match": ["file:/etc/a"], "actions": []}]}});
    let policy = Arc::new(serde_json::from_value(policy).unwrap());
    registry.known.take(Moment::Policies(Arc::new([("a".to_owned(), policy)].into())));
    let mut entry = Entry::new();
    entry.copied(version("a"), Ok((kept::place("1", &version("a")), seen())), Instant::now());
    registry.entries.insert("1".to_owned(), entry);
    let knows = |registry: &Registry| !matches!(registry.entries["1"].copy, Copy::Nothing);
    registry.pass();
    assert!(knows(&registry));
    // Somebody else removes it meanwhile.
    leads.send(false).unwrap();
    registry.pass();
    leads.send(true).unwrap();
    registry.pass();
    assert!(!knows(&registry));
}

#[tokio::test]
async fn what_was_pinned_away_does_not_decide_while_the_pinned_one_is_looked_for() {
    let (mut registry, _leads) = registry();
    let (pinned, newest) = (version("pinned"), version("newest"));
    let policy = |pin: Option<&Version>| {
        let policy = json!({"metadata": {"name": "apps.a", "uid": "1"},
            "spec": {"layer": "template", "digest": pin.map(|it| it.digest.to_string()),
                "source": {"configMap": {"namespace": "apps", "name": "a"}}},
            "status": {"state": "Loaded", "keptIn": "copy", "digest": pinned.digest.to_string(),
                "settingsDigest": pinned.settings_digest.to_string(),
                "claims": [{"changes": "file:/etc/a", "least": "none", "most": "restart"}]}});
        read::policy(serde_json::from_value(policy).unwrap())
    };
    let maps = [(("apps".to_owned(), "a".to_owned()), PolicyMap::default())];
    let snapshot = Snapshot { config_maps: Arc::new(maps.into()), ..Snapshot::default() };
    let mut decides = |pin: Option<&Version>, newest_is_bad: bool| {
        let (mut entry, it) = (Entry::new(), policy(pin));
        loads(&mut entry, &newest);
        let choice =
            Choice { state: State::Loaded, deciding: Deciding::Newest, needs_approval: None };
        let attempt = Attempt::Good(newest.clone());
        entry.before = Some(Chosen { choice, attempt, ..idle(&it.object, "") });
        if newest_is_bad {
            let failure = Failure { kind: FailureKind::Trap, message: String::new() };
            entry.cannot_be_loaded(recipe(), failure);
        }
        registry.consider(&snapshot, &it, &mut entry, None).unwrap()
    };
    let found = decides(Some(&pinned), false);
    let Deciding::Reboots(claims) = &found.choice.deciding else { panic!("{found:?}") };
    assert_eq!((claims[0].changes.as_str(), found.is_final), ("file:/etc/a", false));
    // Without a pin, what decided goes on meanwhile.
    let found = decides(None, true);
    assert_eq!((found.choice.deciding, found.is_final), (Deciding::Newest, false));
}

#[test]
fn an_annotation_that_an_admin_removed_does_not_come_again_with_the_next_object() {
    let object = || DisruptionPolicy::new("apps.a", Default::default());
    let told = |fields: Option<&str>| {
        let mut object = object();
        let annotation = fields.map(|it| (LOST_ANNOTATION.to_owned(), it.to_owned()));
        object.metadata.annotations = Some(annotation.into_iter().collect());
        object
    };
    let mut lost = BTreeMap::new();
    // The object goes, and comes again: what the new one says.
    let mut comes_again = |gone: DisruptionPolicy, said: Vec<&'static str>| {
        let mut snapshot = Snapshot::default();
        snapshot.policies.insert("apps.a".to_owned(), Arc::new(gone));
        let withdrawn = Withdrawal {
            name: "apps.a".to_owned(),
            uid: String::new(),
            why: String::new(),
            lost: said,
        };
        let mut registration =
            Registration { withdraw: vec![withdrawn], ..Registration::default() };
        remember_lost(&mut lost, &snapshot, &mut registration);
        let mut registration = Registration { create: vec![object()], ..Registration::default() };
        remember_lost(&mut lost, &Snapshot::default(), &mut registration);
        registration.create.pop().unwrap().annotations().get(LOST_ANNOTATION).cloned()
    };
    assert_eq!(comes_again(told(None), Vec::new()), None);
    let approved = Some("approved".to_owned());
    assert_eq!(comes_again(told(None), vec!["approved"]), approved);
    assert_eq!(comes_again(told(Some("approved")), Vec::new()), approved, "it stood there");
    assert_eq!(comes_again(told(None), Vec::new()), None, "an admin removed it");
}
