//! From wherever an operation was cut short to its new state, or to its old one.

use super::entry::{Entry, Shipped};
use super::error::{JournalError, io_at};
use super::meddled;
use super::names::{new_name, old_name};
use super::password;
use super::place::put;
use super::record::Record;
use super::stage;
use super::touched::Touched;
use crate::shadow::Lock;
use crate::shipped;
use crate::tree::{Folder, Found, PathError, Tree};
use std::collections::BTreeSet;
use std::io;

/// What was found on the way.
#[derive(Default)]
pub(super) struct Resolved {
    /// Whether any name had to be changed.
    pub(super) changed: bool,
    /// The entries that somebody else changed.
    pub(super) left: Vec<usize>,
    /// Entries whose name is to go, and whose place is covered by a mount that came later.
    pub(super) covered: Vec<usize>,
    /// Entries that may have yet to change, on a mount that is missing together with their stage.
    pub(super) away: Vec<usize>,
    /// Those that could not be given the state that holds.
    pub(super) failed: Vec<(Place, JournalError)>,
}

/// What could not be brought to the state that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// An entry.
    Entry(usize),
    /// A folder that is to go.
    Made(String),
    /// A folder that has what it should, which may not survive a power cut.
    Unsynced(String),
}

/// How an operation stood before it is resolved.
#[derive(Clone, Copy)]
pub(super) struct Before {
    /// Whether everything new was on the disk before any name changed.
    pub(super) staged: bool,
    /// Whether every name had the state that holds: what differs now was changed by somebody else,
    /// and stays.
    pub(super) whole: bool,
    /// Whether the `/etc` is that of another deployment than the one in which it was written.
    pub(super) elsewhere: bool,
    /// Whether nobody knows which names changed there, since it was never committed.
    pub(super) unknown: bool,
}

/// The paths that a config sets, and that have what the image of this boot ships there.
pub(super) fn shipped_instead(tree: &Tree, record: &Record) -> Vec<String> {
    let is_instead = |entry: &&Entry| {
        let there = || {
            let Some(folder) = way(tree, &entry.folder).ok()? else { return Some(Found::Absent) };
            folder.see(&entry.name).ok()
        };
        let is_other = |there: Found| there != entry.new && is_as_shipped(tree, entry, &there);
        entry.shipped == Some(Shipped::Config) && there().is_some_and(is_other)
    };
    record.entries.iter().filter(is_instead).map(|entry| entry.path.clone()).collect()
}

/// Whether a name that had what one image ships has what the image of this boot ships.
fn is_as_shipped(tree: &Tree, entry: &Entry, there: &Found) -> bool {
    entry.shipped.is_some() && shipped::is_as_shipped(tree, &entry.path, there).is_ok_and(|it| it)
}

/// Every name gets its new state. What cannot keeps nothing else from it.
pub(super) fn forward(tree: &Tree, record: &Record, before: Before) -> Resolved {
    resolve(tree, record, before, |index, entry| {
        let staged = (entry.new != Found::Absent).then(|| new_name(index));
        (&entry.old, &entry.new, staged)
    })
}

/// Every name gets its old state. What cannot keeps nothing else from it.
pub(super) fn back(tree: &Tree, record: &Record, before: Before) -> Resolved {
    let mut resolved = resolve(tree, record, before, |index, entry| {
        let staged = (entry.old != Found::Absent).then(|| old_name(index));
        (&entry.new, &entry.old, staged)
    });
    if before.whole {
        return resolved;
    }
    for made in record.made.iter().rev() {
        let path = format!("{}/{}", made.folder.trim_end_matches('/'), made.name);
        let removed = way(tree, &made.folder).map_err(JournalError::from).and_then(|folder| {
            let removed = folder.map_or(Ok(()), |it| it.remove_folder(&made.name));
            stage::unless_of_others(removed).map_err(io_at(&path))
        });
        if let Err(error) = removed {
            resolved.failed.push((Place::Made(path), error));
        }
    }
    resolved
}

/// A folder, if there is still a way to it.
pub(super) fn way(tree: &Tree, path: &str) -> Result<Option<Folder>, PathError> {
    match tree.folder(path) {
        Err(PathError::NoWay { .. } | PathError::Circle { .. }) => Ok(None),
        found => found,
    }
}

/// Has each folder synced in which a name changed. A process that was killed before this one may
/// have changed names there, and not have synced them.
pub(super) fn sync_folders(tree: &Tree, record: &Record) -> Result<(), JournalError> {
    let folders: BTreeSet<&str> = record.entries.iter().map(|it| it.folder.as_str()).collect();
    for path in folders {
        if let Some(folder) = way(tree, path)? {
            folder.sync().map_err(io_at(path))?;
        }
    }
    Ok(())
}

