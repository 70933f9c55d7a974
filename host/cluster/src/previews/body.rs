//! What MachineConfigs hold.

use super::config::Config;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A MachineConfig as it stands in the cluster: its name, and its
/// `resourceVersion`. Clones share both.
pub type BodyKey = (Arc<str>, Arc<str>);

/// What MachineConfigs hold, for plans that are made one after the other.
pub type Bodies = HashMap<BodyKey, Body>;

/// What a MachineConfig holds, as the API server sent it.
#[derive(Debug, Clone)]
pub struct Body {
    bytes: Arc<[u8]>,
    /// What it says, once somebody looked for that.
    pub(super) config: OnceLock<Arc<Config>>,
}

impl Body {
    /// What it holds.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }
}

impl From<Arc<[u8]>> for Body {
    fn from(bytes: Arc<[u8]>) -> Body {
        Body { bytes, config: OnceLock::new() }
    }
}
