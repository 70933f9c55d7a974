//! Everything that tread does to a disk, as data.

use std::io;

/// One system call that changes the disk. Paths begin at the root of the tree, and have no link
/// in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Syscall<'a> {
    /// A new file with these bytes; its owner, mode and attributes are set with it.
    Create {
        /// The path.
        path: &'a str,
        /// All that it holds.
        bytes: &'a [u8],
    },
    /// Bytes are added to the end of a file.
    Append {
        /// The path.
        path: &'a str,
        /// What is added.
        bytes: &'a [u8],
    },
    /// A file keeps its first bytes only.
    Cut {
        /// The path.
        path: &'a str,
        /// How many.
        bytes: u64,
    },
    /// What a file holds, and what it is, is on the disk after this.
    Sync {
        /// The path.
        path: &'a str,
    },
    /// What stands in a folder is on the disk after this.
    SyncFolder {
        /// The path.
        path: &'a str,
    },
    /// A second name for the same thing.
    Link {
        /// What it is called.
        from: &'a str,
        /// What it is called besides.
        to: &'a str,
    },
    /// Two names change places.
    Exchange {
        /// One.
        one: &'a str,
        /// The other.
        other: &'a str,
    },
    /// Another name, which replaces nothing.
    Rename {
        /// Before.
        from: &'a str,
        /// Afterwards.
        to: &'a str,
    },
    /// Another name, whatever has it.
    Replace {
        /// Before.
        from: &'a str,
        /// Afterwards.
        to: &'a str,
    },
    /// A symbolic link.
    Symlink {
        /// The path.
        path: &'a str,
        /// What is in it.
        target: &'a str,
    },
    /// A name goes away.
    Remove {
        /// The path.
        path: &'a str,
    },
    /// A folder is made.
    MakeFolder {
        /// The path.
        path: &'a str,
    },
    /// A folder gets another owner, and other permissions.
    Give {
        /// The path.
        path: &'a str,
    },
    /// A folder, a link or a staged file gets an extended attribute.
    Label {
        /// The path.
        path: &'a str,
    },
    /// An empty folder goes away.
    RemoveFolder {
        /// The path.
        path: &'a str,
    },
}

/// Sees each change of the disk, and may let it fail. Tests count with it, cut the power, and
/// fill the disk.
pub trait Witness: Send + Sync {
    /// It is about to be done; with an error it is not.
    fn before(&self, syscall: &Syscall<'_>) -> io::Result<()>;

    /// It was done.
    fn after(&self, syscall: &Syscall<'_>) -> io::Result<()>;
}

/// Nobody looks.
pub struct Unwatched;

impl Witness for Unwatched {
    fn before(&self, _: &Syscall<'_>) -> io::Result<()> {
        Ok(())
    }

    fn after(&self, _: &Syscall<'_>) -> io::Result<()> {
        Ok(())
    }
}