/// Gives each entry the state that holds, in place of the one that does not.
fn resolve<'r>(
    tree: &Tree,
    record: &'r Record,
    before: Before,
    states: impl Fn(usize, &'r Entry) -> (&'r Found, &'r Found, Option<String>),
) -> Resolved {
    let stages = stage::open(tree, record);
    let mut resolved = Resolved::default();
    let mut touched = Touched::default();
    for (index, entry) in record.entries.iter().enumerate() {
        let (wrong, right, staged) = states(index, entry);
        let stage = stages.get(entry.stage).map_or(&Ok(None), |it| it);
        let there = stage.as_ref().ok().and_then(Option::as_ref);
        let path = record.stages.get(entry.stage).filter(|_| there.is_none());
        if path.is_some_and(|path| before.staged && stage::is_away(tree, path))
            && !entry.is_held()
            && (before.unknown || may_be_away(tree, entry, right))
        {
            resolved.away.push(index);
            continue;
        }
        match put_back(tree, there, entry, index) {
            Ok(None) => {}
            Ok(Some(folder)) => touched.add(folder),
            Err(error) => {
                resolved.failed.push((Place::Entry(index), error));
                continue;
            }
        }
        let states = (wrong, right, before);
        match resolve_one(tree, stage, entry, states, (index, staged.as_deref())) {
            Ok(Became::Already) => {
                let is_to_go = *right == Found::Absent && *wrong == entry.new && !entry.is_held();
                if is_to_go && there.is_some_and(|stage| is_covered(tree, entry, stage)) {
                    resolved.covered.push(index);
                }
            }
            Ok(Became::Now(folder)) => touched.add(folder),
            // What differs from the config is found by whoever proves the node.
            Ok(Became::Left) if entry.is_held() => {}
            Ok(Became::Left) => resolved.left.push(index),
            Err(error) if entry.is_held() => {
                tracing::warn!(%error, "a name that the new image ships was not put back");
            }
            Err(error) => resolved.failed.push((Place::Entry(index), error)),
        }
    }
    resolved.changed = touched.any();
    for (path, error) in touched.synced() {
        let error = io_at(&path)(error);
        resolved.failed.push((Place::Unsynced(path), error));
    }
    resolved
}

/// Whether the way to an entry, as far as there is one, leads onto another mount than before. The
/// entry's stage is on the mount that it led onto.
fn is_covered(tree: &Tree, entry: &Entry, stage: &Folder) -> bool {
    let mount = |folder: &Folder| folder.own_stat().ok().map(|stat| stat.mount);
    let reached = tree.reach(&entry.folder).ok();
    reached.is_some_and(|reached| mount(&reached.folder) != mount(stage))
}

/// Whether an entry whose stage is missing may be on a mount that is missing: what is found in its
/// place is not the state that holds, or nothing is found, which proves nothing. Only that a name
/// was removed is certain: that was on the disk before the commit.
fn may_be_away(tree: &Tree, entry: &Entry, right: &Found) -> bool {
    if *right == Found::Absent {
        return entry.new != Found::Absent;
    }
    let there = way(tree, &entry.folder).ok().flatten();
    let seen = there.map(|folder| password::see(&folder, &entry.name, entry));
    !seen.is_some_and(|seen| seen.is_ok_and(|seen| seen == *right))
}

/// Puts back what somebody else wrote in the middle of an exchange, before anything else is done
/// there: returns the folder if there was any.
fn put_back(
    tree: &Tree,
    stage: Option<&Folder>,
    entry: &Entry,
    index: usize,
) -> Result<Option<Folder>, JournalError> {
    let Some((stage, folder)) = stage.zip(way(tree, &entry.folder)?) else { return Ok(None) };
    let back = || {
        if !meddled::is_there(stage, index)? {
            return Ok(false);
        }
        // Nobody changes a password between the two looks.
        let _lock = entry.password_of.as_ref().map(|_| Lock::take(tree)).transpose()?;
        meddled::put_back(&folder, &entry.name, stage, index)
    };
    Ok(back().map_err(io_at(&entry.path))?.then_some(folder))
}

/// What became of an entry.
enum Became {
    /// It had the state that holds.
    Already,
    /// It has it now, in this folder.
    Now(Folder),
    /// Somebody else changed it.
    Left,
}

fn resolve_one(
    tree: &Tree,
    stage: &Result<Option<Folder>, PathError>,
    entry: &Entry,
    (wrong, right, before): (&Found, &Found, Before),
    (index, staged): (usize, Option<&str>),
) -> Result<Became, JournalError> {
    let way = way(tree, &entry.folder)?;
    let there = match &way {
        Some(folder) => password::see(folder, &entry.name, entry).map_err(io_at(&entry.path))?,
        None => Found::Absent,
    };
    if there == *right {
        return Ok(Became::Already);
    }
    // What was never committed holds nothing: the config before it may not set that.
    let holds_nothing = before.unknown && entry.is_held();
    let is_shipped = before.elsewhere && !holds_nothing && is_as_shipped(tree, entry, &there);
    if is_shipped && entry.shipped == Some(Shipped::Image) && *right == entry.new {
        return Ok(Became::Already);
    }
    if before.whole || (!is_shipped && there != *wrong) {
        return Ok(Became::Left);
    }
    let folder = match way {
        Some(folder) => folder,
        // The image of this boot ships nothing below this folder.
        None if is_shipped => tree.folder_made(&entry.folder)?,
        None => return Ok(Became::Left),
    };
    let wrong = if is_shipped { &there } else { wrong };
    let stage = match stage {
        Ok(Some(stage)) => stage,
        Ok(None) => return Ok(Became::Left),
        Err(error) => return Err(io_at(&entry.path)(io::Error::other(error.to_string()))),
    };
    let put = match &entry.password_of {
        Some(user) => {
            let is_forward = *right == entry.new;
            password::resolve(tree, &folder, stage, (index, entry), (user, wrong, is_forward))?
        }
        None => {
            put(&folder, &entry.name, stage, staged, index, wrong).map_err(io_at(&entry.path))?
        }
    };
    Ok(match put {
        true => Became::Now(folder),
        false => Became::Left,
    })
}
