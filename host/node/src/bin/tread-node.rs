//! The program that runs on a host: `tread node` alone, without policies and clusters.

use clap::Parser;
use std::io::Write as _;
use std::process::ExitCode;
use tread_node::cli::NodeCommand;

/// Brings a node from one config to another, with exactly the steps of a plan.
#[derive(Debug, Parser)]
#[command(name = "tread", version, disable_help_subcommand = true)]
enum Command {
    /// What to do on this node.
    Node {
        /// What to do on this node.
        #[command(subcommand)]
        command: NodeCommand,
    },
}

fn main() -> ExitCode {
    let Command::Node { command } = Command::parse();
    command.run().unwrap_or_else(|error| {
        // Whoever closed standard error does not hear it.
        let _ = writeln!(std::io::stderr(), "error: {error}");
        ExitCode::FAILURE
    })
}
