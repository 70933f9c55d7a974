//! The lock on the files of users: glibc's lckpwdf, shadow-utils and systemd take it too.

use crate::tree::Tree;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

const FOLDER: &str = "/etc";
const NAME: &str = ".pwd.lock";
/// As long as lckpwdf waits.
const PATIENCE: Duration = Duration::from_secs(15);
/// A wait cannot be cut short without signals, so it is asked again.
const AGAIN: Duration = Duration::from_millis(50);

/// Nobody else changes /etc/shadow while it lives.
#[must_use]
pub struct Lock(#[expect(dead_code, reason = "the lock lives as long as the file is open")] File);

impl Lock {
    /// Waits for it.
    pub fn take(tree: &Tree) -> io::Result<Lock> {
        Lock::take_within(tree, PATIENCE)
    }

    pub(super) fn take_within(tree: &Tree, patience: Duration) -> io::Result<Lock> {
        let folder = tree.folder(FOLDER).map_err(io::Error::other)?;
        let folder = folder.ok_or(io::ErrorKind::NotFound)?;
        // Without NONBLOCK a FIFO in its place would be waited for.
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::CLOEXEC
            | OFlags::NOCTTY
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&folder, NAME, flags, Mode::RUSR | Mode::WUSR)?;
        let deadline = Instant::now() + patience;
        loop {
            match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock(file.into())),
                Err(Errno::AGAIN | Errno::ACCESS) if Instant::now() < deadline => {
                    std::thread::sleep(AGAIN);
                }
                Err(Errno::AGAIN | Errno::ACCESS) => {
                    return Err(io::Error::other(format!(
                        "somebody else changes users for more than {} seconds \
                         ({FOLDER}/{NAME} is locked); wait until that is done, or end it",
                        patience.as_secs()
                    )));
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
