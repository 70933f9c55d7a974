//! How an operation stands that was cut short.

use super::error::{JournalError, io_at};
use super::log::{self, Note};
use super::names::{LOG, MOST, OPERATION, RECORD};
use super::record::{Head, Record, SCHEMA};
use crate::tree::{Folder, Tree};
use std::collections::BTreeSet;
use tread_model::digest::Digest;

/// How an operation stands that was cut short.
#[derive(Debug, Clone)]
pub struct Standing {
    /// What it was to do.
    pub record: Record,
    /// What became of it.
    pub notes: Vec<Note>,
}

/// Which state holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The new one was never committed: the old one.
    Undone,
    /// The new one.
    Forward,
    /// The old one, as it was decided after the new one was committed.
    Back,
}

impl Standing {
    /// Which state holds.
    pub fn direction(&self) -> Direction {
        let decided = self.notes.iter().rev().find_map(|note| match note {
            Note::Committed { .. } => Some(Direction::Forward),
            Note::Back { .. } => Some(Direction::Back),
            _ => None,
        });
        decided.unwrap_or(Direction::Undone)
    }

    /// The last note of how far it came.
    pub fn last(&self) -> Option<&Note> {
        let says_how_far = |note: &&Note| {
            !matches!(
                note,
                Note::Degraded { .. }
                    | Note::Whole { .. }
                    | Note::Replaced { .. }
                    | Note::Booted { .. }
                    | Note::WentDown { .. }
                    | Note::Tried { .. }
            )
        };
        self.notes.iter().rev().find(says_how_far)
    }

    /// Whether all is done but for what the next boot brings.
    pub fn waits(&self) -> bool {
        matches!(self.last(), Some(Note::Waits { .. }))
    }

    /// Whether every name had the state that holds, in this `/etc`.
    pub(super) fn was_whole_in(&self, etc: Option<u64>) -> bool {
        let decides = |note: &Note| matches!(note, Note::Committed { .. } | Note::Back { .. });
        let since = self.notes.iter().rposition(decides);
        let is_whole = |note: &Note| match note {
            Note::Committed { etc: there } => etc.is_some() && *there == etc,
            Note::Whole { etc: there } => etc == Some(*there),
            _ => false,
        };
        since.is_some_and(|since| self.notes.iter().skip(since).any(is_whole))
    }

    /// Whether the `/etc` that is there is another one than that in which names were changed.
    pub fn is_in_another_etc(&self, tree: &Tree) -> bool {
        let committed = self.notes.iter().find_map(|note| match note {
            Note::Committed { etc } => *etc,
            _ => None,
        });
        committed.zip(etc(tree)).is_some_and(|(committed, there)| committed != there)
    }

    /// The names that had what the image of a boot ships, and are put back in it.
    pub fn replaced_in(&self, this: &str) -> BTreeSet<&str> {
        let replaced = self.notes.iter().filter_map(|note| match note {
            Note::Replaced { boot, paths } if boot == this => Some(paths),
            _ => None,
        });
        replaced.flatten().map(String::as_str).collect()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.notes.contains(&Note::Finished)
    }
}

/// Which `/etc` the system has, by the number of its folder; nothing where nobody can look.
pub(super) fn etc(tree: &Tree) -> Option<u64> {
    tree.folder("/etc").ok().flatten()?.number().ok()
}

/// The operation that stands; nothing if there is none, or if it did nothing yet.
pub(super) fn standing(state: &Folder) -> Result<Option<Standing>, JournalError> {
    let at = state.path_of(OPERATION);
    if state.stat(OPERATION).map_err(io_at(&at))?.is_none() {
        return Ok(None);
    }
    let operation = state.folder(OPERATION).map_err(io_at(&at))?;
    let read = |name: &str| operation.read(name, MOST).map_err(io_at(&at));
    // It is there before anything is done, and goes only once all is over.
    let Some(log) = read(LOG)? else { return Ok(None) };
    let damaged = |why: &str| JournalError::Damaged { file: RECORD, why: why.to_owned() };
    let Some(bytes) = read(RECORD)? else { return Ok(None) };
    let line = bytes.iter().position(|byte| *byte == b'\n');
    let (head, body) = line.and_then(|at| bytes.split_at_checked(at)).unwrap_or_default();
    let body = body.get(1..).unwrap_or_default();
    let head: Head = match serde_json::from_slice(head) {
        Ok(head) => head,
        // It was cut short before anything followed from it.
        Err(_) if log.is_empty() => return Ok(None),
        Err(error) => return Err(damaged(&error.to_string())),
    };
    if head.schema != SCHEMA {
        return Err(JournalError::Newer { version: head.tread });
    }
    if head.digest != Digest::of(body) {
        return if log.is_empty() { Ok(None) } else { Err(damaged("its digest is another one")) };
    }
    let record = serde_json::from_slice(body).map_err(|error| damaged(&error.to_string()))?;
    let notes = log::read(&log).map_err(|why| match is_later(&head.tread) {
        // It has notes of its own.
        true => JournalError::Newer { version: head.tread.clone() },
        false => JournalError::Damaged { file: LOG, why },
    })?;
    Ok(Some(Standing { record, notes }))
}

/// Whether a version of tread is a later one than this.
fn is_later(version: &str) -> bool {
    let numbers = |version: &str| -> Option<Vec<u64>> {
        let release = version.split(['-', '+']).next()?;
        release.split('.').map(|number| number.parse().ok()).collect()
    };
    let (other, own) = (numbers(version), numbers(env!("CARGO_PKG_VERSION")));
    other.zip(own).is_some_and(|(other, own)| other > own)
}
