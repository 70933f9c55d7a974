//! What MachineConfigs hold.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A MachineConfig as it stands in the cluster: its name, and its
/// `resourceVersion`.
pub type BodyKey = (String, String);

/// What MachineConfigs hold, each as the API server sent it.
pub type Bodies = BTreeMap<BodyKey, Arc<[u8]>>;
