//! Compiled components on disk.
//!
//! An entry is trusted as far as its directory: one that belongs to this user
//! and that nobody else can read or write. A digest in each entry finds what
//! was cut short or has decayed. Whatever is wrong with the cache, it is as if
//! it were empty.

use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tread_model::digest::{Contents, Digest, Fields, Sha256};

/// Entries that are kept; the oldest go first.
const MOST_ENTRIES: usize = 256;

/// Bytes of entries that are kept; the oldest go first. The service has an `emptyDir` of 1 GiB for
/// them, and a pod that takes more is evicted.
pub const MOST_BYTES: u64 = 512 << 20;

/// No compiled policy is larger.
const LARGEST: u64 = 256 << 20;

const DIGEST_BYTES: usize = 32;

/// A directory of compiled components.
#[derive(Debug)]
pub(crate) struct Cache(OwnedFd);

impl Cache {
    /// Opens the directory, and makes it if need be. None if it is not only
    /// this user's.
    pub(crate) fn open(path: &Path) -> Option<Cache> {
        match Cache::try_open(path) {
            Ok(cache) => Some(cache),
            Err(problem) => {
                tracing::warn!(
                    "policies are compiled anew each time: the cache {} {problem}",
                    path.display()
                );
                None
            }
        }
    }

    fn try_open(path: &Path) -> Result<Cache, String> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| format!("cannot be made: {error}"))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let cannot = |error: Errno| format!("cannot be opened: {error}");
        let dir = rustix::fs::open(path, flags, Mode::empty()).map_err(cannot)?;
        let stat = rustix::fs::fstat(&dir).map_err(cannot)?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err("belongs to another user: choose another directory".to_owned());
        }
        if stat.st_mode & 0o077 != 0 {
            return Err(format!(
                "is open to other users (mode {:o}): run chmod 700 on it",
                stat.st_mode & 0o777
            ));
        }
        Ok(Cache(dir))
    }

    /// What was written for this component under this key.
    pub(crate) fn read(&self, component: &Sha256, key: &Digest) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, name(component, key), flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        let size = u64::try_from(stat.st_size).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || size > LARGEST {
            return None;
        }
        let mut entry = Vec::with_capacity(usize::try_from(size).ok()? + 1);
        File::from(file).take(LARGEST).read_to_end(&mut entry).ok()?;
        let body = entry.len().checked_sub(DIGEST_BYTES)?;
        let (compiled, digest) = entry.split_at_checked(body)?;
        if digest != seal(component, key, compiled).0 {
            return None;
        }
        entry.truncate(body);
        Some(entry)
    }

    /// Whether something was written for this component under this key.
    pub(crate) fn has(&self, component: &Sha256, key: &Digest) -> bool {
        rustix::fs::accessat(&self.0, name(component, key), Access::EXISTS, AtFlags::empty())
            .is_ok()
    }

    /// Keeps what was compiled. A reader sees all of it or nothing.
    pub(crate) fn write(&self, component: &Sha256, key: &Digest, compiled: &[u8]) {
        let digest = seal(component, key, compiled);
        if let Err(error) = self.try_write(&name(component, key), &[compiled, &digest.0]) {
            tracing::debug!("a compiled policy is not kept: {error}");
        }
    }

    fn try_write(&self, name: &str, parts: &[&[u8]]) -> std::io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        self.prune(bytes, MOST_BYTES);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let making = format!("{name}.{}.{count}", std::process::id());
        // A file of this name was left behind by another process that had the same id.
        let _ = rustix::fs::unlinkat(&self.0, &making, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file =
            File::from(rustix::fs::openat(&self.0, &making, flags, Mode::RUSR | Mode::WUSR)?);
        let written = parts
            .iter()
            .try_for_each(|part| file.write_all(part))
            .and_then(|()| Ok(rustix::fs::renameat(&self.0, &making, &self.0, name)?));
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.0, &making, AtFlags::empty());
        }
        written
    }

    /// Makes room for one more entry of so many bytes. Only what tread wrote counts and goes;
    /// what cannot be removed stays.
    fn prune(&self, bytes: u64, most: u64) {
        let Ok(dir) = Dir::read_from(&self.0) else { return };
        let mut entries = Vec::new();
        for entry in dir.flatten() {
            let name = entry.file_name().to_owned();
            if !is_entry(name.to_bytes()) {
                continue;
            }
            match rustix::fs::statat(&self.0, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                    let size = u64::try_from(stat.st_size).unwrap_or_default();
                    entries.push(((stat.st_mtime, stat.st_mtime_nsec), name, size));
                }
                _ => {}
            }
        }
        entries.sort();
        let mut count = entries.len() + 1;
        let mut taken = entries.iter().map(|(_, _, size)| size).sum::<u64>().saturating_add(bytes);
        for (_, name, size) in &entries {
            if count <= MOST_ENTRIES && taken <= most {
                return;
            }
            let _ = rustix::fs::unlinkat(&self.0, name, AtFlags::empty());
            count -= 1;
            taken = taken.saturating_sub(*size);
        }
    }
}

const PREFIX: &str = "policy-";

