//! The binary: the process's edges around the library.

use std::process::ExitCode;

/// How it is set stands in `.cargo/config.toml`.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    tread::run(tread::cli::parse())
}
