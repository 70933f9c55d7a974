//! As a plugin of kubectl: it runs `kubectl-tread`, where that is found, for
//! `kubectl tread`.

use std::path::PathBuf;

/// Whether kubectl runs this.
pub(crate) fn is_caller() -> bool {
    let called = std::env::args_os().next().map(PathBuf::from);
    called.is_some_and(|it| it.file_stem() == Some("kubectl-tread".as_ref()))
}

/// A command with examples that begin with `kubectl tread`.
pub(crate) fn in_its_words(command: clap::Command) -> clap::Command {
    let words = command.get_after_help().map(|help| help.to_string());
    let command = match words {
        Some(help) => command.after_help(help.replace("\n  tread ", "\n  kubectl tread ")),
        None => command,
    };
    command.mut_subcommands(in_its_words)
}
