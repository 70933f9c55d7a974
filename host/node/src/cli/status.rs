//! `tread node status`: the last operation, and how the node stands.

use super::error::NodeError;
use super::system::{RootArgs, WELL};
use super::{metrics, show};
use crate::applied::Applied;
use crate::documents::digest;
use crate::progress::Progress;
use crate::watch::Report;
use clap::Args;
use std::io;

pub(super) const EXAMPLES: &str = "\
Examples:
  tread node status
  tread node status -o json | jq .operation.phase
  tread node status -o prometheus > tread.prom     for a collector of text files";

/// What to show.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// For a script, or for Prometheus
    #[arg(short, long, value_name = "FORMAT", value_parser = ["json", "prometheus"])]
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
            Some("prometheus") => {
                let text = metrics::text(has, progress.as_ref(), drift.as_ref());
                show::line(text.map_err(io::Error::other)?.trim_end())?;
            }
            Some(_) => show::status_json(has, progress.as_ref(), drift.as_ref())?,
            None => show::status(has, progress.as_ref(), drift.as_ref())?,
        }
        Ok(WELL)
    }
}
