//! How many entries of registries.conf the built-in policy can compare within
//! the limits of a call: fuel is what decides, and it is the same everywhere.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;
use support::sandbox;
use tread_engine::limits::Limits;
use tread_engine::sandbox::{Call, Module, Sandbox, Speaker, Words};
use tread_model::change::{Change, Content, FileState, State};
use tread_model::description::Claim;
use tread_model::verdict::{Action, Answer, Layer};

const MAIN: &str = "/etc/containers/registries.conf";
const MANY: usize = 10_000;

struct Policy {
    sandbox: Sandbox,
    module: Module,
    claims: Vec<Claim>,
}

/// One call at a time: each takes a lot.
static POLICY: LazyLock<Mutex<Policy>> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/prebuilt/registries.wasm");
    let component = std::fs::read(path).unwrap();
    // Fuel is what is measured, however long others keep the machine busy.
    let sandbox = sandbox(Limits { deadline: Duration::from_secs(600), ..Limits::default() });
    let module = sandbox.load(&component, None).unwrap();
    let claims = sandbox.describe(&component).unwrap().0.claims;
    Mutex::new(Policy { sandbox, module, claims })
});

/// What a call took.
struct Took {
    fuel: u64,
    /// Of what it may take.
    share: f64,
    memory: usize,
    drains: bool,
    reason: String,
}

fn compare(settings: &str, before: &str, after: &str) -> Took {
    let file = |text: &str| {
        State::File(FileState {
            content: Content::Bytes(text.as_bytes().to_vec().into()),
            mode: 0o644,
            user: "root".into(),
            group: "root".into(),
        })
    };
    let change = Change { id: format!("file:{MAIN}"), before: file(before), after: file(after) };
    let policy = POLICY.lock().unwrap_or_else(PoisonError::into_inner);
    let Policy { sandbox, module, claims } = &*policy;
    let call = Call {
        settings,
        changes: &[&change],
        unchanged: &[],
        claims,
        layer: Layer::Builtin,
        speaker: Speaker::Policy,
        words: &Words::default(),
    };
    let limits = Limits::default();
    let reply = sandbox.classify(module, &call).unwrap_or_else(|failed| {
        panic!("{:?} after {} of fuel", failed.failure, failed.spent.unwrap().fuel);
    });
    let most = limits.fuel + limits.fuel_per_byte * (before.len() + after.len()) as u64;
    let verdict = reply.verdicts[0].as_ref().expect("an answer");
    let Answer::Act(actions) = &verdict.answer else { panic!("{verdict:?}") };
    Took {
        share: reply.spent.unwrap().fuel as f64 / most as f64,
        fuel: reply.spent.unwrap().fuel,
        memory: reply.spent.unwrap().memory,
        drains: actions.contains(&Action::Drain),
        reason: verdict.reason.clone(),
    }
}

const SEARCH: &str =
    "unqualified-search-registries = [\"registry.access.redhat.com\", \"docker.io\"]\n\n";

/// An entry as OpenShift renders it, with two mirrors.
fn entry(number: usize) -> String {
    format!(
        "[[registry]]\n  prefix = \"\"\n  location = \"registry.example.com/group-{number:05}/application\"\n\n\
         \u{20} [[registry.mirror]]\n    location = \"mirror-a.example.com:5000/group-{number:05}/application\"\n\
         \u{20}   pull-from-mirror = \"digest-only\"\n\n\
         \u{20} [[registry.mirror]]\n    location = \"mirror-b.example.com:5000/group-{number:05}/application\"\n\
         \u{20}   pull-from-mirror = \"digest-only\"\n\n"
    )
}

fn entries(numbers: impl Iterator<Item = usize>) -> String {
    numbers.map(entry).collect()
}

fn blocked(location: &str) -> String {
    format!("[[registry]]\n  location = \"{location}\"\n  blocked = true\n\n")
}

