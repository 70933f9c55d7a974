//! What changes for the pulls of a node when its registries change.

use crate::config::{Config, Registry};
use crate::law::{Harm, harm};
use crate::lookup::{By, Source};
use crate::names::{Names, side_by_side};
use crate::probe::Probes;
use tread_policy_formats::words;

/// What a change of the registries does to pulls.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every image is looked up as before.
    Same,
    /// Every pull that worked works as before; the text says what is new.
    Safe(String),
    /// Some pull may not; the text says which.
    Harmful(String),
}

/// Names longer than this are cut in texts.
const LONGEST: usize = 90;

/// Compares two configurations by where each image is looked for.
pub(crate) fn compare<'a>(before: &Config<'a>, after: &Config<'a>) -> Outcome {
    let difference = Difference::between(before, after);
    if difference.prefixes.is_empty() && before.settings == after.settings {
        return Outcome::Same;
    }
    let narrow = difference.is_narrow(before, after);
    compare_names(before, after, &difference, narrow)
}

/// The entries in which two configurations differ.
struct Difference<'a> {
    /// Those of both sides.
    all: Names<'a, ()>,
    /// Those with another entry, or none, on the other side.
    prefixes: Vec<&'a str>,
}

/// More prefixes than this are not looked for one by one.
const FEW: usize = 16;

impl<'a> Difference<'a> {
    fn between(before: &Config<'a>, after: &Config<'a>) -> Difference<'a> {
        let mut all = Names::with_capacity(0);
        let mut prefixes = Vec::new();
        for (prefix, old, new) in side_by_side(&before.registries, &after.registries) {
            all.put(prefix, ());
            if !old.zip(new).is_some_and(|(old, new)| is_same(old, new)) {
                prefixes.push(prefix);
            }
        }
        Difference { all, prefixes }
    }

    /// Whether only names below the prefixes that differ can be looked up
    /// elsewhere: nothing is blocked, which would reach into other entries, and
    /// no short name stands for one of them.
    fn is_narrow(&self, before: &Config<'_>, after: &Config<'_>) -> bool {
        let (old, new) = (&before.settings, &after.settings);
        let mut searched = before.search().iter().map(|registry| match *registry {
            "index.docker.io" => "docker.io",
            registry => registry,
        });
        !before.blocks
            && !after.blocks
            && self.prefixes.len() <= FEW
            && old.search == new.search
            && old.short_names == new.short_names
            && old.aliases.is_empty()
            && new.aliases.is_empty()
            && !searched.any(|registry| self.may_reach(registry))
    }

    /// Whether a name below `prefix` may be one below a prefix that differs.
    fn may_reach(&self, prefix: &str) -> bool {
        self.prefixes.iter().any(|other| {
            [*other, prefix].iter().any(|prefix| prefix.starts_with('*'))
                || words::starts_with(other, prefix)
                || words::starts_with(prefix, other)
        })
    }
}

fn is_same(a: &Registry<'_>, b: &Registry<'_>) -> bool {
    std::ptr::eq(a, b) || a == b
}

fn compare_names<'a>(
    before: &Config<'a>,
    after: &Config<'a>,
    difference: &Difference<'a>,
    narrow: bool,
) -> Outcome {
    let counts = |prefix: &str| !narrow || difference.may_reach(prefix);
    let mut probes = Probes::new(before, after, &difference.all, counts);
    if !narrow {
        probes.add_shorts([before, after]);
    }
    let mut found =
        Found { probes: &probes, harms: Findings::default(), news: Findings::default() };
    // What one entry blocks may be a source of any other.
    let blocks = before.blocks || after.blocks;
    for name in probes.names.keys() {
        if !blocks && is_found_alike(before.find(name), after.find(name)) {
            continue;
        }
        for by in [By::Tag, By::Digest] {
            let (old, new) = (before.sources(name, by), after.sources(name, by));
            found.note(|| probes.scope(name), by, &old, &new);
        }
    }
    for short in probes.shorts.keys() {
        let scope = || match probes.is_any(short) {
            true => "short names".to_string(),
            false => ["the short name ", short].concat(),
        };
        for by in [By::Tag, By::Digest] {
            let sources = |side: &Config<'a>| -> Vec<Source<'a>> {
                side.candidates(short).iter().flat_map(|name| side.sources(name, by)).collect()
            };
            found.note(scope, by, &sources(before), &sources(after));
        }
    }
    let Found { mut harms, news, .. } = found;
    if before.credential_helpers() != after.credential_helpers() {
        let text = "credentials come from other helpers".to_string();
        harms.add("the credential helpers".to_string(), || text);
    }
    if before.settings.layer_store_helper != after.settings.layer_store_helper {
        let text = "the layer store gets credentials from another helper".to_string();
        harms.add("the layer store".to_string(), || text);
    }
    if !harms.scopes.is_empty() {
        Outcome::Harmful(harms.text())
    } else if !news.scopes.is_empty() {
        Outcome::Safe(news.text())
    } else {
        Outcome::Same
    }
}

type Match<'a> = Option<(usize, &'a Registry<'a>)>;

fn is_found_alike(before: Match<'_>, after: Match<'_>) -> bool {
    match (before, after) {
        (None, None) => true,
        (Some((old_end, old)), Some((new_end, new))) => old_end == new_end && is_same(old, new),
        _ => false,
    }
}

/// What was found so far.
struct Found<'a> {
    probes: &'a Probes,
    harms: Findings,
    news: Findings,
}

