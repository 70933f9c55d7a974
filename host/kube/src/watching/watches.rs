//! How it stands with all that is watched, read and written, for whoever asks.

use super::pruned::Pruned;
use crate::asking::Failed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// Why what is read could not be, by what it is and a number of its own.
pub(super) type Reads = BTreeMap<(String, u64), Option<Failed>>;

/// What the API server drops, by the kind of the objects.
pub(super) type Dropped = BTreeMap<&'static str, BTreeSet<String>>;

/// Why something is not written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwritten {
    /// In words.
    pub why: String,
    /// tread's own roles do not allow it: nothing of the kind is written before
    /// somebody grants it.
    pub lacks_rights: bool,
}

/// How it stands with one watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watched {
    /// All that there is was seen once.
    pub synced: bool,
    /// The API server knows no such kind: there are none, until its definition is
    /// installed.
    pub not_installed: bool,
    /// What went wrong, until it goes well again.
    pub error: Option<Failed>,
}

/// How it stands with all watches, by the names that they were given. Clones
/// share everything.
#[derive(Debug, Clone)]
pub struct Watches {
    pub(super) all: watch::Sender<BTreeMap<&'static str, Watched>>,
    /// What is read besides, one by one.
    pub(super) reads: watch::Sender<Reads>,
    /// What could not be written, and why.
    pub(super) unwritten: watch::Sender<BTreeMap<&'static str, Unwritten>>,
    /// What the API server drops of what is written.
    pub(super) dropped: watch::Sender<Dropped>,
    /// What it left of what was written, by the kind of the objects.
    pub(super) pruned: Arc<Mutex<BTreeMap<&'static str, Pruned>>>,
}

impl Default for Watches {
    fn default() -> Watches {
        let (all, reads) = (watch::Sender::default(), watch::Sender::default());
        let (unwritten, dropped) = (watch::Sender::default(), watch::Sender::default());
        Watches { all, reads, unwritten, dropped, pruned: Arc::default() }
    }
}

impl Watches {
    /// All of them, now and whenever one changes.
    pub fn subscribe(&self) -> watch::Receiver<BTreeMap<&'static str, Watched>> {
        self.all.subscribe()
    }

    /// What is not complete yet, in words, with the reason where there is one:
    /// `configmaps: … is forbidden …`. Empty: all has been seen once.
    pub fn waiting(&self) -> Vec<String> {
        let all = self.all.borrow();
        let waiting = all.iter().filter(|(_, watched)| !watched.synced);
        waiting
            .map(|(name, watched)| match &watched.error {
                Some(error) => format!("{name}: {error}"),
                None => format!("{name}: not listed yet"),
            })
            .collect()
    }

    /// What was complete once, and fails now, in words.
    pub fn failing(&self) -> Vec<String> {
        let all = self.all.borrow();
        let failing = all.iter().filter(|(_, watched)| watched.synced);
        failing
            .filter_map(|(name, watched)| Some(format!("{name}: {}", watched.error.as_ref()?)))
            .collect()
    }

    /// The kinds whose definitions are not installed.
    pub fn not_installed(&self) -> Vec<&'static str> {
        let all = self.all.borrow();
        all.iter().filter(|(_, watched)| watched.not_installed).map(|(name, _)| *name).collect()
    }

    pub(super) fn note(&self, name: &'static str, change: impl FnOnce(&mut Watched)) {
        self.all.send_if_modified(|all| {
            let watched = all.entry(name).or_default();
            let before = watched.clone();
            change(watched);
            *watched != before
        });
    }
}
