//! The law of the policy, tried by brute force: a node is not drained only if
//! every pull that worked still works and gives the same image, whatever is up.
//!
//! The runtime is modelled here a second time, word by word and without any
//! cleverness, over a world small enough to try all of it.

#![expect(
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a model in a test may panic: that is how it fails"
)]

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tread_guest_sdk::{Action, Context, Policy, test};
use tread_policy_registries::{Registries, Settings};

const PREFIXES: &[&str] =
    &["a.io", "a.io/p", "a.io/p/q", "b.io", "m.io", "m.io/p", "*.w.io", "c.w.io", "*.c.w.io"];
const PLACES: &[&str] = &["a.io", "a.io/p", "b.io", "m.io", "m.io/p", "c.w.io", "n.io/x"];
/// Names for each way in which the prefixes and places above can overlap.
const NAMES: &[&str] = &[
    "a.io/r",
    "a.io/r/s",
    "a.io/p",
    "a.io/p/r",
    "a.io/p/r/s",
    "a.io/p/p",
    "a.io/p/p/r",
    "a.io/p/q",
    "a.io/p/q/r",
    "a.io/p/q/r/s",
    "a.io/p/q/p",
    "a.io/q",
    "a.io/q/r",
    "a.io/p/p/q",
    "a.io/p/p/q/r",
    "a.io/p/q/q",
    "a.io/p/q/p/r",
    "a.io/p/q/p/q",
    "a.io/p/q/p/q/r",
    "a.io/p/q/q/r",
    "a.io/q/r/s",
    "b.io/r",
    "b.io/r/s",
    "b.io/p",
    "b.io/p/r",
    "b.io/p/q",
    "b.io/p/q/r",
    "b.io/q",
    "b.io/q/r",
    "m.io/r",
    "m.io/r/s",
    "m.io/p",
    "m.io/p/r",
    "m.io/p/r/s",
    "m.io/p/p",
    "m.io/p/p/r",
    "m.io/p/q",
    "m.io/p/q/r",
    "m.io/p/p/q",
    "m.io/p/p/q/r",
    "m.io/q",
    "m.io/q/r",
    "m.io/p/q/p",
    "c.w.io/r",
    "c.w.io/r/s",
    "c.w.io/p",
    "c.w.io/p/r",
    "c.w.io/p/q",
    "c.w.io/p/q/r",
    "c.w.io/q",
    "c.w.io/q/r",
    "d.w.io/r",
    "d.w.io/r/s",
    "d.w.io/p",
    "d.w.io/p/r",
    "d.w.io/p/q",
    "d.w.io/p/q/r",
    "d.w.io/q",
    "d.w.io/q/r",
    "d.c.w.io/r",
    "d.c.w.io/r/s",
    "d.c.w.io/p",
    "d.c.w.io/p/r",
    "d.c.w.io/p/q",
    "d.c.w.io/p/q/r",
    "d.c.w.io/q",
    "d.c.w.io/q/r",
    "n.io/x",
    "z.io/r",
];
/// Every path that a name above has may be asked for without a registry too.
fn shorts() -> impl Iterator<Item = &'static str> {
    let paths = NAMES.iter().filter_map(|name| name.split_once('/'));
    paths.map(|(_, path)| path).collect::<BTreeSet<_>>().into_iter()
}

#[derive(Debug, Clone, PartialEq)]
struct Place {
    location: String,
    insecure: bool,
    pull: &'static str,
}

#[derive(Debug, Clone, PartialEq)]
struct Registry {
    own: Place,
    blocked: bool,
    by_digest_only: bool,
    mirrors: Vec<Place>,
}

#[derive(Debug, Clone, PartialEq)]
struct Side {
    registries: BTreeMap<&'static str, Registry>,
    search: Vec<&'static str>,
    mode: &'static str,
    aliases: BTreeMap<&'static str, &'static str>,
}

// ---- the world -----------------------------------------------------------

fn place(pull: impl Strategy<Value = &'static str>) -> impl Strategy<Value = Place> {
    let rarely = proptest::bool::weighted(0.2);
    (proptest::sample::select(PLACES), rarely, pull).prop_map(|(location, insecure, pull)| Place {
        location: location.into(),
        insecure,
        pull,
    })
}

fn registry() -> impl Strategy<Value = (&'static str, Registry)> {
    let pull = || proptest::sample::select(&["", "all", "digest-only", "tag-only"][..]);
    let rarely = || proptest::bool::weighted(0.15);
    let own = (proptest::bool::weighted(0.7), place(Just("")));
    (
        proptest::sample::select(PREFIXES),
        own,
        rarely(),
        rarely(),
        proptest::collection::vec(place(pull()), 0..3),
    )
        .prop_map(|(prefix, (plain, mut own), blocked, by_digest_only, mut mirrors)| {
            if plain {
                own.location = if prefix.starts_with('*') { "" } else { prefix }.to_string();
            }
            if by_digest_only {
                mirrors.iter_mut().for_each(|mirror| mirror.pull = "");
            }
            (prefix, Registry { own, blocked, by_digest_only, mirrors })
        })
}

