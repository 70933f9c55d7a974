//! Options that would do nothing: only a cluster that is asked uses them.

use super::{Cli, Command};
use clap::ArgMatches;
use clap::parser::ValueSource;

/// What is wrong with an option for a cluster where no cluster is asked.
pub(super) fn without_a_cluster(cli: &Cli, matches: &ArgMatches) -> Option<String> {
    let (_, of_command) = matches.subcommand()?;
    let (options, why): (&[&str], &str) = match &cli.command {
        Command::Plan(args) if args.file.is_empty() => (
            &["delete", "pool", "namespace", "lease_namespace", "kubeconfig", "context"],
            "is for a cluster, and OLD and NEW are compared without one: leave it out, or ask the \
             cluster what a change does there, with `tread plan -f FILE`",
        ),
        Command::Policies(args) if !args.asks_cluster() => (
            &["kubeconfig", "context"],
            "is for a cluster, and these policies are listed without one: leave it out, or add \
             --cluster",
        ),
        _ => return None,
    };
    let given = |id: &&&str| of_command.value_source(id) == Some(ValueSource::CommandLine);
    options.iter().find(given).map(|id| format!("--{} {why}", id.replace('_', "-")))
}
