//! The tree of a system: every path that tread reads or writes is beneath its root.
//!
//! Who writes a config may name any path, and others may write in the directories on
//! the way. So a path is walked one name at a time: a link among its directories is
//! followed only if root owns it, and never out of the tree; `..` stands in no path.

#[cfg(test)]
#[path = "../tests/support/cut.rs"]
pub(crate) mod cut;
mod folder;
mod folders;
mod syscall;
mod walk;

pub use folder::{Attribute, Folder, Found, Kind, Owner, Stat};
pub use folders::Folders;
pub use syscall::{Syscall, Unwatched, Witness};
pub use walk::{PathError, Reached};

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

    /// As [`Tree::open`], with somebody who sees each change of the disk before it is done,
    /// and may let it fail.
    pub fn witnessed(root: &Path, witness: Arc<dyn Witness>) -> io::Result<Tree> {
        let dir = Dir::open_ambient_dir(root, ambient_authority())?;
        Ok(Tree { root: Folder::new(Arc::new(dir), String::new(), witness) })
    }

    /// The same tree, as it is mounted now: what is mounted once somebody looks (an automount) is
    /// not, and nothing is below it. For whoever others wait for that such a mount needs.
    pub fn without_automounts(mut self) -> Tree {
        self.root.automounts = false;
        self
    }

    /// How far a path leads.
    pub fn reach(&self, path: &str) -> Result<Reached, PathError> {
        walk::reach(&self.root, path, &mut |_, _| {})
    }

    /// As [`Tree::reach`]; each name on the way is visited, with the folder that it
    /// stands in, also on a way that leads nowhere.
    pub fn reach_visiting(
        &self,
        path: &str,
        visit: &mut dyn FnMut(&Folder, &str),
    ) -> Result<Reached, PathError> {
        walk::reach(&self.root, path, visit)
    }

    /// The folder that a path names; nothing if it is not there.
    pub fn folder(&self, path: &str) -> Result<Option<Folder>, PathError> {
        let reached = self.reach(path)?;
        Ok(reached.missing.is_empty().then_some(reached.folder))
    }

    /// As [`Tree::folder`]; folders that are missing are made, as root's and readable
    /// for all.
    pub fn folder_made(&self, path: &str) -> Result<Folder, PathError> {
        let failed = |error| PathError::io(path, error);
        let Reached { mut folder, missing } = self.reach(path)?;
        for name in missing {
            folder.make_folder(&name).map_err(failed)?;
            folder = folder.folder(&name).map_err(failed)?;
        }
        Ok(folder)
    }

    /// As [`Tree::folder_made`]; the last one, where it is made, is root's alone.
    pub fn private_folder(&self, path: &str) -> Result<Folder, PathError> {
        if let Some(folder) = self.folder(path)? {
            return Ok(folder);
        }
        let (parent, name) = walk::split(path)?;
        let parent = self.folder_made(parent)?;
        let made = match parent.make_private_folder(name) {
            // Somebody else made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        };
        made.and_then(|()| parent.folder(name)).map_err(|error| PathError::io(path, error))
    }

    /// The folder that an entry stands in, and its name there; nothing if the folder
    /// is not there.
    pub fn place<'p>(&self, path: &'p str) -> Result<Option<(Folder, &'p str)>, PathError> {
        let (folder, name) = walk::split(path)?;
        Ok(self.folder(folder)?.map(|folder| (folder, name)))
    }

    /// The path of the folder that an entry stands in, and its name there.
    pub fn split(path: &str) -> Result<(&str, &str), PathError> {
        walk::split(path)
    }

    /// What a file holds; nothing if it is not there. Anything but a regular file is an
    /// error, and so is one with more than `most` bytes.
    pub fn read(&self, path: &str, most: u64) -> Result<Option<Vec<u8>>, PathError> {
        let failed = |error| PathError::io(path, error);
        let Some((folder, name)) = self.place(path)? else { return Ok(None) };
        folder.read(name, most).map_err(failed)
    }

    /// As [`Tree::read`], of a file that may be reached by a link which root owns: as whoever
    /// runs on this system would open it, but never out of the tree.
    pub fn read_followed(&self, path: &str, most: u64) -> Result<Option<Vec<u8>>, PathError> {
        let failed = |error| PathError::io(path, error);
        let Some((folder, name)) = walk::place_followed(&self.root, path)? else {
            return Ok(None);
        };
        folder.read(&name, most).map_err(failed)
    }

    /// The names in a folder, sorted; none if it is not there.
    pub fn names(&self, path: &str) -> Result<Vec<String>, PathError> {
        let Some(folder) = self.folder(path)? else { return Ok(Vec::new()) };
        folder.names().map_err(|error| PathError::io(path, error))
    }
}

#[cfg(test)]
mod tests;
