//! What the controller of boot images works with, and what it makes known.

use super::booted::Booted;
use super::facts::Facts;
use super::report::Report;
use crate::index::Index;
use kube::Client;
use std::sync::Arc;
use tokio::sync::watch;
use tread_kube::asking::Failed;
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::watching::{Unwritten, Watches};

/// What the controller needs.
#[derive(Clone)]
pub struct Settings {
    /// Whom to ask.
    pub client: Client,
    /// What is known of the cluster.
    pub index: Index,
    /// tread's own namespace.
    pub namespace: String,
    /// Whether to write.
    pub leads: Leading,
    /// Whether an admin wants images that are too old to hold back updates.
    pub block_upgrades: bool,
    /// Where to note how it stands with watches.
    pub watches: Watches,
    /// Where to count.
    pub metrics: Metrics,
    /// Where to report.
    pub events: Events,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Settings {
    pub(super) async fn unwritten(&self, what: &str, failed: &Failed) -> Unwritten {
        Unwritten::of(&self.client, &self.metrics, what, failed).await
    }
}

/// What is known of boot images, for whoever asks. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Known {
    now: Arc<watch::Sender<Option<Arc<Judged>>>>,
    booted: Arc<watch::Sender<Arc<Booted>>>,
}

/// The facts, and what is said of them.
pub type Judged = (Facts, Report);

impl Known {
    /// The facts and the verdicts, if there are any yet.
    pub fn now(&self) -> Option<Arc<Judged>> {
        self.now.borrow().clone()
    }

    /// The newest verdicts, and a word whenever there are others.
    pub fn moments(&self) -> watch::Receiver<Option<Arc<Judged>>> {
        self.now.subscribe()
    }

    /// Takes from which images nodes booted, where agents say so.
    pub fn set_booted(&self, booted: Booted) {
        self.booted.send_if_modified(|now| {
            let differs = **now != booted;
            if differs {
                *now = Arc::new(booted);
            }
            differs
        });
    }

    /// What nodes booted from, and a word whenever that changes.
    pub(super) fn booted(&self) -> watch::Receiver<Arc<Booted>> {
        self.booted.subscribe()
    }

    pub(super) fn publish(&self, facts: &Facts, report: Report) -> Arc<Judged> {
        let now = Arc::new((facts.clone(), report));
        self.now.send_replace(Some(Arc::clone(&now)));
        now
    }
}
