//! Reading the command line.

use super::{Cli, unused};
use crate::kubectl::{in_its_words, is_caller};
use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _};

/// Reads the command line. kubectl runs `kubectl-tread`, where that is found, for
/// `kubectl tread`, and its help is in those words.
pub fn parse() -> Cli {
    let mut command = match is_caller() {
        true => in_its_words(Cli::command()).bin_name("kubectl tread"),
        false => Cli::command(),
    };
    let matches = command.get_matches_mut();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match unused::without_a_cluster(&cli, &matches) {
        Some(problem) => command.error(ErrorKind::ArgumentConflict, problem).exit(),
        None => cli,
    }
}
