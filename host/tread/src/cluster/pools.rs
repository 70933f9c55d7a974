//! `tread pools`

mod admit;
mod check;
mod explain;
mod said;
mod shown;
mod stub;

use super::connect::{ClusterArgs, cluster, wait_for};
use super::listing::Listing;
use super::rollouts::NOT_KNOWN;
use crate::render::output::ListOutput;
use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use said::{machines, stray};
use serde_json::json;
use std::io::Write;
use tread_cluster::membership::gather::{DAEMON_SETS, Gathered, POOLS, gather};
use tread_cluster::membership::listed::rows;
use tread_console::exit::{Exit, unless_nobody_reads};
use tread_console::print::{json, line, warn, yaml};
use tread_console::table;
use tread_kube::asking::CallOutcome;

const EXAMPLES: &str = "\
Examples:
  tread pools
      How many nodes has each pool, which of them are elsewhere, and what is about to happen?
  tread pools explain infra-7
      Why does this node count where it does?
  tread pools admit infra-7 --pool infra
      A node that registered as joining and is held: let it in.
  tread pools stub infra | kubectl apply -f -
      The user data with which machines boot into this pool.
  tread pools check
      Will new machines belong to the pool that they boot into? For a pipeline.

Exit codes:
  0  done; check: the nodes of every MachineSet will count in the pool that they boot into
  1  something went wrong, or not all may be read; check: it cannot be told
  2  the command line is wrong
  3  check: machines will boot into one pool and count in another, be held, or be refused

HELD: it selects them, or they claim to be its own, and they count in no pool; STRAYED: they booted into it and count in another
pool, which is about to give them its own config.";

/// The arguments of `tread pools`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct PoolsArgs {
    /// What to do; none: list them.
    #[command(subcommand)]
    pub command: Option<PoolsCommand>,
    /// How and of what.
    #[command(flatten)]
    pub asked: Listing,
}

