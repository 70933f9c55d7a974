//! The tree of a system: every path that tread reads or writes is beneath its root.
//!
//! Who writes a config may name any path, and others may write in the directories on
//! the way. So a path is walked one name at a time: a link among its directories is
//! followed only if root owns it, and never out of the tree; `..` stands in no path.

mod folder;
mod operation;
mod walk;

pub use folder::{Attribute, Folder, Kind, Owner, Seen, Stat};
pub use operation::{Operation, Unwatched, Witness};
pub use walk::PathError;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The root of a system, as a capability.
#[derive(Clone)]
pub struct Tree {
    root: Folder,
}

impl Tree {
    /// The tree below a directory: `/` for the system that runs.
    pub fn open(root: &Path) -> io::Result<Tree> {
        Tree::witnessed(root, Arc::new(Unwatched))
    }

    /// As [`Tree::open`], with somebody who sees each operation before it is done,
    /// and may let it fail.
    pub fn witnessed(root: &Path, witness: Arc<dyn Witness>) -> io::Result<Tree> {
        let dir = Dir::open_ambient_dir(root, ambient_authority())?;
        Ok(Tree { root: Folder::new(Arc::new(dir), String::new(), witness) })
    }

    /// The folder that a path names; nothing if it is not there.
    pub fn folder(&self, path: &str) -> Result<Option<Folder>, PathError> {
        walk::folder(&self.root, path)
    }

    /// As [`Tree::folder`]; folders that are missing are made, as root's and readable
    /// for all, and told to `made` before that.
    pub fn folder_made(
        &self,
        path: &str,
        made: &mut dyn FnMut(&str) -> io::Result<()>,
    ) -> Result<Folder, PathError> {
        walk::folder_made(&self.root, path, made)
    }

    /// The folder that an entry stands in, and its name there; nothing if the folder
    /// is not there.
    pub fn place<'p>(&self, path: &'p str) -> Result<Option<(Folder, &'p str)>, PathError> {
        let (folder, name) = walk::split(path)?;
        Ok(self.folder(folder)?.map(|folder| (folder, name)))
    }

    /// What a file holds; nothing if it is not there. Anything but a regular file is an
    /// error, and so is one with more than `most` bytes.
    pub fn read(&self, path: &str, most: u64) -> Result<Option<Vec<u8>>, PathError> {
        let failed = |error| PathError::io(path, error);
        let Some((folder, name)) = self.place(path)? else { return Ok(None) };
        folder.read(name, most).map_err(failed)
    }

    /// The names in a folder, sorted; none if it is not there.
    pub fn names(&self, path: &str) -> Result<Vec<String>, PathError> {
        let Some(folder) = self.folder(path)? else { return Ok(Vec::new()) };
        folder.names().map_err(|error| PathError::io(path, error))
    }
}

#[cfg(test)]
mod tests;
