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
use std::sync::LazyLock;
use tread_guest_sdk::{Action, Context, Policy, test};
use tread_policy_registries::{Mirrors, Registries, Settings};

/// A name that is as long as any that counts: the runtime takes 255 characters.
const LONGEST: usize = 128;
/// So much longer than a prefix that only short names fit behind it.
const LONG_PLACE: &str = "n.io/long-1234567890-1234567890-1234567890-1234567890-1234567890-1234567890\
    -1234567890-1234567890-1234567890-1234567890-1234567890-1234567890-1234567890-1234567890-12345";
const LONG_HOST: &str = "s.long-1234567890-1234567890-1234567890-1234567890-1234567890-1234567890\
    -1234567890-1234567890-1234567890-1234567890-1234567890-1234567890-1234567890-1234567890-12345";

const PREFIXES: &[&str] = &[
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
];
/// Most of them a few times, so that they meet often.
const PLACES: &[&str] = &[
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
    LONG_PLACE,
];
const SEARCH: &[&str] = &["a.io", "m.io", "d.w.io", "docker.io", "h", LONG_HOST];

/// Hosts, and paths, for each way in which the prefixes and places above can
/// overlap. No entry names `z.io`, port 7, `r` and `s`.
const HOSTS: &[&str] = &[
    "a.io",
    "a.io:5",
    "a.io:7",
    "b.io",
    "b.io:5",
    "b.io:7",
    "m.io",
    "m.io:5",
    "m.io:7",
    "c.w.io",
    "c.w.io:5",
    "c.w.io:7",
    "d.w.io",
    "d.w.io:5",
    "d.w.io:7",
    "d.c.w.io",
    "d.c.w.io:5",
    "d.c.w.io:7",
    "docker.io",
    "docker.io:5",
    "docker.io:7",
    "z.io",
];
const PATHS: &[&str] = &[
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
];

/// The complete names of images.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let path = |host: &&str, path: &&str| format!("{host}/{path}");
    let mut names: Vec<String> =
        HOSTS.iter().flat_map(|host| PATHS.iter().map(move |it| path(host, it))).collect();
    for start in HOSTS.iter().map(ToString::to_string).chain(names.clone()) {
        names.push(format!("{start}/{}", "r".repeat(LONGEST - start.len() - 1)));
    }
    // Docker's own images have no other name than the one with `library/`.
    names.retain(|name| parsed(name).is_some());
    names
});

/// Every path that a name above has may be asked for without a registry too.
static SHORTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let long = "r".repeat(LONGEST);
    PATHS.iter().map(ToString::to_string).chain([long]).collect()
});

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
    let search = proptest::sample::subsequence(SEARCH, 0..3).prop_shuffle();
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

/// `HOST[:PORT]`, as `reference.DomainRegexp` has it.
fn is_domain(text: &str) -> bool {
    let (host, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_label = |label: &str| {
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !label.is_empty()
            && label.chars().all(fine)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.split('.').all(is_label) && !port.is_empty() && port.chars().all(|c| c.is_ascii_digit())
}

/// A component of a path: letters and digits, joined by `.`, `_`, `__` or dashes.
fn is_component(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(is_word)
        && text.ends_with(is_word)
        && text
            .split(is_word)
            .all(|s| matches!(s, "" | "." | "_" | "__") || s.trim_matches('-').is_empty())
}

/// A reference that was read: its registry, its name, and what it ends with.
#[derive(Debug, Clone, PartialEq)]
struct Named {
    domain: String,
    name: String,
    tag: Option<String>,
    digest: Option<String>,
}

/// `reference.Parse`
fn parse(text: &str) -> Option<Named> {
    let (rest, digest) = text.split_once('@').map_or((text, None), |(rest, d)| (rest, Some(d)));
    let last = rest.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match rest[last..].split_once(':') {
        Some((component, tag)) => (&rest[..last + component.len()], Some(tag)),
        None => (rest, None),
    };
    let is_tag = |tag: &str| !tag.is_empty() && tag.len() <= 128 && !tag.contains(':');
    let domain = name.split_once('/').map_or("", |(first, _)| first);
    let domain = if is_domain(domain) { domain } else { "" };
    let path = if domain.is_empty() { name } else { &name[domain.len() + 1..] };
    (path.split('/').all(is_component) && name.len() <= 255 && tag.is_none_or(is_tag)).then(|| {
        Named {
            domain: domain.to_string(),
            name: name.to_string(),
            tag: tag.map(ToString::to_string),
            digest: digest.map(ToString::to_string),
        }
    })
}

/// `reference.ParseNormalizedNamed`
fn normalized(text: &str) -> Option<Named> {
    let (mut domain, mut rest) = match text.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => {
            (first, rest.to_string())
        }
        _ => ("docker.io", text.to_string()),
    };
    if domain == "index.docker.io" {
        domain = "docker.io";
    }
    if domain == "docker.io" && !rest.contains('/') {
        rest = format!("library/{rest}");
    }
    parse(&format!("{domain}/{rest}"))
}

/// `reference.ParseNamed`: as it is, or not at all.
fn parsed(text: &str) -> Option<Named> {
    let named = normalized(text)?;
    let end = |mark: char, end: &Option<String>| {
        end.as_ref().map_or(String::new(), |end| format!("{mark}{end}"))
    };
    let again = format!("{}{}{}", named.name, end(':', &named.tag), end('@', &named.digest));
    (again == text).then_some(named)
}

type Source = (String, bool);

const DIGEST: &str = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// `Registry.PullSourcesFromReference`, and then what each source is worth.
fn sources(side: &Side, name: &str, digest: bool) -> Vec<Source> {
    let Some((end, registry)) = find(side, name) else { return vec![(name.to_string(), false)] };
    let reference = format!("{name}{}", if digest { DIGEST } else { ":tag" });
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
        let rewritten = if place.location.is_empty() {
            reference.clone()
        } else {
            format!("{}{}", place.location, &reference[end..])
        };
        // One that is no reference fails the pull before any source is tried.
        let Some(named) = parsed(&rewritten) else { return Vec::new() };
        // The transport takes no tag beside a digest, and there is no host to ask.
        let fails = named.tag.is_some() && named.digest.is_some() || named.domain.is_empty();
        if !fails && !find(side, &named.name).is_some_and(|(_, found)| found.blocked) {
            found.push((named.name, place.insecure));
        }
    }
    found
}

