//! `tread node apply`.

use super::error::NodeError;
use super::follow::by_the_unit;
use super::show::Terminal;
use super::system::{BUS, RootArgs, WELL, blocking, this_node};
use super::{files, show, written};
use crate::applied::Applied;
use crate::boot_units;
use crate::change::{Order, OrderError, change};
use crate::documents::{Documents, digest};
use crate::operation::{needs_files_only, needs_nobody_else};
use crate::orders::{Does, Given};
use crate::permits::{Alone, Permits};
use crate::prepare::Label;
use crate::systemd::{Limits, Manager};
use crate::terms::{LONGEST, Terms};
use crate::tree::Tree;
use clap::Args;
use std::path::PathBuf;
use tread_model::plan::{PlanOutcome, VerifiablePlan};

pub(super) const EXAMPLES: &str = "\
Examples:
  tread node apply --config next.yaml --plan plan.json --dry-run
  tread node apply --config next.yaml --plan plan.json --no-drain   the node is drained already
  tread node apply --config next.yaml --reboot --no-drain           write it all, and boot

A plan is made by `tread plan now.yaml next.yaml -o json > plan.json`.

Exit codes:
  0  the node has the new config, boots to get it, or waits for a boot
  1  it was not carried out: nothing was told to any unit
  5  the node went back to the old config, or is not well";

/// What to apply.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The config that the node is to get: MachineConfigs, as YAML or JSON
    #[arg(long, value_name = "FILE", required = true)]
    config: Vec<PathBuf>,
    /// The plan that leads to it: `tread plan OLD NEW -o json`
    #[arg(long, value_name = "FILE", required_unless_present = "reboot")]
    plan: Option<PathBuf>,
    /// Use the plan that is always allowed: drain, write, reboot, uncordon
    #[arg(long, conflicts_with = "plan")]
    reboot: bool,
    /// Show each step, and every path that would change; change nothing
    #[arg(long)]
    dry_run: bool,
    /// The node is drained, or need not be: `drain` and `uncordon` are left out
    #[arg(long)]
    no_drain: bool,
    /// What may differ from the config last applied: paths, `kernel-arguments`, `os-image`; one a line
    #[arg(long, value_name = "FILE")]
    accept_drift: Option<PathBuf>,
    /// The API server that the node has to reach again afterwards, if it reached it before
    /// (default: the one of the kubelet)
    #[arg(long, value_name = "HOST:PORT")]
    api_server: Option<String>,
    /// For how many seconds a unit has to stay well after it was told (default: 10)
    #[arg(long, value_name = "SECONDS")]
    well_for: Option<u64>,
    /// How many seconds the node may take to prove that it is well after a boot (default: 600)
    #[arg(long, value_name = "SECONDS")]
    proof: Option<u64>,
    #[command(flatten)]
    pub(super) root: RootArgs,
}

impl ApplyArgs {
    pub(super) fn run(&self) -> Result<u8, NodeError> {
        let tree = self.root.tree()?;
        let terms = self.terms()?;
        let documents = files::documents(&self.config)?;
        let plan = self.plan(&tree, &documents)?;
        let accept = self.accept_drift.as_deref().map_or(Ok(Vec::new()), files::lines)?;
        if self.root.runs() && !self.dry_run {
            let plan = Some(Box::new(plan));
            let drained = self.no_drain;
            let order = Does::Apply { config: documents, plan, accept, drained };
            return by_the_unit(
                &tree,
                &Given { terms, ..Given::new(&files::operation_id(), order) },
            );
        }
        let host = self.root.host(&tree)?;
        let label = |path: &str, kind| host.label(path, kind);
        let others = if self.root.runs() { boot_units::targets() } else { Vec::new() };
        let order = Order { id: files::operation_id(), documents, plan, accept, others };
        if self.root.runs() {
            // What would forbid it in earnest does so here.
            let manager = Manager::new(BUS, Limits::default());
            let (terminal, of_host) = (Terminal::default(), (&host, &label as &Label<'_>));
            let alone = (&Alone as &dyn Permits, terms);
            let node = this_node(&tree, of_host, &manager, alone, &terminal);
            let (change, instead) = blocking(node.would_carry_out(&order, self.no_drain))??;
            let warning = match order.plan.outcome {
                PlanOutcome::Nothing => None,
                _ => blocking(node.would_stay_cut_off())?,
            };
            let always = VerifiablePlan::always_allowed(order.plan.from, order.plan.to);
            let plan = if instead.is_some() { &always } else { &order.plan };
            if let Some(instead) = instead {
                show::line(&instead)?;
            }
            show::dry_run(plan, &change, warning.as_deref())?;
            return Ok(WELL);
        }
        let change = change(&tree, &host, &label, &order)?;
        needs_files_only(&change)?;
        if self.dry_run {
            show::dry_run(&order.plan, &change, None)?;
            return Ok(WELL);
        }
        needs_nobody_else(&order.plan, self.no_drain)?;
        written::write(&tree, (order.plan.to, &order.plan.steps), &change.ready)?;
        let names = show::names(&change.ready.record).count();
        let names = if names == 1 { "1 name".to_owned() } else { format!("{names} names") };
        show::line(&format!("written: {names}; no unit was told"))?;
        Ok(WELL)
    }

    fn terms(&self) -> Result<Terms, NodeError> {
        let (api_server, default) = (self.api_server.clone(), Terms::default());
        let well_for = self.well_for.unwrap_or(default.well_for);
        let proof = self.proof.unwrap_or(default.proof);
        let terms = Terms { api_server, well_for, proof, ..default };
        if !terms.name_an_address() {
            return Err(NodeError::Said(
                "--api-server has to be HOST:PORT, as api.example.com:6443".to_owned(),
            ));
        }
        match terms.are_possible() {
            true => Ok(terms),
            false => Err(NodeError::Said(format!(
                "--well-for and --proof are seconds, {LONGEST} at most, and --proof has to be longer than --well-for; correct them"
            ))),
        }
    }

    fn plan(&self, tree: &Tree, documents: &Documents) -> Result<VerifiablePlan, NodeError> {
        match &self.plan {
            Some(file) => Ok(VerifiablePlan::read(&files::bytes(file)?)?),
            None => {
                let applied = Applied::read(tree)?.ok_or(OrderError::Unknown)?;
                let from = digest(&applied.documents.config()?)?;
                Ok(VerifiablePlan::always_allowed(from, digest(&documents.config()?)?))
            }
        }
    }
}