impl Found<'_> {
    fn note(
        &mut self,
        scope: impl Fn() -> String,
        by: By,
        before: &[Source<'_>],
        after: &[Source<'_>],
    ) {
        if before == after {
            return;
        }
        let (probes, scope) = (self.probes, scope());
        match harm(by, before, after) {
            Some(harm) => self.harms.add(scope.clone(), || describe(probes, &scope, by, &harm)),
            None => self.news.add(scope.clone(), || gain(probes, &scope, by, before, after)),
        }
    }
}

/// What was found, told for the first scope and counted for the others.
#[derive(Default)]
struct Findings {
    first: String,
    scopes: Vec<String>,
}

impl Findings {
    fn add(&mut self, scope: String, text: impl FnOnce() -> String) {
        if self.scopes.is_empty() {
            self.first = text();
        }
        if !self.scopes.contains(&scope) {
            self.scopes.push(scope);
        }
    }

    fn text(self) -> String {
        match self.scopes.len() {
            0 | 1 => self.first,
            2 => [&self.first, "; 1 more scope changes"].concat(),
            count => [&self.first, "; ", &(count - 1).to_string(), " more scopes change"].concat(),
        }
    }
}

fn describe(probes: &Probes, scope: &str, by: By, harm: &Harm<'_>) -> String {
    let what = what(by, scope);
    let place = |source: &Source<'_>| short(&probes.scope(&source.name));
    match harm {
        Harm::Nowhere => [what.as_str(), " can no longer be pulled"].concat(),
        Harm::Gone(source) => [&what, " are no longer looked up at ", &place(source)].concat(),
        Harm::Instead(now, was) => {
            [&what, " are now looked up at ", &place(now), " before ", &place(was)].concat()
        }
        Harm::Secured(source) => {
            ["for ", &what, ", ", &place(source), " must now have a valid certificate"].concat()
        }
        Harm::Trusted(source) => {
            ["for ", &what, ", ", &place(source), " may now answer without a valid certificate"]
                .concat()
        }
    }
}

fn gain(
    probes: &Probes,
    scope: &str,
    by: By,
    before: &[Source<'_>],
    after: &[Source<'_>],
) -> String {
    let what = what(by, scope);
    let new = after.iter().find(|source| !before.iter().any(|other| other.name == source.name));
    match new {
        Some(_) if before.is_empty() => [what.as_str(), " can be pulled now"].concat(),
        Some(new) => {
            [&what, " are now looked up at ", &short(&probes.scope(&new.name)), " too"].concat()
        }
        None => [what.as_str(), " are looked up at the same places"].concat(),
    }
}

fn what(by: By, scope: &str) -> String {
    let kind = match by {
        By::Tag => "tags of ",
        By::Digest => "digests of ",
    };
    [kind, &short(scope)].concat()
}

fn short(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => [name.get(..end).unwrap_or_default(), "…"].concat(),
        None => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Mirror, Pull, Settings};
    use proptest::prelude::*;

    const PREFIXES: &[&str] = &[
        "a.io",
        "a.io/p",
        "a.io/pq",
        "a.io/p/q",
        "b.io",
        "m.io/p",
        "*.w.io",
        "c.w.io",
        "docker.io",
        "docker.io/library/x",
        "a.io:5000",
        "*.io",
    ];
    const PLACES: &[&str] = &["a.io", "a.io/p", "m.io", "m.io/p", "docker.io", "c.w.io", ""];

    fn registry() -> impl Strategy<Value = Registry<'static>> {
        let mirror = (proptest::sample::select(PLACES), any::<bool>(), 0..3_usize).prop_map(
            |(location, insecure, pull)| Mirror {
                location: if location.is_empty() { "n.io" } else { location },
                insecure,
                proxy: "",
                pull: [Pull::All, Pull::DigestOnly, Pull::TagOnly][pull],
            },
        );
        let rarely = || proptest::bool::weighted(0.1);
        let mirrors = proptest::collection::vec(mirror, 0..3);
        (
            proptest::sample::select(PREFIXES),
            proptest::sample::select(PLACES),
            rarely(),
            rarely(),
            mirrors,
        )
            .prop_map(|(prefix, place, insecure, blocked, mirrors)| Registry {
                prefix,
                location: if place.is_empty() && !prefix.starts_with('*') { prefix } else { place },
                insecure,
                proxy: "",
                blocked,
                mirror_by_digest_only: false,
                mirrors,
            })
    }

    type Side = (Vec<Registry<'static>>, Vec<&'static str>);

    fn pair() -> impl Strategy<Value = (Side, Side)> {
        let registries = |most| proptest::collection::vec(registry(), 0..most);
        let search =
            || proptest::sample::subsequence(&["a.io", "index.docker.io", "z.io"][..], 0..3);
        (
            registries(5),
            registries(2),
            registries(2),
            search(),
            search(),
            proptest::bool::weighted(0.8),
        )
            .prop_map(|(both, old, new, search, other, same)| {
                let side = |mut own: Vec<_>| {
                    own.extend(both.clone());
                    own
                };
                let other = if same { search.clone() } else { other };
                ((side(old), search), (side(new), other))
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

        #[test]
        fn looking_only_at_what_differs_finds_the_same((old, new) in pair()) {
            fn config(side: &Side) -> Config<'_> {
                let settings = Settings { search: Some(side.1.clone()), ..Settings::default() };
                Config::of(side.0.iter().collect(), settings)
            }
            let (old, new) = (config(&old), config(&new));
            let difference = Difference::between(&old, &new);
            let all = compare_names(&old, &new, &difference, false);
            if difference.is_narrow(&old, &new) {
                prop_assert_eq!(&compare_names(&old, &new, &difference, true), &all);
            }
            prop_assert_eq!(&compare(&old, &new), &all);
        }
    }
}
