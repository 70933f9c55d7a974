//! `tread nodes`: how far each node is.

mod live;
mod row;

use super::connect::{ClusterArgs, cluster, wait_for};
use super::rollouts::{Known, Watching, chosen, clock, known, warn_of_operator};
use crate::render::output::ListOutput;
use anyhow::Result;
use clap::Args;
use live::View;
use row::rows;
use serde_json::json;
use std::io::Write;
use tread_console::exit::Exit;
use tread_console::print::{json, yaml};
use tread_console::table;
use tread_kube::node_lease::NAMESPACE;

const EXAMPLES: &str = "\
Examples:
  tread nodes
      How far is each node on its way to the newest config of its pool, and who holds it?
  tread nodes --pool worker
      Of one pool alone.
  tread nodes --watch
      The same as it changes; where the output is no terminal, a line for each change.
  tread nodes -o json

Exit codes:
  0  listed
  1  the cluster cannot be asked, or tread rolls out nothing there
  2  the command line is wrong, or there is no such pool

PHASE: Prepare (it is cordoned and drained), Go (its agent has not answered yet), Waiting (it has the
order, and has written nothing), Begun, NeedsBoot (a step failed, or cannot be carried out there), Done,
TurnedBack (nothing was written), WentBack (it has the old config again), Degraded (it is not well: see MESSAGE), Withdrawn.";

/// The arguments of `tread nodes`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct NodesArgs {
    /// Go on, and show what changes
    #[arg(short, long)]
    pub watch: bool,
    /// Of this pool alone
    #[arg(long, value_name = "POOL")]
    pub pool: Option<String>,
    /// The namespace of the nodes' Leases
    #[arg(long, value_name = "NAME", default_value = NAMESPACE)]
    pub lease_namespace: String,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = ListOutput::Human)]
    pub output: ListOutput,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Fails where there is no such pool.
fn is_known(pool: Option<&str>, known: &Known) -> Result<()> {
    let has_nodes = |pool: &str| known.updates.values().any(|update| update.spec.pool == pool);
    match pool {
        Some(pool) if !has_nodes(pool) => chosen(&known.rollouts, &[pool.to_owned()]).map(drop),
        _ => Ok(()),
    }
}

/// Lists them.
pub fn run(args: &NodesArgs, out: &mut impl Write) -> Result<Exit> {
    let pool = args.pool.as_deref();
    if args.watch {
        return wait_for(async {
            let cluster = cluster(&args.cluster).await?;
            let mut watching = Watching::begin(cluster, &args.lease_namespace, None).await?;
            is_known(pool, &watching.known)?;
            warn_of_operator(&watching.cluster).await;
            let mut view = View::new(args.output);
            loop {
                view.show(out, rows(&watching.known, watching.clock.now(), pool))?;
                watching.next().await?;
            }
        });
    }
    let rows = wait_for(async {
        let cluster = cluster(&args.cluster).await?;
        let clock = clock(&cluster).await?;
        let known = known(&cluster, &args.lease_namespace).await?;
        is_known(pool, &known)?;
        warn_of_operator(&cluster).await;
        Ok(rows(&known, clock.now(), pool))
    })?;
    match args.output {
        ListOutput::Json => json(out, &json!({"items": rows}))?,
        ListOutput::Yaml => yaml(out, &json!({"items": rows}))?,
        ListOutput::Human | ListOutput::Wide => {
            table::print(out, &table::with_heads(&row::HEADS, rows.iter().map(row::Row::cells)))?;
        }
    }
    Ok(Exit::Done)
}
