//! The scopes whose names may be looked up elsewhere than before.
//!
//! A name is looked up elsewhere only if another entry counts for it, or if one
//! of its places is blocked now and was not, or the other way round. So what
//! has to be looked at are the prefixes that have another entry, and those with
//! a location that meets a prefix by which blocking differs. All others are as
//! they were, however many there are.

use crate::config::{Config, Registry};
use crate::lookup::{Match, Side, wildcards_of};
use crate::names::{Names, side_by_side};
use crate::probe::{Probes, Words};
use tread_policy_formats::words;

/// How two configurations differ.
pub(crate) struct Difference<'a> {
    /// The prefixes with another entry, or none, on the other side.
    pub(crate) prefixes: Names<'a, Entries<'a>>,
    /// Those at which blocking may begin or end, on either side.
    zones: Names<'a, ()>,
    /// Those of them at which it did not, or not alike, on the other side.
    moved: Names<'a, ()>,
}

/// The entries of a prefix on both sides.
pub(crate) type Entries<'a> = [Option<&'a Registry<'a>>; 2];

pub(crate) fn is_same(a: &Registry<'_>, b: &Registry<'_>) -> bool {
    std::ptr::eq(a, b) || a == b
}

fn entries<'a, 's>(
    before: &'s Config<'a>,
    after: &'s Config<'a>,
) -> impl Iterator<Item = (&'a str, Entries<'a>)> + use<'a, 's> {
    side_by_side(&before.registries, &after.registries)
        .map(|(prefix, old, new)| (prefix, [old.copied(), new.copied()]))
}

impl<'a> Difference<'a> {
    pub(crate) fn between(sides: [&Side<'_, 'a>; 2]) -> Difference<'a> {
        let [before, after] = sides;
        let mut zones: Vec<&str> = Vec::new();
        for side in sides {
            zones.extend(side.zones.iter().map(|(prefix, _)| prefix));
        }
        let zones = Names::of(zones);
        let (mut prefixes, mut moved) = (Vec::new(), Vec::new());
        for (prefix, entries) in entries(before.config, after.config) {
            let [old, new] = entries;
            if old.zip(new).is_some_and(|(old, new)| is_same(old, new)) {
                continue;
            }
            prefixes.push((prefix, entries));
            let flips = old.map(|old| old.blocked) != new.map(|new| new.blocked);
            if flips && zones.get(prefix).is_some() {
                moved.push((prefix, ()));
            }
        }
        let (prefixes, moved) = (Names::in_order(prefixes), Names::in_order(moved));
        Difference { prefixes, zones, moved }
    }

    /// The scopes to look at, each once and in order.
    pub(crate) fn scopes(&self, sides: [&Side<'_, 'a>; 2]) -> Vec<(&'a str, Entries<'a>)> {
        let wildcards = self.prefixes.iter().any(|(prefix, _)| prefix.starts_with('*'));
        if self.moved.is_empty() && !wildcards {
            return self.prefixes.iter().map(|(prefix, entries)| (prefix, *entries)).collect();
        }
        let [before, after] = sides;
        let is_met = |entries: &Entries<'_>| match entries {
            [Some(old), Some(new)] if std::ptr::eq(*old, *new) => self.is_met_by(new),
            entries => entries.iter().flatten().any(|registry| self.is_met_by(registry)),
        };
        entries(before.config, after.config)
            .filter(|(prefix, entries)| {
                self.prefixes.get(prefix).is_some()
                    || self.is_hidden_elsewhere(prefix)
                    || (!self.moved.is_empty() && is_met(entries))
            })
            .collect()
    }

    /// Of `c.example.com` and `*.example.com`, which are of the same length, the
    /// one with the wildcard counts: what that one hides changes with it.
    fn is_hidden_elsewhere(&self, prefix: &str) -> bool {
        let rest = prefix.get(1..).filter(|rest| rest.starts_with('.'));
        rest.is_some_and(|rest| self.prefixes.get(&["*", rest].concat()).is_some())
    }

    /// Whether a location of an entry lies at, above or below a prefix by which
    /// blocking differs.
    fn is_met_by(&self, registry: &Registry<'_>) -> bool {
        let mirrors = registry.mirrors.iter().map(|mirror| mirror.location);
        mirrors
            .chain([registry.location])
            // What is looked up where its name says is blocked by its own entry.
            .filter(|location| !location.is_empty() && !words::equal(location, registry.prefix))
            .any(|location| self.is_met_at(location))
    }

    fn is_met_at(&self, location: &str) -> bool {
        let ends = location.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'/' | b':'));
        ends.filter_map(|(end, _)| location.get(..end))
            .chain([location])
            .any(|start| self.moved.get(start).is_some())
            || wildcards_of(location).any(|wildcard| self.moved.get(&wildcard).is_some())
            || !below(&self.moved, location).is_empty()
    }

    /// Adds names that stand for those of a scope that no narrower entry takes:
    /// of the scope itself, and for each way in which their places may be blocked.
    pub(crate) fn probe(
        &self,
        sides: [&Side<'_, 'a>; 2],
        words: &Words,
        scope: &str,
        probes: &mut Probes<'_>,
    ) {
        probes.add(scope);
        let name = words.name(scope);
        for side in sides {
            self.pull_back(scope, &name, side.find(&name), probes);
        }
    }

    /// Adds the names in a scope whose places are blocked otherwise than most.
    pub(crate) fn pull_back(
        &self,
        scope: &str,
        name: &str,
        found: Match<'_>,
        probes: &mut Probes<'_>,
    ) {
        let Some((end, registry)) = found.filter(|_| !self.zones.is_empty()) else { return };
        let rest = name.get(end..).unwrap_or_default();
        let mirrors = registry.mirrors.iter().map(|mirror| mirror.location);
        for location in mirrors.chain([registry.location]) {
            if location.is_empty() || words::equal(location, registry.prefix) {
                continue;
            }
            let mut place = location;
            let with_rest;
            if !rest.is_empty() {
                with_rest = [location, rest].concat();
                place = &with_rest;
            }
            for zone in below(&self.zones, place) {
                let rest = zone.get(place.len()..).unwrap_or_default();
                probes.add(&[scope, rest].concat());
            }
        }
    }
}

/// Those of the prefixes that lie below a place.
fn below<'a>(prefixes: &Names<'a, ()>, place: &str) -> Vec<&'a str> {
    if prefixes.with_start(place).next().is_none() {
        return Vec::new();
    }
    let mut found: Vec<&str> = prefixes.with_start(&[place, "/"].concat()).collect();
    if !place.contains(['/', ':']) {
        found.extend(prefixes.with_start(&[place, ":"].concat()));
    }
    found
}
