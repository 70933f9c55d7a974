//! The program that runs on a host: `tread node` and `tread agent`, without policies and
//! clusters.

use clap::Parser;
use std::io::Write as _;
use std::process::ExitCode;
use tread_node::cli::{AGENT_EXAMPLES, AgentArgs, EXAMPLES, NodeCommand};

/// Brings a node from one config to another, with exactly the steps of a plan.
#[derive(Debug, Parser)]
#[command(name = "tread", version, disable_help_subcommand = true)]
enum Command {
    /// What an admin does on a node itself: applies a plan, and survives anything.
    #[command(after_help = EXAMPLES)]
    Node {
        /// What to do on this node.
        #[command(subcommand)]
        command: NodeCommand,
    },
    /// Takes orders, and attends the units of the host that carry them out.
    #[command(after_help = AGENT_EXAMPLES)]
    Agent(AgentArgs),
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Node { command } => command.run(),
        Command::Agent(args) => {
            tracing_subscriber::fmt().with_ansi(false).with_target(false).init();
            args.run()
        }
    };
    done.unwrap_or_else(|error| {
        // Whoever closed standard error does not hear it.
        let _ = writeln!(std::io::stderr(), "error: {error}");
        ExitCode::FAILURE
    })
}
