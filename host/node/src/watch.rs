//! Watches whether the disk stays as a config wants it. What differs is told, and never
//! repaired; once it is mended, that is told too.
//!
//! Who is told of a change looks at the paths that it concerns and at no others. What the
//! kernel does not tell (a change by another name of the file, a mount over a folder) is
//! found by a full check every hour.

mod inotify;
mod listener;
mod paths;
mod report;
mod service;
mod timer;
mod ways;

pub use listener::Pace;
pub use paths::{Noticed, Watch};
pub use report::{Differs, Report, State};
pub use service::{ServiceError, System, serve};

#[cfg(test)]
mod tests;
