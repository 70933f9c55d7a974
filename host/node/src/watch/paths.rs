//! Watches some paths.

use super::listener::{Listener, Pace};
use super::ways::Touched;
use crate::drift::{Accepted, Drift, Expected, Kind, is_of_others, look};
use crate::tree::{Folders, Found, Tree};
use std::collections::BTreeMap;

/// What was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noticed {
    /// It was looked at paths; whether something differs now that did not, or the other way
    /// round.
    Looked {
        /// Whether anything is new.
        news: bool,
        /// Whether these were all paths.
        all: bool,
    },
    /// One of the other names changed, and nothing was looked at yet.
    Other,
}

/// Watches some paths.
pub struct Watch {
    tree: Tree,
    expected: Vec<Expected>,
    accepted: Accepted,
    listener: Listener,
    /// What was heard, and not looked at yet.
    pending: Touched,
    found: BTreeMap<usize, Drift>,
}

impl Watch {
    /// Watches what is expected, and other names besides, whatever stands there. The first
    /// thing to be noticed is what differs now.
    pub fn new(
        tree: &Tree,
        expected: Vec<Expected>,
        accepted: Accepted,
        others: &[String],
        pace: Pace,
    ) -> Watch {
        let files = expected.iter().map(|it| match crate::shadow::user_of(&it.path) {
            Some(_) => crate::shadow::FILE,
            None => it.path.as_str(),
        });
        let paths = files.chain(others.iter().map(String::as_str));
        let mut listener = Listener::new(paths, pace);
        listener.watch(tree);
        let pending = Touched { all: true, ..Touched::default() };
        let tree = tree.clone();
        Watch { tree, expected, accepted, listener, pending, found: BTreeMap::new() }
    }

    /// Waits until something is noticed.
    pub async fn next(&mut self) -> Noticed {
        if self.pending.is_nothing() {
            self.pending = self.listener.heard().await;
        }
        if std::mem::take(&mut self.pending.ways) {
            self.listener.watch(&self.tree);
        }
        let mut others = self.pending.paths.split_off(&self.expected.len());
        if others.pop_first().is_some() {
            return Noticed::Other;
        }
        let touched = std::mem::take(&mut self.pending);
        let before = self.found.clone();
        let indices: Vec<usize> = match touched.all {
            true => (0..self.expected.len()).collect(),
            false => touched.paths.iter().copied().collect(),
        };
        self.look(&indices);
        Noticed::Looked { news: before != self.found, all: touched.all }
    }

    fn look(&mut self, indices: &[usize]) {
        let folders = Folders::new(&self.tree);
        for index in indices {
            let Some(expected) = self.expected.get(*index) else { continue };
            let found = look(&folders, expected, &self.accepted).unwrap_or_else(|error| {
                let (path, of) = (expected.path.clone(), expected.of.clone());
                let (kinds, differs) = (vec![Kind::Unreadable], error.to_string());
                Some(Drift { path, of, there: Found::Other, kinds, differs })
            });
            match found {
                Some(found) => drop(self.found.insert(*index, found)),
                None => drop(self.found.remove(index)),
            }
        }
    }

    /// What differs, as of the last look.
    pub fn drifted(&self) -> impl Iterator<Item = &Drift> {
        self.found.values().filter(|it| !is_of_others(&it.path))
    }

    /// What differs, and is only noted, since others own it.
    pub fn noted(&self) -> impl Iterator<Item = &Drift> {
        self.found.values().filter(|it| is_of_others(&it.path))
    }

    /// Why changes are found by full checks only, if that is so.
    pub fn deaf(&self) -> Option<&str> {
        self.listener.deaf()
    }
}
