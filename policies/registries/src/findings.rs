//! What a comparison has found, in words.

use crate::ShortNames;
use crate::law::Harm;
use crate::lookup::{By, Source, Spoiler};
use crate::name;
use crate::names::in_order;
use crate::probe::Words;

/// What a change of the registries does to pulls.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every image is looked up as before.
    Same(Given),
    /// Every pull that worked works as before; the text says what is new.
    Safe(Given, String),
    /// Some pull may not; the text says which.
    Harmful(String),
}

/// For what of the settings no pull suffers that otherwise could.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Given {
    /// Mirrors have whole images.
    pub(crate) mirrors: bool,
    /// CRI-O takes short names as is said.
    pub(crate) short_names: bool,
}

impl Given {
    /// The end of a sentence; nothing if there is nothing.
    pub(crate) fn text(self, short_names: ShortNames) -> String {
        let mirrors = self.mirrors.then_some(
            "mirrors have the layers and signatures of what they have manifests of (the setting \
             mirrors: trusted)",
        );
        let short_names = match short_names {
            ShortNames::Disabled => {
                "CRI-O asks all registries in turn that are searched for a short name (the setting \
                 short-names: disabled)"
            }
            ShortNames::Enforcing => {
                "CRI-O pulls no short name for which several registries are searched (the setting \
                 short-names: enforcing)"
            }
            ShortNames::Unknown => "",
        };
        match (mirrors, self.short_names.then_some(short_names)) {
            (None, None) => String::new(),
            (Some(one), None) | (None, Some(one)) => [", if ", one].concat(),
            (Some(one), Some(two)) => [", if ", one, ", and if ", two].concat(),
        }
    }
}

/// Names longer than this are cut in texts.
const LONGEST: usize = 90;

/// What was found so far.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) harms: Findings,
    pub(crate) news: Findings,
    pub(crate) given: Given,
}

impl Found {
    pub(crate) fn outcome(self) -> Outcome {
        if !self.harms.is_empty() {
            Outcome::Harmful(self.harms.text())
        } else if self.news.is_empty() {
            Outcome::Same(self.given)
        } else {
            Outcome::Safe(self.given, self.news.text())
        }
    }
}

/// What was found, in words for the first scope and counted for the others.
#[derive(Default)]
pub(crate) struct Findings {
    first: String,
    scopes: Vec<String>,
}

impl Findings {
    pub(crate) fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    pub(crate) fn add(&mut self, subject: Subject, text: impl FnOnce(&Subject) -> String) {
        if self.scopes.is_empty() {
            self.first = text(&subject);
        }
        self.scopes.push(subject.scope);
    }

    /// Adds something that is no image.
    pub(crate) fn add_other(&mut self, scope: &str, text: &str) {
        if self.scopes.is_empty() {
            self.first = text.to_string();
        }
        self.scopes.push(scope.to_string());
    }

    fn text(mut self) -> String {
        in_order(&mut self.scopes);
        match self.scopes.len() {
            0 | 1 => self.first,
            2 => [&self.first, "; 1 more scope changes"].concat(),
            count => [&self.first, "; ", &(count - 1).to_string(), " more scopes change"].concat(),
        }
    }
}

/// What a finding is about.
pub(crate) struct Subject {
    pub(crate) scope: String,
    pub(crate) by: By,
    /// How many characters the names have of which this was found.
    pub(crate) length: usize,
}

pub(crate) fn describe(
    words: &Words,
    subject: &Subject,
    harm: &Harm<'_>,
    after: &[Source<'_>],
    spoiler: Option<Spoiler<'_>>,
) -> String {
    let what = what(subject);
    let place = |source: &Source<'_>| place(words, source);
    let may_lack = match subject.by {
        By::Tag => "",
        By::Digest => {
            ", which may lack their layers or signatures (the setting mirrors: untrusted)"
        }
    };
    match harm {
        Harm::Nowhere => {
            let why = spoiler.map_or(String::new(), |spoiler| spoilt(words, subject, spoiler));
            [&what, " can no longer be pulled", &why].concat()
        }
        Harm::Gone(was) => match after.iter().find(|now| now.name == was.name) {
            Some(now) => {
                [&what, " are now looked up at ", &place(now), " in place of ", &place(was)]
                    .concat()
            }
            None => [&what, " are no longer looked up at ", &place(was)].concat(),
        },
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

/// Of a short name that stood for one name, and stands for several now.
pub(crate) fn ambiguous(subject: &Subject, short_names: ShortNames) -> String {
    let none = match short_names {
        ShortNames::Enforcing => {
            "so that CRI-O pulls none of them (the setting short-names: enforcing)"
        }
        _ => {
            "and with its short_name_mode enforcing, its own default since 1.34, CRI-O pulls none of them \
             (the setting short-names: unknown)"
        }
    };
    ["several registries are searched for ", &what(subject), " now, ", none].concat()
}

fn spoilt(words: &Words, subject: &Subject, spoiler: Spoiler<'_>) -> String {
    let location = short(words.written(spoiler.location));
    if spoiler.too_long == 0 {
        return [": ", &location, " makes no name of them"].concat();
    }
    let fits = subject.length.saturating_sub(spoiler.too_long).to_string();
    let longest = name::LONGEST.to_string();
    let start = [" where names have more than ", &fits, " characters: behind ", &location].concat();
    [&start, " they become longer than ", &longest].concat()
}

/// Where an image is looked for.
fn place(words: &Words, source: &Source<'_>) -> String {
    let place = short(&words.scope(&source.name));
    match source.proxy {
        "" => place,
        proxy => [&place, " as a proxy of ", &short(proxy)].concat(),
    }
}

pub(crate) fn gain(
    words: &Words,
    subject: &Subject,
    before: &[Source<'_>],
    after: &[Source<'_>],
) -> String {
    let what = what(subject);
    let new = after.iter().find(|source| !before.iter().any(|other| source.is_at(other)));
    match new {
        Some(_) if before.is_empty() => [what.as_str(), " can be pulled now"].concat(),
        Some(new) => [&what, " are now looked up at ", &place(words, new), " too"].concat(),
        None => [what.as_str(), " are looked up at the same places"].concat(),
    }
}

fn what(subject: &Subject) -> String {
    let kind = match subject.by {
        By::Tag => "tags of ",
        By::Digest => "digests of ",
    };
    [kind, &short(&subject.scope)].concat()
}

fn short(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => [name.get(..end).unwrap_or_default(), "…"].concat(),
        None => name.to_string(),
    }
}
