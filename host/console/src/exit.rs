//! How a command ends.

use std::io;

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

/// Whoever reads the output may have seen enough: that is no error, and does
/// not change how the command ends.
pub fn unless_nobody_reads(written: anyhow::Result<()>) -> anyhow::Result<()> {
    written.or_else(|error| if is_broken_pipe(&error) { Ok(()) } else { Err(error) })
}

/// Whether whoever reads the output closed it.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
    })
}
