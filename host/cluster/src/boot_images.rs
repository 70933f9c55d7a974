//! Boot images in the cluster: what machine resources boot, judged as it changes.
//!
//! `news` folds what watches say into `facts`, `report` judges them, `status` says
//! it in the words of BootImages, and `run` carries that out. `gather` lists the
//! same facts once, for the command line.

pub mod admit;
pub mod cluster_operator;
pub mod facts;
pub mod gather;
pub mod kinds;
pub mod machine;
pub mod news;
pub mod report;
mod run;
pub mod selector;
pub mod status;
pub mod stuck;
pub mod write;

use facts::Facts;
use kube::Client;
use report::Report;
use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};
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
    /// Where to tell.
    pub events: Events,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Settings {
    async fn unwritten(&self, what: &str, failed: &Failed) -> Unwritten {
        Unwritten::of(&self.client, &self.metrics, what, failed).await
    }
}

/// What is known of boot images, for whoever asks. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Known {
    now: Arc<RwLock<Option<Arc<Judged>>>>,
}

/// The facts, and what is said of them.
pub(crate) type Judged = (Facts, Report);

impl Known {
    /// The facts and the verdicts, if there are any yet.
    pub fn now(&self) -> Option<Arc<Judged>> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn publish(&self, facts: &Facts, report: Report) -> Arc<Judged> {
        let now = Arc::new((facts.clone(), report));
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&now));
        now
    }
}

/// What is known, and what keeps it up to date for as long as it is polled.
pub fn start(settings: Settings) -> (Known, impl Future<Output = ()> + Send) {
    let known = Known::default();
    (known.clone(), run::run(settings, known))
}
