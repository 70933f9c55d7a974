//! One pattern over change ids: `KIND` or `KIND:GLOB`.
//!
//! The globs are those of the `fast-glob` crate, which the policies match with; what
//! it would take in another sense than a reader expects is refused here.

use super::automaton::Element;
use super::glob::{elements, start_of, text, written_out};
use super::kind::Kind;
use crate::text::is_unfit;
use crate::unit_name::is_unit_name;

/// No pattern is longer, in bytes.
pub const LONGEST: usize = 1024;

/// No policy's patterns have more elements all together: the cost of matching.
pub const MOST_ELEMENTS: usize = 4096;

/// A pattern over change ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pub(super) kind: Kind,
    /// What an id has to begin with, or to be, as it stands in ids.
    pub(super) literal: String,
    /// What follows the literal, for each alternative of its braces; none: the
    /// literal is all.
    pub(super) globs: Vec<Vec<Element>>,
}

/// How closely a pattern describes what it matches. Of two that match the same
/// id the greater one is closer: one without a glob before any other, then the
/// one with more bytes before its first glob character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity {
    exact: bool,
    literal: usize,
}

impl Pattern {
    /// Reads a pattern, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        if text.len() > LONGEST {
            return Err(format!("is longer than {LONGEST} bytes"));
        }
        // No change has such an id, and a claim with one would deceive whoever lists it.
        if text.chars().any(is_unfit) {
            return Err(format!(
                "{text:?} holds a control character, or one that hides or turns text"
            ));
        }
        let (word, name) = match text.split_once(':') {
            Some((word, name)) => (word, Some(name)),
            None => (text, None),
        };
        let kind = Kind::read(word).map_err(|error| match meant(text) {
            Some(meant) => format!("unknown kind {word:?}: did you mean {meant:?}?"),
            None => error,
        })?;
        match name {
            Some(_) if !kind.is_named() => {
                Err(format!("{word} takes nothing after it: write {word}"))
            }
            None if !kind.is_named() => Ok(Pattern::without_glob(kind, word.to_owned())),
            None | Some("") => {
                Err(format!("{word} needs a name or a glob after it, such as {}", kind.example()))
            }
            Some(name) => Pattern::named(kind, name),
        }
    }

    fn named(kind: Kind, name: &str) -> Result<Pattern, String> {
        if name.starts_with('!') {
            return Err(format!("{name:?}: a glob cannot be negated: name what is claimed"));
        }
        fast_glob::validate(name).map_err(|error| format!("{name:?}: {error}"))?;
        let (start, is_glob) = start_of(name)?;
        match kind {
            Kind::File => check_path(name)?,
            Kind::Unit => check_unit(name, (!is_glob).then_some(&start))?,
            _ if name.contains('/') => return Err(format!("{name:?}: no user's name has a /")),
            _ => {}
        }
        let literal = format!("{}:{start}", kind.as_str());
        if !is_glob {
            return Ok(Pattern::without_glob(kind, literal));
        }
        let mut globs = Vec::new();
        for glob in written_out(name)? {
            if kind == Kind::File {
                check_path(&text(&glob))?;
            }
            globs.push(elements(&glob, start.len())?);
        }
        let pattern = Pattern { kind, literal, globs };
        match pattern.elements() {
            MOST_ELEMENTS.. => Err(format!("{name:?} is too long with its braces written out")),
            _ => Ok(pattern),
        }
    }

    fn without_glob(kind: Kind, literal: String) -> Pattern {
        Pattern { kind, literal, globs: Vec::new() }
    }

    /// What it adds to the cost of matching: the bytes and glob characters
    /// behind its literal start, with its braces written out.
    pub fn elements(&self) -> usize {
        self.globs.iter().map(Vec::len).sum()
    }

    /// How closely it describes what it matches.
    pub fn specificity(&self) -> Specificity {
        Specificity { exact: self.globs.is_empty(), literal: self.literal.len() }
    }

    /// What it is about.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The one id that it matches, if it has no glob.
    pub fn exact(&self) -> Option<&str> {
        self.globs.is_empty().then_some(self.literal.as_str())
    }

    /// Whether it claims so much that an admin has to approve it: files with
    /// fewer than two whole directories before the first glob character
    /// (`file:/**`, `file:/etc/*.conf`), or any name of another kind (`unit:*`).
    pub fn is_wide(&self) -> bool {
        let start = self.literal.split_once(':').map_or("", |(_, start)| start);
        match self.kind {
            _ if self.globs.is_empty() => false,
            Kind::File => start.matches('/').count() < 3,
            _ => start.is_empty(),
        }
    }
}

/// `text` as a pattern that matches it and nothing else, for the place of a
/// name: its glob characters are escaped.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// What somebody meant who left out the kind, or uses another word for it.
fn meant(text: &str) -> Option<String> {
    match text {
        "kargs" | "kernel-args" => Some(Kind::KernelArguments.as_str().to_owned()),
        path if path.starts_with('/') => Some(format!("file:{path}")),
        unit if is_unit_name(unit) => Some(format!("unit:{unit}")),
        _ => None,
    }
}

pub(super) fn check_path(path: &str) -> Result<(), String> {
    let whole_tree = path == "**" || path.starts_with("**/");
    if !path.starts_with('/') && !whole_tree {
        return Err(format!("{path:?}: a path begins with /"));
    }
    let mut parts = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(part) = parts.next() {
        match part {
            "" if parts.peek().is_none() => {
                return Err(format!(
                    "{path:?} ends in a slash: a directory's files are {}/**",
                    path.trim_end_matches('/')
                ));
            }
            "" => return Err(format!("{path:?} has two slashes in a row")),
            "." | ".." => {
                return Err(format!("{path:?} has a {part} in it: write the path without"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_unit(name: &str, exact: Option<&String>) -> Result<(), String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@*?[]{},!^".contains(c);
    if !name.chars().all(fine) {
        return Err(format!("{name:?} holds a character that no unit's name has"));
    }
    match exact {
        Some(unit) if !is_unit_name(unit) => {
            Err(format!("{unit:?} is no unit: names are complete, as in crio.service"))
        }
        _ => Ok(()),
    }
}
