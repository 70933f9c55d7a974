//! From bytes to files: whole, or not at all.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;
use tempfile::{Builder, NamedTempFile};

/// Writes a file. Whoever reads it finds all of the bytes, or what was there
/// before: also where the disk is full, several write at once, or this process
/// is killed.
///
/// A link stays one, and what it leads to is written; a device or a pipe takes
/// the bytes as they come.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (target, before) = match fs::canonicalize(path) {
        Ok(target) => {
            let before = fs::metadata(&target)?;
            (target, Some(before))
        }
        // A link that leads nowhere yet.
        Err(_) if path.is_symlink() => return fs::write(path, bytes),
        Err(_) => (path.to_owned(), None),
    };
    if before.as_ref().is_some_and(|it| !it.is_file()) {
        return fs::write(&target, bytes);
    }
    let directory = match target.parent() {
        Some(parent) if parent.as_os_str() != "" => parent,
        _ => Path::new("."),
    };
    match aside(directory) {
        Ok(file) => replace(file, &target, before.as_ref(), bytes),
        // There may be a right to write the file, and none to make another.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => fs::write(&target, bytes),
        Err(error) => Err(error),
    }
}

/// Whether two paths lead to one file, by links of either kind too.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| fs::metadata(path).map(|it| (it.dev(), it.ino())).ok();
    file(one).is_some_and(|one| file(other) == Some(one))
}

/// A file of its own in a directory, open to others as any new file is.
fn aside(directory: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".tread-").permissions(Permissions::from_mode(0o666));
    // The name of the directory would stand in the error twice.
    builder.tempfile_in(directory).map_err(|error| error.kind().into())
}

fn replace(
    mut file: NamedTempFile,
    target: &Path,
    before: Option<&Metadata>,
    bytes: &[u8],
) -> io::Result<()> {
    file.write_all(bytes)?;
    if let Some(before) = before {
        keep_owner(file.as_file(), before);
        file.as_file().set_permissions(before.permissions())?;
    }
    file.persist(target).map_err(|error| error.error)?;
    Ok(())
}

/// Only root can give a file away.
fn keep_owner(file: &File, before: &Metadata) {
    if let Err(error) = fchown(file, Some(before.uid()), Some(before.gid())) {
        tracing::debug!("the owner of a file is not kept: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_reader_finds_the_old_bytes_or_the_new_ones_and_nothing_is_left_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        write(&path, b"old").unwrap();
        let mut reader = File::open(&path).unwrap();
        write(&path, b"new").unwrap();
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!((read.as_str(), fs::read(&path).unwrap().as_slice()), ("old", &b"new"[..]));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_and_modes_stay_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        let dangling = dir.path().join("dangling");
        symlink("later", &dangling).unwrap();
        write(&dangling, b"new").unwrap();
        assert_eq!(fs::read(dir.path().join("later")).unwrap(), b"new");
    }

    #[test]
    fn a_new_file_has_the_mode_that_any_new_file_has() {
        let dir = tempfile::tempdir().unwrap();
        let (usual, new) = (dir.path().join("usual"), dir.path().join("new"));
        fs::write(&usual, "").unwrap();
        write(&new, b"").unwrap();
        let mode = |path| fs::metadata(path).unwrap().mode();
        assert_eq!(mode(&usual), mode(&new));
    }

    #[test]
    fn what_cannot_be_written_is_an_error_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(write(dir.path(), b"x").is_err(), "a directory");
        assert!(write(&dir.path().join("none/a"), b"x").is_err());
        assert!(write(Path::new("/dev/full"), b"x").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
