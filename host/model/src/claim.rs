//! Claims: which changes a policy wants to see, as patterns over change ids.
//!
//! A pattern is `KIND` or `KIND:GLOB`. The globs are those of the `fast-glob`
//! crate, which the policies match with; what it would take in another sense
//! than a reader expects is refused here. tread itself matches with an automaton,
//! because patterns are strangers' texts, and `fast-glob` takes its time on some.

mod automaton;
mod description;
mod glob;
mod router;
mod shape;

pub use description::{check_size, usable_claims, validate_declarations, validate_description};
pub use router::Router;
pub use shape::{Shape, is_below};

use crate::read::fields::unknown;
use crate::read::is_unfit;
use crate::unit_name::is_unit_name;
use automaton::Step;
use glob::{start_of, steps, text, written_out};

/// No pattern is longer, in bytes.
pub const LONGEST: usize = 1024;

/// No policy's patterns have more steps all together: the cost of matching.
pub const MOST_STEPS: usize = 4096;

/// What a change is a change of, as far as policies can claim it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `file:/etc/chrony.conf`
    File,
    /// `unit:crio.service`
    Unit,
    /// `ssh-keys:core`
    SshKeys,
    /// `password:core`
    Password,
    /// `kernel-arguments`
    KernelArguments,
    /// `kernel-type`
    KernelType,
    /// `os-image`
    OsImage,
    /// `extensions`
    Extensions,
}

impl Kind {
    const ALL: [Kind; 8] = [
        Kind::File,
        Kind::Unit,
        Kind::SshKeys,
        Kind::Password,
        Kind::KernelArguments,
        Kind::KernelType,
        Kind::OsImage,
        Kind::Extensions,
    ];

    /// What an id of this kind begins with, or is.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Unit => "unit",
            Kind::SshKeys => "ssh-keys",
            Kind::Password => "password",
            Kind::KernelArguments => "kernel-arguments",
            Kind::KernelType => "kernel-type",
            Kind::OsImage => "os-image",
            Kind::Extensions => "extensions",
        }
    }

    /// Whether there can be several on a node, each with a name.
    pub fn is_named(self) -> bool {
        matches!(self, Kind::File | Kind::Unit | Kind::SshKeys | Kind::Password)
    }

    /// Whether what changes there takes effect at boot, and at nothing less.
    pub fn needs_boot(self) -> bool {
        matches!(self, Kind::KernelArguments | Kind::KernelType | Kind::OsImage | Kind::Extensions)
    }

    /// Whether this is the id of a change that only a boot applies.
    pub fn is_applied_by_boot(change_id: &str) -> bool {
        Kind::ALL.into_iter().any(|kind| kind.needs_boot() && kind.as_str() == change_id)
    }

    fn example(self) -> &'static str {
        match self {
            Kind::Unit => "unit:crio.service",
            Kind::SshKeys => "ssh-keys:core",
            Kind::Password => "password:core",
            _ => "file:/etc/chrony.conf",
        }
    }
}

/// A pattern over change ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    kind: Kind,
    /// What an id has to begin with, or to be, as it stands in ids.
    literal: String,
    /// What follows the literal, for each alternative of its braces; none: the
    /// literal is all.
    globs: Vec<Vec<Step>>,
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
        let kind = kind_of(word).map_err(|error| match meant(text) {
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
            globs.push(steps(&glob, start.len())?);
        }
        let pattern = Pattern { kind, literal, globs };
        match pattern.steps() {
            MOST_STEPS.. => Err(format!("{name:?} is too long with its braces written out")),
            _ => Ok(pattern),
        }
    }

    fn without_glob(kind: Kind, literal: String) -> Pattern {
        Pattern { kind, literal, globs: Vec::new() }
    }

    /// What it adds to the cost of matching: the bytes and glob characters
    /// behind its literal start, with its braces written out.
    pub fn steps(&self) -> usize {
        self.globs.iter().map(Vec::len).sum()
    }

    /// Whether it matches a change with this id, as a whole. For many patterns
    /// or ids there is [`Router`].
    pub fn matches(&self, id: &str) -> bool {
        match self.exact() {
            Some(exact) => id == exact,
            None => Router::of(vec![(self.clone(), (0, 0))]).claimants(id).next().is_some(),
        }
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

fn kind_of(word: &str) -> Result<Kind, String> {
    if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.as_str() == word) {
        return Ok(kind);
    }
    if matches!(word, "fips" | "storage" | "users" | "ignition") {
        return Err(format!("{word} cannot be claimed: tread itself refuses such a change"));
    }
    Err(unknown("kind", word, &Kind::ALL.map(Kind::as_str)))
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

fn check_path(path: &str) -> Result<(), String> {
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

#[cfg(test)]
mod tests;
