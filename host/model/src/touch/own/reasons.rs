//! Why a unit is not touched gently, in words that quote no value.

use super::names::is_beginning;
use super::relations::Does;
use super::says::Why;
use super::written::{Hidden, Text};

/// Why a unit is not looked at.
pub(super) const MORE: &str = "may not be touched gently: the configs say more of it, and of units \
                               that belong to it, than is looked at";

/// How a unit belongs to the one that is touched.
pub(super) fn in_words(said: Does) -> &'static str {
    match said {
        Does::Be => "which has it as an alias",
        Does::Start => "which it starts",
        Does::Stop => "which it stops",
        Does::Restart => "which stops with it",
        Does::Reload => "which is reloaded with it",
    }
}

/// Why it is not gentle that this is said of another unit.
pub(super) fn harsh(said: Does, other: &str) -> String {
    match said {
        Does::Be => {
            "the configs make it an alias of what ends the system, or of what much of a node needs"
                .to_owned()
        }
        Does::Start => "the configs have it start what ends the system".to_owned(),
        Does::Stop => format!("{other} stops where it starts, and much of a node with that"),
        Does::Restart if is_beginning(other) => {
            format!("all units that {other} stands for stop with it")
        }
        Does::Restart | Does::Reload => {
            format!("{other} stops with it, and much of a node with that")
        }
    }
}

/// Why a unit is not touched gently, if the way to it leads through a line of a secret text.
pub(super) fn of_hidden(hidden: Hidden<'_>) -> String {
    format!(
        "may not be touched gently: by {hidden} others come with it that are not touched gently, or of \
         which more is said than is looked at"
    )
}

/// Why a unit is not touched gently. Of a secret text only the line is told.
pub(super) fn in_a_sentence(why: Why, which: &str, text: &Text<'_>) -> String {
    let place = &text.place;
    match why {
        Why::Ends { line, .. } if text.is_secret => format!(
            "would not be touched gently: {which} ends the system, or takes much of a node with it, by line \
             {line} of {place}"
        ),
        Why::Ends { what, .. } => format!("would not be touched gently: {which} {what}"),
        Why::More { line, .. } if text.is_secret => format!(
            "may not be touched gently: {which} says more than is looked at, on line {line} of {place}"
        ),
        Why::More { section, key, line } => format!(
            "may not be touched gently: {which} has {key}= in [{section}], which is more than is \
             looked at (line {line} of {place})"
        ),
    }
}
