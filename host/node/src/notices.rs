//! That something in a folder changed, as the kernel says it: nobody asks again and again.

use crate::tree::Folder;
use futures::{FutureExt as _, StreamExt as _};
use inotify::{EventStream, Inotify, WatchMask};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

/// What changes the names in a folder, or completes what one of them holds.
const CHANGES: WatchMask = WatchMask::MOVE
    .union(WatchMask::CREATE)
    .union(WatchMask::DELETE)
    .union(WatchMask::CLOSE_WRITE)
    .union(WatchMask::DELETE_SELF)
    .union(WatchMask::MOVE_SELF)
    .union(WatchMask::ONLYDIR);

/// Notices of changes in some folders.
pub struct Notices {
    events: EventStream<Vec<u8>>,
}

impl Notices {
    /// Of these folders, from now on.
    pub fn of(folders: &[&Folder]) -> io::Result<Notices> {
        let inotify = Inotify::init()?;
        for folder in folders {
            // The folder that is open, whatever stands under its name by now.
            let path = format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd());
            inotify.watches().add(path, CHANGES)?;
        }
        Ok(Notices { events: inotify.into_event_stream(vec![0; 4096])? })
    }

    /// Waits until something changed since the last time; all that changed is one notice.
    pub async fn next(&mut self) -> io::Result<()> {
        let ended = || io::Error::other("the kernel gives no notices any more");
        self.events.next().await.ok_or_else(ended)??;
        while let Some(Some(more)) = self.events.next().now_or_never() {
            more?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::tree::Tree;

    #[tokio::test]
    async fn a_name_that_is_put_into_a_folder_is_noticed_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        let folder = Tree::open(dir.path()).unwrap().folder("/a").unwrap().unwrap();
        let mut notices = Notices::of(&[&folder]).unwrap();
        std::fs::write(dir.path().join("a/b"), "1").unwrap();
        std::fs::rename(dir.path().join("a/b"), dir.path().join("a/c")).unwrap();
        notices.next().await.unwrap();
        let none = tokio::time::timeout(std::time::Duration::from_millis(50), notices.next());
        assert!(none.await.is_err(), "nothing changed since");
    }
}
