//! `tread node adopt`.

use super::check::of_the_system;
use super::error::NodeError;
use super::follow::by_the_unit;
use super::system::{RootArgs, WELL};
use super::{files, show, written};
use crate::change::{Adopt, adopt};
use crate::drift::Drift;
use crate::journal::Journal;
use crate::orders::{Does, Given};
use clap::Args;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  tread node adopt --config now.yaml              what differs is an error
  tread node adopt --config now.yaml --keep       what differs stays, and is accepted
  tread node adopt --config now.yaml --overwrite --no-drain   what differs is overwritten
  tread node adopt --config now.yaml --give-up --keep         out of an operation that is degraded";

/// What the node has.
#[derive(Debug, Args)]
pub struct AdoptArgs {
    /// The config that the node is said to have: MachineConfigs, as YAML or JSON
    #[arg(long, value_name = "FILE", required = true)]
    config: Vec<PathBuf>,
    /// What differs stays as it is, and counts as accepted
    #[arg(long, conflicts_with = "overwrite")]
    keep: bool,
    /// What differs is overwritten, and the node boots
    #[arg(long)]
    overwrite: bool,
    /// The node is drained, or need not be, where it has to boot
    #[arg(long)]
    no_drain: bool,
    /// End an operation that stands and cannot be gone on with: names stay as they are
    #[arg(long)]
    give_up: bool,
    #[command(flatten)]
    root: RootArgs,
}

impl AdoptArgs {
    pub(super) fn run(&self) -> Result<u8, NodeError> {
        let tree = self.root.tree()?;
        let host = self.root.host(&tree)?;
        let label = |path: &str, kind| host.label(path, kind);
        let differs = match (self.keep, self.overwrite) {
            (true, _) => Adopt::Keep,
            (_, true) => Adopt::Overwrite,
            _ => Adopt::Ask,
        };
        let (id, config) = (files::operation_id(), files::documents(&self.config)?);
        let order = (&*id, config.clone(), differs);
        let adoption = adopt(&tree, &host, &label, order, Vec::new())?;
        let word = if differs == Adopt::Overwrite { "to be overwritten" } else { "to be accepted" };
        let of_os = match self.root.runs() && differs != Adopt::Ask {
            true => of_the_system(&tree, &adoption.wish)?,
            false => Vec::new(),
        };
        for Drift { path, differs, .. } in adoption.found.iter().chain(&of_os) {
            show::line(&format!("{word}: {path}: {differs}"))?;
        }
        if self.root.runs() {
            let (drained, give_up) = (self.no_drain, self.give_up);
            let order = Does::Adopt { config, differs, drained, give_up };
            let ended = by_the_unit(&tree, &Given::new(&id, order))?;
            if ended != WELL {
                return Ok(ended);
            }
        } else {
            if self.give_up {
                Journal::open(&tree)?.give_up()?;
            }
            written::write(&tree, (adoption.config, &[]), &adoption.ready)?;
        }
        show::line("adopted: the next plan begins at this config")?;
        Ok(WELL)
    }
}
