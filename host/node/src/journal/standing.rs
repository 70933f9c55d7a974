//! How an operation stands that was cut short.

use super::error::{JournalError, io_at};
use super::log::{self, Note, Unknown};
use super::names::{LOG, MOST, OPERATION, RECORD};
use super::record::{Head, Record, SCHEMA};
use crate::tree::{Folder, Tree};
use serde::Deserialize;
use serde::de::DeserializeOwned;
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

    /// Whether its new state held once: until then all of it is undone by whoever finds it cut short.
    pub fn was_committed(&self) -> bool {
        self.notes.iter().any(|note| matches!(note, Note::Committed { .. }))
    }

    /// Whether everything new was on the disk before any name changed, as far as that is noted.
    pub(super) fn was_staged(&self) -> bool {
        self.notes.iter().any(|note| matches!(note, Note::Staged { .. }))
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

    /// Whether the `/etc` that is there is another one than that in which names were changed, or were
    /// about to be.
    pub fn is_in_another_etc(&self, tree: &Tree) -> bool {
        let noted = self.notes.iter().rev().find_map(|note| match note {
            Note::Committed { etc } | Note::Staged { etc } => *etc,
            _ => None,
        });
        noted.zip(etc(tree)).is_some_and(|(noted, there)| noted != there)
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
    under(state, OPERATION)
}

/// What the operation that stands is called: its log may have notes that this version does not know.
pub(super) fn id(state: &Folder) -> Result<Option<String>, JournalError> {
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    let recorded = recorded::<Named>(state, OPERATION)?;
    Ok(recorded.map(|(_, named, _)| named.id))
}

/// The one under a name; nothing as above.
pub(super) fn under(state: &Folder, name: &str) -> Result<Option<Standing>, JournalError> {
    let Some((head, record, log)) = recorded(state, name)? else { return Ok(None) };
    let notes = log::read(&log).map_err(|Unknown { line, says_what }| match says_what {
        // It has notes of its own.
        _ if is_later(&head.tread) => JournalError::Newer { version: head.tread.clone() },
        true => JournalError::NewerNote { line },
        false => {
            let why = format!("line {line} is no note that this version knows");
            JournalError::Damaged { file: LOG, why }
        }
    })?;
    Ok(Some(Standing { record, notes }))
}

/// What the record under a name says, between its head and the log beside it.
fn recorded<T: DeserializeOwned>(
    state: &Folder,
    name: &str,
) -> Result<Option<(Head, T, Vec<u8>)>, JournalError> {
    let at = state.path_of(name);
    if state.stat(name).map_err(io_at(&at))?.is_none() {
        return Ok(None);
    }
    let operation = state.folder(name).map_err(io_at(&at))?;
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
    Ok(Some((head, record, log)))
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
