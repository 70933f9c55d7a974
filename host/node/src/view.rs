//! What stands where in a system: as it is, or as it will be once a config is written.
//!
//! systemd decides by many files at once which links enable a unit. So that the same
//! can be decided before anything is written, the rules look at a view.

use crate::tree::{Folder, Folders, Kind, PathError, Tree};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

/// As many bytes as a file may have that a rule reads.
const MOST: u64 = 1 << 20;

/// How many links a path may lead through, as the kernel has it.
const MOST_LINKS: usize = 40;

/// What stands under a path, itself and not where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Nothing.
    Absent,
    /// A regular file, and what it holds; nothing if that was not asked for, or is not
    /// valid text.
    File(Option<String>),
    /// A symbolic link, and where it leads.
    Link(String),
    /// A folder.
    Folder,
    /// A FIFO, a socket or a device.
    Other,
}

/// What stands where in a system. Paths are clean and begin with `/`.
pub trait View {
    /// What stands under a path.
    fn entry(&self, path: &str) -> Result<Entry, PathError>;

    /// As [`View::entry`], for those who do not ask what a file holds.
    fn glance(&self, path: &str) -> Result<Entry, PathError>;

    /// The names in a folder, sorted; none if it is not there.
    fn names(&self, folder: &str) -> Result<Vec<String>, PathError>;
}

impl View for Tree {
    fn entry(&self, path: &str) -> Result<Entry, PathError> {
        Folders::new(self).entry(path)
    }

    fn glance(&self, path: &str) -> Result<Entry, PathError> {
        Folders::new(self).glance(path)
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, PathError> {
        View::names(&Folders::new(self), folder)
    }
}

impl View for Folders<'_> {
    fn entry(&self, path: &str) -> Result<Entry, PathError> {
        seen(self, path, |folder, name| {
            Ok(match folder.read(name, MOST)? {
                Some(bytes) => Entry::File(String::from_utf8(bytes).ok()),
                None => Entry::Absent,
            })
        })
    }

    fn glance(&self, path: &str) -> Result<Entry, PathError> {
        seen(self, path, |_, _| Ok(Entry::File(None)))
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, PathError> {
        // A folder is asked for the names in it, whatever stands in its place.
        match self.glance(folder)? {
            Entry::Folder | Entry::Link(_) => self.tree().names(folder),
            Entry::Absent | Entry::File(_) | Entry::Other => Ok(Vec::new()),
        }
    }
}

/// What stands under a path; of a file, what the caller makes of it.
fn seen(
    folders: &Folders<'_>,
    path: &str,
    file: impl FnOnce(&Folder, &str) -> io::Result<Entry>,
) -> Result<Entry, PathError> {
    let failed = |error| PathError::io(path, error);
    if path == "/" {
        return Ok(Entry::Folder);
    }
    let Some((folder, name)) = folders.place(path)? else { return Ok(Entry::Absent) };
    let Some(stat) = folder.stat(name).map_err(failed)? else { return Ok(Entry::Absent) };
    match stat.kind {
        Kind::Folder => Ok(Entry::Folder),
        Kind::Other => Ok(Entry::Other),
        Kind::Link => folder.link(name).map(Entry::Link).map_err(failed),
        Kind::File => file(&folder, name).map_err(failed),
    }
}

/// A view with some entries that are not there yet, or will be no more.
pub struct Overlay<'v> {
    below: &'v dyn View,
    entries: BTreeMap<String, Entry>,
}

impl<'v> Overlay<'v> {
    /// A view as it is.
    pub fn new(below: &'v dyn View) -> Overlay<'v> {
        Overlay { below, entries: BTreeMap::new() }
    }

    /// Puts an entry in the place of what stands under a path. The folders on the way
    /// are there from then on.
    pub fn set(&mut self, path: &str, entry: Entry) {
        if entry != Entry::Absent {
            let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
            for folder in ends.filter_map(|at| path.get(..at)) {
                if matches!(self.glance(folder), Ok(Entry::Absent)) {
                    self.entries.insert(folder.to_owned(), Entry::Folder);
                }
            }
        }
        self.entries.insert(path.to_owned(), entry);
    }
}

impl View for Overlay<'_> {
    fn entry(&self, path: &str) -> Result<Entry, PathError> {
        match self.entries.get(path) {
            Some(entry) => Ok(entry.clone()),
            None => self.below.entry(path),
        }
    }

    fn glance(&self, path: &str) -> Result<Entry, PathError> {
        match self.entries.get(path) {
            Some(entry) => Ok(entry.clone()),
            None => self.below.glance(path),
        }
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, PathError> {
        let mut names: BTreeSet<String> = self.below.names(folder)?.into_iter().collect();
        let start = format!("{}/", folder.trim_end_matches('/'));
        let set =
            self.entries.range(start.clone()..).take_while(|(path, _)| path.starts_with(&start));
        for (path, entry) in set {
            let name = path.strip_prefix(&start).unwrap_or_default();
            if name.is_empty() || name.contains('/') {
                continue;
            }
            match entry {
                Entry::Absent => names.remove(name),
                _ => names.insert(name.to_owned()),
            };
        }
        Ok(names.into_iter().collect())
    }
}

/// Where a path leads once the links among its folders are followed; the last name only
/// if that is asked for. What is not there stands for itself. Nothing if the links lead
/// in a circle.
pub fn real(view: &dyn View, path: &str, last: bool) -> Result<Option<String>, PathError> {
    let mut ahead: VecDeque<String> = path.split('/').map(str::to_owned).collect();
    let mut way: Vec<String> = Vec::new();
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                way.pop();
                continue;
            }
            _ => way.push(name),
        }
        if ahead.is_empty() && !last {
            break;
        }
        if let Entry::Link(target) = view.glance(&joined(&way))? {
            links += 1;
            if links > MOST_LINKS {
                return Ok(None);
            }
            match target.starts_with('/') {
                true => way.clear(),
                false => drop(way.pop()),
            }
            target.split('/').rev().for_each(|name| ahead.push_front(name.to_owned()));
        }
    }
    Ok(Some(joined(&way)))
}

fn joined(names: &[String]) -> String {
    format!("/{}", names.join("/"))
}

/// The folder of a path, and the name in it.
pub fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(split) => split,
        None => ("/", path),
    }
}

#[cfg(test)]
mod tests;
