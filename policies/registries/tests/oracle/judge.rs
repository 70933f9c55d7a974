//! What a change needs, and whether the policy said so.

use crate::node::{Judged, Pair};
use crate::runtime::{Made, Source};
use std::fmt;
use tread_guest_sdk::{Action, Effect};

/// What a release of the library asks for, with a sentence.
pub(crate) enum Needed {
    Refuse(String),
    Drain(String),
    Nothing,
}

/// What the policy answers to all changes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    Reload,
    Drain,
    Refuse,
}

impl Answer {
    pub(crate) fn of(verdicts: &[Judged]) -> Answer {
        let answer = |judged: &Judged| match judged.verdict.effect() {
            Some(Effect::Refuse) => Answer::Refuse,
            _ if judged.verdict.actions().contains(&Action::Drain) => Answer::Drain,
            _ => Answer::Reload,
        };
        verdicts.iter().map(answer).max().unwrap_or(Answer::Reload)
    }
}

pub(crate) fn needed(runtime: &str, pair: &Pair, before: &Made, after: &Made) -> Needed {
    if pair.is_read_alike() {
        return Needed::Nothing;
    }
    for error in [&after.registries, &after.lookaside, &after.policy] {
        if !error.is_empty() {
            return Needed::Refuse(format!("{runtime} does not load it: {error}"));
        }
    }
    if !before.registries.is_empty() || !before.lookaside.is_empty() {
        return Needed::Nothing;
    }
    if before.helpers != after.helpers {
        return Needed::Drain(format!("{runtime} asks others for credentials"));
    }
    for (name, (old, new)) in pair.names.iter().zip(before.pulls.iter().zip(&after.pulls)) {
        let (old, new) = (old.as_deref().unwrap_or_default(), new.as_deref().unwrap_or_default());
        if old != new && !goes_on(old, new, name.contains('@')) {
            return Needed::Drain(format!("{runtime} pulls {name} elsewhere: {old:?}, {new:?}"));
        }
    }
    Needed::Nothing
}

/// How a place can be found: up without a valid certificate, or with one.
const STATES: [bool; 2] = [false, true];

/// Whether a pull goes on as before, whatever is up. If it does not, there is a
/// world in which only one or two places are up and it does not: the one that
/// answered, and the one that answers now.
fn goes_on(before: &[Source], after: &[Source], by_digest: bool) -> bool {
    let place = |source: &Source| (source.name.clone(), source.namespace.clone());
    let mut places: Vec<_> = before.iter().chain(after).map(place).collect();
    places.sort();
    places.dedup();
    places.iter().all(|one| {
        places.iter().all(|two| {
            STATES.iter().all(|one_is_valid| {
                STATES.iter().all(|two_is_valid| {
                    let answers = |source: &&Source| {
                        let place = place(source);
                        let up = |other: &(String, String), valid: &bool| {
                            place == *other && (*valid || source.insecure)
                        };
                        up(one, one_is_valid) || (one != two && up(two, two_is_valid))
                    };
                    let (was, is) = (before.iter().find(answers), after.iter().find(answers));
                    match (was, is) {
                        (None, _) => true,
                        (Some(_), None) => false,
                        (Some(was), Some(is)) => by_digest || place(was) == place(is),
                    }
                })
            })
        })
    })
}

/// What came out so far.
#[derive(Default)]
pub(crate) struct Tally {
    refused: usize,
    drained: usize,
    reloaded: usize,
    needless_refusals: usize,
    needless_drains: usize,
    wrong: usize,
    pub(crate) planned: usize,
}

impl Tally {
    /// Whether every kind of answer came up.
    pub(crate) fn is_varied(&self) -> bool {
        ![self.refused, self.drained, self.reloaded].contains(&0)
    }

    /// Counts an answer, and says what is wrong with it: that it is too gentle
    /// or, where that is asked for, harsher than needed.
    pub(crate) fn add(
        &mut self,
        needed: &[Needed],
        answer: Answer,
        counts_harsher: bool,
    ) -> Option<String> {
        let refuse = needed.iter().find(|needed| matches!(needed, Needed::Refuse(_)));
        let drain = needed.iter().find(|needed| matches!(needed, Needed::Drain(_)));
        let (least, why) = match refuse.or(drain) {
            Some(Needed::Refuse(why)) => (Answer::Refuse, why.as_str()),
            Some(Needed::Drain(why)) => (Answer::Drain, why.as_str()),
            _ => (Answer::Reload, ""),
        };
        if answer < least {
            self.wrong += 1;
            return Some(format!("the policy answers {answer:?}, and {least:?} is needed: {why}"));
        }
        let counter = match (answer, least) {
            (Answer::Refuse, Answer::Refuse) => &mut self.refused,
            (Answer::Drain, Answer::Drain) => &mut self.drained,
            (Answer::Reload, _) => &mut self.reloaded,
            (Answer::Refuse, _) => &mut self.needless_refusals,
            (Answer::Drain, _) => &mut self.needless_drains,
        };
        *counter += 1;
        (counts_harsher && answer > least)
            .then(|| format!("the policy answers {answer:?}, and {least:?} would do"))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { refused, drained, reloaded, .. } = self;
        let harsher = self.needless_refusals + self.needless_drains;
        writeln!(f, "as the runtime: {refused} refused, {drained} drained, {reloaded} reloaded")?;
        writeln!(
            f,
            "harsher than needed: {harsher} ({} refused, {} drained)",
            self.needless_refusals, self.needless_drains
        )?;
        writeln!(f, "too gentle: {}", self.wrong)?;
        write!(f, "planned by the binary too: {}", self.planned)
    }
}
