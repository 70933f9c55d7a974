//! The program that runs on the host: one static executable below tread's own folder, under
//! its digest. Which of them is the current one changes only while no operation stands, so
//! that an operation is finished by the executable that began it.

use crate::tree::{Attribute, Folder, Kind, Owner, PathError, Tree};
use std::io;
use tread_model::digest::Digest;

/// Where the executables are.
const FOLDER: &str = "/var/lib/tread/bin";
/// A link to the folder of the one that the units of the host run.
const CURRENT: &str = "current";
const NAME: &str = "tread";
/// What the units of the host run.
pub const CURRENT_PATH: &str = "/var/lib/tread/bin/current/tread";

/// An extended attribute of SELinux.
const LABEL: &[u8] = b"security.selinux";
/// The type of what systemd may run.
const PROGRAM_TYPE: &str = "bin_t";

/// Where an executable is put.
pub fn path_of(digest: &str) -> String {
    format!("{FOLDER}/{digest}/{NAME}")
}

/// Puts an executable in its place, on the disk; returns its digest.
pub fn install(tree: &Tree, bytes: &[u8]) -> Result<String, PathError> {
    let digest = Digest::of(bytes).hex();
    let path = path_of(&digest);
    let failed = |error| PathError::io(&path, error);
    let bin = tree.folder_made(FOLDER)?;
    let put = || {
        let there = bin.stat(&digest)?.map(|stat| stat.kind);
        if there.is_some_and(|kind| kind != Kind::Folder) {
            bin.put_aside(&digest)?;
        }
        if there != Some(Kind::Folder) {
            bin.make_folder(&digest)?;
            bin.sync()?;
        }
        let folder = bin.folder(&digest)?;
        if is_whole(&folder, bytes)? {
            return Ok(());
        }
        let next = format!("{NAME}.next");
        let own = folder.own_stat()?.owner;
        let label = program_label(&folder)?;
        folder.remove_own(&next)?;
        folder.create(&next, bytes, Owner { mode: 0o755, ..own }, label.as_slice())?;
        folder.sync_file(&next)?;
        folder.replace_own(&next, NAME)?;
        folder.sync()
    };
    put().map_err(failed)?;
    Ok(digest)
}

/// Whether it is there already, and can be run.
fn is_whole(folder: &Folder, bytes: &[u8]) -> io::Result<bool> {
    let Some(stat) = folder.stat(NAME)? else { return Ok(false) };
    let is_like_it = stat.size == bytes.len() as u64 && stat.owner.mode == 0o755;
    Ok(is_like_it && folder.read(NAME, stat.size)?.is_some_and(|there| there == bytes))
}

/// Whether it needs no library of the host, and no loader: an ELF program of 64 bits without
/// an interpreter.
pub fn is_static(bytes: &[u8]) -> bool {
    const INTERPRETER: u64 = 3;
    let number = |at: u64, width: usize| {
        let at = usize::try_from(at).ok()?;
        let mut number = [0; 8];
        number.get_mut(..width)?.copy_from_slice(bytes.get(at..at.checked_add(width)?)?);
        Some(u64::from_le_bytes(number))
    };
    let kinds = || {
        let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        (0..count).map(|index| number(table.checked_add(index * size)?, 4)).collect()
    };
    let kinds: Option<Vec<u64>> = kinds();
    bytes.starts_with(b"\x7fELF\x02\x01") && kinds.is_some_and(|it| !it.contains(&INTERPRETER))
}

/// The label of a program, where the host has labels: that of tread's own folder, with the
/// type of a program. What stands below `/var/lib` may not be run otherwise.
fn program_label(folder: &Folder) -> io::Result<Option<Attribute>> {
    let own = folder.own_attribute(LABEL)?;
    let text = own.as_deref().and_then(|label| std::str::from_utf8(label).ok());
    let Some(text) = text else { return Ok(None) };
    let mut parts: Vec<&str> = text.trim_end_matches('\0').split(':').collect();
    let Some(of_type) = parts.get_mut(2) else { return Ok(None) };
    *of_type = PROGRAM_TYPE;
    let value = format!("{}\0", parts.join(":")).into_bytes();
    Ok(Some(Attribute { name: LABEL.to_vec(), value }))
}

