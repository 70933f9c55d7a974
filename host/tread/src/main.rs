//! The binary: the process's edges around the library.

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    tread::run(tread::cli::Cli::parse())
}