fn side() -> impl Strategy<Value = Side> {
    let search = proptest::sample::subsequence(&["a.io", "m.io", "d.w.io"][..], 0..3);
    let mode = proptest::sample::select(&["", "", "permissive", "enforcing"][..]);
    let short = proptest::sample::select(&["r", "p/q"][..]);
    let target = proptest::sample::select(&["a.io/r", "m.io/p/q", "z.io/r", ""][..]);
    (
        proptest::collection::vec(registry(), 0..4),
        search,
        mode,
        proptest::collection::btree_map(short, target, 0..2),
    )
        .prop_map(|(registries, search, mode, aliases)| {
            let mut side =
                Side { registries: registries.into_iter().collect(), search, mode, aliases };
            agree(&mut side);
            side
        })
}

/// The same location twice must be blocked and insecure alike.
fn agree(side: &mut Side) {
    let mut flags = BTreeMap::new();
    for (prefix, registry) in &mut side.registries {
        let own = &registry.own.location;
        let place = if own.is_empty() { (*prefix).to_string() } else { own.clone() };
        let (insecure, blocked) =
            *flags.entry(place).or_insert((registry.own.insecure, registry.blocked));
        (registry.own.insecure, registry.blocked) = (insecure, blocked);
    }
}

/// A side and one that differs from it in a few places.
fn pair() -> impl Strategy<Value = (Side, Side)> {
    let edits = proptest::collection::vec((0..7_u8, registry(), side()), 0..3);
    (side(), edits).prop_map(|(before, edits)| {
        let mut after = before.clone();
        for (edit, (prefix, registry), other) in edits {
            let known = after.registries.values_mut().next_back();
            match (edit, known) {
                (0, _) => drop(after.registries.insert(prefix, registry)),
                (1, _) => drop(after.registries.pop_first()),
                (2, Some(known)) if !known.by_digest_only => known.mirrors.extend(registry.mirrors),
                (3, Some(known)) => known.mirrors.reverse(),
                (4, Some(known)) => {
                    known.blocked ^= registry.own.insecure;
                    known.own.insecure ^= registry.blocked;
                }
                (5, _) => after.search.clone_from(&other.search),
                (6, _) => (after.mode, after.aliases) = (other.mode, other.aliases),
                _ => {}
            }
        }
        agree(&mut after);
        after.registries.values_mut().filter(|r| r.by_digest_only).for_each(|registry| {
            registry.mirrors.iter_mut().for_each(|mirror| mirror.pull = "");
        });
        (before, after)
    })
}

fn toml(side: &Side) -> String {
    let mut text = format!("unqualified-search-registries = {:?}\n", side.search);
    if !side.mode.is_empty() {
        text += &format!("short-name-mode = {:?}\n", side.mode);
    }
    for (prefix, registry) in &side.registries {
        text +=
            &format!("[[registry]]\nprefix = {prefix:?}\nlocation = {:?}\n", registry.own.location);
        text += &format!("insecure = {}\nblocked = {}\n", registry.own.insecure, registry.blocked);
        text += &format!("mirror-by-digest-only = {}\n", registry.by_digest_only);
        for mirror in &registry.mirrors {
            text += &format!("[[registry.mirror]]\nlocation = {:?}\n", mirror.location);
            text += &format!("insecure = {}\n", mirror.insecure);
            if !mirror.pull.is_empty() {
                text += &format!("pull-from-mirror = {:?}\n", mirror.pull);
            }
        }
    }
    text += "[aliases]\n";
    for (short, target) in &side.aliases {
        text += &format!("{short:?} = {target:?}\n");
    }
    text
}

// ---- the runtime, once more ----------------------------------------------

/// How much of the name a prefix matches.
fn matches(name: &str, prefix: &str) -> Option<usize> {
    let end = if let Some(suffix) = prefix.strip_prefix('*') {
        let at = name.find(suffix)?;
        if name[..at].contains('/') {
            return None;
        }
        at + suffix.len()
    } else {
        name.starts_with(prefix).then_some(prefix.len())?
    };
    (end == name.len() || name[end..].starts_with([':', '/', '@'])).then_some(end)
}

fn find<'a>(side: &'a Side, name: &str) -> Option<(usize, &'a Registry)> {
    let mut best: Option<(usize, usize, &Registry)> = None;
    for (prefix, registry) in &side.registries {
        if let Some(end) = matches(name, prefix)
            && best.is_none_or(|best| prefix.len() > best.0)
        {
            best = Some((prefix.len(), end, registry));
        }
    }
    best.map(|(_, end, registry)| (end, registry))
}

fn is_canonical(name: &str) -> bool {
    name.split_once('/').is_some_and(|(host, path)| host.contains(['.', ':']) && !path.is_empty())
}

