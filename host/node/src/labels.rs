//! The SELinux label that a new file, folder or link gets.
//!
//! The host's policy says it in its file contexts; libselinux decides by them what
//! `restorecon` sets. The same files are read here and decided by as it does, so that a
//! file has its label before it is in place. The C library is not needed: the program
//! that applies a config runs on any host.
//!
//! The path that is asked for is the real one, as a folder of the tree tells it after
//! the links on the way: what lies in `/usr/local` lies in `/var/usrlocal` on ostree.

mod error;
mod expression;
mod place;
mod specs;

pub use error::LabelError;
pub use place::Disabled;

use crate::tree::{Attribute, Kind, Tree};
use expression::Expression;
use place::{ATTRIBUTE, Place};
use specs::{Spec, Substitutions, Wrong};

/// As many bytes as a file of contexts may have.
const MOST: u64 = 32 << 20;

/// What the host's policy says of paths.
#[derive(Debug, Default)]
pub struct Labels {
    /// Of whole paths; the one that counts stands last.
    literals: Vec<Rule<Box<str>>>,
    /// Of all paths that an expression matches; the one that counts stands last.
    expressions: Vec<Rule<Expression>>,
    local: Substitutions,
    shipped: Substitutions,
}

/// What one line says.
#[derive(Debug)]
struct Rule<M> {
    matches: M,
    /// What it speaks of; all kinds unless set.
    kind: Option<Kind>,
    /// No label is to be set if there is none.
    label: Option<Box<str>>,
    /// The file that it stands in, for errors.
    file: &'static str,
}

impl<M> Rule<M> {
    fn speaks_of(&self, kind: Kind) -> bool {
        self.kind.is_none_or(|it| it == kind)
    }
}

/// The files of contexts, in the order in which libselinux reads them.
const FILES: [&str; 3] = ["file_contexts", "file_contexts.homedirs", "file_contexts.local"];

impl Labels {
    /// Reads the host's policy; or says why no labels are set on this host.
    pub fn of_host(tree: &Tree) -> Result<Result<Labels, Disabled>, LabelError> {
        match Labels::read(tree)? {
            Ok(labels) if place::keeps_labels(tree)? => Ok(Ok(labels)),
            Ok(_) => Ok(Err(Disabled::NoAttributes)),
            Err(disabled) => Ok(Err(disabled)),
        }
    }

    /// As [`Labels::of_host`], on a file system that may keep none.
    pub fn read(tree: &Tree) -> Result<Result<Labels, Disabled>, LabelError> {
        let place = match Place::of(tree)? {
            Ok(place) => place,
            Err(disabled) => return Ok(Err(disabled)),
        };
        let mut texts = Vec::new();
        for name in FILES {
            let path = place.file(name);
            match (tree.read(&path, MOST)?, name) {
                (Some(bytes), _) => texts.push((name, bytes)),
                (None, "file_contexts") => return Ok(Err(Disabled::NoPolicy)),
                (None, _) => {}
            }
        }
        let substitutions = |name| -> Result<Substitutions, LabelError> {
            let text = tree.read(&place.file(name), MOST)?.unwrap_or_default();
            Ok(Substitutions::of(&String::from_utf8_lossy(&text)))
        };
        let local = substitutions("file_contexts.subs")?;
        let shipped = substitutions("file_contexts.subs_dist")?;
        let mut labels = Labels { local, shipped, ..Labels::default() };
        for (name, bytes) in texts {
            labels.add(name, &bytes).map_err(|Wrong { line, what }| LabelError::Line {
                file: place.file(name),
                line,
                what,
            })?;
        }
        Ok(Ok(labels))
    }

    /// Adds what a file of contexts says.
    fn add(&mut self, file: &'static str, bytes: &[u8]) -> Result<(), Wrong> {
        for spec in specs::specs(bytes) {
            let Spec { expression, kind, label } = spec?;
            let label = label.map(Box::from);
            match Expression::literal(expression) {
                Some(path) => {
                    self.literals.push(Rule { matches: path.into(), kind, label, file });
                }
                None => {
                    let matches = Expression::new(expression);
                    self.expressions.push(Rule { matches, kind, label, file });
                }
            }
        }
        Ok(())
    }

    /// The label of a new file, folder or link; nothing if the policy has none for it.
    pub fn label(&self, path: &str, kind: Kind) -> Result<Option<&str>, LabelError> {
        let first = self.local.apply(path);
        let first = first.as_deref().unwrap_or(path);
        let second = self.shipped.apply(first);
        let path = second.as_deref().unwrap_or(first);
        // Whoever names the whole path is followed, wherever that stands.
        let literal = self.literals.iter().rev();
        let mut literal = literal.filter(|it| *it.matches == *path && it.speaks_of(kind));
        if let Some(rule) = literal.next() {
            return Ok(rule.label.as_deref());
        }
        let near = self.expressions.iter().rev();
        for rule in near.filter(|it| it.speaks_of(kind) && it.matches.may_match(path)) {
            let matched = rule.matches.matches(path).map_err(|why| LabelError::Expression {
                path: path.to_owned(),
                file: rule.file.to_owned(),
                expression: rule.matches.as_str().to_owned(),
                why,
            })?;
            if matched {
                return Ok(rule.label.as_deref());
            }
        }
        Ok(None)
    }

    /// As [`Labels::label`]: as the attribute that is set on it.
    pub fn attribute(&self, path: &str, kind: Kind) -> Result<Option<Attribute>, LabelError> {
        let label = self.label(path, kind)?;
        Ok(label.map(|label| {
            // With the zero byte that libselinux writes, and that others compare with.
            let value = label.bytes().chain([0]).collect();
            Attribute { name: ATTRIBUTE.to_vec(), value }
        }))
    }
}

#[cfg(test)]
mod tests;