/// The digest of the current one, if there is one.
pub fn current(tree: &Tree) -> Result<Option<String>, PathError> {
    let failed = |error| PathError::io(CURRENT_PATH, error);
    let Some(bin) = tree.folder(FOLDER)? else { return Ok(None) };
    match bin.stat(CURRENT).map_err(failed)?.map(|stat| stat.kind) {
        Some(Kind::Link) => bin.link(CURRENT).map(Some).map_err(failed),
        // Somebody put something else there: it leads nowhere.
        _ => Ok(None),
    }
}

/// Makes one the current one, and removes all others. Only for whoever holds the journal,
/// while no operation stands.
pub fn make_current(tree: &Tree, digest: &str) -> Result<(), PathError> {
    let failed = |error| PathError::io(CURRENT_PATH, error);
    let bin = tree.folder_made(FOLDER)?;
    let is_current = current(tree)?.is_some_and(|current| current == digest);
    let made = || {
        if !is_current {
            let next = format!("{CURRENT}.next");
            bin.remove_own(&next)?;
            bin.symlink(&next, digest)?;
            bin.replace_own(&next, CURRENT)?;
            bin.sync()?;
        }
        for name in bin.names()?.iter().filter(|name| is_digest(name) && *name != digest) {
            // What somebody else put there stays.
            let _ = remove(&bin, name);
        }
        Ok(())
    };
    made().map_err(failed)
}

fn remove(bin: &Folder, name: &str) -> io::Result<()> {
    let old = bin.folder(name)?;
    old.names()?.iter().try_for_each(|name| old.remove(name))?;
    bin.remove_folder(name)
}

fn is_digest(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn an_executable_stands_under_its_digest_and_one_of_them_is_current() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        assert_eq!(current(&tree).unwrap(), None);
        let one = install(&tree, b"one").unwrap();
        make_current(&tree, &one).unwrap();
        let two = install(&tree, b"two").unwrap();
        let at = |path: &str| dir.path().join(path.trim_start_matches('/'));
        assert_eq!(std::fs::read(at(CURRENT_PATH)).unwrap(), b"one");
        assert_eq!(
            std::fs::metadata(at(CURRENT_PATH)).unwrap().permissions().mode() & 0o777,
            0o755
        );
        make_current(&tree, &two).unwrap();
        assert_eq!(std::fs::read(at(CURRENT_PATH)).unwrap(), b"two");
        assert!(!at(&path_of(&one)).exists(), "the old one is gone");
        assert_eq!(current(&tree).unwrap(), Some(two));
    }

    #[test]
    fn what_stands_in_the_place_of_an_executable_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        let bin = dir.path().join(FOLDER.trim_start_matches('/'));
        let digest = Digest::of(b"whole").hex();
        type InTheWay = fn(&std::path::Path, &str);
        let all: [InTheWay; 3] = [
            |bin, digest| std::fs::create_dir_all(bin.join(digest).join("tread/x")).unwrap(),
            |bin, digest| {
                std::fs::remove_dir_all(bin.join(digest)).unwrap();
                std::fs::write(bin.join(digest), "a file").unwrap();
            },
            |bin, _| {
                std::fs::remove_file(bin.join("current")).unwrap();
                std::fs::create_dir_all(bin.join("current/tread")).unwrap();
            },
        ];
        for in_the_way in all {
            in_the_way(&bin, &digest);
            assert_eq!(install(&tree, b"whole").unwrap(), digest);
            make_current(&tree, &digest).unwrap();
            let at = dir.path().join(CURRENT_PATH.trim_start_matches('/'));
            assert_eq!(std::fs::read(at).unwrap(), b"whole");
        }
        assert!(bin.join("current.aside/tread").is_dir());
    }

    #[test]
    fn an_executable_that_was_spoilt_is_put_there_again() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        let digest = install(&tree, b"whole").unwrap();
        let at = dir.path().join(path_of(&digest).trim_start_matches('/'));
        std::fs::write(&at, "spoilt").unwrap();
        assert_eq!(install(&tree, b"whole").unwrap(), digest);
        assert_eq!(std::fs::read(&at).unwrap(), b"whole");
    }
}