type Source = (String, bool);

fn sources(side: &Side, name: &str, digest: bool) -> Vec<Source> {
    let Some((end, registry)) = find(side, name) else { return vec![(name.to_string(), false)] };
    let mut places = Vec::new();
    for mirror in &registry.mirrors {
        let used = if registry.by_digest_only {
            digest
        } else {
            match mirror.pull {
                "digest-only" => digest,
                "tag-only" => !digest,
                _ => true,
            }
        };
        if used {
            places.push(mirror);
        }
    }
    places.push(&registry.own);
    let mut found = Vec::new();
    for place in places {
        let location =
            if place.location.is_empty() { &name[..end] } else { place.location.as_str() };
        let physical = format!("{location}{}", &name[end..]);
        if !is_canonical(&physical) {
            return Vec::new();
        }
        if !find(side, &physical).is_some_and(|(_, found)| found.blocked) {
            found.push((physical, place.insecure));
        }
    }
    found
}

fn short_sources(side: &Side, short: &str, digest: bool) -> Vec<Source> {
    let names: Vec<String> = match side.aliases.get(short) {
        Some(target) if !target.is_empty() => vec![target.to_string()],
        _ if side.mode == "enforcing" && side.search.len() > 1 => vec![],
        _ => side.search.iter().map(|registry| format!("{registry}/{short}")).collect(),
    };
    names.iter().flat_map(|name| sources(side, name, digest)).collect()
}

/// Whether a pull goes on as before, whatever is down (0), up without a valid
/// certificate (1), or up (2).
fn goes_on(before: &[Source], after: &[Source], digest: bool) -> bool {
    let places: Vec<&str> = before
        .iter()
        .chain(after)
        .map(|s| s.0.as_str())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    assert!(places.len() <= 14, "too many worlds to try all of them");
    (0..3_u32.pow(places.len() as u32)).all(|world| {
        let state = |name: &str| {
            let at = places.iter().position(|place| *place == name).unwrap();
            world / 3_u32.pow(at as u32) % 3
        };
        let pull = |sources: &[Source]| {
            let answers = |source: &&Source| state(&source.0) + u32::from(source.1) >= 2;
            sources.iter().find(answers).map(|source| source.0.clone())
        };
        match (pull(before), pull(after)) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(was), Some(is)) => digest || was == is,
        }
    })
}

/// The first pull that does not go on as before.
fn victim(before: &Side, after: &Side) -> Option<String> {
    for digest in [false, true] {
        let broken =
            |old: Vec<Source>, new: Vec<Source>| old != new && !goes_on(&old, &new, digest);
        for name in NAMES {
            if broken(sources(before, name, digest), sources(after, name, digest)) {
                return Some(format!("{name}, by digest: {digest}"));
            }
        }
        for short in shorts() {
            if broken(short_sources(before, short, digest), short_sources(after, short, digest)) {
                return Some(format!("{short}, by digest: {digest}"));
            }
        }
    }
    None
}

// ---- the law --------------------------------------------------------------

fn drains(before: &str, after: &str) -> (bool, String) {
    let change = test::file("/etc/containers/registries.conf", before, after);
    let verdict = test::verdict::<Registries>(change);
    let reload = Action::reload("crio.service");
    assert!(verdict.actions().contains(&reload), "always reloaded: {}", verdict.reason());
    (verdict.actions().contains(&Action::Drain), verdict.reason().to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_node_is_drained_exactly_if_a_pull_may_suffer((before, after) in pair()) {
        let (drains, reason) = drains(&toml(&before), &toml(&after));
        prop_assert_eq!(drains, victim(&before, &after).is_some(),
            "{}\n{:?}\n--- before\n{}\n--- after\n{}",
            reason, victim(&before, &after), toml(&before), toml(&after));
    }

    #[test]
    fn what_means_the_same_never_drains(side in side()) {
        let same = format!("# another comment\nunknown = 1\n{}", toml(&side));
        prop_assert!(!drains(&toml(&side), &same).0);
    }

    /// Where the entries stand, in the main file or in a drop-in, is the same.
    #[test]
    fn a_drop_in_counts_as_if_it_were_in_the_main_file(side in side()) {
        let path = "/etc/containers/registries.conf.d/50-moved.conf";
        let changes = [
            test::file("/etc/containers/registries.conf", &toml(&side), "# moved\n"),
            test::file_added(path, &toml(&side)),
        ];
        let context = Context { changes: &changes, unchanged: &[] };
        for verdict in Registries::classify_all(&Settings::default(), &context) {
            prop_assert_eq!(verdict.actions(), &[Action::reload("crio.service")]);
        }
    }

    #[test]
    fn any_text_is_answered(before in ".{0,60}", after in "(registry|\\[|\\]|=|\"|'|a|\\.|\n| ){0,30}") {
        let _ = test::verdict::<Registries>(
            test::file("/etc/containers/registries.conf", &before, &after));
    }
}