/// What can be done besides listing.
#[derive(Debug, Subcommand)]
pub enum PoolsCommand {
    /// Says why a node counts where it does.
    #[command(after_help = explain::EXAMPLES)]
    Explain {
        /// Its name
        #[arg(value_name = "NODE")]
        node: String,
        /// How and of what.
        #[command(flatten)]
        asked: Listing,
    },
    /// Lets a node in that registered as joining, and is held.
    #[command(after_help = admit::EXAMPLES)]
    Admit {
        /// Its name
        #[arg(value_name = "NODE")]
        node: String,
        /// The pool that it is to be of
        #[arg(long, value_name = "POOL")]
        pool: String,
        /// Which cluster.
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// Prints the Secret of the user data with which machines boot into a pool.
    #[command(after_help = stub::EXAMPLES)]
    Stub {
        /// The pool
        #[arg(value_name = "POOL")]
        pool: String,
        /// Exchange the pool's token first: machines that have the former token are still served,
        /// until --end-overlap ends that. It is exchanged once; after that, the command without this
        /// prints the newest token again
        #[arg(long, conflicts_with = "end_overlap")]
        renew: bool,
        /// Stop serving machines that have the former token. Nothing else is printed
        #[arg(long)]
        end_overlap: bool,
        /// Where tread runs
        #[arg(long, default_value = "tread-system", value_parser = crate::namespace::namespace)]
        namespace: String,
        /// Where the Secret is to be
        #[arg(long, value_name = "NAMESPACE", default_value = "openshift-machine-api", value_parser = crate::namespace::namespace)]
        secret_namespace: String,
        /// What it is called [default: POOL-user-data-tread]
        #[arg(long, value_name = "NAME")]
        secret_name: Option<String>,
        /// Which cluster.
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// Says whether new machines will belong to the pool that they boot into.
    #[command(after_help = check::EXAMPLES)]
    Check {
        /// Where tread runs, if it serves machines
        #[arg(long, default_value = "tread-system", value_parser = crate::namespace::namespace)]
        namespace: String,
        /// How and of what.
        #[command(flatten)]
        asked: Listing,
    },
}

/// Lists, explains or checks.
pub fn run(args: &PoolsArgs, out: &mut impl Write) -> Result<Exit> {
    match &args.command {
        None => list(&wait_for(known(&args.asked))?, args.asked.output, out),
        Some(PoolsCommand::Explain { node, asked }) => {
            let gathered = wait_for(known(asked))?;
            explain::run(&gathered, node, asked.output, out)
        }
        Some(PoolsCommand::Admit { node, pool, cluster: of }) => {
            wait_for(async { admit::admit(&cluster(of).await?, node, pool, out).await })
        }
        Some(PoolsCommand::Stub {
            pool,
            renew,
            end_overlap,
            namespace,
            secret_namespace,
            secret_name,
            cluster: of,
        }) => {
            let token = match (renew, end_overlap) {
                (true, _) => stub::Token::Renew,
                (_, true) => stub::Token::EndOverlap,
                _ => stub::Token::Stays,
            };
            let secret_name = secret_name.as_deref();
            let secret = stub::Stub { namespace, secret_namespace, secret_name, token };
            wait_for(async { stub::stub(&cluster(of).await?, pool, secret, out).await })
        }
        Some(PoolsCommand::Check { namespace, asked }) => {
            let checked = wait_for(async {
                let client = cluster(&asked.cluster).await?.client;
                let gathered = known(asked).await?;
                Ok(check::check(&client, namespace, &gathered).await)
            })?;
            check::said(&checked, asked.output, out)
        }
    }
}

/// What was found; what could not be listed besides is told of.
async fn known(asked: &Listing) -> Result<Gathered> {
    let cluster = cluster(&asked.cluster).await?;
    let gathered = gather(&cluster.client).await;
    let gathered = gathered.map_err(|(what, failed)| match failed.outcome {
        CallOutcome::Forbidden => anyhow!("{}", forbidden(what)),
        _ => cluster.failed(what, &failed),
    })?;
    for (what, failed) in &gathered.unlisted {
        warn(&match failed.outcome {
            CallOutcome::Forbidden => forbidden(what),
            _ => format!("{what} cannot be listed: {failed}"),
        });
        if *what == DAEMON_SETS {
            warn(NOT_KNOWN);
        }
    }
    // What that means for pools they say themselves.
    for (kind, what) in gathered.unreadable.iter().filter(|(kind, _)| *kind != POOLS) {
        warn(&format!(
            "{kind} {what}; it is left out: a newer version of tread may have written it"
        ));
    }
    for pool in gathered.cluster.pools.values() {
        for problem in pool.problems() {
            warn(&format!("MachineConfigPool {}: {problem}", pool.name));
        }
    }
    Ok(gathered)
}

/// What to do about it.
fn forbidden(what: &str) -> String {
    format!(
        "you may not list {what}: an admin can bind the ClusterRole cluster-reader to you, or tread's \
         tread-read.NAMESPACE (tread-read.tread-system, unless tread is installed in another namespace)"
    )
}

fn list(gathered: &Gathered, output: ListOutput, out: &mut impl Write) -> Result<Exit> {
    unless_nobody_reads(print(gathered, output, out))?;
    let is_whole = gathered.unlisted.is_empty() && gathered.unreadable.is_empty();
    Ok(if is_whole { Exit::Done } else { Exit::Error })
}

fn print(gathered: &Gathered, output: ListOutput, out: &mut impl Write) -> Result<()> {
    let (strays, foretold) = (gathered.strays(), gathered.foretold());
    let rows = rows(gathered, &strays);
    let value = || {
        json!({
            "items": rows,
            "held": gathered.held,
            "missing": gathered.missing,
            "strays": strays.iter().map(stray).collect::<Vec<_>>(),
            "machineSets": foretold.iter().map(machines).collect::<Vec<_>>(),
        })
    };
    match output {
        ListOutput::Json => json(out, &value())?,
        ListOutput::Yaml => yaml(out, &value())?,
        ListOutput::Human | ListOutput::Wide => {
            let heads =
                ["NAME", "NODES", "UPDATED", "HELD", "STRAYED", "DEGRADED", "CONFIG", "PLAN"];
            let cells = rows.iter().map(|row| {
                let paused = if row.paused { " (paused)" } else { "" };
                let numbers = [row.nodes, row.updated, row.held, row.strayed, row.degraded];
                let mut cells = vec![format!("{}{paused}", row.name)];
                cells.extend(numbers.map(|number| number.to_string()));
                let none = || "-".to_owned();
                cells.push(row.config.clone().unwrap_or_else(none));
                cells.push(row.plan.clone().unwrap_or_else(none));
                cells
            });
            table::print(out, &table::with_heads(&heads, cells))?;
            for held in &gathered.held {
                let claims = held.claims.as_deref().unwrap_or("no pool that is there");
                let (node, claims) = (line(&held.node), line(claims));
                writeln!(
                    out,
                    "\nNode {node} is held ({}), and claims {claims}.",
                    line(&held.reason)
                )?;
                writeln!(out, "  {}", line(&held.message))?;
            }
            for (pool, missing) in &gathered.missing {
                writeln!(out, "\nMachines of pool {} have registered no node:", line(pool))?;
                for it in missing {
                    let (from, at) = (line(&it.address), line(&it.fetched));
                    writeln!(out, "  {from} fetched its config at {at}")?;
                }
            }
            for stray in &strays {
                writeln!(out, "\n{}.", line(&stray.says()))?;
                writeln!(out, "  {}", line(&stray.ends()))?;
            }
            for (key, it) in &foretold {
                let resource = format!("{}/{}", key.namespace, key.name);
                writeln!(out, "\n{}.", line(&it.says(&resource)))?;
                writeln!(out, "  {}", line(&it.prevents(key)))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_console::exit::StandardOutput;

    #[test]
    fn a_list_that_is_not_whole_ends_with_1_also_if_nobody_reads_it() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut out = StandardOutput(writer);
        let odd = ("rollouts", "worker: spec.haltAfter: expected a number".to_owned());
        let part = Gathered { unreadable: vec![odd], ..Gathered::default() };
        for (gathered, expected) in [(Gathered::default(), Exit::Done), (part, Exit::Error)] {
            for output in [ListOutput::Human, ListOutput::Json, ListOutput::Yaml] {
                assert_eq!(list(&gathered, output, &mut out).unwrap(), expected);
            }
        }
    }
}
