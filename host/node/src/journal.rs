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
mod beside;
mod by_hand;
mod entry;
mod error;
mod exchange;
mod give_up;
mod kept;
mod log;
mod meddled;
mod names;
mod password;
mod place;
mod record;
mod stage;
mod standing;
mod touched;

pub use by_hand::ByHand;
pub use entry::{Entry, Made, Owned, Prepared, Shipped};
pub use error::JournalError;
pub(crate) use kept::kept;
pub use log::Note;
pub(crate) use names::STAGE;
pub use names::STATE;
pub use record::{Record, SCHEMA};
pub use standing::{Direction, Standing};

use crate::tree::{Folder, Found, PathError, Tree};
use back::{Before, Resolved};
use error::io_at;
use give_up::Left;
use names::{BESIDE, LOCK, OPERATION};
use rustix::fs::{FlockOperation, Mode, OFlags};
use standing::etc;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often it is tried to be the one who changes the node.
const AGAIN: Duration = Duration::from_millis(50);
/// How long whoever settles an operation may take.
const SETTLING: Duration = Duration::from_secs(10);

/// The one who may change the node: while it lives, nobody else is.
pub struct Journal {
    tree: Tree,
    state: Folder,
    lock: File,
}

/// Whether an operation stands, for whoever does not hold the journal.
pub fn stands(tree: &Tree) -> Result<bool, PathError> {
    let Some(state) = tree.folder(STATE)? else { return Ok(false) };
    let there = state.stat(OPERATION).map_err(|error| PathError::io(STATE, error))?;
    Ok(there.is_some())
}

/// Whether an operation stands that keeps the next one from beginning, for whoever does not hold the
/// journal. An operation that only waits for a boot does not.
pub fn is_in_the_way(tree: &Tree) -> Result<bool, PathError> {
    let Some(state) = tree.folder(STATE)? else { return Ok(false) };
    // What nobody can read is in the way.
    Ok(standing::standing(&state).map_or(true, |it| it.is_some_and(|it| !it.waits())))
}

/// What the operation that stands is called, for whoever does not hold the journal, by its record alone.
pub fn standing_id(tree: &Tree) -> Result<Option<String>, JournalError> {
    let Some(state) = tree.folder(STATE)? else { return Ok(None) };
    standing::id(&state)
}

