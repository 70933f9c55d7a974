//! Waits until something has to be looked at, and is woken as rarely as that allows.

use super::inotify::Inotify;
use super::timer::{readable_before, wait_until};
use super::ways::{Touched, Ways};
use crate::tree::Tree;
use rustix::io::Errno;
use std::io;
use std::time::{Duration, Instant};

/// How often it is looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long whoever changes something has to get done with it.
    pub settle: Duration,
    /// What happens sooner after the last time is looked at together.
    pub apart: Duration,
    /// After so long everything is looked at, whatever was heard.
    pub full: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            settle: Duration::from_millis(500),
            apart: Duration::from_secs(60),
            full: Duration::from_secs(3600),
        }
    }
}

pub(super) struct Listener {
    inotify: io::Result<Inotify>,
    ways: Ways,
    pace: Pace,
    /// When it was woken last.
    woken: Option<Instant>,
    /// When everything is looked at.
    full: Instant,
    deaf: Option<String>,
}

impl Listener {
    pub(super) fn new<'p>(paths: impl Iterator<Item = &'p str>, pace: Pace) -> Listener {
        let (inotify, ways) = (Inotify::new(), Ways::to(paths));
        let full = Instant::now() + pace.full;
        Listener { inotify, ways, pace, woken: None, full, deaf: None }
    }

    /// Watches all ways, as they are now.
    pub(super) fn watch(&mut self, tree: &Tree) {
        self.deaf = match &self.inotify {
            Ok(inotify) => self.ways.watch(tree, inotify).err().as_ref().map(why_deaf),
            Err(error) => Some(why_deaf(error)),
        };
    }

    /// Why changes are found by full checks only, if that is so.
    pub(super) fn deaf(&self) -> Option<&str> {
        self.deaf.as_deref()
    }

    /// Waits until something was touched, or everything is to be looked at.
    pub(super) async fn heard(&mut self) -> Touched {
        loop {
            if let Some(woken) = self.woken {
                // In this time nobody is told anything: events wait in the kernel.
                wait_until((woken + self.pace.apart).min(self.full)).await;
            }
            let readable = self.readable().await;
            self.woken = Some(Instant::now());
            if !readable || Instant::now() >= self.full {
                return self.everything();
            }
            let mut touched = self.read();
            if !touched.is_nothing() {
                wait_until(Instant::now() + self.pace.settle).await;
                let more = self.read();
                touched.all |= more.all;
                touched.ways |= more.ways;
                touched.paths.extend(more.paths);
                return match touched.all {
                    true => self.everything(),
                    false => touched,
                };
            }
        }
    }

    /// Waits until there is something to read; false when it is time to look at everything.
    async fn readable(&self) -> bool {
        // Only while somebody waits: else each event would wake the process.
        let waiting = match &self.inotify {
            Ok(inotify) => inotify.waiting(),
            Err(_) => Err(io::ErrorKind::NotConnected.into()),
        };
        readable_before(self.full, waiting).await
    }

    fn everything(&mut self) -> Touched {
        self.full = Instant::now() + self.pace.full;
        // What was heard until now is looked at with it.
        self.read();
        Touched { all: true, ways: true, ..Touched::default() }
    }

    fn read(&mut self) -> Touched {
        let mut touched = Touched::default();
        if let Ok(inotify) = &self.inotify {
            let ways = &mut self.ways;
            if inotify.read(|event| ways.touched(&event, &mut touched)).is_err() {
                (touched.all, touched.ways) = (true, true);
            }
        }
        touched
    }

    #[cfg(test)]
    pub(super) fn watched(&self) -> usize {
        self.ways.watched()
    }
}

fn why_deaf(error: &io::Error) -> String {
    let of = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    let limit = match () {
        () if of(Errno::NOSPC) => "fs.inotify.max_user_watches",
        () if of(Errno::MFILE) => "fs.inotify.max_user_instances",
        () => return format!("not every folder can be watched: {error}"),
    };
    format!("the kernel lets root watch no more folders; raise {limit}")
}
