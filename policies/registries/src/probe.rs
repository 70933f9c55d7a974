//! The names that stand for all names.
//!
//! Two configurations can differ for a name only by which entries its prefixes
//! match, and by which entries the places match that it is looked for at. So
//! it is enough to ask about one name for each combination: for every prefix
//! itself, for a name below it, and, through every entry, for the names whose
//! places fall under a prefix.
//!
//! One thing is left out on purpose: today the runtime lets the prefix
//! `example.com` match `example.com:5000` too, and says not to rely on it. A
//! prefix is taken to mean the registry that it names.

use crate::config::{Config, Registry};
use crate::name::{is_canonical, is_short};
use crate::names::Names;
use tread_policy_formats::{Map, words};

/// The names to ask about, of both configurations.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    /// A component that stands for any that is written nowhere.
    any: String,
    /// Complete names.
    pub(crate) names: Map<()>,
    /// Short names.
    pub(crate) shorts: Map<()>,
}

impl Probes {
    /// The names below the `prefixes` (those of both sides) that `counts` lets
    /// pass.
    pub(crate) fn new<'a>(
        before: &Config<'a>,
        after: &Config<'a>,
        prefixes: &Names<'a, ()>,
        counts: impl Fn(&str) -> bool,
    ) -> Probes {
        let sides = [before, after];
        let mut probes = Probes { any: written_nowhere(sides), ..Probes::default() };
        for (prefix, ()) in prefixes.iter().filter(|(prefix, ())| counts(prefix)) {
            probes.add(prefix);
        }
        for side in sides {
            for registry in side.registries.values().filter(|registry| counts(registry.prefix)) {
                let mirrors = registry.mirrors.iter().map(|mirror| mirror.location);
                for location in mirrors.chain([registry.location]) {
                    probes.pull_back(registry.prefix, location, prefixes);
                }
            }
        }
        probes
    }

    /// The names under `prefix` whose place below `location` falls under
    /// another prefix.
    fn pull_back(&mut self, prefix: &str, location: &str, prefixes: &Names<'_, ()>) {
        if location.is_empty() {
            return;
        }
        for other in prefixes.with_start(location) {
            let rest = other.get(location.len()..).unwrap_or_default();
            if rest.starts_with('/') {
                self.add(&[prefix, rest].concat());
            }
        }
    }

    /// The scope's own name, and names below it.
    fn add(&mut self, scope: &str) {
        let scope = match scope.strip_prefix('*') {
            Some(domain) => [&self.any, domain].concat(),
            None => scope.to_string(),
        };
        let below = ["/", &self.any].concat();
        let deeper = [scope.as_str(), &below, &below].concat();
        self.insert(deeper);
        self.insert([scope.as_str(), &below].concat());
        self.insert(scope);
    }

    fn insert(&mut self, name: String) {
        if is_canonical(&name) {
            self.names.add(name, ());
        }
    }

    /// The short names to ask about. The names must be all there are.
    pub(crate) fn add_shorts(&mut self, sides: [&Config<'_>; 2]) {
        self.shorts.add(self.any.clone(), ());
        self.shorts.add([self.any.as_str(), "/", &self.any].concat(), ());
        for side in sides {
            for (short, _) in side.settings.aliases.iter() {
                self.shorts.add(short.to_string(), ());
            }
            for registry in side.search() {
                let below = [registry, "/"].concat();
                for name in
                    self.names.keys_with(&below).filter_map(|name| name.strip_prefix(&below))
                {
                    let name = name.strip_prefix("library/").unwrap_or(name);
                    if is_short(name) {
                        self.shorts.add(name.to_string(), ());
                    }
                }
            }
        }
    }

    /// A probe, or a place where one is looked for, as an admin would write it:
    /// as the scope that it stands for.
    pub(crate) fn scope(&self, name: &str) -> String {
        let below = |name: &str| {
            name.strip_suffix(self.any.as_str())
                .and_then(|name| name.strip_suffix('/'))
                .map(str::len)
        };
        let mut name = name;
        while let Some(length) = below(name) {
            name = name.get(..length).unwrap_or_default();
        }
        match name.strip_prefix(self.any.as_str()).and_then(|name| name.strip_prefix('.')) {
            Some(domain) => ["*.", domain].concat(),
            None => name.to_string(),
        }
    }

    /// Whether a short name stands for all that are written nowhere.
    pub(crate) fn is_any(&self, short: &str) -> bool {
        short.starts_with(&self.any)
    }
}

/// A word that is no part of any name of either side.
fn written_nowhere(sides: [&Config<'_>; 2]) -> String {
    let mut any = "any".to_string();
    let written = |any: &str| {
        let holds = |text: &str| words::contains(text, any);
        let names = |registry: &Registry<'_>| {
            holds(registry.prefix)
                || (!std::ptr::eq(registry.prefix, registry.location) && holds(registry.location))
                || registry.mirrors.iter().any(|mirror| holds(mirror.location))
        };
        let entry = |side: &Config<'_>| side.registries.values().any(|registry| names(registry));
        let alias = |side: &Config<'_>| side.settings.aliases.iter().any(|(short, _)| holds(short));
        sides.iter().any(|side| entry(side) || alias(side))
    };
    while written(&any) {
        any.push('y');
    }
    any
}
