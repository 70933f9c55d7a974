//! Why the journal stops.

use super::names::{LOCK, LOG, OPERATION, STATE};
use crate::shadow::ShadowError;
use crate::tree::PathError;
use std::io;

/// Why the journal stopped.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Somebody else is at it.
    #[error(
        "another tread changes this node right now ({STATE}/{LOCK} is locked); wait until it is done"
    )]
    Busy,
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A user's line in /etc/shadow cannot be relied on.
    #[error(transparent)]
    Shadow(#[from] ShadowError),
    /// What is there is neither what was there before nor what tread put there.
    #[error(
        "{path} was changed by somebody else meanwhile, and is left as it is; look at what changes it, then start again"
    )]
    Changed {
        /// The path.
        path: String,
    },
    /// No file system takes such a name.
    #[error(
        "{path}: one of its names is longer than 255 bytes, and no file system takes that; correct the config"
    )]
    TooLong {
        /// The path.
        path: String,
    },
    /// The mount of a path takes no new folder.
    #[error(
        "{path}: nothing can be written on its mount ({stage}: {error}); correct the config, or mount it so that it can be written"
    )]
    NoStage {
        /// A path on it.
        path: String,
        /// What was to be made there.
        stage: String,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// Names on the mount of a path cannot change places.
    #[error(
        "{path}: the file system of its mount can neither exchange two names nor keep one from being replaced ({stage}: {error}), as NFS, Ceph and 9p cannot, so that what is written there could not be taken back; choose another path"
    )]
    NoExchange {
        /// A path on it.
        path: String,
        /// Where that was tried.
        stage: String,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The target is something that is not replaced.
    #[error(
        "{path}: {what} stands there, and tread replaces files and links only; remove it, or correct the config"
    )]
    Occupied {
        /// The path.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// The record is by a newer version.
    #[error(
        "an operation of tread {version} was cut short, and this version does not know its journal; nothing was touched: start tread {version} or later"
    )]
    Newer {
        /// The version that began it.
        version: String,
    },
    /// The log has a note of another version.
    #[error(
        "line {line} of {STATE}/{OPERATION}/{LOG} is a note that this version does not know: a newer tread may have written it; nothing was touched: start that one, as by upgrading the agent, then: tread node resume"
    )]
    NewerNote {
        /// Which line of the log.
        line: usize,
    },
    /// The record or the log cannot be read, though it was once complete.
    #[error(
        "{STATE}/{OPERATION}/{file} is damaged ({why}), and names may have changed; nothing was touched: restore the node from outside, or begin again with what is there: tread node adopt --config CONFIG --give-up"
    )]
    Damaged {
        /// Which file of the two.
        file: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Two paths of a config are in each other's way.
    #[error(
        "{path} and {other} cannot both be there: they are one place, or one stands below the other; correct the config"
    )]
    Twice {
        /// One path.
        path: String,
        /// The other.
        other: String,
    },
    /// What is on a mount cannot be settled, since it is not mounted.
    #[error(
        "{stage} is not there, and with it what a part of the operation needs; mount what it is on, then: tread node resume. If it is gone for good: tread node adopt --config CONFIG --give-up"
    )]
    Away {
        /// Where a part of the operation waits.
        stage: String,
    },
    /// Some of it cannot be settled; all else is.
    #[error(
        "what was cut short cannot be settled: {error}{}; mend that, then: tread node settle, then tread node resume. If it cannot be mended: tread node adopt --config CONFIG --give-up",
        and_more(*.more)
    )]
    Stuck {
        /// Why, for the first path.
        #[source]
        error: Box<JournalError>,
        /// How many others there are.
        more: usize,
    },
    /// It may not be done any more.
    #[error("it may not be done now: the permit ended before it was used")]
    Ended,
    /// There is one on its way.
    #[error(
        "an operation was cut short; it has to be settled first: tread node settle (with --root, if it was in another tree)"
    )]
    Unsettled,
}

fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    }
}

/// What the system said of a path.
pub(super) fn io_at(path: &str) -> impl FnOnce(io::Error) -> JournalError + use<'_> {
    move |error| JournalError::Path(PathError::io(path, error))
}
