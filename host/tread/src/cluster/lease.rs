//! `tread lease`: nodes are shared by Leases, and people take part.

mod held;
mod hold;
mod waiting;

use super::connect::{ClusterArgs, cluster, in_words, wait_for};
use crate::render::output::ListOutput;
use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::jiff::SignedDuration;
use kube::Api;
use kube::api::PostParams;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;
use tread_console::exit::{StandardOutput, nobody_reads};
use tread_console::print::{json, line, yaml};
use tread_console::table;
use tread_enforce::by_hand::{Hand, NotTaken};
use tread_kube::asking::{Call, CallOutcome, ask};
use tread_kube::dated::shown;
use tread_kube::metrics::Metrics;
use tread_kube::node_lease::NAMESPACE;
use tread_model::protocol::Terms;

/// For the help of `tread lease`.
pub const EXAMPLES: &str = "\
Examples:
  tread lease list
      Who holds which node, since when, until when, and why?
  tread lease acquire node-7 --for 2h --reason 'a disk is changed'
      Keeps tread, medik8s and whoever else takes part away from the node.
  tread lease release node-7
      Gives it back.
  tread lease hold node-7 --wait 10m -- ./firmware-update node-7
      Runs a command while the node is held, and gives it back in the end.

Exit codes:
  0    done
  1    something went wrong
  2    the command line is wrong
  3    somebody else holds the node
  hold ends as its command does, with 125 where the command cannot be run, somebody else has the node, or
  it was lost, and with 1 where the node could not be asked for: no such node, no right to it, no cluster.

Leases are those of medik8s: `node-NODE` in the namespace medik8s-leases. Whoever uses this needs
the rights to get nodes, and to get, list, watch, create, update and delete Leases there.";

/// What can be done with Leases.
#[derive(Debug, Subcommand)]
pub enum LeaseCommand {
    /// Lists who holds which node.
    #[command(after_help = "Examples:\n  tread lease list\n  tread lease list -o json")]
    List {
        /// How to print it
        #[arg(short, long, value_enum, default_value_t = ListOutput::Human)]
        output: ListOutput,
        /// Where.
        #[command(flatten)]
        place: Place,
    },
    /// Takes a node's Lease, or makes it last longer.
    #[command(
        after_help = "Examples:\n  tread lease acquire node-7 --for 2h --reason 'a disk is changed'"
    )]
    Acquire {
        /// The node
        node: String,
        /// How long to hold it
        #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = span)]
        lasts: Duration,
        /// How.
        #[command(flatten)]
        taking: Taking,
    },
    /// Runs a command while a node is held, and gives it back in the end.
    #[command(
        after_help = "Examples:\n  tread lease hold node-7 -- ./firmware-update node-7\n  tread lease hold node-7 --wait 10m --reason firmware -- ./firmware-update --all"
    )]
    Hold {
        /// The node
        node: String,
        /// For how long others stay away if this program is killed; it is renewed meanwhile
        #[arg(long = "for", value_name = "TIME", default_value = "5m", value_parser = span)]
        lasts: Duration,
        /// How.
        #[command(flatten)]
        taking: Taking,
        /// The command, and its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Gives a node back.
    #[command(after_help = "Examples:\n  tread lease release node-7")]
    Release {
        /// The node
        node: String,
        /// Who.
        #[command(flatten)]
        who: Who,
    },
}

/// Which cluster, and where its Leases are.
#[derive(Debug, Clone, Args)]
pub struct Place {
    /// The namespace of the nodes' Leases
    #[arg(long, value_name = "NAME", default_value = NAMESPACE)]
    lease_namespace: String,
    /// Which cluster.
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Who takes a Lease, and where.
#[derive(Debug, Clone, Args)]
pub struct Who {
    /// What to be called as the holder [default: the user of the kubeconfig]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    holder: Option<String>,
    /// Where.
    #[command(flatten)]
    place: Place,
}

/// How a Lease is taken.
#[derive(Debug, Clone, Args)]
pub struct Taking {
    /// What for, in words: others see it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// How long to wait for somebody else who holds it
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = wait)]
    wait: Duration,
    /// Who.
    #[command(flatten)]
    who: Who,
}

/// The longest that a Lease is taken for.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The shortest: somebody has to be able to renew it.
const SHORTEST: Duration = Duration::from_secs(10);
/// Somebody else holds it.
const HELD: u8 = 3;

fn wait(text: &str) -> Result<Duration, String> {
    let span: SignedDuration =
        text.parse().map_err(|_| "write it as 90s, 10m or 1h 30m".to_owned())?;
    let span = Duration::try_from(span).map_err(|_| "it lies in the past".to_owned())?;
    match span <= LONGEST {
        true => Ok(span),
        false => Err("30 days is the longest".to_owned()),
    }
}

fn span(text: &str) -> Result<Duration, String> {
    match wait(text)? {
        span if span < SHORTEST => Err("10s is the shortest".to_owned()),
        span => Ok(span),
    }
}