/// `shortnames.Resolve`, without regard to `short-name-mode`: CRI-O has one of
/// its own, which OpenShift sets to `disabled`.
fn short_sources(side: &Side, short: &str, digest: bool) -> Vec<Source> {
    let names: Option<Vec<String>> = match side.aliases.get(short) {
        Some(target) if !target.is_empty() => Some(vec![target.to_string()]),
        _ => side
            .search
            .iter()
            .map(|registry| normalized(&format!("{registry}/{short}")).map(|named| named.name))
            .collect(),
    };
    // One that is no name fails the pull before any is tried.
    names.unwrap_or_default().iter().flat_map(|name| sources(side, name, digest)).collect()
}

/// Whether a pull goes on as before, whatever is down (0), up without a valid
/// certificate (1), or up (2). Of a mirror that is not trusted it may be that it
/// has the manifest only: then the pull fails, and no other source is tried.
fn goes_on(before: &[Source], after: &[Source], digest: bool, trusted: bool) -> bool {
    let places: Vec<&str> = before
        .iter()
        .chain(after)
        .map(|s| s.0.as_str())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    assert!(places.len() <= 14, "too many worlds to try all of them");
    let bare: Vec<Option<&str>> = if digest && !trusted {
        [None].into_iter().chain(places.iter().copied().map(Some)).collect()
    } else {
        vec![None]
    };
    (0..3_u32.pow(places.len() as u32)).all(|world| {
        let state = |name: &str| {
            let at = places.iter().position(|place| *place == name).unwrap();
            world / 3_u32.pow(at as u32) % 3
        };
        let first = |sources: &[Source]| {
            let answers = |source: &&Source| state(&source.0) + u32::from(source.1) >= 2;
            sources.iter().find(answers).map(|source| source.0.clone())
        };
        let (was, is) = (first(before), first(after));
        bare.iter().all(|bare| {
            let whole =
                |place: &Option<String>| place.clone().filter(|it| Some(it.as_str()) != *bare);
            match (whole(&was), whole(&is)) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(was), Some(is)) => digest || was == is,
            }
        })
    })
}

/// The first pull that does not go on as before.
fn victim(before: &Side, after: &Side, trusted: bool) -> Option<String> {
    // Only to save time: most names, and long ones where nothing else is long.
    let blocks = [before, after].iter().any(|side| side.registries.values().any(|it| it.blocked));
    let some_long = format!("{before:?}{after:?}").contains("-1234567890");
    let unconcerned = |name: &str| {
        let same = !blocks && find(before, name) == find(after, name);
        same || (!some_long && name.len() >= LONGEST)
    };
    for digest in [false, true] {
        let broken = |old: Vec<Source>, new: Vec<Source>| {
            old != new && !goes_on(&old, &new, digest, trusted)
        };
        for name in NAMES.iter().filter(|name| !unconcerned(name)) {
            if broken(sources(before, name, digest), sources(after, name, digest)) {
                return Some(format!("{name}, by digest: {digest}"));
            }
        }
        for short in SHORTS.iter() {
            if broken(short_sources(before, short, digest), short_sources(after, short, digest)) {
                return Some(format!("{short}, by digest: {digest}"));
            }
        }
    }
    None
}

// ---- the law --------------------------------------------------------------

fn drains(before: &str, after: &str, mirrors: Mirrors) -> (bool, String) {
    let change = test::file("/etc/containers/registries.conf", before, after);
    let settings = Settings { mirrors, ..Settings::default() };
    let verdict = test::verdicts::<Registries>(&settings, vec![change], vec![]).remove(0);
    let reload = Action::reload("crio.service");
    assert!(verdict.actions().contains(&reload), "always reloaded: {}", verdict.reason());
    (verdict.actions().contains(&Action::Drain), verdict.reason().to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_node_is_drained_exactly_if_a_pull_may_suffer((before, after) in pair(), trusted: bool) {
        let mirrors = if trusted { Mirrors::Trusted } else { Mirrors::Untrusted };
        let (drains, reason) = drains(&toml(&before), &toml(&after), mirrors);
        let victim = victim(&before, &after, trusted);
        prop_assert_eq!(drains, victim.is_some(),
            "{}\n{:?}, mirrors {:?}\n--- before\n{}\n--- after\n{}",
            reason, victim, mirrors, toml(&before), toml(&after));
    }

    #[test]
    fn what_means_the_same_never_drains(side in side()) {
        let same = format!("# another comment\nunknown = 1\n{}", toml(&side));
        prop_assert!(!drains(&toml(&side), &same, Mirrors::Untrusted).0);
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
