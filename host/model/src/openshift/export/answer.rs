//! What is answered for a file, a directory or a unit, whatever is in it: the
//! same merging as in `plan::decide`, over what is known without asking.

use super::voice::{Says, Voice};
use crate::claim::{Kind, Pattern, Shape, Specificity};
use crate::description::Claim;
use crate::effect::Effect;
use crate::path::is_below;
use crate::rules::matching::deciding_rule;
use crate::rules::rule::{Rule, RuleAction, Then};
use crate::verdict::{Action, Layer};
use std::cmp::Ordering;

/// What is asked about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'p> {
    /// One change.
    Id(&'p str),
    /// Every file below a directory for which no place of its own is listed.
    Below(&'p str),
}

/// What one voice says of a place.
#[derive(Debug)]
enum Word {
    /// It claims nothing there, or abstains.
    Silent,
    Act(Vec<Action>),
    /// The path alone does not decide; with the reason.
    Unknown(String),
}

/// What all voices come to: actions, nothing (nobody answers, which is a
/// reboot), or why that cannot be said.
pub(super) fn answer(voices: &[Voice], place: Place<'_>) -> Result<Option<Vec<Action>>, String> {
    let words: Vec<(&Voice, Word)> = voices.iter().map(|it| (it, word(it, place))).collect();
    let (admin, others): (Vec<_>, Vec<_>) =
        words.iter().partition(|(voice, _)| voice.layer == Layer::Admin);
    if let Some(actions) = combined(&admin)? {
        return Ok(Some(actions));
    }
    let relaxed = others.iter().any(|(voice, word)| {
        voice.layer == Layer::Template && voice.may_relax && matches!(word, Word::Act(_))
    });
    let counted: Vec<_> = others
        .into_iter()
        .filter(|(voice, _)| !(relaxed && voice.layer == Layer::Builtin))
        .collect();
    combined(&counted)
}

/// All that anybody but a built-in policy might ask for at a place; None is a
/// refusal, or what only the code of a policy knows.
pub(super) fn demands(voices: &[Voice], place: Place<'_>) -> Vec<Option<Vec<Action>>> {
    let owners = voices.iter().filter(|voice| voice.layer != Layer::Builtin);
    owners.flat_map(|voice| demands_of(&voice.says, place)).collect()
}

fn demands_of(says: &Says, place: Place<'_>) -> Vec<Option<Vec<Action>>> {
    let touches = |text: &str| match place {
        Place::Id(id) => Pattern::parse(text).is_ok_and(|it| it.matches(id)),
        Place::Below(directory) => files(text).is_some_and(|(_, shapes)| {
            shapes.iter().any(|shape| shape.covers(directory)) || reaches(&shapes, directory)
        }),
    };
    match says {
        Says::Rules(rules) => {
            let decides = |at: usize| match place {
                Place::Id(id) => deciding_rule(rules, id) == Some(at),
                Place::Below(_) => true,
            };
            let rules = rules
                .iter()
                .enumerate()
                .filter(|(at, rule)| decides(*at) && rule.r#match.iter().any(|text| touches(text)));
            let asked = rules.filter_map(|(_, rule)| match &rule.then {
                Then::Act { actions, .. } => {
                    Some(Some(actions.iter().map(RuleAction::action).collect()))
                }
                Then::Refuse { .. } => Some(None),
                Then::Abstain => None,
            });
            asked.collect()
        }
        Says::Claims(claims) => {
            let touching = claims.iter().filter(|claim| touches(&claim.changes));
            touching.map(|claim| (claim.most == Effect::None).then(Vec::new)).collect()
        }
    }
}

fn combined(words: &[&(&Voice, Word)]) -> Result<Option<Vec<Action>>, String> {
    let mut all: Option<Vec<Action>> = None;
    for (_, word) in words {
        match word {
            Word::Silent => {}
            Word::Unknown(reason) => return Err(reason.clone()),
            Word::Act(actions) => all.get_or_insert_default().extend(actions.iter().cloned()),
        }
    }
    Ok(all.map(|mut actions| {
        actions.sort();
        actions.dedup();
        actions
    }))
}

fn word(voice: &Voice, place: Place<'_>) -> Word {
    match (&voice.says, place) {
        (Says::Rules(rules), Place::Id(id)) => match deciding_rule(rules, id) {
            Some(index) => rules.get(index).map_or(Word::Silent, |rule| of_rule(&rule.then)),
            None => Word::Silent,
        },
        (Says::Rules(rules), Place::Below(directory)) => rules_below(voice, rules, directory),
        (Says::Claims(claims), place) => claims_on(voice, claims, place),
    }
}

fn of_rule(then: &Then) -> Word {
    match then {
        Then::Act { actions, .. } => Word::Act(actions.iter().map(RuleAction::action).collect()),
        Then::Refuse { .. } => {
            Word::Unknown("it refuses the change, and OpenShift's entries cannot".to_owned())
        }
        Then::Abstain => Word::Silent,
    }
}

/// A pattern of a rule that says something of a directory.
struct Touching<'r> {
    /// Its place among all patterns.
    at: usize,
    specificity: Specificity,
    text: &'r str,
    then: &'r Then,
}

fn rules_below(voice: &Voice, rules: &[Rule], directory: &str) -> Word {
    let mut whole: Option<Touching<'_>> = None;
    let mut some: Vec<Touching<'_>> = Vec::new();
    let texts = rules.iter().flat_map(|rule| rule.r#match.iter().map(move |text| (rule, text)));
    for (at, (rule, text)) in texts.enumerate() {
        let Some((pattern, shapes)) = files(text) else { continue };
        let specificity = pattern.specificity();
        let touching = || Touching { at, specificity, text, then: &rule.then };
        if shapes.iter().any(|shape| shape.covers(directory)) {
            // Of equals the first decides.
            if whole.as_ref().is_none_or(|best| specificity > best.specificity) {
                whole = Some(touching());
            }
        } else if reaches(&shapes, directory) {
            some.push(touching());
        }
    }
    let Some(whole) = whole else {
        return match some.first() {
            Some(glob) => Word::Unknown(no_globs(voice, glob.text)),
            None => Word::Silent,
        };
    };
    // A glob may win where it is closer, or as close and written before.
    let wins = |glob: &&Touching<'_>| match glob.specificity.cmp(&whole.specificity) {
        Ordering::Greater => true,
        Ordering::Equal => glob.at < whole.at,
        Ordering::Less => false,
    };
    match some.iter().filter(wins).find(|glob| !same(glob.then, whole.then)) {
        Some(glob) => Word::Unknown(no_globs(voice, glob.text)),
        None => of_rule(whole.then),
    }
}

/// Whether two rules ask for the same.
fn same(one: &Then, other: &Then) -> bool {
    match (one, other) {
        (Then::Act { actions: one, .. }, Then::Act { actions: other, .. }) => one == other,
        (Then::Refuse { .. }, Then::Refuse { .. }) | (Then::Abstain, Then::Abstain) => true,
        _ => false,
    }
}

fn no_globs(voice: &Voice, pattern: &str) -> String {
    format!(
        "{pattern} of {} answers for a part of it, and OpenShift has no globs: it takes whole paths and directories",
        voice.name
    )
}

fn claims_on(voice: &Voice, claims: &[Claim], place: Place<'_>) -> Word {
    let mut said: Option<(&Claim, Word)> = None;
    for claim in claims {
        let matches = match place {
            Place::Id(id) => Pattern::parse(&claim.changes).is_ok_and(|it| it.matches(id)),
            Place::Below(directory) => match files(&claim.changes) {
                Some((_, shapes)) => {
                    let whole = shapes.iter().any(|shape| shape.covers(directory));
                    if !whole && reaches(&shapes, directory) {
                        return Word::Unknown(no_globs(voice, &claim.changes));
                    }
                    whole
                }
                None => false,
            },
        };
        if !matches {
            continue;
        }
        let word = of_claim(voice, claim);
        match (&said, &word) {
            (_, Word::Unknown(_)) => return word,
            (Some((earlier, Word::Act(one))), Word::Act(other)) if one != other => {
                return Word::Unknown(format!(
                    "{} claims it by {} and by {}, with different answers",
                    voice.name, earlier.changes, claim.changes
                ));
            }
            _ => said = Some((claim, word)),
        }
    }
    said.map_or(Word::Silent, |(_, word)| word)
}

/// What a claim says by itself, without the policy being asked.
fn of_claim(voice: &Voice, claim: &Claim) -> Word {
    let (name, least, most) = (&voice.name, claim.least, claim.most);
    match least {
        _ if least != most => Word::Unknown(format!(
            "it depends on the contents: {name} answers {least} to {most}, and OpenShift's \
             entries see only the path"
        )),
        Effect::None => Word::Act(Vec::new()),
        Effect::Reboot => Word::Act(vec![Action::Reboot]),
        Effect::Refuse => {
            Word::Unknown(format!("{name} refuses the change, and OpenShift's entries cannot"))
        }
        effect => Word::Unknown(format!(
            "{name} always answers {effect}, but only its code knows with which units: write a \
             rule, which can be exported"
        )),
    }
}

/// Whether globs might match something in a directory for which no deeper place is
/// listed: a glob that begins further inside has a place of its own.
fn reaches(shapes: &[Shape], directory: &str) -> bool {
    shapes.iter().any(|shape| {
        let further_inside = shape.directory().is_some_and(|own| is_below(own, directory));
        shape.may_reach(directory) && !further_inside
    })
}

/// A pattern over files, and its shapes.
fn files(text: &str) -> Option<(Pattern, Vec<Shape>)> {
    let pattern = Pattern::parse(text).ok()?;
    let is_of_files = pattern.kind() == Kind::File;
    is_of_files.then(|| {
        let shapes = pattern.shapes();
        (pattern, shapes)
    })
}
