//! `tread node fetch`.

use super::error::NodeError;
use super::files;
use super::follow::by_the_unit;
use crate::orders::{Does, Given};
use crate::tree::Tree;
use clap::Args;
use std::path::{Path, PathBuf};

pub(super) const EXAMPLES: &str = "\
Examples:
  tread node fetch --config next.yaml

It can be done again and again. What fails leaves nothing staged.

Exit codes:
  0  what the config needs is there
  1  it could not be fetched";

/// What to fetch.
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// The config that the node is to get: MachineConfigs, as YAML or JSON
    #[arg(long, value_name = "FILE", required = true)]
    config: Vec<PathBuf>,
}

impl FetchArgs {
    pub(super) fn run(&self) -> Result<u8, NodeError> {
        let tree = Tree::open(Path::new("/"))?;
        let order = Does::Fetch { config: files::documents(&self.config)? };
        by_the_unit(&tree, &Given::new(&files::operation_id(), order))
    }
}
