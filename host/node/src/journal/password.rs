//! A change of a password: its entry is about one field of /etc/shadow. The rest of the file stays
//! as it is at the moment of the change, also when an operation is settled or taken back.

use super::entry::Entry;
use super::error::{JournalError, io_at};
use super::meddled;
use super::names::{again_name, moving_name, new_name, old_name};
use super::record::Record;
use crate::shadow::{self, Hash, Lock, Shadow, ShadowError};
use crate::tree::{Folder, Found, Tree};
use std::io;

/// What counts of what stands under the name of an entry.
pub(super) fn see(folder: &Folder, name: &str, entry: &Entry) -> io::Result<Found> {
    match &entry.password_of {
        Some(user) => shadow::see(folder, name, user),
        None => folder.see(name),
    }
}

/// Nobody else changes passwords, from reading the file to the change of its name.
pub(super) fn lock(tree: &Tree, record: &Record) -> Result<Option<Lock>, JournalError> {
    match record.entries.iter().find(|entry| entry.password_of.is_some()) {
        Some(entry) => Lock::take(tree).map(Some).map_err(io_at(&entry.path)),
        None => Ok(None),
    }
}

/// Stages the file as it is now, with the one field changed.
pub(super) fn stage(
    folder: &Folder,
    stage: &Folder,
    (index, entry): (usize, &Entry),
    user: &str,
    (hash, day): (&Hash, u64),
) -> Result<(), JournalError> {
    let changed = || JournalError::Changed { path: entry.path.clone() };
    let there = Shadow::read(folder, &entry.name).map_err(io_at(&entry.path))?;
    let there = there.ok_or_else(changed)?;
    if there.seen(user)? != entry.old {
        return Err(changed());
    }
    put_beside(folder, stage, (entry, &new_name(index)), &there.with(user, hash, day)?)
}

/// Stages the file anew if it changed since, in other lines than the user's, its owner or its
/// attributes: it may have been long until its name may change.
pub(super) fn renew(
    folder: &Folder,
    stage: &Folder,
    (index, entry): (usize, &Entry),
    user: &str,
) -> Result<(), JournalError> {
    let (failed, name) = (|error| io_at(&entry.path)(error), new_name(index));
    let changed = || JournalError::Changed { path: entry.path.clone() };
    let read = |folder: &Folder, name: &str| Shadow::read(folder, name).map_err(failed);
    let kept = |folder: &Folder, name: &str| {
        let (owner, mut attributes) = shadow::kept(folder, name).map_err(failed)?;
        attributes.sort_by(|one, other| one.name.cmp(&other.name));
        Ok::<_, JournalError>((owner, attributes))
    };
    let there = read(folder, &entry.name)?.ok_or_else(changed)?;
    let staged = read(stage, &name)?.ok_or_else(changed)?;
    if there.seen(user)? != entry.old {
        return Err(changed());
    }
    let keeps_all = kept(folder, &entry.name)? == kept(stage, &name)?;
    if keeps_all && staged.is_else_as(&there, user) {
        return Ok(());
    }
    stage.remove(&name).map_err(failed)?;
    put_beside(folder, stage, (entry, &name), &there.with_hash_from(user, &staged, None)?)
}

/// A new file with the owner and the attributes of the one that it replaces.
fn put_beside(
    folder: &Folder,
    stage: &Folder,
    (entry, staged): (&Entry, &str),
    new: &Shadow,
) -> Result<(), JournalError> {
    let put = || {
        let (owner, attributes) = shadow::kept(folder, &entry.name)?;
        stage.create(staged, new.bytes(), owner, &attributes)?;
        stage.sync_file(staged)
    };
    put().map_err(io_at(&entry.path))
}

/// Puts a staged file in the place of the one that is there, if that differs only in the
/// user's field, which is as expected. False if not: then nothing changed.
pub(super) fn put(
    folder: &Folder,
    stage: &Folder,
    (index, entry): (usize, &Entry),
    staged: &str,
    (user, expected): (&str, &Found),
) -> io::Result<bool> {
    let moving = moving_name(index);
    stage.remove(&moving)?;
    stage.link_to(staged, stage, &moving)?;
    let put = stage.stat(&moving)?;
    match stage.exchange(&moving, folder, &entry.name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        exchanged => exchanged?,
    }
    let is_as_expected = || {
        if shadow::see(stage, &moving, user)? != *expected {
            return Ok(false);
        }
        let (new, out) = (Shadow::read(stage, staged)?, Shadow::read(stage, &moving)?);
        let owners = stage.stat(staged)?.zip(stage.stat(&moving)?);
        let same_owner = owners.is_some_and(|(new, out)| new.owner == out.owner);
        let same = new.zip(out).is_some_and(|(new, out)| new.is_else_as(&out, user));
        io::Result::Ok(same_owner && same)
    };
    let found = is_as_expected()?;
    match found {
        true => stage.remove(&moving)?,
        false => meddled::exchange_back(folder, &entry.name, stage, &moving, put)?,
    }
    Ok(found)
}

/// Gives the file that is there now the field that holds, and leaves all else in it. False
/// if somebody else changed the field.
pub(super) fn resolve(
    tree: &Tree,
    folder: &Folder,
    stage: &Folder,
    (index, entry): (usize, &Entry),
    (user, wrong, is_forward): (&str, &Found, bool),
) -> Result<bool, JournalError> {
    let failed = |error| io_at(&entry.path)(error);
    let _lock = Lock::take(tree).map_err(failed)?;
    let read = |folder: &Folder, name: &str| Shadow::read(folder, name).map_err(failed);
    let (new, old) = (read(stage, &new_name(index))?, read(stage, &old_name(index))?);
    let (right, other) = if is_forward { (new, old) } else { (old, new) };
    let (Some(there), Some(right)) = (read(folder, &entry.name)?, right) else {
        return Ok(false);
    };
    match there.seen(user) {
        Ok(seen) if seen == *wrong => {}
        Ok(_) | Err(ShadowError::Missing { .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let staged = if is_forward { new_name(index) } else { old_name(index) };
    let owner = |folder: &Folder, name: &str| {
        folder.stat(name).map_err(failed).map(|stat| stat.map(|stat| stat.owner))
    };
    if right.is_else_as(&there, user) && owner(folder, &entry.name)? == owner(stage, &staged)? {
        // Nothing has to be written: also where there is no room for it.
        return put(folder, stage, (index, entry), &staged, (user, wrong)).map_err(failed);
    }
    let again = again_name(index);
    stage.remove(&again).map_err(failed)?;
    let patched = there.with_hash_from(user, &right, other.as_ref())?;
    put_beside(folder, stage, (entry, &again), &patched)?;
    let put = put(folder, stage, (index, entry), &again, (user, wrong)).map_err(failed)?;
    stage.remove(&again).map_err(failed)?;
    Ok(put)
}
