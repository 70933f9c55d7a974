//! From wherever an operation was cut short to its new state, or to its old one.

use super::place::put;
use super::stage::{new_name, old_name};
use super::{Entry, JournalError, Record, io_at, stage};
use crate::tree::{Folder, Seen, Tree};
use std::collections::BTreeMap;
use std::io;

/// What was found on the way.
pub(super) struct Resolved {
    /// Whether any name had to be changed.
    pub(super) changed: bool,
    /// Those that somebody else changed.
    pub(super) left: Vec<String>,
}

/// Every name gets its new state; those that somebody else changed are returned.
pub(super) fn forward(tree: &Tree, record: &Record) -> Result<Resolved, JournalError> {
    resolve(tree, record, |index, entry| {
        let staged = (entry.new != Seen::Absent).then(|| new_name(index));
        (&entry.old, &entry.new, staged)
    })
}

/// Every name gets its old state; those that somebody else changed are returned.
pub(super) fn back(tree: &Tree, record: &Record) -> Result<Resolved, JournalError> {
    let resolved = resolve(tree, record, |index, entry| {
        let staged = (entry.old != Seen::Absent).then(|| old_name(index));
        (&entry.new, &entry.old, staged)
    })?;
    for made in record.made.iter().rev() {
        let Some(folder) = tree.folder(&made.folder)? else { continue };
        match folder.remove_folder(&made.name) {
            // Somebody put something into it: it is theirs now.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            removed => removed.map_err(io_at(&folder.path_of(&made.name)))?,
        }
    }
    Ok(resolved)
}

/// Gives each entry the state that holds, in place of the one that does not.
fn resolve<'r>(
    tree: &Tree,
    record: &'r Record,
    states: impl Fn(usize, &'r Entry) -> (&'r Seen, &'r Seen, Option<String>),
) -> Result<Resolved, JournalError> {
    let stages = stage::open(tree, record)?;
    let mut left = Vec::new();
    let mut touched: BTreeMap<String, Folder> = BTreeMap::new();
    for (index, entry) in record.entries.iter().enumerate() {
        let (wrong, right, staged) = states(index, entry);
        let Some(folder) = tree.folder(&entry.folder)? else {
            left.extend((*right != Seen::Absent).then(|| entry.path.clone()));
            continue;
        };
        let there = folder.see(&entry.name).map_err(io_at(&entry.path))?;
        if there == *right {
            continue;
        }
        let stage = stages.get(entry.stage).and_then(Option::as_ref);
        let (true, Some(stage)) = (there == *wrong, stage) else {
            left.push(entry.path.clone());
            continue;
        };
        let put = put(&folder, &entry.name, stage, staged.as_deref(), index, wrong);
        match put.map_err(io_at(&entry.path))? {
            true => drop(touched.insert(folder.path().to_owned(), folder)),
            false => left.push(entry.path.clone()),
        }
    }
    touched.values().try_for_each(|folder| folder.sync().map_err(io_at(folder.path())))?;
    Ok(Resolved { changed: !touched.is_empty(), left })
}