/// Whether a file has a name that [`name`] gives, or that such a file has while
/// it is written.
fn is_entry(name: &[u8]) -> bool {
    let digest = name.strip_prefix(PREFIX.as_bytes()).and_then(|rest| rest.get(..65));
    digest.and_then(<[u8]>::split_last).is_some_and(|(dash, digest)| {
        *dash == b'-' && digest.iter().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn name(component: &Sha256, key: &Digest) -> String {
    format!("{PREFIX}{}-{}", component.hex(), key.short())
}

/// A digest that binds compiled code to the component, and to the version and settings
/// that it was compiled for.
fn seal(component: &Sha256, key: &Digest, compiled: &[u8]) -> Digest {
    let mut seal = Fields::new("tread cache 2");
    seal.digest(component);
    seal.digest(key);
    seal.contents(&Contents::of(compiled));
    seal.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn digests() -> (Sha256, Digest) {
        (Sha256::of(b"component"), Digest::of(b"key"))
    }

    #[test]
    fn what_was_written_is_read_for_the_same_component_and_key_only() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(&dir.path().join("a/b")).unwrap();
        let (component, key) = digests();
        cache.write(&component, &key, b"code");
        assert_eq!(cache.read(&component, &key).as_deref(), Some(&b"code"[..]));
        assert_eq!(cache.read(&Sha256::of(b"other"), &key), None);
        assert_eq!(cache.read(&component, &Digest::of(b"other")), None);
    }

    #[test]
    fn the_oldest_entries_go_where_all_together_are_too_large() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(&dir.path().join("c")).unwrap();
        let key = Digest::of(b"key");
        let all = ["a", "b", "c"].map(|name| Sha256::of(name.as_bytes()));
        let time = |second| std::time::UNIX_EPOCH + std::time::Duration::from_secs(second);
        for (component, (age, size)) in all.iter().zip([(1, 100), (2, 2000), (3, 3000)]) {
            cache.write(component, &key, &vec![0; size]);
            let path = dir.path().join("c").join(name(component, &key));
            File::options().write(true).open(path).unwrap().set_modified(time(age)).unwrap();
        }
        let kept = || all.each_ref().map(|component| cache.has(component, &key));
        cache.prune(1000, 10_000);
        assert_eq!(kept(), [true, true, true]);
        cache.prune(1000, 5000);
        assert_eq!(kept(), [false, false, true]);
        cache.prune(MOST_BYTES, MOST_BYTES);
        assert_eq!(kept(), [false, false, false]);
    }

    #[test]
    fn an_entry_with_any_byte_changed_or_missing_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(&dir.path().join("c")).unwrap();
        let (component, key) = digests();
        cache.write(&component, &key, b"code");
        let path = dir.path().join("c").join(name(&component, &key));
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert_eq!(cache.read(&component, &key), None, "byte {at} changed");
            std::fs::write(&path, &good[..at]).unwrap();
            assert_eq!(cache.read(&component, &key), None, "cut at {at}");
        }
        std::fs::write(&path, &good).unwrap();
        assert!(cache.read(&component, &key).is_some());
    }

    #[test]
    fn an_entry_under_another_name_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(&dir.path().join("c")).unwrap();
        let (component, key) = digests();
        cache.write(&component, &key, b"code");
        let other = Sha256::of(b"other");
        let path = |component| dir.path().join("c").join(name(component, &key));
        std::fs::rename(path(&component), path(&other)).unwrap();
        assert_eq!(cache.read(&other, &key), None);
    }

    #[test]
    fn a_link_a_directory_or_a_pipe_is_no_entry() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(&dir.path().join("c")).unwrap();
        let (component, key) = digests();
        cache.write(&component, &key, b"code");
        let path = dir.path().join("c").join(name(&component, &key));
        let elsewhere = dir.path().join("elsewhere");
        std::fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert_eq!(cache.read(&component, &key), None, "a link");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(cache.read(&component, &key), None, "a directory");
        std::fs::remove_dir(&path).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, mode, 0).unwrap();
        assert_eq!(cache.read(&component, &key), None, "a pipe");
        // An entry that is written replaces what is in its place.
        cache.write(&component, &key, b"code");
        assert!(cache.read(&component, &key).is_some());
    }

    #[test]
    fn a_directory_that_others_can_enter_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        for (mode, used) in [(0o700, true), (0o750, false), (0o701, false), (0o777, false)] {
            let path = dir.path().join(format!("{mode:o}"));
            std::fs::create_dir(&path).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Cache::open(&path).is_some(), used, "{mode:o}");
        }
        let link = dir.path().join("link");
        symlink(dir.path().join("700"), &link).unwrap();
        assert!(Cache::open(&link).is_none(), "a link");
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(Cache::open(&file).is_none(), "a file");
    }

    #[test]
    fn what_others_put_there_under_such_names_neither_harms_nor_is_harmed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c");
        let cache = Cache::open(&path).unwrap();
        let (component, key) = digests();
        let odd = |n: usize| name(&Sha256::of(&n.to_le_bytes()), &key);
        for n in 0..MOST_ENTRIES + 50 {
            std::fs::create_dir(path.join(format!("policy-{n}"))).unwrap();
            std::fs::create_dir(path.join(odd(n))).unwrap();
            std::fs::write(path.join(format!("policy-{n}.md")), "mine").unwrap();
        }
        let before = std::fs::read_dir(&path).unwrap().count();
        cache.write(&component, &key, b"code");
        assert_eq!(cache.read(&component, &key).as_deref(), Some(&b"code"[..]));
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), before + 1);
        // What stands in the very place of an entry stays there too.
        let taken = Sha256::of(&7usize.to_le_bytes());
        cache.write(&taken, &key, b"code");
        assert_eq!(cache.read(&taken, &key), None);
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), before + 1);
    }

    #[test]
    fn old_entries_make_room_and_foreign_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(&dir.path().join("c")).unwrap();
        std::fs::write(dir.path().join("c/README"), "mine").unwrap();
        let key = Digest::of(b"key");
        for n in 0..MOST_ENTRIES + 10 {
            cache.write(&Sha256::of(&n.to_le_bytes()), &key, b"code");
        }
        let left = std::fs::read_dir(dir.path().join("c")).unwrap().count();
        assert_eq!(left, MOST_ENTRIES + 1);
        assert!(dir.path().join("c/README").exists());
    }
}
