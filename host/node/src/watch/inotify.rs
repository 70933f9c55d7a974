//! Who is told by the kernel what changes in a folder.

use super::timer::waited_on;
use crate::tree::Folder;
use rustix::fs::inotify::{
    CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch,
};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use tokio::net::unix::pipe::Receiver;

/// A watch of one folder.
pub(super) type Number = i32;

/// Names that come, go, become another, or get another owner: a link among the folders is
/// followed only if root owns it.
const NAMES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::MASK_ADD);
/// And what is in them.
const CONTENTS: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::CLOSE_WRITE);

/// One thing that was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// Something about a name in a folder.
    Name(Number, Vec<u8>),
    /// The folder is watched no more: it is gone, or its file system is.
    Gone(Number),
    /// More happened than the kernel remembers.
    Overflow,
}

pub(super) struct Inotify {
    fd: OwnedFd,
}

impl Inotify {
    pub(super) fn new() -> io::Result<Inotify> {
        Ok(Inotify { fd: init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)? })
    }

    /// To wait on.
    pub(super) fn waiting(&self) -> io::Result<Receiver> {
        waited_on(self.fd.try_clone()?)
    }

    /// Watches a folder, by what is open: nobody can put another one in its place.
    pub(super) fn watch(&self, folder: &Folder, contents: bool) -> io::Result<Number> {
        let at = format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd());
        let flags = if contents { NAMES | CONTENTS } else { NAMES };
        Ok(add_watch(&self.fd, at, flags)?)
    }

    pub(super) fn forget(&self, number: Number) {
        // One whose folder is gone is forgotten already.
        let _ = remove_watch(&self.fd, number);
    }

    /// All that was heard since the last time.
    pub(super) fn read(&self, mut heard: impl FnMut(Event)) -> io::Result<()> {
        let mut room = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = Reader::new(&self.fd, &mut room);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let flags = event.events();
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                heard(Event::Overflow);
            } else if flags.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT) {
                heard(Event::Gone(event.wd()));
            } else if let Some(name) = event.file_name() {
                heard(Event::Name(event.wd(), name.to_bytes().to_vec()));
            }
        }
    }
}
