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

use crate::config::Config;
use crate::name::{is_canonical, is_short};
use tread_policy_formats::Map;

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
    pub(crate) fn new(before: &Config, after: &Config) -> Probes {
        let mut probes = Probes { any: "any".into(), ..Probes::default() };
        let sides = [before, after];
        let written = |text: &str| {
            let names = |side: &&Config| {
                side.registries.iter().any(|(prefix, registry)| {
                    prefix.contains(text)
                        || registry.location.contains(text)
                        || registry.mirrors.iter().any(|mirror| mirror.location.contains(text))
                }) || side.aliases.keys().any(|short| short.contains(text))
            };
            sides.iter().any(names)
        };
        while written(&probes.any) {
            probes.any.push('y');
        }
        let mut prefixes = Map::new();
        for prefix in sides.iter().flat_map(|side| side.registries.keys()) {
            if prefixes.add(prefix.to_string(), ()) {
                probes.add(prefix);
            }
        }
        for side in sides {
            for (prefix, registry) in side.registries.iter() {
                let mirrors = registry.mirrors.iter().map(|mirror| mirror.location.as_str());
                for location in mirrors.chain([registry.location.as_str()]) {
                    probes.pull_back(prefix, location, &prefixes);
                }
            }
        }
        probes.add_shorts(sides);
        probes
    }

    /// The names under `prefix` whose place below `location` falls under
    /// another prefix.
    fn pull_back(&mut self, prefix: &str, location: &str, prefixes: &Map<()>) {
        if location.is_empty() {
            return;
        }
        for other in prefixes.keys_with(location) {
            let rest = other.strip_prefix(location).unwrap_or_default();
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

    fn add_shorts(&mut self, sides: [&Config; 2]) {
        self.shorts.add(self.any.clone(), ());
        self.shorts.add([self.any.as_str(), "/", &self.any].concat(), ());
        for side in sides {
            for short in side.aliases.keys() {
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
        let below = ["/", &self.any].concat();
        let host = [&self.any, "."].concat();
        let name = name.replace(&below, "");
        match name.strip_prefix(&host) {
            Some(domain) => ["*.", domain].concat(),
            None => name,
        }
    }

    /// Whether a short name stands for all that are written nowhere.
    pub(crate) fn is_any(&self, short: &str) -> bool {
        short.starts_with(&self.any)
    }
}
