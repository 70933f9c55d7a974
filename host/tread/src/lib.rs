//! The tread binary as a library: wiring only. What it wires is in the other crates
//! of the host.

pub mod acting;
pub mod agent;
pub mod cli;
pub mod cluster;
pub mod joining;
mod kubectl;
mod log;
pub mod manifests;
mod namespace;
pub mod plan;
pub mod policies;
pub mod render;
pub mod serve;
mod shipped;

use cli::{Cli, Command};
use std::io::{self, Write as _};
use std::process::ExitCode;
use tread_console::exit::{Exit, StandardOutput, UsageError, nobody_reads, unless_nobody_reads};
use tread_console::print;
use tread_loading::sandbox;

/// Does what the command line asks, and says how that went.
pub fn run(cli: Cli) -> ExitCode {
    let serves = matches!(cli.command, Command::Serve(_) | Command::Agent(_));
    if let Err(error) = log::start(serves) {
        return failed(&error.into());
    }
    // These tell what they do while they do it.
    match &cli.command {
        Command::Node { command } => return said(command.run()),
        Command::Agent(args) => return said(agent::run(args)),
        Command::Lease { command } => {
            return cluster::lease::run(command).unwrap_or_else(|error| failed(&error));
        }
        _ => {}
    }
    let mut out = io::BufWriter::new(StandardOutput(io::stdout().lock()));
    let done = match &cli.command {
        Command::Plan(args) if !args.file.is_empty() => cluster::preview::run(args, &mut out),
        Command::Plan(args) => plan::run(args, &mut out),
        Command::Plans(args) => cluster::plans::run(args, &mut out),
        Command::Pools(args) => cluster::pools::run(args, &mut out),
        Command::Nodes(args) => cluster::nodes::run(args, &mut out),
        Command::Rollout { command } => cluster::rollout::run(command, &mut out),
        Command::BootImages(args) => cluster::boot_images::run(args, &mut out),
        Command::Policies(args) if args.asks_cluster() => {
            cluster::policies::run(&args.cluster, args.output, &mut out)
        }
        Command::Policies(args) => policies::run(args, &mut out),
        Command::Policy { command } => tread_authoring::run(command, &mut out),
        Command::Manifests(args) => manifests::run(args, &mut out),
        Command::Serve(args) => serve::run(args),
        Command::Node { .. } | Command::Agent(_) | Command::Lease { .. } => Ok(Exit::Done),
        Command::CompileModule => sandbox::compile_module().map(|()| Exit::Done),
    };
    let done = done.and_then(|exit| {
        unless_nobody_reads(out.flush().map_err(anyhow::Error::from))?;
        Ok(exit)
    });
    match done {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) if nobody_reads(&error) => ExitCode::from(Exit::Done as u8),
        Err(error) => failed(&error),
    }
}

fn said(done: Result<ExitCode, tread_node::cli::NodeError>) -> ExitCode {
    done.unwrap_or_else(|error| failed(&error.into()))
}

fn failed(error: &anyhow::Error) -> ExitCode {
    let usage = error.downcast_ref::<UsageError>().is_some();
    // Nothing is left to do if standard error is gone as well.
    let _ = writeln!(io::stderr(), "{}", print::error(error));
    ExitCode::from(if usage { Exit::Usage } else { Exit::Error } as u8)
}
