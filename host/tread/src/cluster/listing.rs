//! What every command takes that lists what is in a cluster.

use super::connect::ClusterArgs;
use crate::render::output::ListOutput;
use clap::Args;

/// How it is printed, and of which cluster.
#[derive(Debug, Args)]
pub struct Listing {
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = ListOutput::Human)]
    pub output: ListOutput,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}