/// What is compared, of so many entries: a name, both sides, and whether the node
/// is drained.
fn shapes(many: usize) -> Vec<(&'static str, String, String, bool)> {
    let all = entries(0..many);
    let main = [SEARCH, &all].concat();
    let with = |more: &str| [&main, more].concat();
    let search =
        |list: &str| main.replace(SEARCH, &format!("unqualified-search-registries = {list}\n\n"));
    let new = entry(99_999);
    let elsewhere = blocked("untrusted.example.com");
    let appended =
        search("[\"registry.access.redhat.com\", \"docker.io\", \"registry.example.com\"]");
    let swapped = search("[\"registry.example.com\", \"registry.access.redhat.com\"]");
    let hidden = |list: &str| search(list) + &blocked("registry.access.redhat.com");
    // The number runs over all of them, each time far from the one before.
    let mixed = entries((0..many).map(|n| n * 7_919 % many));
    let unlike = main.replace("mirror-b", "mirror-c");
    let short: String =
        (0..many).map(|n| format!("[[registry]]\nlocation=\"a.io/{n}\"\n")).collect();
    let insecure = short.replace("\"\n", "\"\ninsecure=true\n");
    let wild: String = (0..many)
        .map(|n| entry(n).replace("prefix = \"\"", &format!("prefix = \"*.s{n}.example.com\"")))
        .collect();
    vec![
        ("a mirror is added", main.clone(), with(&new), false),
        (
            "a mirror is added in the middle",
            main.clone(),
            main.replacen(&entry(many / 2), &[entry(many / 2), new.clone()].concat(), 1),
            false,
        ),
        (
            "a mirror is added, where a scope is blocked",
            with(&elsewhere),
            with(&[&*elsewhere, &new].concat()),
            false,
        ),
        (
            "a mirror goes, where a scope is blocked",
            with(&[&*elsewhere, &new].concat()),
            with(&elsewhere),
            true,
        ),
        (
            "a mirror is added, where a part of a mirror is blocked",
            with(&blocked("mirror-a.example.com:5000/group-00007")),
            with(&[blocked("mirror-a.example.com:5000/group-00007"), new.clone()].concat()),
            false,
        ),
        ("a registry is searched last", main.clone(), appended.clone(), false),
        (
            "a registry is searched last, where a scope is blocked",
            with(&elsewhere),
            [appended, elsewhere.clone()].concat(),
            false,
        ),
        ("a registry is searched first", main.clone(), swapped, true),
        (
            "a registry that is blocked is not searched any more",
            hidden("[\"registry.access.redhat.com\", \"registry.example.com\"]"),
            hidden("[\"registry.example.com\"]"),
            false,
        ),
        ("a scope is blocked", main.clone(), with(&elsewhere), true),
        (
            "the registry of all mirrors is blocked",
            main.clone(),
            with(&blocked("mirror-a.example.com:5000")),
            true,
        ),
        ("all are blocked", main.clone(), with(&blocked("*.example.com")), true),
        ("all are there at once", SEARCH.to_string(), main.clone(), false),
        ("all go at once", main.clone(), SEARCH.to_string(), true),
        ("all get another mirror", main.clone(), unlike, true),
        (
            "a mirror is added to entries in no order",
            [SEARCH, &mixed].concat(),
            [SEARCH, &mixed, &new].concat(),
            false,
        ),
        ("all are written in another order", main.clone(), [SEARCH, &mixed].concat(), false),
        (
            "a mirror is added to wildcards",
            [SEARCH, &wild].concat(),
            [SEARCH, &wild, &new].concat(),
            false,
        ),
        (
            "a wildcard is added",
            main.clone(),
            with("[[registry]]\n  prefix = \"*.example.com\"\n\n"),
            false,
        ),
        ("short entries are there at once", String::new(), short.clone(), false),
        ("short entries are changed at once", short, insecure, false),
    ]
}

#[test]
fn ten_thousand_entries_fit_into_a_call_whatever_happens_to_them() {
    for (shape, before, after, drains) in shapes(MANY) {
        let took = compare("{}", &before, &after);
        assert_eq!(took.drains, drains, "{shape}: {}", took.reason);
        let (share, memory) = (took.share * 100.0, took.memory >> 20);
        // Room for contents that are more work than these.
        assert!(
            took.share < 0.9 && memory < 28,
            "{shape}: {} of fuel, which is {share:.0} %, and {memory} MiB",
            took.fuel
        );
    }
}

#[test]
fn mirrors_that_are_not_trusted_take_no_more() {
    for (shape, before, after, drains) in shapes(1_000) {
        let [trusted, untrusted] =
            ["{}", r#"{"mirrors":"untrusted"}"#].map(|it| compare(it, &before, &after));
        assert!(untrusted.drains || !drains, "{shape}: {}", untrusted.reason);
        let most = trusted.fuel + trusted.fuel / 10;
        assert!(untrusted.fuel < most, "{shape}: {} and {}", trusted.fuel, untrusted.fuel);
    }
}

/// Sorting and looking up grow a little faster than their input.
#[test]
fn fuel_grows_with_the_entries_and_hardly_faster() {
    const TIMES: usize = 8;
    let (few, many) = (shapes(500), shapes(500 * TIMES));
    for ((shape, before, after, _), (_, more_before, more_after, _)) in few.iter().zip(&many) {
        let (few, many) = (compare("{}", before, after), compare("{}", more_before, more_after));
        let growth = many.fuel as f64 / few.fuel as f64;
        assert!(growth < 1.4 * TIMES as f64, "{shape}: {growth:.1} for {TIMES} times as many");
    }
}

/// Each of many mirrors beside each of many blocked scopes: more names than anybody
/// can look up. That is a drain with a reason, not a failure.
#[test]
fn what_would_take_too_long_is_drained_for() {
    let mirrors = |place: &str| -> String {
        (0..1_000).map(|n| format!(
            "[[registry]]\nlocation = \"s{n}.example.com/a\"\n[[registry.mirror]]\nlocation = \"{place}\"\n"
        )).collect()
    };
    let scopes: String = (0..1_000).map(|n| blocked(&format!("m.example.com/a/{n}"))).collect();
    let text = |place: &str| [mirrors(place), scopes.clone()].concat();
    let took = compare("{}", &text("n.example.com/a"), &text("m.example.com/a"));
    assert!(took.drains && took.reason.contains("too many names"), "{}", took.reason);
}
