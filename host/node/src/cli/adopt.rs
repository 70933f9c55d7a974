//! `tread node adopt`.

use super::check::of_the_system;
use super::error::NodeError;
use super::follow::by_the_unit;
use super::give_up::could_have_it;
use super::system::{RootArgs, WELL};
use super::{by_hand, files, show, written};
use crate::applied::Applied;
use crate::change::{Adopt, adopt};
use crate::drift::Drift;
use crate::journal::{Journal, STATE, stands};
use crate::orders::{Does, Given};
use crate::progress::{Phase, Progress};
use crate::tree::Tree;
use clap::Args;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  tread node adopt --config now.yaml              what differs is an error
  tread node adopt --config now.yaml --keep       what differs stays, and is accepted
  tread node adopt --config now.yaml --overwrite --no-drain   what differs is overwritten
  tread node adopt --config now.yaml --give-up --keep         out of an operation that is degraded";

const ADOPTED: &str = "adopted: the next plan begins at this config";
const UNREAD: &str = "what runs may have read other contents than are there by now: boot this \
                      node when it suits";

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
    /// End an operation that stands and cannot be gone on with: what can be settled is, and what
    /// is left by hand is named, here and in `tread node status`
    #[arg(long)]
    give_up: bool,
    #[command(flatten)]
    pub(super) root: RootArgs,
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
        let order = Does::Adopt {
            config: config.clone(),
            differs,
            drained: self.no_drain,
            give_up: self.give_up,
        };
        let given = Given::new(&id, order);
        if self.give_up {
            could_have_it(&tree, &host, &given)?;
            if self.root.runs() {
                // What differs is known once what stands is settled.
                return self.by_the_unit(&tree, &given);
            }
            // What is adopted is what is there then.
            Journal::open(&tree)?.give_up()?;
        }
        if Applied::put_aside(&tree)? {
            show::line(&format!(
                "{STATE}/applied is no file, and was put aside: {STATE}/applied.aside"
            ))?;
        }
        let order = (&*id, config, differs);
        let adoption = adopt(&tree, &host, &label, order, Vec::new())?;
        let word = match differs {
            Adopt::Overwrite => "to be overwritten",
            Adopt::Keep => "to be accepted",
            Adopt::Ask => "changed since the machine booted with it",
        };
        let of_os = match self.root.runs() && differs != Adopt::Ask {
            true => of_the_system(&tree, &adoption.wish)?,
            false => Vec::new(),
        };
        for Drift { path, differs, .. } in adoption.found.iter().chain(&of_os) {
            show::line(&format!("{word}: {path}: {differs}"))?;
        }
        if self.root.runs() {
            return self.by_the_unit(&tree, &given);
        }
        self.left_by_hand(&tree)?;
        written::write(&tree, (adoption.config, &[]), &adoption.ready)?;
        show::line(ADOPTED)?;
        Ok(WELL)
    }

    fn by_the_unit(&self, tree: &Tree, given: &Given) -> Result<u8, NodeError> {
        let stood = self.give_up && stands(tree).unwrap_or(true);
        let ended = by_the_unit(tree, given);
        self.left_by_hand(tree)?;
        let ended = ended?;
        if ended != WELL {
            return Ok(ended);
        }
        if stood && self.keep {
            let applied = Applied::read(tree)?;
            let accepted = applied.iter().flat_map(|applied| applied.accepted.keys());
            accepted.into_iter().try_for_each(|path| show::line(&format!("accepted: {path}")))?;
        }
        if stood && !Progress::read(tree)?.is_some_and(|known| known.phase == Phase::Booting) {
            show::line(UNREAD)?;
        }
        show::line(ADOPTED)?;
        Ok(WELL)
    }

    fn left_by_hand(&self, tree: &Tree) -> Result<(), NodeError> {
        if self.give_up {
            let left = by_hand::left(tree)?;
            by_hand::lines(&left, &self.root).iter().try_for_each(|text| show::line(text))?;
        }
        Ok(())
    }
}
