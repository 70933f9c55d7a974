//! `tread node status`: the last operation, and how the node stands.

use super::error::NodeError;
use super::system::{BUS, RootArgs, WELL, blocking};
use super::{by_hand, metrics, show, words};
use crate::applied::{Applied, AppliedError};
use crate::documents::digest;
use crate::journal::stands;
use crate::orders::Handed;
use crate::progress::Progress;
use crate::systemd::{Limits, Manager};
use crate::tree::Tree;
use crate::watch::Report;
use clap::Args;
use std::io::{self, IsTerminal as _};
use tread_model::digest::Digest;

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
    pub(super) root: RootArgs,
}

impl StatusArgs {
    pub(super) fn run(&self) -> Result<u8, NodeError> {
        let tree = self.root.tree()?;
        let (has, unknown) = match has(&tree) {
            Ok(has) => (has, None),
            Err(error @ NodeError::Applied(AppliedError::Damaged(_) | AppliedError::NoFile)) => {
                (None, Some(error.to_string()))
            }
            Err(error) => return Err(error),
        };
        let progress = Progress::read(&tree)?;
        let drift = Report::read(&tree)?;
        let left = by_hand::left(&tree)?;
        // Until its unit began, an order that was handed over is all that is known of it.
        let handed = Handed::ids(&tree)?;
        let is_new = |id: &String| progress.as_ref().is_none_or(|known| known.operation != *id);
        let stands = stands(&tree).unwrap_or(true);
        let begins = handed.into_iter().find(is_new).filter(|_| !stands);
        match self.output.as_deref() {
            Some("prometheus") => {
                let text = metrics::text(has, progress.as_ref(), drift.as_ref());
                show::line(text.map_err(io::Error::other)?.trim_end())?;
            }
            Some(_) => {
                let (progress, drift) = (progress.as_ref(), drift.as_ref());
                show::status_json(has, progress, drift, (begins.as_deref(), &left))?;
            }
            None => {
                let has = (has, unknown.as_deref());
                show::status(has, progress.as_ref(), drift.as_ref(), &self.root)?;
                by_hand::lines(&left, &self.root).iter().try_for_each(|text| show::line(text))?;
                if stands && !self.root.runs() {
                    show::line(&self.root.named(
                        "it was cut short; the next boot of this system settles it, or: tread node settle",
                    ))?;
                }
                // A unit's words are for whoever sits there, and for no file or pipe.
                let shows_words = self.root.runs() && io::stdout().is_terminal();
                if let Some(progress) = progress.as_ref().filter(|_| shows_words) {
                    let manager = Manager::new(BUS, Limits::default());
                    let words = blocking(words::of_what_failed(&manager, progress))?;
                    words.iter().try_for_each(|text| show::line(text))?;
                }
                if let Some(id) = begins {
                    show::line(&format!("next: {id} was handed over, and has not begun yet"))?;
                }
            }
        }
        Ok(WELL)
    }
}

/// The config that was applied last.
fn has(tree: &Tree) -> Result<Option<Digest>, NodeError> {
    let Some(applied) = Applied::read(tree)? else { return Ok(None) };
    Ok(Some(digest(&applied.documents.config()?)?))
}
