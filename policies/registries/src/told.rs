//! What a comparison has found, in words.

use crate::law::Harm;
use crate::lookup::{By, Source};
use crate::probe::Words;

/// What a change of the registries does to pulls.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every image is looked up as before.
    Same,
    /// Every pull that worked works as before; the text says what is new.
    Safe(String),
    /// As [`Outcome::Safe`], as long as mirrors have whole images.
    SafeIfWhole(String),
    /// Some pull may not; the text says which.
    Harmful(String),
}

/// Names longer than this are cut in texts.
const LONGEST: usize = 90;

/// What was found so far.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) harms: Findings,
    pub(crate) news: Findings,
    /// Whether some of it is safe only if mirrors have whole images.
    pub(crate) if_whole: bool,
}

impl Found {
    pub(crate) fn outcome(self) -> Outcome {
        if !self.harms.is_empty() {
            Outcome::Harmful(self.harms.text())
        } else if self.news.is_empty() {
            Outcome::Same
        } else if self.if_whole {
            Outcome::SafeIfWhole(self.news.text())
        } else {
            Outcome::Safe(self.news.text())
        }
    }
}

/// What was found, told for the first scope and counted for the others.
#[derive(Default)]
pub(crate) struct Findings {
    first: String,
    scopes: Vec<String>,
}

impl Findings {
    pub(crate) fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    pub(crate) fn add(&mut self, scope: String, text: impl FnOnce(&str) -> String) {
        if self.scopes.is_empty() {
            self.first = text(&scope);
        }
        self.scopes.push(scope);
    }

    fn text(mut self) -> String {
        self.scopes.sort_unstable();
        self.scopes.dedup();
        match self.scopes.len() {
            0 | 1 => self.first,
            2 => [&self.first, "; 1 more scope changes"].concat(),
            count => [&self.first, "; ", &(count - 1).to_string(), " more scopes change"].concat(),
        }
    }
}

pub(crate) fn describe(
    words: &Words,
    scope: &str,
    by: By,
    harm: &Harm<'_>,
    spoiler: Option<&str>,
) -> String {
    let what = what(by, scope);
    let place = |source: &Source<'_>| short(&words.scope(&source.name));
    let may_lack = match by {
        By::Tag => "",
        By::Digest => {
            ", which may lack their layers or signatures (the setting mirrors: untrusted)"
        }
    };
    match harm {
        Harm::Nowhere => match spoiler {
            Some(location) => {
                [&what, " can no longer be pulled: ", &short(location), " makes no name of them"]
                    .concat()
            }
            None => [what.as_str(), " can no longer be pulled"].concat(),
        },
        Harm::Gone(source) => [&what, " are no longer looked up at ", &place(source)].concat(),
        Harm::Instead(now, was) => {
            [&what, " are now looked up at ", &place(now), " before ", &place(was), may_lack]
                .concat()
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

pub(crate) fn gain(
    words: &Words,
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
            [&what, " are now looked up at ", &short(&words.scope(&new.name)), " too"].concat()
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
