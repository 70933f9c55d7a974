//! How an entry comes from one state to the next.

use super::*;
use crate::policies::load::{Body, Terms};
use crate::policies::registry::origin::Origin;
use serde_json::{Map, json};
use tread_model::verdict::Layer;

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
