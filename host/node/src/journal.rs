//! Old or new, never mixed: files change by a journal (law 8).
//!
//! Everything new is staged beside where it goes, and on the disk, before the first
//! name changes. Then names change one by one, and one record commits them all. Whoever
//! finds an operation that was cut short goes on if it was committed, and back if it
//! was not; both can be done again and again until they are through.
//!
//! What staged files and old ones are called in a stage: `7.new`, `7.old`, by the index
//! of the entry. Both stay until the operation is finished, so that each direction is
//! always there to be taken.

mod back;
mod entry;
mod error;
mod log;
mod names;
mod place;
mod record;
mod stage;
mod standing;

pub use entry::{Entry, Made, Owned, Prepared};
pub use error::JournalError;
pub use log::Note;
pub use names::STATE;
pub use record::{Record, SCHEMA};
pub use standing::{Direction, Standing};

use crate::tree::{Folder, Tree};
use back::Resolved;
use error::io_at;
use names::{LOCK, OPERATION};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::File;
use std::io;

/// The one who may change the node: while it lives, nobody else is.
pub struct Journal {
    tree: Tree,
    state: Folder,
    lock: File,
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A process that is being started still has the file for a moment.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

/// What settling found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Which state holds now.
    pub direction: Direction,
    /// Whether any name had to be changed for that.
    pub changed: bool,
    /// The paths that somebody else changed, and that were left as they are.
    pub left: Vec<String>,
}

impl Journal {
    /// Opens the journal of a system, for this process alone.
    pub fn open(tree: &Tree) -> Result<Journal, JournalError> {
        let state = match tree.folder(STATE)? {
            Some(state) => state,
            None => Journal::make_state(tree)?,
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock: File = rustix::fs::openat(&state, LOCK, flags, Mode::RUSR | Mode::WUSR)
            .map_err(io::Error::from)
            .map_err(io_at(STATE))?
            .into();
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Journal { tree: tree.clone(), state, lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(JournalError::Busy),
            Err(errno) => Err(io_at(STATE)(errno.into())),
        }
    }

    fn make_state(tree: &Tree) -> Result<Folder, JournalError> {
        let parent = STATE.rsplit_once('/').map_or("/", |(parent, _)| parent);
        let parent = tree.folder_made(parent)?;
        parent.make_private_folder("node").map_err(io_at(STATE))?;
        parent.folder("node").map_err(io_at(STATE))
    }

    /// The folder in which tread keeps what it knows of the node.
    pub fn state(&self) -> &Folder {
        &self.state
    }

    /// The operation that was cut short, if there is one.
    pub fn standing(&self) -> Result<Option<Standing>, JournalError> {
        standing::standing(&self.state)
    }

    /// Brings everything to its new state, or leaves everything as it was. The
    /// operation stands afterwards until it is finished, or taken back.
    pub fn write(&self, record: &Record, new: &[Prepared<'_>]) -> Result<(), JournalError> {
        if self.standing()?.is_some() {
            return Err(JournalError::Unsettled);
        }
        let written = self.try_to_write(record, new);
        if written.is_err() {
            // What fails here is settled at the next start; the first error is the cause.
            let _ = self.settle();
        }
        written
    }

    fn try_to_write(&self, record: &Record, new: &[Prepared<'_>]) -> Result<(), JournalError> {
        let operation = record::begin(&self.state, record)?;
        let stages = stage::make(&self.tree, record)?;
        stage::fill(&self.tree, record, &stages, new)?;
        log::note(&operation, &Note::Staged)?;
        let touched = place::all(&self.tree, record, &stages)?;
        touched.iter().try_for_each(|folder| folder.sync().map_err(io_at(folder.path())))?;
        place::check(&self.tree, record, &stages)?;
        log::note(&operation, &Note::Committed)
    }

    /// Adds to what is known of the operation that stands.
    pub fn note(&self, note: &Note) -> Result<(), JournalError> {
        let operation = self.state.folder(OPERATION).map_err(io_at(OPERATION))?;
        log::note(&operation, note)
    }

    /// Resolves an operation that was cut short: forward if it was committed, back if it
    /// was not, or if that was decided. One that was never committed, or that has no order,
    /// is finished by this. Nothing if there is none.
    pub fn settle(&self) -> Result<Option<Settled>, JournalError> {
        let Some(standing) = self.standing()? else {
            record::sweep(&self.state)?;
            return Ok(None);
        };
        if standing.is_finished() {
            self.remove(&standing.record)?;
            return Ok(None);
        }
        let direction = standing.direction();
        let Resolved { changed, left } = match direction {
            Direction::Forward => back::forward(&self.tree, &standing.record)?,
            Direction::Undone | Direction::Back => back::back(&self.tree, &standing.record)?,
        };
        if direction == Direction::Undone {
            // Without a note that it is over: on a full disk there is no room for one, and
            // whoever finds it again finds everything old.
            self.remove(&standing.record)?;
        } else if standing.record.order.is_null() {
            // Nothing follows from it, once its names are right.
            self.finish()?;
        }
        Ok(Some(Settled { direction, changed, left }))
    }

    /// Takes a committed operation back: every name is what it was before. It stands until
    /// it is finished.
    pub fn take_back(&self, because: &str) -> Result<Option<Settled>, JournalError> {
        self.note(&Note::Back { because: because.to_owned() })?;
        self.settle()
    }

    /// The operation is over, and what was there before it is forgotten.
    pub fn finish(&self) -> Result<(), JournalError> {
        let Some(standing) = self.standing()? else { return Ok(()) };
        self.note(&Note::Finished)?;
        self.remove(&standing.record)
    }

    fn remove(&self, record: &Record) -> Result<(), JournalError> {
        stage::remove(&self.tree, record)?;
        record::sweep(&self.state)
    }
}

#[cfg(test)]
mod tests;
