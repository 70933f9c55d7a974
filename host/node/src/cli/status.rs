//! `tread node status`: the last operation, and how the node stands.

use super::error::NodeError;
use super::show;
use super::system::{RootArgs, WELL};
use crate::applied::Applied;
use crate::documents::digest;
use crate::progress::Progress;
use crate::watch::Report;
use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  tread node status
  tread node status -o json | jq .operation.phase";

/// What to show.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// For a script
    #[arg(short, long, value_name = "FORMAT", value_parser = ["json"])]
    output: Option<String>,
    #[command(flatten)]
    root: RootArgs,
}

impl StatusArgs {
    pub(super) fn run(&self) -> Result<u8, NodeError> {
        let tree = self.root.tree()?;
        let applied = Applied::read(&tree)?;
        let has = match &applied {
            Some(applied) => Some(digest(&applied.documents.config()?)?),
            None => None,
        };
        let progress = Progress::read(&tree)?;
        let drift = Report::read(&tree)?;
        match self.output.as_deref() {
            Some(_) => show::status_json(has, progress.as_ref(), drift.as_ref())?,
            None => show::status(has, progress.as_ref(), drift.as_ref())?,
        }
        Ok(WELL)
    }
}
