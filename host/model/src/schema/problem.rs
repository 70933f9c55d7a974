//! What is wrong with a value, in words.

use super::read::{Range, Type};
use crate::text::shortened;
use serde_json::Value;
use std::fmt;

/// Where a value is.
pub(super) enum Place<'p> {
    Root,
    Field(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Field(Place::Root, name) => write!(f, "{}", named(name)),
            Place::Field(of, name) => write!(f, "{of}.{}", named(name)),
            Place::Item(of, index) => write!(f, "{of}[{index}]"),
        }
    }
}

impl Place<'_> {
    pub(super) fn problem(&self, message: impl fmt::Display) -> String {
        match self {
            Place::Root => message.to_string(),
            place => format!("{place}: {message}"),
        }
    }
}

/// A problem, if there are too few or too many.
pub(super) fn counted(count: usize, range: &Range, of: &str, at: &Place<'_>) -> Option<String> {
    let count = count as u64;
    let (word, bound) = match range {
        Range { least, .. } if count < *least => ("at least", *least),
        Range { most, .. } if count > *most => ("at most", *most),
        _ => return None,
    };
    let plural = if bound == 1 { "" } else { "s" };
    Some(at.problem(format!("expected {word} {bound} {of}{plural}, found {count}")))
}

impl Type {
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Boolean => "true or false",
            Type::Integer => "a whole number",
            Type::Number => "a number",
            Type::Text => "text (quoted, where it looks like something else)",
            Type::List => "a list, such as [\"a\", \"b\"]",
            Type::Object => "an object, such as {\"a\": 1}",
        }
    }
}

pub(super) fn expected(what: &str, found: &Value) -> String {
    format!("expected {what}, found {}", short(found))
}

/// A value, as far as it fits into a sentence.
pub(super) fn short(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{:?}", named(text)),
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}

/// A text, as far as it fits into a sentence.
pub(super) fn named(text: &str) -> String {
    shortened(text, 60)
}
