//! By what it is said whose turn it is.

use super::known::Moment;
use super::may_act::MayAct;
use super::plans::Plans;
use super::render::Made;
use super::sightings::Sightings;
use super::stuck::AllStuck;
use std::collections::BTreeMap;
use std::time::Duration;
use tread_cluster::previews::Cluster;
use tread_model::protocol::{Terms, Time};

/// By what it is said whose turn it is.
#[derive(Clone, Copy)]
pub(crate) struct By<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) moment: &'a Moment,
    pub(crate) made: &'a BTreeMap<String, Made>,
    /// Why the config of a pool is made, and could not be written, by pool.
    pub(crate) not_written: &'a BTreeMap<String, String>,
    pub(crate) plans: &'a Plans,
    pub(crate) terms: &'a Terms,
    /// Who this installation is, as the holder of Leases.
    pub(crate) us: &'a str,
    pub(crate) own_node: Option<&'a str>,
    /// Nodes that could not be drained.
    pub(crate) stuck: &'a AllStuck,
    /// Since when marks of others are seen.
    pub(crate) sightings: &'a Sightings,
    /// Since when the replica that leads may act on nodes.
    pub(crate) may_act: &'a MayAct,
    /// The API server's time.
    pub(crate) now: Time,
    /// After so long an agent that has not ended its order is taken for lost.
    pub(crate) lost_after: Duration,
    /// The form of orders.
    pub(crate) form: u32,
}
