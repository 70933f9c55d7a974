//! What became of an operation: a line for each event, on the disk before anything
//! follows from it.

use super::error::{JournalError, io_at};
use super::names::{LOG, MOST};
use crate::tree::Folder;
use serde::{Deserialize, Serialize};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Note {
    /// Everything new is on the disk; no name has changed. Noted where a part of it is on
    /// another mount than tread's own folder.
    Staged {
        /// In which `/etc`, by the number of its folder: each deployment of an operating system
        /// has one of its own. An older tread does not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        etc: Option<u64>,
    },
    /// Every name has changed: the new state holds.
    Committed {
        /// In which `/etc`, as above.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        etc: Option<u64>,
    },
    /// It was decided to go back: the old state holds.
    Back {
        /// The reason, in words.
        because: String,
        /// Whether units are told of the old contents again; else the node boots.
        #[serde(default)]
        by_units: bool,
    },
    /// Every name has the state that holds, on the disk: what differs from now on was changed by
    /// somebody else.
    Whole {
        /// In which `/etc`, as above.
        etc: u64,
    },
    /// In the `/etc` of another deployment, these names had what its image ships, and get what the
    /// config sets.
    Replaced {
        /// The boot in which that was.
        boot: String,
        /// Which.
        paths: Vec<String>,
    },
    /// It was reported that the node is not well and that tread does nothing more by itself.
    Degraded {
        /// The boot in which that was.
        boot: String,
    },
    /// The API server is not reached any more, before anything was written.
    Unreached,
    /// An API server is reached, before anything was written: also where none was before.
    Reached {
        /// Where.
        address: String,
        /// Whether it proved that it is one.
        proven: bool,
    },
    /// A step was begun.
    Begun {
        /// Which of the plan's steps.
        step: usize,
        /// The boot in which that was.
        boot: String,
    },
    /// Whoever carried a step out was told to end in the middle of it: that says nothing of the
    /// step, which is begun again.
    LeftOff {
        /// Which of the plan's steps.
        step: usize,
    },
    /// A step ended.
    Ended {
        /// Which of the plan's steps.
        step: usize,
        /// Whether it did what it should.
        well: bool,
        /// What came of it, in a sentence.
        message: String,
    },
    /// A boot was asked for.
    BootAsked {
        /// The boot in which that was.
        boot: String,
    },
    /// The machine booted with what stands. Unless one of the two that follow is noted, it went down by
    /// itself before its proof.
    Booted {
        /// Which boot that was.
        boot: String,
    },
    /// This boot ended in order, as somebody wanted.
    WentDown {
        /// Which boot that was.
        boot: String,
    },
    /// In this boot the node began to prove itself, or to go back. If nothing follows, the machine
    /// went down before that came to an end.
    Tried {
        /// The boot in which that was.
        boot: String,
    },
    /// All is done but for what the next boot brings, which somebody else has to cause.
    Waits {
        /// The boot in which that was.
        boot: String,
    },
    /// Nothing is left to be done but to tidy up.
    Finished,
}

/// Adds a note.
pub(super) fn note(operation: &Folder, note: &Note) -> Result<(), JournalError> {
    let path = operation.path_of(LOG);
    let mut line = serde_json::to_vec(note).map_err(|error| io_at(&path)(error.into()))?;
    line.push(b'\n');
    let noted = || {
        // What was cut short would spoil the line that follows it.
        let there = operation.read(LOG, MOST)?.unwrap_or_default();
        let whole = there.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < there.len() {
            operation.cut(LOG, whole as u64)?;
        }
        operation.append(LOG, &line)
    };
    noted().map_err(io_at(&path))
}

/// A complete line that is no note that this version knows.
#[derive(Debug)]
pub(super) struct Unknown {
    /// Which one, from 1 on.
    pub(super) line: usize,
    /// Whether it says what it is: then another version wrote it, and it is not damaged.
    pub(super) says_what: bool,
}

/// All notes. A last line that is not complete was never written, as far as anybody
/// knows: nothing followed from it.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Note>, Unknown> {
    let mut notes = Vec::new();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let Some(line) = line.strip_suffix(b"\n") else { break };
        let unknown = |_| Unknown { line: index + 1, says_what: says_what(line) };
        notes.push(serde_json::from_slice(line).map_err(unknown)?);
    }
    Ok(notes)
}

fn says_what(line: &[u8]) -> bool {
    let said = serde_json::from_slice::<serde_json::Value>(line);
    said.is_ok_and(|said| said.get("is").is_some_and(serde_json::Value::is_string))
}
