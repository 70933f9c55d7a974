//! One side of the comparison, as it was read.

use super::document::MirrorObject;
use super::makeup::Makeup;
use crate::config::NodeConfig;

/// One side of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Side<'a> {
    /// All MachineConfigs and Ignition configs, merged.
    pub config: NodeConfig<'a>,
    /// The objects that [`crate::mirrors::render_side`] renders into registries.conf, as
    /// they stand in the files.
    pub mirrors: Vec<MirrorObject>,
    /// What it is made of, mirrors aside.
    pub makeup: Makeup,
}
