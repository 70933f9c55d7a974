//! What an installation acts with.

use crate::clock::Clock;
use kube::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tread_kube::metrics::Metrics;
use tread_model::protocol::Terms;

/// Those of one replica write the slots one after the other: of many who write the same object at
/// the same time all but one would have to read everything again. Clones share the turn.
#[derive(Debug, Clone, Default)]
pub struct Turn(Arc<Mutex<()>>);

impl Turn {
    /// The turn, if nobody has it.
    pub(crate) fn if_free(&self) -> Option<OwnedMutexGuard<()>> {
        Arc::clone(&self.0).try_lock_owned().ok()
    }

    /// The turn, as soon as nobody else has it.
    pub(crate) async fn taken(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.0).lock_owned().await
    }
}

/// What an installation acts with.
#[derive(Clone)]
pub struct Settings {
    /// Asks the API server, and tries nothing again by itself.
    pub client: Client,
    /// What is counted.
    pub metrics: Metrics,
    /// tread's own namespace, where the slots are.
    pub namespace: String,
    /// Where nodes' Leases are.
    pub leases: String,
    /// Who holds them: `tread/UID`, the same for each replica of an installation.
    pub holder: String,
    /// How long things last.
    pub terms: Terms,
    /// Whose turn it is to write the slots.
    pub at_slots: Turn,
    /// The API server's time.
    pub clock: Clock,
    /// For how long a node has to be Ready before it is proved, after more than writing.
    pub ready_for: Duration,
}
