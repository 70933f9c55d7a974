//! The tread binary as a library: wiring only. What it wires is in the crates
//! `tread-model` (words and pure functions) and `tread-engine` (the sandbox).

pub mod builtins;
pub mod cases;
pub mod cli;
pub mod cluster;
pub mod inputs;
pub mod loading;
pub mod manifests;
pub mod outputs;
pub mod plan;
pub mod policies;
pub mod policy;
mod render;
pub mod serve;

use cli::{Cli, Command, PolicyCommand};
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// What a command ended with, as the exit codes in its help say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// An input cannot be read, or something else went wrong.
    Error = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The plan is more disruptive than allowed.
    TooDisruptive = 3,
    /// A running node cannot take the change.
    Refused = 4,
}

/// A command line that clap cannot tell is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Does what the command line asks, and says how that went.
pub fn run(cli: Cli) -> ExitCode {
    let serves = matches!(cli.command, Command::Serve(_));
    if let Err(error) = start_log(serves) {
        return failed(&error.into());
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done = match &cli.command {
        Command::Plan(args) if !args.file.is_empty() => cluster::preview::run(args, &mut out),
        Command::Plan(args) => plan::run(args, &mut out),
        Command::Plans(args) => cluster::plans::run(args, &mut out),
        Command::BootImages(args) => cluster::boot_images::run(args, &mut out),
        Command::Policies(args) if args.asks_cluster() => {
            cluster::policies::run(&args.cluster, args.output, &mut out)
        }
        Command::Policies(args) => policies::run(args, &mut out),
        Command::Policy { command: PolicyCommand::Build { dir, from, output } } => {
            policy::run_build(dir, from.as_deref(), output.as_deref(), &mut out)
        }
        Command::Policy { command: PolicyCommand::Rules(args) } => {
            policy::rules::run(args, &mut out)
        }
        Command::Policy { command: PolicyCommand::New(args) } => policy::new::run(args, &mut out),
        Command::Policy { command: PolicyCommand::Test(args) } => policy::test::run(args, &mut out),
        Command::Policy { command: PolicyCommand::Inspect(args) } => {
            policy::inspect::run(args, &mut out)
        }
        Command::Policy { command: PolicyCommand::Bench(args) } => {
            policy::bench::run(args, &mut out)
        }
        Command::Policy { command: PolicyCommand::Pack(args) } => policy::pack::run(args, &mut out),
        Command::Policy { command: PolicyCommand::Unpack(args) } => {
            policy::unpack::run(args, &mut out)
        }
        Command::Policy { command: PolicyCommand::Prebuilt { check, into, tree } } => {
            policy::run_prebuilt(tree, *check, into.as_deref(), &mut out)
        }
        Command::Manifests(args) => manifests::run(args, &mut out),
        Command::Serve(args) => serve::run(args),
        Command::CompileModule => policy::run_compile_module(),
    };
    let done = done.and_then(|exit| {
        unless_nobody_reads(out.flush().map_err(anyhow::Error::from))?;
        Ok(exit)
    });
    match done {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) if is_broken_pipe(&error) => ExitCode::from(Exit::Done as u8),
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    let usage = error.downcast_ref::<UsageError>().is_some();
    // Nothing is left to do if standard error is gone as well.
    let _ = writeln!(io::stderr(), "{}", render::error(error));
    ExitCode::from(if usage { Exit::Usage } else { Exit::Error } as u8)
}

/// Tells an admin something beside the output.
fn warn(message: &str) {
    // What a path or a config says must not drive the terminal.
    let _ = writeln!(io::stderr(), "warning: {}", render::fit(message));
}

/// Whoever reads the output may have seen enough: that is no error, and does
/// not change how the command ends.
fn unless_nobody_reads(written: anyhow::Result<()>) -> anyhow::Result<()> {
    written.or_else(|error| if is_broken_pipe(&error) { Ok(()) } else { Err(error) })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Starts logging at the level that `TREAD_LOG` names. A service logs more, and
/// for machines unless a person watches.
fn start_log(serves: bool) -> Result<(), UsageError> {
    let level = match std::env::var_os("TREAD_LOG") {
        None if serves => LevelFilter::INFO,
        None => LevelFilter::WARN,
        Some(level) => log_level(&level.to_string_lossy())?,
    };
    let terminal = io::stderr().is_terminal();
    let coloured = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // What fails there tread says itself, in its own words.
    let others = if level >= LevelFilter::DEBUG { level } else { LevelFilter::OFF };
    // Whoever asks once is told in one sentence, and not for each watch.
    let asked = if serves || level >= LevelFilter::DEBUG { level } else { LevelFilter::OFF };
    let spoken = Targets::new().with_default(level).with_targets([
        ("kube_client", others),
        ("kube_runtime", others),
        ("tower", others),
        ("tread_kube::watching", asked),
        ("tread_cluster::policies::registry::jobs", asked),
    ]);
    let log = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let log = match (serves, terminal) {
        (true, false) => log.json().flatten_event(true).boxed(),
        (true, true) => log.with_ansi(coloured).boxed(),
        (false, _) => log.with_target(false).with_ansi(coloured).boxed(),
    };
    tracing_subscriber::registry().with(log.with_filter(spoken)).init();
    Ok(())
}

fn log_level(text: &str) -> Result<LevelFilter, UsageError> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "" | "warn" => LevelFilter::WARN,
        "off" => LevelFilter::OFF,
        "error" => LevelFilter::ERROR,
        "info" => LevelFilter::INFO,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        other => {
            let message = format!(
                "TREAD_LOG is {other:?}: write off, error, warn, info, debug or trace, or unset it"
            );
            return Err(UsageError(message));
        }
    })
}
