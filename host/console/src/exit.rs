//! How a command ends.

use std::io::{self, Write};

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
    written.or_else(|error| if nobody_reads(&error) { Ok(()) } else { Err(error) })
}

/// Whether whoever reads the output closed it. Any other pipe that breaks, such as a
/// connection, leaves undone what it was for.
pub fn nobody_reads(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inner.is_some_and(|inner| inner.is::<NobodyReads>())
    })
}

/// Standard output, whose errors say whether anybody reads it.
#[derive(Debug)]
pub struct StandardOutput<W>(pub W);

impl<W: Write> Write for StandardOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(of_output)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(of_output)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("nobody reads standard output any more")]
struct NobodyReads;

fn of_output(error: io::Error) -> io::Error {
    match error.kind() {
        kind @ io::ErrorKind::BrokenPipe => io::Error::new(kind, NobodyReads),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::json;
    use anyhow::Error;

    struct Broken;

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn only_of_standard_output_a_broken_pipe_is_no_failure() {
        let mut output = io::BufWriter::with_capacity(1, StandardOutput(Broken));
        for (error, is_output) in [
            (Error::from(writeln!(output, "many words").unwrap_err()), true),
            (Error::from(StandardOutput(Broken).flush().unwrap_err()).context("why"), true),
            (json(&mut StandardOutput(Broken), &1).unwrap_err(), true),
            (Error::from(writeln!(Broken, "many words").unwrap_err()), false),
            (json(&mut Broken, &1).unwrap_err(), false),
            (anyhow::anyhow!("another one"), false),
        ] {
            assert_eq!(nobody_reads(&error), is_output, "{error:#}");
            assert_eq!(unless_nobody_reads(Err(error)).is_ok(), is_output);
        }
    }
}
