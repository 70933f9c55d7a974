//! What the command line asks a cluster.

mod beyond;
pub mod boot_images;
mod connect;
pub mod lease;
mod listing;
pub mod nodes;
mod objects;
pub mod plans;
pub mod policies;
pub mod pools;
pub mod preview;
pub mod rollout;
mod rollouts;
mod waiting;

pub use connect::ClusterArgs;

use kube::ResourceExt;
use tread_cluster::listed::Listed;
use tread_console::print::warn;

/// Warns of what this program cannot read as a whole.
fn unreadable<K: ResourceExt>(what: &str, all: &[Listed<K>]) {
    for Listed { object, unreadable, .. } in all {
        if let Some(why) = unreadable {
            warn(&format!(
                "{what} {}: {why}; of the rest, what can be read is shown: a newer version of tread \
                 may have written it",
                object.name_any()
            ));
        }
    }
}
