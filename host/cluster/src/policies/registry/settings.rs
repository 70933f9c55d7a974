//! How a registry is set up.

use crate::index::Index;
use crate::policies::load::AllShipped;
use crate::policies::snapshot::Room;
use kube::Client;
use std::fmt;
use tread_engine::sandbox::Sandbox;
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::watching::Watches;

/// How a registry is set up.
#[derive(Clone)]
pub struct Settings {
    /// For everything that is asked of the API server.
    pub client: Client,
    /// What is known of the cluster.
    pub index: Index,
    /// tread's own namespace.
    pub namespace: String,
    /// What this replica is called.
    pub replica: String,
    /// What loads and asks policies.
    pub sandbox: Sandbox,
    /// What comes with tread.
    pub shipped: AllShipped,
    /// How many policies there may be.
    pub room: Room,
    /// Whether this replica writes.
    pub leads: Leading,
    /// Where it is noted what is read, and what waits to be written.
    pub watches: Watches,
    /// What is measured.
    pub metrics: Metrics,
    /// Where Events go.
    pub events: Events,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("replica", &self.replica).finish_non_exhaustive()
    }
}

#[cfg(test)]
impl Settings {
    /// With nothing but the client of an API server.
    pub(super) fn of_test(client: &Client, leads: Leading) -> Settings {
        use crate::policies::load::Shipped;
        use tread_engine::sandbox::Options;
        use tread_model::digest::Sha256;
        let (watches, metrics) = (Watches::default(), Metrics::new());
        let rules = Shipped { name: "rules", component: b"", digest: Sha256::of(b"") };
        Settings {
            events: Events::new(client.clone(), "test", "Load", &metrics),
            client: client.clone(),
            index: crate::index::start(client, "default", &watches, &metrics).0,
            namespace: "tread".to_owned(),
            replica: "test".to_owned(),
            sandbox: Sandbox::new(Options { cache_dir: None, ..Options::default() }).unwrap(),
            shipped: AllShipped { builtins: Vec::new(), rules },
            room: Room::default(),
            leads,
            watches,
            metrics,
        }
    }
}
