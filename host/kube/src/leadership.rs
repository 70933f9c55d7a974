//! Who writes: one replica at a time, by a Lease.
//!
//! The others may take over when the Lease has not changed for its whole
//! duration, by *their* clock since *they* saw it. The leader stops earlier, by
//! its own clock, counted from before it sent the last renewal that succeeded.
//! So nobody's wall clock matters, and a leader whose requests are cut, or that
//! was paused, has stopped before another one starts. Every write says which
//! version of the Lease it replaces: a late or lost answer can only cost time.
//! `tread manifests` brings the Lease, held by nobody: one that is missing was
//! deleted, perhaps from under a leader, and is waited for as if it were held. So
//! is one that nobody ever held, by a candidate that saw another one, or a leader:
//! somebody deleted the leader's Lease, and made it anew.

mod elect;
mod leading;
mod record;

pub use leading::Leading;
pub use record::{Timings, TimingsError};

use crate::metrics::Metrics;
use futures::future::{BoxFuture, FutureExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use tokio::sync::watch;

/// What an election needs.
#[derive(Clone)]
pub struct Election {
    /// A client that shows a 429 or 503 at once (`default_retry` off): one that
    /// tries again by itself would hold on to answers for minutes.
    pub client: Client,
    /// tread's own namespace.
    pub namespace: String,
    /// The Lease's name.
    pub lease: String,
    /// Who this is: the pod's name. What makes it unique is added.
    pub replica: String,
    /// How fast it all is.
    pub timings: Timings,
    /// Where the leader and failed requests are counted.
    pub metrics: Metrics,
    /// Whether it may lead: not while another tread is installed, say. One that leads stops then.
    pub may_lead: watch::Receiver<bool>,
}

impl std::fmt::Debug for Election {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Election")
            .field("lease", &format_args!("{}/{}", self.namespace, self.lease))
            .field("replica", &self.replica)
            .finish_non_exhaustive()
    }
}

impl Election {
    /// Takes part until `stop`, which is to come when nothing that the leader
    /// does is running any more: the Lease is then given up, so that another
    /// replica leads at once.
    pub fn start(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(Leading, BoxFuture<'static, ()>), TimingsError> {
        self.timings.check()?;
        // Two processes of one name (a container that restarts) are two candidates.
        let unique = RandomState::new().hash_one(std::process::id());
        let identity = format!("{}_{unique:016x}", self.replica);
        let (leads, watch) = watch::channel(false);
        let (leading, state) = Leading::of(&identity, watch);
        let candidate = elect::Candidate {
            api: Api::<Lease>::namespaced(self.client, &self.namespace),
            namespace: self.namespace,
            name: self.lease,
            identity,
            timings: self.timings,
            metrics: self.metrics,
            may_lead: self.may_lead,
            leads,
            state,
        };
        Ok((leading, candidate.run(stop).boxed()))
    }
}
