//! The names that stand for all names.
//!
//! What is written nowhere is all alike. So it is enough to ask about one name
//! for each scope: itself, below it, and where a scope is a bare host, with a
//! port, since the runtime lets the prefix `example.com` match
//! `example.com:5000` too.

use crate::config::Config;
use crate::lengths::{Lengths, Span};
use crate::name::{LONGEST, complete, is_canonical};
use crate::names::{in_order, pieces_in_order};
use tread_policy_formats::words;

/// Words that are no part of any name of either side.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    /// A component of a path, or a host's first label. No component begins with it.
    any: String,
    /// A port.
    port: String,
    lengths: Lengths,
}

impl Words {
    pub(crate) fn of(sides: [&Config<'_>; 2], longest_name: usize) -> Words {
        let starts = sides.into_iter().flat_map(Config::search).map(|registry| {
            ["a/a", "a"].map(|short| complete(registry, short).len() - short.len())
        });
        Words {
            any: unwritten(sides, "any", "any"),
            port: unwritten(sides, ":9", "9"),
            lengths: Lengths::new(longest_name, starts),
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

    /// By how much names are longer at most than a scope that they are in, which
    /// is given as [`Words::name`] has it.
    pub(crate) fn most_in(&self, scope: &str) -> isize {
        let length = scope.len() - self.label_of(scope);
        self.lengths.span(length, length + "/x".len()).map_or(0, Span::reach)
    }

    /// How many characters the names have that are by so much longer than a probe.
    pub(crate) fn length_of(&self, probe: &str, longer: isize) -> usize {
        (probe.len() - self.label_of(probe)).saturating_add_signed(longer)
    }

    /// How long the names are that a probe stands for. None if there are none.
    pub(crate) fn span(&self, probe: &str) -> Option<Span> {
        let (host, path) = probe.split_once('/').unwrap_or((probe, ""));
        let port = match host.rsplit_once(':') {
            Some((_, port)) if port == self.port => port.len() - 1,
            _ => 0,
        };
        self.span_of(probe.len() - self.label_of(host), path, port)
    }

    /// As [`Words::span`], of a short name; the shortest name that it stands for is
    /// by `more` longer than itself.
    pub(crate) fn span_of_short(&self, short: &str, more: usize) -> Option<Span> {
        self.span_of(short.len() + more, short, 0)
    }

    fn span_of(&self, length: usize, path: &str, mut spare: usize) -> Option<Span> {
        let words = path.split('/').filter(|part| part.starts_with(&self.any)).count();
        if words == 0 {
            return (length <= LONGEST).then_some(Span::EXACT);
        }
        spare += words * (self.any.len() - 1);
        self.lengths.span(length, length - spare)
    }

    /// What a host's label that stands for others is longer than the shortest one.
    fn label_of(&self, host: &str) -> usize {
        if host.starts_with(&self.any) { self.any.len() - 1 } else { 0 }
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
        let is_port = |(_, port): (&str, &str)| port == self.port;
        if host.starts_with(&self.any) || host.rsplit_once(':').is_some_and(is_port) {
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
        self.insert(self.words.below(&below));
        self.insert(below);
        self.insert(scope);
    }

    /// A name in a bare host, with a port.
    pub(crate) fn add_port(&mut self, host: &str) {
        let with_port = [host, ":", &self.words.port].concat();
        self.insert(self.words.below(&with_port));
    }

    /// What is no name stands for none. One that is too long may stand for shorter
    /// ones: see [`Words::span`].
    fn insert(&mut self, name: String) {
        if is_canonical(&name) {
            self.names.push(name);
        }
    }

    /// How many there are, some of them more than once.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// All of them, each once and in order.
    pub(crate) fn into_names(mut self) -> Vec<String> {
        in_order(&mut self.names);
        self.names
    }
}

/// Short names that are written nowhere.
pub(crate) fn any_shorts(words: &Words) -> Vec<String> {
    vec![words.any.clone(), words.below(&words.any)]
}

/// A word that no component of a name of either side begins with: `word`, or that
/// and a number. `mark` stands in each text that has such a component.
fn unwritten(sides: [&Config<'_>; 2], mark: &str, word: &str) -> String {
    let mut taken: Vec<&str> = Vec::new();
    for side in sides {
        side.each_name(|name| {
            if words::contains(name, mark) {
                let components = name.split(['/', ':', '.', '@']);
                taken.extend(components.filter_map(|it| it.strip_prefix(word)));
            }
        });
    }
    if taken.is_empty() {
        return word.to_string();
    }
    // There are more numbers with so many digits than components that begin with one.
    let width = taken.len().to_string().len();
    let mut taken: Vec<&str> = taken.into_iter().filter_map(|it| it.get(..width)).collect();
    pieces_in_order(&mut taken);
    let numbers = (0..=taken.len()).map(|number| {
        let digits = number.to_string();
        [word, &"0".repeat(width.saturating_sub(digits.len())), &digits].concat()
    });
    let is_free = |number: &String| {
        number.strip_prefix(word).is_some_and(|digits| taken.binary_search(&digits).is_err())
    };
    numbers.into_iter().find(is_free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::names::Names;

    fn word(written: &[String]) -> String {
        let target = |short: &'_ String| (short.clone(), None);
        let aliases: Vec<(String, _)> = written.iter().map(target).collect();
        let aliases = aliases.iter().map(|(short, target)| (short.as_str(), target.clone()));
        let aliases = Names::first_of_each(aliases.collect());
        let config = Config::of(Vec::new(), Settings { aliases, ..Settings::default() });
        unwritten([&config, &Config::base()], "any", "any")
    }

    #[test]
    fn a_word_that_is_written_nowhere_is_short_however_much_is_written() {
        let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (written, expected) in [
            (texts(&[]), "any"),
            (texts(&["company", "x-any", "many/any_x"]), "any0"),
            (texts(&["company", "x-any"]), "any"),
            (texts(&["any", "any0"]), "any1"),
            (texts(&["any0/any1", "any2/any3x/any5"]), "any4"),
            (vec!["any".to_string() + &"y".repeat(300)], "any0"),
            ((0..100).map(|number| format!("any{number:03}")).collect(), "any100"),
            ((0..100).map(|number| format!("any{number}")).collect(), "any000"),
        ] {
            assert_eq!(word(&written), expected, "{written:?}");
        }
    }
}
