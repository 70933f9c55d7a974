//! What differs between the sides of a change, for a script: how much, and in what.

use super::difference::{Shown, attributes, clean, is_same_content, text_of, unit_texts};
use std::collections::BTreeSet;
use tread_model::change::{Change, State};
use tread_model::plan::difference::{Amount, Contents, Difference};
use tread_model::secrets::is_secret;
use tread_model::text_diff::{Line, line_diff};

/// Measures what the plan for a person shows.
pub(crate) fn measured(change: &Change<'_>) -> Difference {
    let is_unit = |state: &State<'_>| matches!(state, State::Unit(_));
    let contents = match is_unit(&change.before) || is_unit(&change.after) {
        true => of_unit(change),
        false => of_other(change),
    };
    Difference { secret: is_secret(change), contents, attributes: attributes(change) }
}

fn of_unit(change: &Change<'_>) -> Vec<Contents> {
    let (before, after) = (unit_texts(&change.before), unit_texts(&change.after));
    let names: BTreeSet<&str> = before.iter().chain(&after).map(|(name, _)| *name).collect();
    let text = |side: &[(&str, String)], name: &str| {
        let found = side.iter().find(|(it, _)| *it == name);
        found.map_or_else(String::new, |(_, text)| text.clone())
    };
    let contents = names.into_iter().filter_map(|name| {
        let amount = lines(&text(&before, name), &text(&after, name))?;
        Some(Contents { dropin: (!name.is_empty()).then(|| clean(name)), amount })
    });
    contents.collect()
}

fn of_other(change: &Change<'_>) -> Vec<Contents> {
    if is_same_content(&change.before, &change.after) {
        return Vec::new();
    }
    let amount = match (text_of(&change.before), text_of(&change.after)) {
        (Shown::Text(before), Shown::Text(after)) => lines(&before, &after),
        (before, after) => {
            Some(Amount::NoText { bytes_before: before.len(), bytes_after: after.len() })
        }
    };
    amount.map(|amount| Contents { dropin: None, amount }).into_iter().collect()
}

/// None if they do not differ.
fn lines(before: &str, after: &str) -> Option<Amount> {
    let lines = line_diff(before, after, 0);
    match lines.as_slice() {
        [] => None,
        [Line::TooLong { before, after }] => {
            Some(Amount::TooLong { lines_before: *before, lines_after: *after })
        }
        lines => {
            let count = |wanted: fn(&Line) -> bool| lines.iter().filter(|it| wanted(it)).count();
            Some(Amount::Lines {
                added_lines: count(|line| matches!(line, Line::Added(_))),
                removed_lines: count(|line| matches!(line, Line::Removed(_))),
            })
        }
    }
}
