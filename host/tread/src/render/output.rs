//! How a list is printed.

use clap::ValueEnum;

/// How to print a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListOutput {
    /// A table
    Human,
    /// A table, with more columns where there are any
    Wide,
    /// For a script
    Json,
    /// For a script
    Yaml,
}
