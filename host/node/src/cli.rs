//! `tread node`: what an admin does on the node itself. The executable that the units of
//! the host run has nothing else.

mod adopt;
mod agent;
mod apply;
mod by_hand;
mod carry_out;
mod check;
mod elsewhere;
mod ended;
mod error;
mod fetch;
mod files;
mod follow;
mod give_up;
pub mod metrics;
mod note_boot;
mod settle;
mod show;
mod status;
mod system;
mod watch;
mod words;
mod written;

pub use agent::{AGENT_EXAMPLES, AgentArgs, Served};
pub use error::NodeError;

use adopt::AdoptArgs;
use apply::ApplyArgs;
use carry_out::{CarryOutArgs, resume};
use clap::Subcommand;
use fetch::FetchArgs;
use note_boot::NoteBootArgs;
use status::StatusArgs;
use std::process::ExitCode;
use system::RootArgs;
use watch::WatchArgs;

/// What an admin does on the node itself.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Brings this node to a config, with exactly the steps of a plan.
    #[command(after_help = apply::EXAMPLES)]
    Apply(ApplyArgs),
    /// Fetches the OS image of a config, before the node is drained; changes nothing.
    #[command(after_help = fetch::EXAMPLES)]
    Fetch(FetchArgs),
    /// Says which config this node has: how tread begins with a node.
    #[command(after_help = adopt::EXAMPLES)]
    Adopt(AdoptArgs),
    /// Resolves an operation that was cut short: forward if it was committed, else back.
    #[command(after_help = settle::EXAMPLES)]
    Settle(RootArgs),
    /// Goes on with the operation that stands, after a crash or a boot.
    #[command(after_help = carry_out::RESUME_EXAMPLES)]
    Resume,
    /// Carries out an order that was handed over: what the unit of an operation runs.
    #[command(after_help = carry_out::EXAMPLES)]
    CarryOut(CarryOutArgs),
    /// Notes that this node booted with an operation that stands: what a unit runs.
    #[command(after_help = note_boot::EXAMPLES)]
    NoteBoot(NoteBootArgs),
    /// Shows the last operation, and how this node stands.
    #[command(after_help = status::EXAMPLES)]
    Status(StatusArgs),
    /// Holds everything on the disk against the config last applied.
    #[command(after_help = check::EXAMPLES)]
    Check(RootArgs),
    /// Watches for ever whether the disk stays so; what differs is in `tread node status`.
    #[command(after_help = watch::EXAMPLES)]
    Watch(WatchArgs),
}

/// For the help of `tread node`.
pub const EXAMPLES: &str = "\
Examples:
  tread node adopt --config now.yaml                            this node has this config
  tread node apply --config next.yaml --plan plan.json          with a plan of `tread plan -o json`
  tread node status                                             how far is it?";

impl NodeCommand {
    /// Does it.
    pub fn run(&self) -> Result<ExitCode, NodeError> {
        let code = match self {
            NodeCommand::Apply(args) => args.run(),
            NodeCommand::Fetch(args) => args.run(),
            NodeCommand::Adopt(args) => args.run(),
            NodeCommand::Settle(args) => args.settle(),
            NodeCommand::Resume => resume(),
            NodeCommand::CarryOut(args) => args.run(),
            NodeCommand::NoteBoot(args) => args.run(),
            NodeCommand::Status(args) => args.run(),
            NodeCommand::Check(args) => args.check(),
            NodeCommand::Watch(args) => args.run(),
        };
        let root = self.root().and_then(RootArgs::path);
        code.map(ExitCode::from).map_err(|error| error.or_not_root().about(root))
    }

    fn root(&self) -> Option<&RootArgs> {
        match self {
            NodeCommand::Apply(args) => Some(&args.root),
            NodeCommand::Adopt(args) => Some(&args.root),
            NodeCommand::Status(args) => Some(&args.root),
            NodeCommand::Watch(args) => Some(&args.root),
            NodeCommand::Settle(root) | NodeCommand::Check(root) => Some(root),
            NodeCommand::Fetch(_)
            | NodeCommand::Resume
            | NodeCommand::CarryOut(_)
            | NodeCommand::NoteBoot(_) => None,
        }
    }
}
