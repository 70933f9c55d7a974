//! The folders in which names changed, and which have to be synced.

use crate::tree::Folder;
use std::collections::BTreeMap;
use std::io;

/// How many folders are kept open: far fewer than the 1,024 files that a process may have. Once they are
/// that many, they are synced at once, and once more if names change there later.
const MOST_OPEN: usize = 256;

/// Folders in which names changed. All of them are synced once nothing more changes.
#[derive(Default)]
pub(super) struct Touched {
    open: BTreeMap<String, Folder>,
    failed: Vec<(String, io::Error)>,
    any: bool,
}

impl Touched {
    /// A name changed in this one.
    pub(super) fn add(&mut self, folder: Folder) {
        self.any = true;
        if self.open.len() >= MOST_OPEN && !self.open.contains_key(folder.path()) {
            self.sync();
        }
        self.open.insert(folder.path().to_owned(), folder);
    }

    /// Whether any name changed.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    /// All of them are on the disk afterwards; returns those that could not be synced.
    pub(super) fn synced(mut self) -> Vec<(String, io::Error)> {
        self.sync();
        self.failed
    }

    fn sync(&mut self) {
        for (path, folder) in std::mem::take(&mut self.open) {
            if let Err(error) = folder.sync() {
                self.failed.push((path, error));
            }
        }
    }
}
