//! The least that has to be done: the same bytes, read or written plainly.

use crate::Part;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Reads files, and what they are.
pub(crate) fn read(paths: &[PathBuf]) {
    for path in paths {
        black_box(path.symlink_metadata().unwrap());
        black_box(fs::read(path).unwrap());
    }
}

/// A folder to write into.
pub(crate) struct Floor(tempfile::TempDir);

impl Floor {
    pub(crate) fn new(disk: &Path) -> Floor {
        Floor(tempfile::tempdir_in(disk).unwrap())
    }

    /// Writes each file beside its name, syncs it and gives it its name; then the folders.
    pub(crate) fn write(&self, texts: &[(String, String)]) -> Part {
        let (began, mut synced, mut syncs) = (Instant::now(), Duration::ZERO, 0);
        let mut sync = |file: File| {
            let began = Instant::now();
            file.sync_all().unwrap();
            synced += began.elapsed();
            syncs += 1;
        };
        let mut folders: Vec<PathBuf> = Vec::new();
        for (path, text) in texts {
            let path = self.0.path().join(path.trim_start_matches('/'));
            let folder = path.parent().unwrap().to_owned();
            if folders.last() != Some(&folder) {
                fs::create_dir_all(&folder).unwrap();
                folders.push(folder);
            }
            let beside = path.with_extension("next");
            let mut file = File::create(&beside).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            sync(file);
            fs::rename(&beside, &path).unwrap();
        }
        for folder in folders {
            sync(File::open(folder).unwrap());
        }
        let took = began.elapsed();
        Part { own: took.saturating_sub(synced), synced, syncs }
    }
}

/// What is known of a disk: the name of its file system, else its number.
pub(crate) fn file_system(disk: &Path) -> String {
    let number = rustix::fs::statfs(disk).unwrap().f_type;
    match number {
        0xef53 => "ext4".to_owned(),
        0x5846_5342 => "xfs".to_owned(),
        0x9123_683e => "btrfs".to_owned(),
        0x0102_1994 => "tmpfs, where a sync does nothing".to_owned(),
        0x794c_7630 => "overlay".to_owned(),
        other => format!("file system {other:#x}"),
    }
}
