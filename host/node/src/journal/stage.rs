//! Where everything new waits, on the disk, until its name changes.

use super::entry::{Entry, Owned, Prepared};
use super::error::{JournalError, io_at};
use super::exchange;
use super::names::{
    RECORD, STAGE, STATE, given_up_name, is_in_a_stage, made_name, new_name, old_name,
};
use super::password;
use super::record::Record;
use crate::tree::{Folder, Found, Kind, PathError, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The folder that an entry stands in.
pub(super) fn folder_of(tree: &Tree, entry: &Entry) -> Result<Folder, JournalError> {
    let missing = || PathError::io(&entry.folder, std::io::ErrorKind::NotFound.into());
    Ok(tree.folder(&entry.folder)?.ok_or_else(missing)?)
}

/// The stage of an entry.
pub(super) fn stage_of<'s>(
    stages: &'s [Folder],
    entry: &Entry,
) -> Result<&'s Folder, JournalError> {
    stage_at(stages, entry.stage)
}

/// A stage by its index.
pub(super) fn stage_at(stages: &[Folder], index: usize) -> Result<&Folder, JournalError> {
    let damaged =
        || JournalError::Damaged { file: RECORD, why: "an entry has no stage".to_owned() };
    stages.get(index).ok_or_else(damaged)
}

/// Whether a stage is not in tread's own folder.
pub(super) fn is_elsewhere(path: &str) -> bool {
    Tree::split(path).is_ok_and(|(folder, _)| folder != STATE)
}

/// Makes the stages of an operation. First those in tread's own folder, whose names are on
/// the disk together with that of the operation; the others are found again by its record. Those that
/// `stay` are of an operation that waits for a boot.
pub(super) fn make(
    tree: &Tree,
    state: &Folder,
    record: &Record,
    stay: &[String],
) -> Result<Vec<Folder>, JournalError> {
    let mut stages = BTreeMap::new();
    let mut make = |index: usize, stage: &String| {
        let missing = || PathError::io(stage, std::io::ErrorKind::NotFound.into());
        let (parent, name) = tree.place(stage)?.ok_or_else(missing)?;
        let failed = |error: io::Error| match for_whom(record, index) {
            Some(path) if is_elsewhere(stage) => {
                JournalError::NoStage { path, stage: stage.clone(), error }
            }
            _ => io_at(stage)(error),
        };
        parent.make_private_folder(name).map_err(failed)?;
        let made = parent.folder(name).map_err(failed)?;
        if let Some(error) = exchange::why_not(&made).map_err(failed)? {
            let path = for_whom(record, index).unwrap_or_else(|| stage.clone());
            return Err(JournalError::NoExchange { path, stage: stage.clone(), error });
        }
        stages.insert(index, made);
        Ok::<Folder, JournalError>(parent)
    };
    let all = || record.stages.iter().enumerate();
    for (index, path) in all().filter(|(_, path)| !is_elsewhere(path)) {
        make(index, path)?;
    }
    state.sync().map_err(io_at(STATE))?;
    for (index, path) in all().filter(|(_, path)| is_elsewhere(path)) {
        let parent = make(index, path)?;
        parent.sync().map_err(io_at(path))?;
        let stay = std::iter::once(path).chain(stay).filter_map(|it| Tree::split(it).ok());
        let stay: Vec<&str> = stay.map(|(_, name)| name).collect();
        // What stands there was left when this mount was not there. It is in nobody's way.
        let _ = sweep_beside(&parent, &stay);
    }
    Ok(stages.into_values().collect())
}

/// A path of the config for which there is a stage.
fn for_whom(record: &Record, stage: usize) -> Option<String> {
    record.entries.iter().find(|entry| entry.stage == stage).map(|entry| entry.path.clone())
}

