//! The binary: the process's edges around the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    tread::run(tread::cli::parse())
}
