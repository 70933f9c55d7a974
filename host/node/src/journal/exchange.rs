//! Whether names can change places on a file system, which each way back needs. On those of other
//! machines (NFS, Ceph, 9p) the kernel does it not.

use super::names::{moving_name, new_name};
use crate::tree::{Folder, Owner};
use rustix::io::Errno;
use std::io;

/// File systems of which it is known that names change places on them: ext4, XFS, Btrfs, tmpfs, overlayfs.
const KNOWN: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630];
/// Whose the names are that are tried.
const OWNER: Owner = Owner { uid: 0, gid: 0, mode: 0o600 };

/// Why names in a new stage cannot change places; nothing where they can.
pub(super) fn why_not(stage: &Folder) -> io::Result<Option<io::Error>> {
    match KNOWN.contains(&stage.file_system()?) {
        true => Ok(None),
        false => tried(stage),
    }
}

/// No entry has this index: whoever settles what a killed process left takes nothing there for an entry's.
const NO_ENTRY: usize = usize::MAX;

/// The same, by trying it with names that no entry has.
pub(super) fn tried(stage: &Folder) -> io::Result<Option<io::Error>> {
    let (one, other) = (new_name(NO_ENTRY), moving_name(NO_ENTRY));
    let owner = Owner { mode: OWNER.mode, ..stage.own_stat()?.owner };
    stage.create(&one, b"", owner, &[])?;
    let moved = || {
        stage.rename(&one, stage, &other)?;
        stage.create(&one, b"", owner, &[])?;
        stage.exchange(&one, stage, &other)
    };
    let moved = moved();
    stage.remove(&one)?;
    stage.remove(&other)?;
    match moved {
        Err(error) if is_unknown(&error) => Ok(Some(error)),
        moved => moved.map(|()| None),
    }
}

fn is_unknown(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|it| [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP].contains(&it))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::tree::{Syscall, Tree, Witness};
    use std::sync::Arc;

    /// A file system that knows no flags of a rename, or not the one for an exchange.
    struct Refuses {
        renames: bool,
        exchanges: bool,
    }

    impl Witness for Refuses {
        fn before(&self, syscall: &Syscall<'_>) -> io::Result<()> {
            let refuses = match syscall {
                Syscall::Rename { .. } => self.renames,
                Syscall::Exchange { .. } => self.exchanges,
                _ => false,
            };
            if refuses { Err(Errno::INVAL.into()) } else { Ok(()) }
        }

        fn after(&self, _: &Syscall<'_>) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_system_on_which_names_cannot_change_places_is_found_and_nothing_is_left_there() {
        for (renames, exchanges) in [(false, false), (true, true), (false, true)] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join("stage")).unwrap();
            let witness = Arc::new(Refuses { renames, exchanges });
            let tree = Tree::witnessed(dir.path(), witness).unwrap();
            let stage = tree.folder("/stage").unwrap().unwrap();
            let why = tried(&stage).unwrap();
            assert_eq!(why.is_some(), renames || exchanges, "{why:?}");
            assert!(stage.names().unwrap().is_empty());
        }
    }
}
