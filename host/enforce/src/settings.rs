//! What an installation acts with.

use crate::clock::Clock;
use crate::turn::Turn;
use kube::Client;
use std::time::Duration;
use tread_kube::metrics::Metrics;
use tread_model::protocol::Terms;

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
    /// Whose turn it is to write the slots, of the nodes that this replica looks at.
    pub at_slots: Turn,
    /// The API server's time.
    pub clock: Clock,
    /// For how long a node has to be Ready before it is proved, after more than writing.
    pub ready_for: Duration,
}