/// The stages that are there, and are tread's own: where a user owns the folder that a
/// stage stands in, another one may be in its place.
pub(super) fn open(tree: &Tree, record: &Record) -> Vec<Result<Option<Folder>, PathError>> {
    let opened = |path: &String| {
        let (parent, name) = match tree.place(path) {
            Ok(Some(place)) => place,
            Ok(None) | Err(PathError::NoWay { .. } | PathError::Circle { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let opened = |name: &str| open_own(&parent, name).map_err(|it| PathError::io(path, it));
        match opened(name)? {
            // The process that gave the operation up was killed before that was written down: it
            // had renamed the stage already.
            None => opened(&given_up_name(name)),
            there => Ok(there),
        }
    };
    record.stages.iter().map(opened).collect()
}

/// A folder that is tread's own; nothing where something else stands there, or nothing does.
fn open_own(parent: &Folder, name: &str) -> io::Result<Option<Folder>> {
    let folder = match parent.folder(name) {
        Err(error) if is_no_folder(&error) => return Ok(None),
        opened => opened?,
    };
    let is_own = folder.own_stat()?.owner.uid == rustix::process::geteuid().as_raw();
    Ok(is_own.then_some(folder))
}

fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Makes each folder that is missing, complete: its place gets it as it has to be.
fn make_folders(record: &Record, stages: &[Folder]) -> Result<(), JournalError> {
    for (index, made) in record.made.iter().enumerate() {
        let stage = stage_at(stages, made.stage)?;
        let name = made_name(index);
        let make = || {
            stage.make_folder(&name)?;
            if let Owned::User(owner) = made.owned {
                stage.give(&name, owner)?;
            }
            stage.label(&name, &made.attributes)
        };
        make().map_err(|error| {
            PathError::io(&format!("{}/{}", made.folder.trim_end_matches('/'), made.name), error)
        })?;
    }
    Ok(())
}

/// Puts everything new into the stages, and a second name of everything old.
pub(super) fn fill(
    tree: &Tree,
    record: &Record,
    stages: &[Folder],
    new: &[Prepared<'_>],
) -> Result<(), JournalError> {
    make_folders(record, stages)?;
    for (index, (entry, prepared)) in record.entries.iter().zip(new).enumerate() {
        let stage = stage_of(stages, entry)?;
        let name = new_name(index);
        let staged = || match (&entry.new, prepared) {
            (Found::File { owner, .. }, Prepared::File { bytes, attributes }) => {
                stage.create(&name, bytes, *owner, attributes)?;
                stage.sync_file(&name)
            }
            (Found::Link { target }, Prepared::Link { attributes }) => {
                stage.symlink(&name, target)?;
                stage.label(&name, attributes)
            }
            _ => Ok(()),
        };
        match (&entry.password_of, prepared) {
            (Some(user), Prepared::Password { hash, day }) => {
                let folder = folder_of(tree, entry)?;
                password::stage(&folder, stage, (index, entry), user, (hash, *day))?;
            }
            _ => staged().map_err(io_at(&entry.path))?,
        }
        if entry.old != Found::Absent {
            let folder = folder_of(tree, entry)?;
            folder.link_to(&entry.name, stage, &old_name(index)).map_err(io_at(&entry.path))?;
            // The new name leads to what is looked at: nobody can change it in between.
            let there =
                password::see(stage, &old_name(index), entry).map_err(io_at(&entry.path))?;
            if there != entry.old {
                return Err(JournalError::Changed { path: entry.path.clone() });
            }
        }
    }
    stages.iter().try_for_each(|stage| stage.sync().map_err(io_at(stage.path())))
}

/// Removes the stages with all that tread put into them, but for those of these indexes. What
/// others put in their place is theirs, and what cannot be removed, as where a mount can only be
/// read by now, stays for root alone: neither keeps an operation standing.
pub(super) fn remove(tree: &Tree, record: &Record, but: &BTreeSet<usize>) {
    for (index, path) in record.stages.iter().enumerate() {
        if but.contains(&index) {
            continue;
        }
        let removed = tree.place(path).and_then(|place| match place {
            Some((parent, name)) => {
                remove_one(&parent, name).map_err(|error| PathError::io(path, error))
            }
            None => Ok(()),
        });
        if let Err(error) = removed {
            tracing::warn!(%error, "what was staged stays; remove it: rm -r {path}");
        }
    }
}

/// Keeps these names of a stage for an admin, and nothing else of it: under a name that no next
/// operation sweeps, if it can be renamed. Returns where it is.
pub(super) fn keep(tree: &Tree, path: &str, stage: &Folder, names: &BTreeSet<String>) -> String {
    let Ok(Some((parent, name))) = tree.place(path) else { return path.to_owned() };
    let kept = given_up_name(name);
    let there = stage.names().unwrap_or_default();
    for other in there.iter().filter(|it| is_in_a_stage(it) && !names.contains(*it)) {
        let _ = remove_from(stage, other);
    }
    let _ = stage.sync();
    match parent.rename(name, &parent, &kept) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => path.to_owned(),
        _ => {
            let _ = parent.sync();
            parent.path_of(&kept)
        }
    }
}

/// Removes the stages in tread's own folder that no record names. One that cannot be removed is
/// in nobody's way.
pub(super) fn sweep(state: &Folder) {
    if let Err(error) = sweep_beside(state, &[]) {
        tracing::warn!(%error, "what was staged stays; remove it: rm -r {STATE}/{STAGE}*");
    }
}

/// Removes all stages in a folder but those of these names.
fn sweep_beside(parent: &Folder, but: &[&str]) -> io::Result<()> {
    let names = parent.names()?;
    let is_left = |name: &&String| name.starts_with(STAGE) && !but.contains(&name.as_str());
    let mut stages = names.iter().filter(is_left);
    stages.try_for_each(|name| remove_one(parent, name))
}

/// Whether a stage has disappeared: its mount is missing, or somebody removed it.
pub(super) fn is_away(tree: &Tree, path: &str) -> bool {
    let there = || {
        Ok::<_, PathError>(match tree.place(path)? {
            Some((parent, name)) => {
                parent.stat(name).map_err(|error| PathError::io(path, error))?.is_some()
            }
            None => false,
        })
    };
    is_elsewhere(path) && matches!(there(), Ok(false))
}

fn remove_one(parent: &Folder, name: &str) -> io::Result<()> {
    let Some(stage) = open_own(parent, name)? else { return Ok(()) };
    for name in stage.names()?.iter().filter(|name| is_in_a_stage(name)) {
        remove_from(&stage, name)?;
    }
    unless_of_others(parent.remove_folder(name))
}

fn remove_from(stage: &Folder, name: &str) -> io::Result<()> {
    match stage.stat(name)?.map(|stat| stat.kind) {
        Some(Kind::Folder) => unless_of_others(stage.remove_folder(name)),
        _ => stage.remove(name),
    }
}

/// A folder that cannot be removed since somebody put something into it, mounted something on it,
/// or replaced it, is theirs: that is no error.
pub(super) fn unless_of_others(removed: io::Result<()>) -> io::Result<()> {
    use io::ErrorKind::{DirectoryNotEmpty, NotADirectory, ResourceBusy};
    let is_of_others = |error: &io::Error| {
        matches!(error.kind(), DirectoryNotEmpty | NotADirectory | ResourceBusy)
    };
    match removed {
        Err(error) if is_of_others(&error) => Ok(()),
        removed => removed,
    }
}
