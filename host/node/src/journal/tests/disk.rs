//! A tree to try things on, and who looks at what is done to it.

use crate::tree::{Syscall, Tree, Witness};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What stands where: `644 0 text`, `-> target`, `755 0 /`.
pub(super) type Snapshot = BTreeMap<String, String>;

pub(super) struct Bed(tempfile::TempDir);

impl Bed {
    pub(super) fn new() -> Bed {
        // In memory where there is such a place: thousands of trees are made and synced.
        let memory = Path::new("/dev/shm");
        let at = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Bed(tempfile::tempdir_in(at).unwrap())
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    pub(super) fn tree(&self) -> Tree {
        Tree::open(self.0.path()).unwrap()
    }

    pub(super) fn witnessed(&self, witness: Arc<dyn Witness>) -> Tree {
        Tree::witnessed(self.0.path(), witness).unwrap()
    }

    pub(super) fn folder(&self, path: &str) {
        std::fs::create_dir_all(self.path(path)).unwrap();
    }

    pub(super) fn file(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        std::fs::write(self.path(path), text).unwrap();
    }

    pub(super) fn link(&self, path: &str, target: &str) {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        symlink(target, self.path(path)).unwrap();
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok()
    }

    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).unwrap();
        let mut names: Vec<String> =
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Everything but what tread keeps for itself.
    pub(super) fn snapshot(&self) -> Snapshot {
        let mut found = Snapshot::new();
        look(self.0.path(), self.0.path(), &mut found);
        found.retain(|path, _| !path.starts_with(super::STATE));
        found
    }
}

fn look(root: &Path, at: &Path, found: &mut Snapshot) {
    for entry in std::fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        let stat = path.symlink_metadata().unwrap();
        let owned = format!("{:o} {}", stat.mode() & 0o7777, stat.uid());
        let says = if stat.is_symlink() {
            format!("-> {}", path.read_link().unwrap().display())
        } else if stat.is_dir() {
            look(root, &path, found);
            format!("{owned} /")
        } else {
            format!("{owned} {}", String::from_utf8_lossy(&std::fs::read(&path).unwrap()))
        };
        let name = format!("/{}", path.strip_prefix(root).unwrap().display());
        found.insert(name, says);
    }
}

/// What differs from both states.
pub(super) fn difference(old: &Snapshot, new: &Snapshot, found: &Snapshot) -> String {
    let of = |state: &Snapshot| -> Vec<String> {
        let all = state.keys().chain(found.keys());
        let mut differs: Vec<String> = all
            .filter(|path| state.get(*path) != found.get(*path))
            .map(|path| format!("{path}: {:?} for {:?}", found.get(path), state.get(path)))
            .collect();
        differs.dedup();
        differs
    };
    format!("from the old state {:#?}, from the new one {:#?}", of(old), of(new))
}

/// Puts something of their own under a name at one moment, as others do: whole, by a
/// rename.
pub(super) struct Meddler {
    seen: AtomicUsize,
    path: PathBuf,
    /// What is put there at which moment.
    texts: Vec<(usize, &'static str)>,
    /// When the process is killed, if it is.
    killed: usize,
}

impl Meddler {
    pub(super) fn at(at: usize, path: PathBuf, text: &'static str) -> Arc<Meddler> {
        Meddler::killed_at(usize::MAX, path, vec![(at, text)])
    }

    /// The same with several texts, and the process is killed at a moment.
    pub(super) fn killed_at(
        killed: usize,
        path: PathBuf,
        texts: Vec<(usize, &'static str)>,
    ) -> Arc<Meddler> {
        Arc::new(Meddler { seen: AtomicUsize::new(0), path, texts, killed })
    }

    fn step(&self) -> io::Result<()> {
        let now = self.seen.fetch_add(1, Ordering::SeqCst);
        if now >= self.killed {
            return Err(io::Error::other("killed"));
        }
        for (_, text) in self.texts.iter().filter(|(at, _)| *at == now) {
            let other = self.path.with_extension("other");
            std::fs::write(&other, text).unwrap();
            std::fs::rename(&other, &self.path).unwrap();
        }
        Ok(())
    }
}

impl Witness for Meddler {
    fn before(&self, _: &Syscall<'_>) -> io::Result<()> {
        self.step()
    }

    fn after(&self, _: &Syscall<'_>) -> io::Result<()> {
        self.step()
    }
}

/// One change of the disk, as it can be done again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Recorded {
    Create(String, Vec<u8>),
    Append(String, Vec<u8>),
    Sync(String),
    SyncFolder(String),
    Link(String, String),
    Exchange(String, String),
    Move(String, String),
    Symlink(String, String),
    Remove(String),
    MakeFolder(String),
    RemoveFolder(String),
}

/// Writes down all that is done.
#[derive(Default)]
pub(super) struct Recorder(Mutex<Vec<Recorded>>);

impl Recorder {
    pub(super) fn all(&self) -> Vec<Recorded> {
        self.0.lock().unwrap().clone()
    }

    pub(super) fn syncs(&self) -> usize {
        let is_sync = |it: &&Recorded| matches!(it, Recorded::Sync(_) | Recorded::SyncFolder(_));
        self.all().iter().filter(is_sync).count()
    }
}

impl Witness for Recorder {
    fn before(&self, _: &Syscall<'_>) -> io::Result<()> {
        Ok(())
    }

    fn after(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        let own = |text: &str| text.to_owned();
        let recorded = match *syscall {
            Syscall::Create { path, bytes } => Recorded::Create(own(path), bytes.to_vec()),
            Syscall::Append { path, bytes } => Recorded::Append(own(path), bytes.to_vec()),
            Syscall::Sync { path } => Recorded::Sync(own(path)),
            Syscall::SyncFolder { path } => Recorded::SyncFolder(own(path)),
            Syscall::Link { from, to } => Recorded::Link(own(from), own(to)),
            Syscall::Exchange { one, other } => Recorded::Exchange(own(one), own(other)),
            Syscall::Rename { from, to } | Syscall::Replace { from, to } => {
                Recorded::Move(own(from), own(to))
            }
            Syscall::Symlink { path, target } => Recorded::Symlink(own(path), own(target)),
            Syscall::Remove { path } => Recorded::Remove(own(path)),
            Syscall::MakeFolder { path } => Recorded::MakeFolder(own(path)),
            Syscall::RemoveFolder { path } => Recorded::RemoveFolder(own(path)),
            Syscall::Give { .. } | Syscall::Label { .. } | Syscall::Cut { .. } => return Ok(()),
        };
        self.0.lock().unwrap().push(recorded);
        Ok(())
    }
}
