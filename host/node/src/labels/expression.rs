//! Expressions of paths, each compiled when a path first meets it.

use regex_lite::Regex;
use std::sync::OnceLock;

/// The longest expression that libselinux takes.
const MOST: usize = 4095;

/// An expression that a whole path matches or not.
#[derive(Debug)]
pub(super) struct Expression {
    text: Box<str>,
    /// What every path that matches begins with.
    stem: Box<str>,
    compiled: OnceLock<Result<Regex, String>>,
}

impl Expression {
    pub(super) fn new(text: &str) -> Expression {
        let stem = stem(text).into();
        Expression { text: text.into(), stem, compiled: OnceLock::new() }
    }

    /// The only path that matches, if there is but one: an expression without
    /// anything that could stand for something else.
    pub(super) fn literal(text: &str) -> Option<String> {
        let (literal, rest) = beginning(text);
        rest.is_empty().then_some(literal)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is worth trying: most expressions begin otherwise.
    pub(super) fn may_match(&self, path: &str) -> bool {
        path.starts_with(&*self.stem)
    }

    #[cfg(test)]
    pub(super) fn is_compiled(&self) -> bool {
        self.compiled.get().is_some()
    }

    /// Whether a path matches; or why the expression cannot be used.
    pub(super) fn matches(&self, path: &str) -> Result<bool, String> {
        match self.compiled.get_or_init(|| compiled(&self.text)) {
            Ok(compiled) => Ok(compiled.is_match(path)),
            Err(why) => Err(why.clone()),
        }
    }
}

/// As libselinux does, the ends are tied to the expression as it stands: in `/a|/b`
/// each end holds for one side only.
fn compiled(text: &str) -> Result<Regex, String> {
    if text.len() > MOST {
        return Err(format!("it has more than {MOST} letters"));
    }
    Regex::new(&format!("(?s)^{text}$")).map_err(|error| error.to_string())
}

/// What may stand behind a backslash and means itself.
const ESCAPED: &str = ".^$?*+|[({])}-_,";

/// What an expression begins with that stands for itself, and the rest.
fn beginning(text: &str) -> (String, &str) {
    let mut literal = String::new();
    let mut letters = text.chars();
    loop {
        let rest = letters.as_str();
        match letters.next() {
            None => return (literal, ""),
            Some('\\') => match letters.next() {
                Some(letter) if ESCAPED.contains(letter) => literal.push(letter),
                _ => return (literal, rest),
            },
            Some('.' | '^' | '$' | '?' | '*' | '+' | '|' | '[' | '(' | '{' | ']' | ')' | '}') => {
                return (literal, rest);
            }
            Some(letter) => literal.push(letter),
        }
    }
}

/// What every path that matches begins with.
fn stem(text: &str) -> String {
    let (mut literal, rest) = beginning(text);
    if is_either_or(text) {
        return String::new();
    }
    // The last letter may be missing, or repeated.
    if rest.starts_with(['?', '*', '{']) {
        literal.pop();
    }
    literal
}

/// Whether a `|` stands outside of all parentheses: then there are two beginnings.
fn is_either_or(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '[' => {
                letters.next_if_eq(&'^');
                letters.next_if_eq(&']');
                while let Some(inside) = letters.next() {
                    match inside {
                        '\\' => {
                            letters.next();
                        }
                        ']' => break,
                        _ => {}
                    }
                }
            }
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => return true,
            _ => {}
        }
    }
    false
}
