//! A DisruptionPlan for everything that is about to happen to the nodes of a
//! pool: watched, planned, written, and told of before it is delivered.

mod admit;
mod ask;
mod bodies;
mod budget;
mod compared;
mod foreign;
mod look;
mod planners;
mod run;
mod standing;
mod state;
mod told;
mod write;

pub use admit::{MIRROR_KINDS, change};
pub use ask::{NotKnown, Previewer};

use crate::policies::current::Published;
use kube::Client;
use std::future::Future;
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

/// The previewer, which answers what a change would do, and the controller that
/// keeps it up to date and writes plans, for as long as it is polled.
pub fn start(settings: Settings) -> (Previewer, impl Future<Output = ()> + Send) {
    let previewer = Previewer::new(&settings);
    let controller = run::run(settings, previewer.clone());
    (previewer, controller)
}
