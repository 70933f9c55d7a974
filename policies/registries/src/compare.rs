//! What changes for the pulls of a node when its registries change.

use crate::config::Config;
use crate::law::{Harm, harm};
use crate::lookup::{By, Source};
use crate::probe::Probes;

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
pub(crate) fn compare(before: &Config, after: &Config) -> Outcome {
    if before == after {
        return Outcome::Same;
    }
    let probes = Probes::new(before, after);
    let mut found =
        Found { probes: &probes, harms: Findings::default(), news: Findings::default() };
    // What one entry blocks may be a source of any other.
    let blocks = [before, after].iter().any(|side| side.registries.values().any(|r| r.blocked));
    for name in probes.names.keys() {
        if !blocks && before.find(name) == after.find(name) {
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
            let sources = |side: &Config| -> Vec<Source> {
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
    if before.layer_store_helper != after.layer_store_helper {
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

/// What was found so far.
struct Found<'a> {
    probes: &'a Probes,
    harms: Findings,
    news: Findings,
}

impl Found<'_> {
    fn note(&mut self, scope: impl Fn() -> String, by: By, before: &[Source], after: &[Source]) {
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
    let place = |source: &Source| short(&probes.scope(&source.name));
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

fn gain(probes: &Probes, scope: &str, by: By, before: &[Source], after: &[Source]) -> String {
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