/// Whether any name that others read has its new state right now and is to get its old one, by the
/// operation that stands, for whoever does not hold the journal. What is missing with its folder or its
/// stage, as with a mount, is not seen.
pub fn has_to_go_back(tree: &Tree) -> Result<bool, JournalError> {
    let Some(state) = tree.folder(STATE)? else { return Ok(false) };
    let Some(standing) = standing::standing(&state)? else { return Ok(false) };
    if standing.direction() == Direction::Forward || standing.was_whole_in(etc(tree)) {
        return Ok(false);
    }
    let is_read = |it: &&Entry| !it.is_held() && !Path::new(&it.path).starts_with(STATE);
    for entry in standing.record.entries.iter().filter(is_read) {
        let stage = standing.record.stages.get(entry.stage);
        if stage.is_some_and(|path| stage::is_away(tree, path)) {
            continue;
        }
        let Some(folder) = back::way(tree, &entry.folder)? else { continue };
        let there = password::see(&folder, &entry.name, entry).map_err(io_at(&entry.path))?;
        if there == entry.new {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether some names of the operation that stands are old and others new right now, for whoever
/// does not hold the journal.
pub fn is_mixed(tree: &Tree) -> Result<bool, JournalError> {
    let Some(state) = tree.folder(STATE)? else { return Ok(false) };
    let Some(standing) = standing::standing(&state)? else { return Ok(false) };
    // All of them had one state when that was noted.
    if standing.direction() == Direction::Forward || standing.was_whole_in(etc(tree)) {
        return Ok(false);
    }
    // Some are, and others not: what is neither was changed by somebody else, and no name is tread's.
    let (mut any_old, mut any_new) = (false, false);
    for entry in standing.record.entries.iter().filter(|it| !it.is_held()) {
        let there = match tree.folder(&entry.folder)? {
            Some(folder) => {
                password::see(&folder, &entry.name, entry).map_err(io_at(&entry.path))?
            }
            None => Found::Absent,
        };
        any_old |= there == entry.old;
        any_new |= there == entry.new;
    }
    Ok(any_old && any_new)
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A process that is being started still has the file for a moment.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Everything new of an operation, on the disk.
pub struct Staged {
    operation: Folder,
    stages: Vec<Folder>,
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
    /// The new names that were to go, and that a mount covers which came since: nobody sees
    /// whether they are there.
    pub covered: Vec<String>,
}

impl Settled {
    /// What to do about names that a mount covers, if there are any.
    pub fn covered(&self) -> Option<String> {
        let listed = tread_model::text::listed(&self.covered, 10);
        (!self.covered.is_empty()).then(|| {
            format!("a mount that came since covers {listed}: unmount it, and remove what was written there if it is there")
        })
    }
}

impl Journal {
    /// Opens the journal of a system, for this process alone.
    pub fn open(tree: &Tree) -> Result<Journal, JournalError> {
        let state = tree.private_folder(STATE)?;
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

    /// As [`Journal::open`]; where somebody else has it for a moment, as to settle it, that one
    /// is waited for.
    pub fn open_soon(tree: &Tree) -> Result<Journal, JournalError> {
        let deadline = Instant::now() + SETTLING;
        loop {
            match Journal::open(tree) {
                Err(JournalError::Busy) if Instant::now() < deadline => sleep(AGAIN),
                opened => return opened,
            }
        }
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
        let staged = self.stage(record, new)?;
        self.place(record, &staged)
    }

    /// Everything new is on the disk afterwards, and no name has changed. An operation that waits for a
    /// boot may stand, if this one takes it along: it stands again where this one comes to nothing.
    pub fn stage(&self, record: &Record, new: &[Prepared<'_>]) -> Result<Staged, JournalError> {
        let waiting = self.standing()?;
        match &waiting {
            None => stage::sweep(&self.state),
            // Whoever let it stand again may have been killed before the other one's stages went.
            Some(standing) if beside::may_begin(standing, record) => {
                beside::forget(&self.tree, &self.state);
            }
            Some(_) => return Err(JournalError::Unsettled),
        }
        self.or_undone(|| {
            let operation = match &waiting {
                None => record::begin(&self.state, OPERATION, record)?,
                Some(_) => beside::begin(&self.state, record)?,
            };
            let stay = waiting.as_ref().map(|it| it.record.stages.as_slice()).unwrap_or_default();
            let stages = stage::make(&self.tree, &self.state, record, stay)?;
            stage::fill(&self.tree, record, &stages, new)?;
            // Whoever does not find a stage knows then that its mount is not there.
            if record.stages.iter().any(|path| stage::is_elsewhere(path)) {
                log::note(&operation, &Note::Staged { etc: etc(&self.tree) })?;
            }
            Ok(Staged { operation, stages })
        })
    }

    /// Every name changes, or none does.
    pub fn place(&self, record: &Record, staged: &Staged) -> Result<(), JournalError> {
        self.place_if(record, staged, || true)
    }

    /// As [`Journal::place`], if that may still be done right before the first name changes.
    pub fn place_if(
        &self,
        record: &Record,
        staged: &Staged,
        may: impl FnOnce() -> bool,
    ) -> Result<(), JournalError> {
        let Staged { operation, stages } = staged;
        let placed = self.or_undone(|| {
            let _lock = password::lock(&self.tree, record)?;
            place::renew(&self.tree, record, stages)?;
            if !may() {
                return Err(JournalError::Ended);
            }
            place::all(&self.tree, record, stages)?;
            place::check(&self.tree, record, stages)?;
            log::note(operation, &Note::Committed { etc: etc(&self.tree) })
        });
        if placed.is_ok() {
            // What it takes along is over.
            beside::forget(&self.tree, &self.state);
        }
        placed
    }

    fn or_undone<T>(
        &self,
        done: impl FnOnce() -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let done = done();
        if done.is_err() {
            // What fails here is settled at the next start; the first error is the cause.
            let _ = self.settle();
        }
        done
    }

    /// Adds to what is known of the operation that stands.
    pub fn note(&self, note: &Note) -> Result<(), JournalError> {
        let operation = self.state.folder(OPERATION).map_err(io_at(OPERATION))?;
        log::note(&operation, note)
    }

    /// Resolves an operation that was cut short: forward if it was committed, back if it
    /// was not, or if that was decided. Once every name had the state that holds, a name that
    /// differs was changed by somebody else, and is left. One that was never committed, or that
    /// has no order, is finished by this; what waited for a boot before it stands again then, to be
    /// settled too. Nothing if there is none.
    pub fn settle(&self) -> Result<Option<Settled>, JournalError> {
        let Some(standing) = self.standing()? else {
            record::sweep(&self.state, OPERATION)?;
            beside::forget(&self.tree, &self.state);
            stage::sweep(&self.state);
            return Ok(None);
        };
        if standing.is_finished() {
            self.remove(&standing, &BTreeSet::new())?;
            return Ok(None);
        }
        if standing.was_committed() {
            // Whoever began the next one was killed, or had put it back.
            beside::forget(&self.tree, &self.state);
        }
        let direction = standing.direction();
        self.note_replaced(&standing);
        let Resolved { changed, left, covered, away, failed } = self.resolve(&standing);
        let others = failed.len().saturating_sub(1);
        if let Some((_, error)) = failed.into_iter().next() {
            return Err(JournalError::Stuck { error: Box::new(error), more: others });
        }
        let entry = |index: &usize| standing.record.entries.get(*index);
        if let Some(entry) = away.iter().find_map(entry) {
            let stage = standing.record.stages.get(entry.stage).cloned().unwrap_or_default();
            return Err(JournalError::Away { stage });
        }
        let paths = |all: &[usize]| -> Vec<String> {
            all.iter().filter_map(entry).map(|entry| entry.path.clone()).collect()
        };
        let (left, covered) = (paths(&left), paths(&covered));
        if direction == Direction::Undone {
            // Whoever was killed while it settled this may have changed names, and not have synced them.
            if let Err(error) = back::sync_folders(&self.tree, &standing.record) {
                // Not each file system does that, such as one of the kernel's own.
                tracing::warn!(%error, "what was put back may not survive a power cut");
            }
            // On a full disk there is no room for a note, and whoever finds it again finds
            // everything old.
            let _ = self.note(&Note::Finished);
            self.remove(&standing, &BTreeSet::new())?;
        } else if standing.record.order.is_null() {
            // Nothing follows from it, once its names are right.
            self.finish()?;
        } else if covered.is_empty()
            && let Some(etc) = etc(&self.tree).filter(|etc| !standing.was_whole_in(Some(*etc)))
        {
            let noted = back::sync_folders(&self.tree, &standing.record)
                .and_then(|()| self.note(&Note::Whole { etc }));
            if let Err(error) = noted {
                // It is settled once more then.
                tracing::warn!(%error, "that all names are settled was not noted");
            }
        }
        Ok(Some(Settled { direction, changed, left, covered }))
    }

    /// Takes a committed operation back: every name is what it was before. It stands until
    /// it is finished. With `by_units`, units are told what is there again.
    pub fn take_back(
        &self,
        because: &str,
        by_units: bool,
    ) -> Result<Option<Settled>, JournalError> {
        self.note(&Note::Back { because: because.to_owned(), by_units })?;
        self.settle()
    }

    /// Notes which of the names that a config sets have what the image of this boot ships, before they
    /// are put back: what started before may have read them.
    fn note_replaced(&self, standing: &Standing) {
        let before = self.before(standing);
        if before.whole || !before.elsewhere || standing.direction() != Direction::Forward {
            return;
        }
        // A system that does not run has no boot, and boots once all is settled.
        let Ok(boot) = crate::systemd::boot_id_of(&self.tree) else { return };
        let known = standing.replaced_in(&boot);
        let mut paths = back::shipped_instead(&self.tree, &standing.record);
        paths.retain(|path| !known.contains(path.as_str()));
        if !paths.is_empty()
            && let Err(error) = self.note(&Note::Replaced { boot, paths })
        {
            // On a full disk there is room for no note: that keeps no kubelet from starting.
            tracing::warn!(%error, "that names are put back that the image ships was not noted");
        }
    }

    fn before(&self, standing: &Standing) -> Before {
        let elsewhere = standing.is_in_another_etc(&self.tree);
        Before {
            staged: standing.was_staged(),
            whole: standing.was_whole_in(etc(&self.tree)),
            elsewhere,
            unknown: elsewhere && !standing.was_committed(),
        }
    }

    fn resolve(&self, standing: &Standing) -> Resolved {
        let (record, before) = (&standing.record, self.before(standing));
        match standing.direction() {
            Direction::Forward => back::forward(&self.tree, record, before),
            Direction::Undone | Direction::Back => back::back(&self.tree, record, before),
        }
    }

    /// The operation is over, and what was there before it is forgotten. What waited for a boot stands
    /// again, if this one was never committed.
    pub fn finish(&self) -> Result<(), JournalError> {
        let Some(standing) = self.standing()? else { return Ok(()) };
        self.finish_keeping(&standing, &BTreeSet::new())
    }

    fn finish_keeping(
        &self,
        standing: &Standing,
        stages: &BTreeSet<usize>,
    ) -> Result<(), JournalError> {
        if let Err(error) = self.note(&Note::Finished)
            && standing.was_committed()
        {
            // On a full disk there is room for no note. Without its record it is over too.
            record::forget(&self.state).map_err(|_| error)?;
        }
        self.remove(standing, stages)
    }

    /// The operation is over as it stands: what can be settled is, and what is left is returned,
    /// and kept for `tread node status`. One of a newer version is not touched.
    pub fn give_up(&self) -> Result<Vec<ByHand>, JournalError> {
        let standing = match self.standing() {
            Ok(Some(standing)) if !standing.is_finished() => standing,
            Ok(_) => {
                self.settle()?;
                // What waited for a boot stands again by that.
                return match self.standing()? {
                    Some(_) => self.give_up(),
                    None => Ok(Vec::new()),
                };
            }
            Err(newer @ (JournalError::Newer { .. } | JournalError::NewerNote { .. })) => {
                return Err(newer);
            }
            Err(error) => {
                let by_hand = give_up::put_aside(&self.state, &error)?;
                return Ok(self.left(by_hand));
            }
        };
        let Left { by_hand, stages } =
            give_up::left(&self.tree, &standing, &self.resolve(&standing));
        // On a full disk there may be room for it only once the rest is gone.
        let kept = ByHand::add(&self.tree, &self.state, &by_hand);
        // What it was to take along is given up with it.
        beside::forget(&self.tree, &self.state);
        self.finish_keeping(&standing, &stages)?;
        Ok(if kept.is_ok() { by_hand } else { self.left(by_hand) })
    }

    /// What cannot be kept is told nevertheless.
    fn left(&self, by_hand: Vec<ByHand>) -> Vec<ByHand> {
        if let Err(error) = ByHand::add(&self.tree, &self.state, &by_hand) {
            tracing::warn!(%error, "what is left by hand is not kept: write it down");
        }
        by_hand
    }

    /// Removes an operation that is over, but for these stages.
    fn remove(&self, standing: &Standing, but: &BTreeSet<usize>) -> Result<(), JournalError> {
        let name = match beside::stands_again(&self.state, standing)? {
            true => BESIDE,
            false => {
                beside::forget(&self.tree, &self.state);
                OPERATION
            }
        };
        stage::remove(&self.tree, &standing.record, but);
        record::sweep(&self.state, name)
    }
}

#[cfg(test)]
mod tests;
