//! An operation that waits for a boot while the next one begins, which takes it along.
//!
//! The next one is made beside it, and takes its place by one exchange: what stands has one name at
//! any moment. What is beside it then stands again by another exchange, unless the next one is
//! committed.

use super::error::{JournalError, io_at};
use super::names::{BESIDE, OPERATION, STATE};
use super::record::{self, Record};
use super::stage;
use super::standing::{Standing, under};
use crate::tree::{Folder, Tree};
use std::collections::BTreeSet;

/// Whether an operation may begin although this one stands.
pub(super) fn may_begin(standing: &Standing, record: &Record) -> bool {
    let id = &standing.record.id;
    standing.waits() && record.takes_along.as_ref() == Some(id) && record.id != *id
}

/// Begins an operation in the place of the one that waits, which is beside it from then on.
pub(super) fn begin(state: &Folder, record: &Record) -> Result<Folder, JournalError> {
    record::begin(state, BESIDE, record)?;
    let begun = || {
        state.exchange(BESIDE, state, OPERATION)?;
        state.folder(OPERATION)
    };
    begun().map_err(io_at(STATE))
}

/// Lets the one that waits stand again, and puts this one beside it, unless this one was committed.
/// Whether it was so.
pub(super) fn stands_again(state: &Folder, standing: &Standing) -> Result<bool, JournalError> {
    let takes_along = |it: &Standing| standing.record.takes_along.as_ref() == Some(&it.record.id);
    // One that cannot be read any more keeps this one from nothing.
    let is_there = matches!(under(state, BESIDE), Ok(Some(waits)) if takes_along(&waits));
    if standing.was_committed() || !is_there {
        return Ok(false);
    }
    let exchanged = || {
        state.exchange(BESIDE, state, OPERATION)?;
        // Before anything of the other one goes.
        state.sync()
    };
    exchanged().map_err(io_at(STATE))?;
    Ok(true)
}

/// Removes what is beside the one that stands, with its stages. What cannot be removed is in nobody's
/// way.
pub(super) fn forget(tree: &Tree, state: &Folder) {
    if let Ok(Some(other)) = under(state, BESIDE) {
        stage::remove(tree, &other.record, &BTreeSet::new());
    }
    if let Err(error) = record::sweep(state, BESIDE) {
        tracing::warn!(%error, "an operation that is over stays; remove it: rm -r {STATE}/{BESIDE}");
    }
}
