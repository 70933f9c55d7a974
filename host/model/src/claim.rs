//! Claims: which changes a policy wants to see, as patterns over change ids.
//!
//! A pattern is `KIND` or `KIND:GLOB`. The globs are those of the `fast-glob`
//! crate, which the policies match with as well; what it would take in another
//! sense than a reader expects is refused here.

mod description;
mod router;

pub use description::validate_description;
pub use router::Router;

use crate::read::fields::unknown;
use crate::unit_name::is_unit_name;

/// No pattern is longer, in bytes.
pub const LONGEST: usize = 1024;

/// No pattern stands for more alternatives, with `{a,b}` written out: matching
/// tries them one by one.
const MOST_ALTERNATIVES: usize = 16;

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
    /// Over the name, without the kind; none: the literal is all.
    glob: Option<String>,
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
        if text.chars().any(char::is_control) {
            return Err(format!("{text:?} holds a control character"));
        }
        let (word, name) = match text.split_once(':') {
            Some((word, name)) => (word, Some(name)),
            None => (text, None),
        };
        let kind = kind_of(word)?;
        match name {
            Some(_) if !kind.is_named() => {
                Err(format!("{word} takes nothing after it: write {word}"))
            }
            None if !kind.is_named() => Ok(Pattern { kind, literal: word.to_owned(), glob: None }),
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
        if is_glob {
            check_globstars(name)?;
            check_alternatives(name)?;
        }
        match kind {
            Kind::File => check_path(name)?,
            Kind::Unit => check_unit(name, (!is_glob).then_some(&start))?,
            _ if name.contains('/') => return Err(format!("{name:?}: no user's name has a /")),
            _ => {}
        }
        let literal = format!("{}:{start}", kind.as_str());
        Ok(Pattern { kind, literal, glob: is_glob.then(|| name.to_owned()) })
    }

    /// Whether it matches a change with this id, as a whole.
    pub fn matches(&self, id: &str) -> bool {
        match &self.glob {
            None => id == self.literal,
            Some(glob) => {
                id.starts_with(self.literal.as_str())
                    && id.split_once(':').is_some_and(|(_, name)| fast_glob::glob_match(glob, name))
            }
        }
    }

    /// How closely it describes what it matches.
    pub fn specificity(&self) -> Specificity {
        Specificity { exact: self.glob.is_none(), literal: self.literal.len() }
    }

    /// What it is about.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The one id that it matches, if it has no glob.
    pub fn exact(&self) -> Option<&str> {
        self.glob.is_none().then_some(self.literal.as_str())
    }

    /// Whether it claims so much that an admin has to approve it: files with
    /// fewer than two whole directories before the first glob character
    /// (`file:/**`, `file:/etc/*.conf`), or any name of another kind (`unit:*`).
    pub fn is_wide(&self) -> bool {
        let start = self.literal.split_once(':').map_or("", |(_, start)| start);
        match (&self.glob, self.kind) {
            (None, _) => false,
            (Some(_), Kind::File) => start.matches('/').count() < 3,
            (Some(_), _) => start.is_empty(),
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

/// A piece of a glob.
enum Token {
    /// Stands for itself.
    Plain(char),
    /// Stood behind a backslash, and stands for itself.
    Escaped(char),
    /// `[…]`
    Class { ascii: bool },
}

/// The pieces of a glob that the matcher has found valid.
fn tokens(glob: &str) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(glob.len());
    let mut chars = glob.chars().peekable();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '\\' => Token::Escaped(chars.next().unwrap_or(c)),
            '[' => {
                chars.next_if(|c| matches!(c, '^' | '!'));
                let mut ascii = true;
                // The first character is a member, even if it is a bracket.
                let mut first = true;
                while let Some(member) = chars.next() {
                    match member {
                        ']' if !first => break,
                        '\\' => ascii &= chars.next().is_some_and(|c| c.is_ascii_punctuation()),
                        member => ascii &= member.is_ascii(),
                    }
                    first = false;
                }
                Token::Class { ascii }
            }
            c => Token::Plain(c),
        });
    }
    tokens
}

/// What stands before the first glob character, escapes resolved, and whether
/// there is one.
fn start_of(name: &str) -> Result<(String, bool), String> {
    let mut start = String::new();
    let mut is_glob = false;
    for token in tokens(name) {
        match token {
            // The matcher would take letters behind a backslash for control
            // characters, and characters of several bytes for several.
            Token::Escaped(c) if !c.is_ascii_punctuation() => {
                return Err(format!("{name:?}: a backslash stands only before a glob character"));
            }
            Token::Class { ascii: false } => {
                return Err(format!("{name:?}: only ASCII characters can stand in []"));
            }
            Token::Class { .. } | Token::Plain('*' | '?' | '{') => is_glob = true,
            Token::Plain(c) | Token::Escaped(c) if !is_glob => start.push(c),
            Token::Plain(_) | Token::Escaped(_) => {}
        }
    }
    Ok((start, is_glob))
}

/// `**` crosses directories only where it stands alone between slashes;
/// elsewhere it would be a `*` that looks like more.
fn check_globstars(name: &str) -> Result<(), String> {
    let mut rest = name;
    let mut before = None;
    while let Some((head, tail)) = rest.split_once("**") {
        let left = head.chars().next_back().or(before);
        let right = tail.chars().next();
        let ends = |c: Option<char>, at: [char; 3]| c.is_none_or(|c| at.contains(&c));
        if !ends(left, ['/', '{', ',']) || !ends(right, ['/', ',', '}']) {
            return Err(format!("{name:?}: ** stands alone between slashes, as in /etc/**/*.conf"));
        }
        before = Some('*');
        rest = tail;
    }
    Ok(())
}

fn check_alternatives(name: &str) -> Result<(), String> {
    // Of groups within groups this counts too many, never too few.
    let mut alternatives = 1usize;
    let mut open: Vec<usize> = Vec::new();
    for token in tokens(name) {
        match token {
            Token::Plain('{') => open.push(1),
            Token::Plain(',') => {
                if let Some(group) = open.last_mut() {
                    *group += 1;
                }
            }
            Token::Plain('}') => {
                alternatives = alternatives.saturating_mul(open.pop().unwrap_or(1));
            }
            _ => {}
        }
    }
    if alternatives > MOST_ALTERNATIVES {
        return Err(format!(
            "{name:?} stands for more than {MOST_ALTERNATIVES} alternatives: write several patterns"
        ));
    }
    Ok(())
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
