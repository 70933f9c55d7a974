//! `tread rollout`: how far rollouts are, and what an admin does about them.

mod change;
mod status;
mod stop;

use super::connect::{ClusterArgs, cluster, wait_for};
use super::listing::Listing;
use super::rollouts::{chosen, progress, rollouts, warn_of_operator};
use anyhow::Result;
use change::{Request, make};
use clap::{Args, Subcommand};
use k8s_openapi::jiff::SignedDuration;
use std::io::Write;
use std::time::Duration;
use tread_console::exit::Exit;
use tread_kube::node_lease::NAMESPACE;

/// For the help of `tread rollout`.
pub const EXAMPLES: &str = "\
Examples:
  tread rollout status
      How far is each pool, and why does it not go on?
  tread rollout pause worker
      No more nodes of the pool are begun; those that are under way finish.
  tread rollout resume worker
      It goes on.
  tread rollout retry worker
      Nodes that failed are begun again, once you saw why they did.
  tread rollout stop
      Before it is removed: pauses all pools, and waits until no node is under way.

Exit codes:
  0  done; stop: nothing is under way, and no cordon and no Lease of tread's is left
  1  something went wrong, or tread rolls out nothing in the cluster
  2  the command line is wrong, or there is no such pool
  3  stop: something is left, and it says what

Whoever pauses, resumes, retries or stops needs the right to patch rollouts.tread.dev.";

/// What can be done with rollouts.
#[derive(Debug, Subcommand)]
pub enum RolloutCommand {
    /// Says who is next, who waits, and for whom.
    #[command(
        after_help = "Examples:\n  tread rollout status\n  tread rollout status worker\n  tread rollout status worker -o json"
    )]
    Status {
        /// The pool; none: all, a line each
        pool: Option<String>,
        /// How and of what.
        #[command(flatten)]
        asked: Listing,
    },
    /// Begins no more nodes; those that are under way finish.
    #[command(after_help = "Examples:\n  tread rollout pause worker\n  tread rollout pause --all")]
    Pause(Pools),
    /// Goes on after a pause.
    #[command(
        after_help = "Examples:\n  tread rollout resume worker\n  tread rollout resume --all"
    )]
    Resume(Pools),
    /// Begins nodes again that failed before now, and goes on with soft changes that a failed step
    /// stopped.
    #[command(after_help = "Examples:\n  tread rollout retry worker")]
    Retry(Pools),
    /// Pauses pools, and waits until none of their nodes is under way.
    #[command(
        after_help = "Examples:\n  tread rollout stop\n  tread rollout stop worker --timeout 10m\n\nWhat is left after that is listed, and the exit code is 3: nodes that are not done yet, and those that\nfailed, which nobody uncordons for you."
    )]
    Stop {
        /// The pools; none: all
        #[arg(value_name = "POOL")]
        pools: Vec<String>,
        /// How long to wait at most
        #[arg(long, value_name = "TIME", default_value = "1h", value_parser = span)]
        timeout: Duration,
        /// The namespace of the nodes' Leases
        #[arg(long, value_name = "NAME", default_value = NAMESPACE)]
        lease_namespace: String,
        /// Where tread runs
        #[arg(long, value_name = "NAME", default_value = "tread-system", value_parser = crate::namespace::namespace)]
        namespace: String,
        /// Which cluster.
        #[command(flatten)]
        cluster: ClusterArgs,
    },
}

/// Which pools.
#[derive(Debug, Args)]
pub struct Pools {
    /// The pools
    #[arg(value_name = "POOL", required_unless_present = "all")]
    pools: Vec<String>,
    /// All there are
    #[arg(long, conflicts_with = "pools")]
    all: bool,
    /// Which cluster.
    #[command(flatten)]
    cluster: ClusterArgs,
}

fn span(text: &str) -> Result<Duration, String> {
    let span: SignedDuration =
        text.parse().map_err(|_| "write it as 90s, 10m or 1h 30m".to_owned())?;
    Duration::try_from(span).map_err(|_| "it lies in the past".to_owned())
}

/// Does what is asked.
pub fn run(command: &RolloutCommand, out: &mut impl Write) -> Result<Exit> {
    match command {
        RolloutCommand::Status { pool, asked } => {
            let known = wait_for(async {
                let cluster = cluster(&asked.cluster).await?;
                let known = progress(&cluster).await?;
                warn_of_operator(&cluster).await;
                Ok(known)
            })?;
            status::print(out, &known, pool.as_deref(), asked.output)?;
            Ok(Exit::Done)
        }
        RolloutCommand::Pause(pools) => change(out, pools, Request::Pause),
        RolloutCommand::Resume(pools) => change(out, pools, Request::Resume),
        RolloutCommand::Retry(pools) => change(out, pools, Request::Retry),
        RolloutCommand::Stop { pools, timeout, lease_namespace, namespace, cluster: args } => {
            wait_for(async {
                let cluster = cluster(args).await?;
                stop::run(out, cluster, pools, *timeout, (lease_namespace, namespace)).await
            })
        }
    }
}

fn change(out: &mut impl Write, pools: &Pools, request: Request) -> Result<Exit> {
    wait_for(async {
        let cluster = cluster(&pools.cluster).await?;
        let there = rollouts(&cluster).await?;
        let chosen = chosen(&there, &pools.pools)?;
        for name in chosen {
            make(out, &cluster, &there, &name, request).await?;
        }
        warn_of_operator(&cluster).await;
        Ok(Exit::Done)
    })
}
