//! The names that stand for all names.
//!
//! What is written nowhere is all alike. So it is enough to ask about one name
//! for each scope: itself, below it, and where a scope is a bare host, with a
//! port, since the runtime lets the prefix `example.com` match
//! `example.com:5000` too.

use crate::config::{Config, Registry};
use crate::lookup::is_name;
use tread_policy_formats::words;

/// An image's name, as it is written for a pod, is taken to have no more
/// characters than this: half of what the runtime takes, and more than any that
/// is in use.
const LONGEST: usize = 128;
/// Behind a location that is no longer the runtime takes every such name.
const SHORT_ENOUGH: usize = 127;

/// Words that are no part of any name of either side.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    /// A component of a path.
    any: String,
    /// A port.
    port: String,
    /// Whether a location is so long that long names may not fit behind it.
    long: bool,
}

impl Words {
    pub(crate) fn of(sides: [&Config<'_>; 2]) -> Words {
        Words {
            any: written_nowhere(sides, "any", 'y'),
            port: written_nowhere(sides, ":9", '9').split_off(1),
            long: sides.iter().any(|side| is_any_long(side)),
        }
    }

    /// A name that stands for a scope, which may have a wildcard.
    pub(crate) fn name(&self, scope: &str) -> String {
        match scope.strip_prefix('*') {
            Some(domain) => [&self.any, domain].concat(),
            None => scope.to_string(),
        }
    }

    /// The name, and one component more.
    pub(crate) fn below(&self, name: &str) -> String {
        [name, "/", &self.any].concat()
    }

    /// Whether a location is so long that long names may not fit behind it.
    pub(crate) fn is_long(&self) -> bool {
        self.long
    }

    /// A word that makes the name as long as any.
    fn filled(&self, start: &str) -> Option<String> {
        let rest = LONGEST.checked_sub(start.len() + 1)?.checked_sub(self.any.len())?;
        Some([start, "/", &self.any, &"y".repeat(rest)].concat())
    }

    /// A probe, or a place where one is looked for, as an admin would write it:
    /// as the scope that it stands for.
    pub(crate) fn scope(&self, name: &str) -> String {
        let mut name = name;
        while let Some((start, last)) = name.rsplit_once('/')
            && last.starts_with(&self.any)
        {
            name = start;
        }
        let (host, port) = match name.strip_suffix(&self.port) {
            Some(start) if start.ends_with(':') => (start, "PORT"),
            _ => (name, ""),
        };
        match host.strip_prefix(self.any.as_str()) {
            Some(domain) if domain.starts_with('.') => ["*", domain, port].concat(),
            _ => [host, port].concat(),
        }
    }

    /// What is written of a path, without the words.
    pub(crate) fn written<'n>(&self, path: &'n str) -> &'n str {
        let written = path.split('/').take_while(|part| !part.starts_with(&self.any));
        let length: usize = written.map(|part| part.len() + 1).sum();
        path.get(..length.saturating_sub(1)).unwrap_or_default()
    }

    /// Which of the names that begin with `start`, a host or more and a slash, a
    /// probe may stand for: those with this path behind it.
    pub(crate) fn within<'n>(&self, start: &str, probe: &'n str) -> Option<&'n str> {
        if let Some(path) = probe.strip_prefix(start) {
            return Some(self.written(path));
        }
        let (host, path) = probe.split_once('/')?;
        if host.starts_with(&self.any) || host.ends_with(&self.port) {
            return Some(self.written(path));
        }
        let above = start.strip_prefix(self.written(probe))?;
        above.starts_with('/').then_some("")
    }
}

/// Names to ask about.
#[derive(Debug)]
pub(crate) struct Probes<'w> {
    words: &'w Words,
    names: Vec<String>,
}

impl<'w> Probes<'w> {
    pub(crate) fn new(words: &'w Words) -> Probes<'w> {
        Probes { words, names: Vec::new() }
    }

    /// The scope's own name, and names below it.
    pub(crate) fn add(&mut self, scope: &str) {
        let scope = self.words.name(scope);
        let below = self.words.below(&scope);
        if !scope.contains(['/', ':']) {
            self.add_port(&scope);
        }
        if self.words.long
            && let Some(long) = self.words.filled(&below)
        {
            self.insert(long);
        }
        self.insert(self.words.below(&below));
        self.insert(below);
        self.insert(scope);
    }

    /// A name in a bare host, with a port.
    pub(crate) fn add_port(&mut self, host: &str) {
        let with_port = [host, ":", &self.words.port].concat();
        self.insert(self.words.below(&with_port));
    }

    fn insert(&mut self, name: String) {
        if is_name(&name) {
            self.names.push(name);
        }
    }

    /// How many there are, some of them more than once.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// All of them, each once and in order.
    pub(crate) fn into_names(mut self) -> Vec<String> {
        self.names.sort_unstable_by(|a, b| words::order(a, b));
        self.names.dedup();
        self.names
    }
}

/// Short names that are written nowhere.
pub(crate) fn any_shorts(words: &Words) -> Vec<String> {
    let mut shorts = vec![words.any.clone(), words.below(&words.any)];
    if words.long {
        shorts.push(
            [words.any.as_str(), &"y".repeat(LONGEST - words.any.len().min(LONGEST))].concat(),
        );
    }
    shorts
}

fn is_any_long(side: &Config<'_>) -> bool {
    let is_long = |text: &str| text.len() > SHORT_ENOUGH;
    side.search().iter().any(|registry| is_long(registry))
        || side.registries.values().any(|registry| {
            is_long(registry.location)
                || registry.mirrors.iter().any(|mirror| is_long(mirror.location))
        })
}

/// A text that is no part of any name of either side: `start`, and as often
/// `more` as it takes.
fn written_nowhere(sides: [&Config<'_>; 2], start: &str, more: char) -> String {
    let mut word = start.to_string();
    let written = |word: &str| {
        let holds = |text: &str| words::contains(text, word);
        let names = |registry: &Registry<'_>| {
            holds(registry.prefix)
                || (!std::ptr::eq(registry.prefix, registry.location) && holds(registry.location))
                || registry.mirrors.iter().any(|mirror| holds(mirror.location))
        };
        sides.iter().any(|side| {
            side.registries.values().any(|registry| names(registry))
                || side.search().iter().any(|registry| holds(registry))
                || side.settings.aliases.iter().any(|(short, target)| {
                    holds(short) || target.as_ref().is_some_and(|target| holds(target))
                })
        })
    };
    while written(&word) {
        word.push(more);
    }
    word
}
