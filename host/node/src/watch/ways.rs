//! Which folders are watched so that a change of any path is heard: every one on the way to
//! it, as a tree walks it, links included. One that is missing is heard when it comes.

use super::inotify::{Event, Inotify, Number};
use crate::tree::{Folder, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Ways may change while they are walked. The walk is begun anew this often; what is missed after
/// that is found by the next full check.
const MOST_PASSES: usize = 8;

/// A name in a folder, and what it is about.
#[derive(Debug, Default)]
struct Heard {
    /// The paths, by index.
    paths: Vec<usize>,
    /// Whether it is on the way to them.
    is_way: bool,
}

/// What was touched.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Touched {
    /// Any of them may be.
    pub(super) all: bool,
    /// These, by index.
    pub(super) paths: BTreeSet<usize>,
    /// Folders on the way: they are walked anew.
    pub(super) ways: bool,
}

impl Touched {
    pub(super) fn is_nothing(&self) -> bool {
        !self.all && self.paths.is_empty()
    }
}

type Folders = BTreeMap<Number, BTreeMap<Vec<u8>, Heard>>;

/// The ways to some paths, each folder watched once.
#[derive(Default)]
pub(super) struct Ways {
    /// The folder of each path, with the names in it.
    parents: BTreeMap<String, Vec<(String, usize)>>,
    folders: Folders,
}

impl Ways {
    pub(super) fn to<'p>(paths: impl Iterator<Item = &'p str>) -> Ways {
        let mut ways = Ways::default();
        for (index, path) in paths.enumerate() {
            // What is no path leads nowhere, which the check says.
            if let Ok((folder, name)) = Tree::split(path) {
                let names = ways.parents.entry(folder.to_owned()).or_default();
                names.push((name.to_owned(), index));
            }
        }
        ways
    }

    /// Watches each folder on the way; the first error, once all others are watched.
    pub(super) fn watch(&mut self, tree: &Tree, inotify: &Inotify) -> io::Result<()> {
        for _ in 0..MOST_PASSES {
            let (folders, failed) = self.pass(tree, inotify);
            // What changed on the way before a folder was watched was not heard.
            let whole = folders.keys().all(|number| self.folders.contains_key(number));
            for number in self.folders.keys().filter(|number| !folders.contains_key(*number)) {
                inotify.forget(*number);
            }
            self.folders = folders;
            match failed {
                Some(error) => return Err(error),
                None if whole => return Ok(()),
                None => {}
            }
        }
        Ok(())
    }

    fn pass(&self, tree: &Tree, inotify: &Inotify) -> (Folders, Option<io::Error>) {
        let mut pass =
            Pass { inotify, numbers: BTreeMap::new(), folders: Folders::new(), failed: None };
        for (parent, names) in &self.parents {
            let paths: Vec<usize> = names.iter().map(|(_, index)| *index).collect();
            let reached = tree.reach_visiting(parent, &mut |folder, name| {
                pass.hears(folder, name, true, &paths);
            });
            let Ok(reached) = reached else { continue };
            if reached.missing.is_empty() {
                for (name, index) in names {
                    pass.hears(&reached.folder, name, false, &[*index]);
                }
            }
        }
        (pass.folders, pass.failed)
    }

    /// What an event is about.
    pub(super) fn touched(&mut self, event: &Event, touched: &mut Touched) {
        match event {
            Event::Overflow => (touched.all, touched.ways) = (true, true),
            Event::Gone(number) => {
                if let Some(names) = self.folders.remove(number) {
                    touched.ways = true;
                    touched.paths.extend(names.values().flat_map(|heard| &heard.paths));
                }
            }
            Event::Name(number, name) => {
                let heard = self.folders.get(number).and_then(|names| names.get(name));
                if let Some(heard) = heard {
                    touched.ways |= heard.is_way;
                    touched.paths.extend(&heard.paths);
                }
            }
        }
    }

    /// How many folders are watched.
    #[cfg(test)]
    pub(super) fn watched(&self) -> usize {
        self.folders.len()
    }
}

/// One walk of all ways.
struct Pass<'p> {
    inotify: &'p Inotify,
    /// By the path of the folder: its watch, and whether contents are heard.
    numbers: BTreeMap<String, (Number, bool)>,
    folders: Folders,
    failed: Option<io::Error>,
}

impl Pass<'_> {
    fn hears(&mut self, folder: &Folder, name: &str, is_way: bool, paths: &[usize]) {
        let known = self.numbers.get(folder.path()).copied();
        let number = match known.filter(|(_, contents)| *contents || is_way) {
            Some((number, _)) => number,
            None => match self.inotify.watch(folder, !is_way) {
                Ok(number) => {
                    self.numbers.insert(folder.path().to_owned(), (number, !is_way));
                    number
                }
                Err(error) => {
                    self.failed.get_or_insert(error);
                    return;
                }
            },
        };
        let names = self.folders.entry(number).or_default();
        let heard = names.entry(name.as_bytes().to_vec()).or_default();
        heard.paths.extend(paths);
        heard.is_way |= is_way;
    }
}
