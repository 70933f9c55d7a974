//! `tread-measure`: what `tread serve` takes on a large cluster, and how fast it
//! answers there.

mod agents;
mod audit;
mod cluster;
mod enforcing;
mod figures;
mod limit;
mod pools;
mod process;
mod warnings;

use anyhow::{Context, Result};
use clap::Parser;
use cluster::Cluster;
use figures::{Figures, megabytes, milliseconds};
use process::Tread;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// What tread serve takes on a large cluster, and how fast it answers there.
///
/// It starts a control plane of its own, fills it, runs the given tread beside
/// it, and prints a table. It takes some minutes.
#[derive(Parser)]
#[command(name = "tread-measure", verbatim_doc_comment)]
struct Arguments {
    /// The tread to measure
    #[arg(long, value_name = "FILE")]
    tread: PathBuf,
    /// A policy to ship again and again, each time as another one
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// What many pools cost, and nothing of previews and warnings: the start, memory, one more
    /// pool, and how soon a node that strays is told of
    #[arg(long)]
    only_pools: bool,
    /// What the mode enforce takes where all nodes have what they are to have, and nothing of
    /// previews and warnings
    #[arg(long, conflicts_with = "only_pools")]
    only_enforcing: bool,
    /// How many nodes there are
    #[arg(long, default_value_t = 5000)]
    nodes: usize,
    /// How many pools
    #[arg(long, default_value = "50", default_value_if("only_pools", "true", "500"))]
    pools: usize,
    /// How many MachineConfigs
    #[arg(long, default_value_t = 500)]
    configs: usize,
    /// How many policies, the built-in ones included
    #[arg(long, default_value_t = 100)]
    policies: usize,
    /// How often each answer is timed
    #[arg(long, default_value = "100", default_value_if("only_pools", "true", "20"))]
    times: usize,
    /// Without the memory limit that its pod has
    #[arg(long)]
    without_limit: bool,
    /// For how many seconds it is watched at rest
    #[arg(long, default_value_t = 60)]
    rest: u64,
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime
        .context("cannot start threads")
        .and_then(|runtime| runtime.block_on(run(&Arguments::parse())));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "tread-measure: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<()> {
    let cluster = Cluster::start(arguments.pools).await?;
    let ports = match arguments.only_enforcing {
        true => enforcing::install(&arguments.tread, &cluster)?,
        false => process::install(&arguments.tread, &cluster)?,
    };
    say("filling the cluster");
    cluster.fill(arguments.nodes, arguments.configs, arguments.only_enforcing).await?;
    let builtins = 7;
    cluster.policies(&arguments.policy, arguments.policies.saturating_sub(builtins)).await?;

    if arguments.only_pools {
        cluster.machine_sets().await?;
    }

    say("starting tread");
    let begun = Instant::now();
    let tread = Tread::start(&arguments.tread, &cluster, ports, !arguments.without_limit)?;
    tread.ready().await?;
    let ready = begun.elapsed();
    let at_start = tread.memory()?;
    let mut figures = Figures::default();
    let limit = if arguments.only_pools {
        pools::START.as_millis().to_string() + " ms"
    } else {
        String::new()
    };
    figures.row("ready after the start", milliseconds(ready), &limit);
    figures.row("  tread's processor time for it", milliseconds(tread.spent()?), "");
    figures.row("resident when ready", megabytes(at_start.resident), "");
    if arguments.only_pools {
        let late = format!("it is ready after {}", milliseconds(ready));
        figures.promised(ready <= pools::START, late);
        pools::measure(arguments, &cluster, &tread, &mut figures).await?;
    } else if arguments.only_enforcing {
        enforcing::measure(arguments, &cluster, &tread, &mut figures).await?;
        let port = ports.agents.context("agents have no port")?;
        agents::measure(&cluster, &tread, port, &mut figures).await?;
    } else {
        warnings::measure(arguments, &cluster, &tread, &mut figures).await?;
    }
    figures.print()
}

fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "tread-measure: {what}");
}
