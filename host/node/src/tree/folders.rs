//! Folders that are kept open, for whoever looks at many names in few of them.

use super::{Folder, PathError, Tree, walk};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// How many folders are kept open: far fewer than a process may have.
const MOST_OPEN: usize = 64;

/// A tree whose folders are walked to once. What changes on the way to them meanwhile is
/// not seen: it is for looking, not for writing.
pub struct Folders<'t> {
    tree: &'t Tree,
    open: RefCell<BTreeMap<String, Option<Folder>>>,
}

impl<'t> Folders<'t> {
    /// None is open yet.
    pub fn new(tree: &'t Tree) -> Folders<'t> {
        Folders { tree, open: RefCell::default() }
    }

    /// The tree itself.
    pub fn tree(&self) -> &'t Tree {
        self.tree
    }

    /// As [`Tree::place`].
    pub fn place<'p>(&self, path: &'p str) -> Result<Option<(Folder, &'p str)>, PathError> {
        let (folder, name) = walk::split(path)?;
        let mut open = self.open.borrow_mut();
        if let Some(known) = open.get(folder) {
            return Ok(known.clone().map(|folder| (folder, name)));
        }
        let found = self.tree.folder(folder)?;
        if open.len() >= MOST_OPEN {
            open.clear();
        }
        open.insert(folder.to_owned(), found.clone());
        Ok(found.map(|folder| (folder, name)))
    }
}
