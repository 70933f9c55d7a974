//! A world small enough to try all of it: registries and how they change.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(crate) const PREFIXES: &[&str] = &[
    "a.io",
    "a.io/p",
    "a.io/p/q",
    "a.io:5",
    "b.io",
    "m.io",
    "m.io/p",
    "m.io:5",
    "*.w.io",
    "c.w.io",
    "*.c.w.io",
    "docker.io",
    "docker.io/library/p",
    "a.io/any",
    "any.w.io",
    "a.io:9",
];
/// Most of them a few times, so that they meet often.
pub(crate) const PLACES: &[&str] = &[
    "a.io",
    "a.io/p",
    "b.io",
    "m.io",
    "m.io/p",
    "c.w.io",
    "a.io",
    "a.io/p",
    "b.io",
    "m.io",
    "m.io/p",
    "c.w.io",
    "n.io/x",
    "m.io:5",
    "docker.io",
    "a.io/p:v",
    "x_y.io/p",
    LONG,
];
/// Stands for a location of any length.
pub(crate) const LONG: &str = "long";
/// What begins as names do that are written nowhere, and is no name itself.
pub(crate) static ODD: LazyLock<[&str; 2]> = LazyLock::new(|| {
    [("z.io/any", "y"), ("z.io:9", "9")]
        .map(|(start, more)| &*(start.to_string() + &more.repeat(300)).leak())
});
pub(crate) static SEARCH: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let long = ["s.long-".to_string() + &"1".repeat(70), "s.".to_string() + &"1".repeat(180)];
    let long = long.map(|host| &*host.leak());
    ["a.io", "m.io", "d.w.io", "docker.io", "h"].into_iter().chain(long).collect()
});

/// Hosts, and paths, for each way in which the prefixes and places above can
/// overlap. No entry names `z.io`, port 7, `r` and `s`.
pub(crate) const HOSTS: &[&str] = &[
    "a.io",
    "a.io:5",
    "a.io:7",
    "b.io",
    "b.io:5",
    "b.io:7",
    "b.io:9",
    "m.io",
    "m.io:5",
    "m.io:7",
    "m.io:9",
    "c.w.io",
    "c.w.io:5",
    "c.w.io:7",
    "c.w.io:9",
    "d.w.io",
    "d.w.io:5",
    "d.w.io:7",
    "d.w.io:9",
    "d.c.w.io",
    "d.c.w.io:5",
    "d.c.w.io:7",
    "d.c.w.io:9",
    "any.w.io",
    "any.w.io:5",
    "any.w.io:7",
    "any.w.io:9",
    "a.io:9",
    "docker.io",
    "docker.io:5",
    "docker.io:7",
    "docker.io:9",
    "z.io",
];
pub(crate) const PATHS: &[&str] = &[
    "r",
    "r/s",
    "p",
    "p/r",
    "p/r/s",
    "p/p",
    "p/p/r",
    "p/q",
    "p/q/r",
    "p/q/r/s",
    "p/q/p",
    "p/p/q",
    "p/p/q/r",
    "p/q/q",
    "p/q/p/r",
    "p/q/p/q",
    "p/q/p/q/r",
    "p/q/q/r",
    "q",
    "q/r",
    "q/r/s",
    "library/r",
    "library/p",
    "library/p/r",
    "library/p/r/s",
    "library/p/p",
    "library/p/p/r",
    "library/p/p/q",
    "library/p/p/q/r",
    "library/p/q",
    "library/p/q/r",
    "library/p/library/p",
    "library/p/library/p/r",
    "p/library/p",
    "p/library/p/r",
    "p/q/library/p",
    "p/q/library/p/r",
    "any",
    "any/r",
    "any/r/s",
    "any/any",
    "any/any/r",
    "any/p",
    "any/p/r",
    "any/p/q",
    "any/p/q/r",
    "any/library/p",
    "p/any",
    "p/any/r",
    "p/q/any",
    "p/q/any/r",
    "library/p/any",
    "library/p/any/r",
];

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    pub(crate) location: String,
    pub(crate) insecure: bool,
    pub(crate) pull: &'static str,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Registry {
    pub(crate) own: Place,
    pub(crate) blocked: bool,
    pub(crate) by_digest_only: bool,
    pub(crate) mirrors: Vec<Place>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Side {
    pub(crate) registries: BTreeMap<&'static str, Registry>,
    pub(crate) search: Vec<&'static str>,
    pub(crate) mode: &'static str,
    pub(crate) aliases: BTreeMap<&'static str, &'static str>,
}

pub(crate) fn place(pull: impl Strategy<Value = &'static str>) -> impl Strategy<Value = Place> {
    let rarely = proptest::bool::weighted(0.2);
    let location = (proptest::sample::select(PLACES), 30..270_usize).prop_map(|(place, length)| {
        if place == LONG { format!("n.io/{}", "k".repeat(length - 5)) } else { place.to_string() }
    });
    (location, rarely, pull).prop_map(|(location, insecure, pull)| Place {
        location,
        insecure,
        pull,
    })
}

pub(crate) fn registry() -> impl Strategy<Value = (&'static str, Registry)> {
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

pub(crate) fn side() -> impl Strategy<Value = Side> {
    let search = proptest::sample::subsequence(SEARCH.as_slice(), 0..3).prop_shuffle();
    let mode = proptest::sample::select(&["", "", "permissive", "enforcing"][..]);
    let short = proptest::sample::select(&["r", "p/q", "library/r"][..]);
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
pub(crate) fn agree(side: &mut Side) {
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
pub(crate) fn pair() -> impl Strategy<Value = (Side, Side)> {
    let edits = proptest::collection::vec((0..7_u8, registry(), side()), 0..3);
    let odd = proptest::option::weighted(0.2, (proptest::sample::select(&ODD[..]), any::<bool>()));
    (side(), edits, odd).prop_map(|(mut before, edits, odd)| {
        // It has nothing to do with any name that is pulled.
        if let Some((odd, as_prefix)) = odd {
            let prefix = if as_prefix { odd } else { "z.io/unused" };
            let own = Place { location: odd.to_string(), insecure: false, pull: "" };
            let registry = Registry { own, blocked: false, by_digest_only: false, mirrors: vec![] };
            before.registries.insert(prefix, registry);
        }
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

pub(crate) fn toml(side: &Side) -> String {
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