/// Does what is asked.
pub fn run(command: &LeaseCommand) -> Result<ExitCode> {
    let mut out = StandardOutput(io::stdout().lock());
    let done = of(command, &mut out);
    match done {
        // What was done stays done.
        Err(error) if nobody_reads(&error) => Ok(ExitCode::SUCCESS),
        done => done,
    }
}

fn of(command: &LeaseCommand, mut out: &mut impl Write) -> Result<ExitCode> {
    match command {
        LeaseCommand::List { output, place } => {
            let (leases, now) = wait_for(async {
                let hand = hand(place, String::new()).await?;
                hand.list().await.map_err(|failed| rights(&hand, &failed))
            })?;
            let rows = held::rows(&leases, now, &Terms::default());
            match output {
                ListOutput::Json => json(&mut out, &held::items(&rows))?,
                ListOutput::Yaml => yaml(&mut out, &held::items(&rows))?,
                ListOutput::Human | ListOutput::Wide => {
                    let heads = ["NODE", "HOLDER", "STATE", "SINCE", "UNTIL", "REASON"];
                    let cells = rows.iter().map(held::Row::cells);
                    table::print(&mut out, &table::with_heads(&heads, cells))?;
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        LeaseCommand::Acquire { node, lasts, taking } => wait_for(async {
            let hand = named(&taking.who).await?;
            let reason = taking.reason.as_deref();
            match waiting::acquire(&hand, node, *lasts, reason, taking.wait).await {
                Ok((got, _)) => {
                    writeln!(
                        out,
                        "{node} is held by {} until {}",
                        line(&hand.holder),
                        shown(got.ends)
                    )?;
                    Ok(ExitCode::SUCCESS)
                }
                Err(why) => not_taken(&hand, node, why),
            }
        }),
        LeaseCommand::Release { node, who } => wait_for(async {
            let hand = named(who).await?;
            match hand.release(node).await {
                Ok(true) => writeln!(out, "{node} is given back")?,
                Ok(false) => writeln!(out, "nobody holds {node}")?,
                Err(why) => return not_taken(&hand, node, why),
            }
            Ok(ExitCode::SUCCESS)
        }),
        LeaseCommand::Hold { node, lasts, taking, command } => wait_for(async {
            let mut hand = named(&taking.who).await?;
            hand.holder = hold::holder(&hand.holder)?;
            let reason = taking.reason.as_deref();
            match waiting::acquire(&hand, node, *lasts, reason, taking.wait).await {
                Ok((_, asked)) => hold::run(&hand, node, (asked, *lasts), command).await,
                Err(why) => not_taken(&hand, node, why).map(|_| ExitCode::from(hold::NOT_RUN)),
            }
        }),
    }
}

fn not_taken(hand: &Hand, node: &str, why: NotTaken) -> Result<ExitCode> {
    match why {
        NotTaken::Held(by) => {
            tread_console::print::warn(&format!("{node} is not free: {by}"));
            Ok(ExitCode::from(HELD))
        }
        NotTaken::Failed(failed) => Err(rights(hand, &failed)),
        why => Err(anyhow!("{why}")),
    }
}

fn rights(hand: &Hand, failed: &tread_kube::asking::Failed) -> anyhow::Error {
    match failed.can_i() {
        Some(asked) => anyhow!(
            "{failed}: an admin has to grant it to you; `{asked}` says whether it is granted"
        ),
        None => anyhow!("the Leases in {}: {}", hand.namespace, in_words(failed)),
    }
}

async fn hand(place: &Place, holder: String) -> Result<Hand> {
    let client = cluster(&place.cluster).await?.client;
    let namespace = place.lease_namespace.clone();
    Ok(Hand { client, metrics: Metrics::new(), namespace, holder, terms: Terms::default() })
}

/// With the name of whoever asks, if they say no other.
async fn named(who: &Who) -> Result<Hand> {
    let mut hand = hand(&who.place, who.holder.clone().unwrap_or_default()).await?;
    if hand.holder.is_empty() {
        let reviews: Api<SelfSubjectReview> = Api::all(hand.client.clone());
        let (params, review) = (PostParams::default(), SelfSubjectReview::default());
        let call = Call::new("create", "selfsubjectreviews");
        let asked = ask(&hand.metrics, call, reviews.create(&params, &review)).await;
        let review = asked.map_err(|failed| match failed.outcome {
            CallOutcome::Forbidden | CallOutcome::Gone => anyhow!(
                "who you are cannot be asked: {failed}; say what to be called: --holder NAME"
            ),
            _ => anyhow!("who you are cannot be asked: {}", in_words(&failed)),
        })?;
        let user = review.status.and_then(|it| it.user_info).and_then(|it| it.username);
        hand.holder = user.filter(|user| !user.is_empty()).ok_or_else(|| {
            anyhow!("the cluster has no name for you; say what to be called: --holder NAME")
        })?;
    }
    Ok(hand)
}
