//! What the command line asks a cluster.

mod connect;
mod objects;
pub mod plans;
pub mod policies;
pub mod preview;

pub use connect::ClusterArgs;
