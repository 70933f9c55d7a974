//! `tread-bed`: a throw-away control plane on this machine.

use std::io::Write;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Parser;
use tread_test_bed::ControlPlane;

/// A throw-away control plane on this machine, gone when the command ends.
///
/// Without a command it prints what a shell needs, and lasts until its standard
/// input is closed or it is interrupted.
///
/// Examples:
///   tread-bed --nodes 3 -- kubectl get nodes
///   tread-bed --nodes 3 -- bash
#[derive(Parser)]
#[command(name = "tread-bed", verbatim_doc_comment)]
struct Arguments {
    /// How many simulated nodes it has
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    nodes: usize,
    /// Only etcd and the API server (and kwok when there are nodes)
    #[arg(long)]
    bare: bool,
    /// What to run, with KUBECONFIG set and kubectl in the PATH
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "tread-bed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut options = ControlPlane::options();
    if !arguments.bare {
        options = options.with_scheduler();
    }
    if !arguments.bare || arguments.nodes > 0 {
        options = options.with_simulated_nodes();
    }
    let plane = options.start()?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(plane.create_nodes("node", arguments.nodes))?;
    let Some((program, rest)) = arguments.command.split_first() else {
        let mut out = std::io::stdout().lock();
        writeln!(out, "export KUBECONFIG={}", plane.kubeconfig().display())?;
        out.flush()?;
        // Whatever is typed means nothing; the end of it does.
        std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut command = Command::new(program);
    command.args(rest);
    plane.prepare(&mut command);
    let status = command.status().with_context(|| format!("cannot run {program}"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
