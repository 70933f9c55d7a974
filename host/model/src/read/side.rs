//! One side of the comparison, as it was read.

use super::document::MirrorObject;
use super::makeup::Makeup;
use crate::config::NodeConfig;
use crate::mirrors;
use crate::problem::Problems;

/// One side of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Side<'a> {
    /// All MachineConfigs and Ignition configs, merged.
    pub config: NodeConfig<'a>,
    /// The objects that [`Side::render_mirrors`] renders into registries.conf, as
    /// they stand in the files.
    pub mirrors: Vec<MirrorObject>,
    /// What it is made of, mirrors aside.
    pub makeup: Makeup,
}

impl Side<'_> {
    /// Renders the objects that redirect image pulls into registries.conf.
    pub fn render_mirrors(&mut self) -> Result<(), Problems> {
        mirrors::apply(&mut self.config, &self.mirrors)
    }
}
