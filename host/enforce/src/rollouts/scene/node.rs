//! A node, and what is wanted of it.

use crate::remediation::Machine;
use std::sync::Arc;
use tread_kube::api::node_update::ConfigName;
use tread_kube::held::Maintained;
use tread_model::digest::Digest;
use tread_model::protocol::Disrupts;

/// A node.
#[derive(Debug, Clone)]
pub(crate) struct OfNode {
    pub(crate) pool: String,
    pub(crate) maintained: Maintained,
    pub(super) machine: Option<Machine>,
    /// Who else has it, in words, where it is to get a change.
    pub(crate) taken: Option<String>,
    /// How much it is to be disrupted now, if it is its turn.
    pub(super) turn: Option<Disrupts>,
    /// Whether it turns back if it has written nothing, since others of its pool failed.
    pub(super) others_failed: bool,
    pub(super) plan: Option<Arc<serde_json::Value>>,
    /// What an admin asked to try again.
    pub(super) retries: Option<String>,
    /// Whether its agent has to be upgraded before it gets an order.
    pub(crate) needs_agent: bool,
    /// Whether nothing is under way on it, or nobody knows yet what is wanted of it.
    pub(super) is_quiet: bool,
    /// The config that it was ordered to get, if the config of its pool cannot be made or is not
    /// delivered yet, or if it is in no pool any more: then it ends with that one.
    pub(super) ordered: Option<(ConfigName, Digest)>,
    /// Whether its agent has not ended its order for so long that it is taken for lost.
    pub(crate) is_lost: bool,
    /// Whether it is in no pool any more. Its slot still counts in its former pool, which gives it
    /// no newer config.
    pub(super) is_outside: bool,
}

impl OfNode {
    /// Whether something is to be done for it.
    pub(crate) fn is_busy(&self) -> bool {
        self.turn.is_some() || !self.is_quiet
    }

    pub(crate) fn turn(&self) -> Option<Disrupts> {
        self.turn
    }
}
