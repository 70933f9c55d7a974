//! Names change, one by one. What is found in a place is looked at after it is out of
//! reach of others: if it is not what was there before, it goes back to its place.

use super::entry::Entry;
use super::error::{JournalError, io_at};
use super::kept;
use super::meddled;
use super::names::{made_name, moving_name, new_name};
use super::password;
use super::record::Record;
use super::stage::{folder_of, stage_at, stage_of};
use super::touched::Touched;
use crate::tree::{Folder, Found, Tree};
use std::io;

/// Gives every entry its new name, and has all folders synced in which one changed.
pub(super) fn all(tree: &Tree, record: &Record, stages: &[Folder]) -> Result<(), JournalError> {
    let mut touched = Touched::default();
    for (index, made) in record.made.iter().enumerate() {
        let missing = || io_at(&made.folder)(io::ErrorKind::NotFound.into());
        let folder = tree.folder(&made.folder)?.ok_or_else(missing)?;
        let stage = stage_at(stages, made.stage)?;
        match stage.rename(&made_name(index), &folder, &made.name) {
            // Somebody else made it meanwhile; what is put into it goes the same way.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            moved => moved.map_err(io_at(&folder.path_of(&made.name)))?,
        }
        touched.add(folder);
    }
    for (index, entry) in changed(record) {
        let folder = folder_of(tree, entry)?;
        place(&folder, stage_of(stages, entry)?, entry, index)?;
        touched.add(folder);
    }
    match touched.synced().into_iter().next() {
        Some((path, error)) => Err(io_at(&path)(error)),
        None => Ok(()),
    }
}

/// Brings what is staged up to date where others may change the rest of a file: its other lines,
/// or its attributes.
pub(super) fn renew(tree: &Tree, record: &Record, stages: &[Folder]) -> Result<(), JournalError> {
    for (index, entry) in record.entries.iter().enumerate() {
        if let Some(user) = &entry.password_of {
            let folder = folder_of(tree, entry)?;
            password::renew(&folder, stage_of(stages, entry)?, (index, entry), user)?;
        } else if let (Found::File { .. }, Found::File { .. }) = (&entry.old, &entry.new) {
            let (folder, stage) = (folder_of(tree, entry)?, stage_of(stages, entry)?);
            kept::renew(&folder, stage, entry, &new_name(index)).map_err(io_at(&entry.path))?;
        }
    }
    Ok(())
}

/// The entries that change in this deployment.
fn changed(record: &Record) -> impl Iterator<Item = (usize, &Entry)> {
    record.entries.iter().enumerate().filter(|(_, entry)| !entry.is_held())
}

fn place(folder: &Folder, stage: &Folder, entry: &Entry, index: usize) -> Result<(), JournalError> {
    let new = (entry.new != Found::Absent).then(|| new_name(index));
    let put = match (&entry.password_of, &new) {
        (Some(user), Some(new)) => {
            password::put(folder, stage, (index, entry), new, (user, &entry.old))
        }
        _ => put(folder, &entry.name, stage, new.as_deref(), index, &entry.old),
    };
    match put {
        Ok(true) => Ok(()),
        Ok(false) => Err(JournalError::Changed { path: entry.path.clone() }),
        Err(error) => Err(io_at(&entry.path)(error)),
    }
}

/// Puts what a stage has under a name, or nothing, in place of `expected`. False if
/// something else was there: it still is.
pub(super) fn put(
    folder: &Folder,
    name: &str,
    stage: &Folder,
    staged: Option<&str>,
    index: usize,
    expected: &Found,
) -> io::Result<bool> {
    let moving = moving_name(index);
    // A second name of what is staged: what somebody else wrote is back already.
    stage.remove(&moving)?;
    match (staged, expected) {
        (None, Found::Absent) => Ok(true),
        (Some(staged), Found::Absent) => match stage.link_to(staged, folder, name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            linked => linked.map(|()| true),
        },
        (None, expected) => {
            match folder.rename(name, stage, &moving) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                renamed => renamed?,
            }
            let found = stage.see(&moving)? == *expected;
            match found {
                true => stage.remove(&moving)?,
                false => meddled::rename_back(folder, name, stage, &moving)?,
            }
            Ok(found)
        }
        (Some(staged), expected) => {
            stage.link_to(staged, stage, &moving)?;
            let put = stage.stat(&moving)?;
            match stage.exchange(&moving, folder, name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                exchanged => exchanged?,
            }
            let found = stage.see(&moving)? == *expected;
            match found {
                true => stage.remove(&moving)?,
                false => meddled::exchange_back(folder, name, stage, &moving, put)?,
            }
            Ok(found)
        }
    }
}

/// Whether every name still has what was put there.
pub(super) fn check(tree: &Tree, record: &Record, stages: &[Folder]) -> Result<(), JournalError> {
    for (index, entry) in changed(record) {
        let folder = folder_of(tree, entry)?;
        let stage = stage_of(stages, entry)?;
        let untouched = || {
            let there = folder.stat(&entry.name)?;
            Ok(match (&there, &entry.new) {
                (None, Found::Absent) => true,
                (Some(there), _) => {
                    stage.stat(&new_name(index))?.is_some_and(|staged| staged.is_same_file(there))
                }
                (None, _) => false,
            })
        };
        if !untouched().map_err(io_at(&entry.path))? {
            return Err(JournalError::Changed { path: entry.path.clone() });
        }
    }
    Ok(())
}
