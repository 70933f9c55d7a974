//! That something in a folder changed, as the kernel says it: nobody asks again and again.

use crate::tree::Folder;
use futures::{FutureExt as _, StreamExt as _};
use inotify::{EventStream, Inotify, WatchMask};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Once;
use std::time::Duration;

/// What changes the names in a folder, or completes what one of them holds.
const CHANGES: WatchMask = WatchMask::MOVE
    .union(WatchMask::CREATE)
    .union(WatchMask::DELETE)
    .union(WatchMask::CLOSE_WRITE)
    .union(WatchMask::DELETE_SELF)
    .union(WatchMask::MOVE_SELF)
    .union(WatchMask::ONLYDIR);

/// How often it is looked again where the kernel gives no notices.
const AGAIN: Duration = Duration::from_secs(2);

/// Whether it was logged already that the kernel gives no more notices: once for each process.
static TOLD: Once = Once::new();

/// Notices of changes in some folders.
pub struct Notices {
    /// Nothing if the kernel gives this user no more of them: then each [`AGAIN`] counts as a notice.
    events: Option<EventStream<Vec<u8>>>,
}

impl Notices {
    /// Of these folders, from now on.
    pub fn of(folders: &[&Folder]) -> io::Result<Notices> {
        match heard(folders) {
            Ok(events) => Ok(Notices { events: Some(events) }),
            Err(error) if has_no_more(&error) => {
                TOLD.call_once(|| {
                    tracing::warn!(%error, "the kernel gives no more notices: it is looked every {AGAIN:?}");
                });
                Ok(Notices { events: None })
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until something changed since the last time; all that changed is one notice.
    pub async fn next(&mut self) -> io::Result<()> {
        let Some(events) = &mut self.events else {
            tokio::time::sleep(AGAIN).await;
            return Ok(());
        };
        let ended = || io::Error::other("the kernel gives no notices any more");
        events.next().await.ok_or_else(ended)??;
        while let Some(Some(more)) = events.next().now_or_never() {
            more?;
        }
        Ok(())
    }
}

fn heard(folders: &[&Folder]) -> io::Result<EventStream<Vec<u8>>> {
    let inotify = Inotify::init()?;
    for folder in folders {
        // The folder that is open, whatever stands under its name by now.
        let path = format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd());
        inotify.watches().add(path, CHANGES)?;
    }
    inotify.into_event_stream(vec![0; 4096])
}

/// Whether there are as many instances or watches as the kernel gives to one user.
fn has_no_more(error: &io::Error) -> bool {
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    is(Errno::MFILE) || is(Errno::NOSPC)
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

    #[tokio::test]
    async fn where_the_kernel_gives_no_more_notices_it_is_looked_now_and_then() {
        assert!(has_no_more(&Errno::MFILE.into()) && has_no_more(&Errno::NOSPC.into()));
        assert!(!has_no_more(&Errno::NOENT.into()));
        let begun = std::time::Instant::now();
        Notices { events: None }.next().await.unwrap();
        assert!(begun.elapsed() >= AGAIN);
    }
}
