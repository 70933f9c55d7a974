//! The binary of the image: `tread` with another allocator.

use std::process::ExitCode;

/// How it is set stands in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    tread::run(tread::cli::parse())
}
