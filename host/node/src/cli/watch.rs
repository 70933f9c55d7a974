//! `tread node watch`: whether the disk stays as the config last applied wants it.

use super::check::asked_by;
use super::error::NodeError;
use super::system::{RootArgs, blocking};
use crate::desired::Host;
use crate::drift::Drift;
use crate::host::ThisHost;
use crate::os::Wish;
use crate::watch::{Pace, serve};
use clap::Args;
use futures::future::LocalBoxFuture;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
Examples:
  tread node watch                   as tread-watch.service does, which `tread node adopt` starts
  tread node watch --apart 5         to be told sooner, for more wake-ups

Nothing is repaired. Where more folders may be watched now: systemctl restart tread-watch. It ends
with an error where it cannot see what tread knows of the node.";

/// How to watch.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// What changes within so many seconds is looked at together
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    apart: u16,
    #[command(flatten)]
    pub(super) root: RootArgs,
}

impl WatchArgs {
    pub(super) fn run(&self) -> Result<u8, NodeError> {
        let tree = self.root.tree()?;
        let host = || match ThisHost::read(&tree, self.root.runs()) {
            Ok(host) => Ok(Box::new(host) as Box<dyn Host>),
            Err(error) => Err(error.to_string()),
        };
        let runs = self.root.runs();
        let system = |wish: Wish| -> LocalBoxFuture<'_, Result<Vec<Drift>, String>> {
            let tree = &tree;
            Box::pin(async move {
                if !runs {
                    return Ok(Vec::new());
                }
                asked_by("watch", tree, &wish).await.map_err(|error| error.to_string())
            })
        };
        let pace = Pace { apart: Duration::from_secs(self.apart.into()), ..Pace::default() };
        match blocking(serve(&tree, &host, &system, pace))?? {}
    }
}
