//! How the controller of plans is set up.

use crate::index::Index;
use crate::policies::current::Published;
use kube::Client;
use tread_engine::sandbox::Sandbox;
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::watching::Watches;

/// What the controller of plans works with.
#[derive(Clone)]
pub struct Settings {
    /// As whom the API server is asked.
    pub client: Client,
    /// What is known of the cluster.
    pub index: Index,
    /// Where policies run.
    pub sandbox: Sandbox,
    /// The policies, whenever they change.
    pub policies: Published,
    /// Whether this replica writes.
    pub leads: Leading,
    /// How it stands with the watches.
    pub watches: Watches,
    /// What is measured.
    pub metrics: Metrics,
    /// Where Events go.
    pub events: Events,
    /// How long plans are kept.
    pub keep: Retention,
    /// Whether tread rolls out in this cluster: then a node has what its NodeUpdate says.
    pub by_tread: bool,
}

/// How long plans are kept that nothing makes necessary any more.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// How many of a pool.
    pub count: usize,
    /// For how long, in seconds.
    pub seconds: i64,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { count: 20, seconds: 14 * 24 * 60 * 60 }
    }
}
