//! Pools: which nodes they have, and which MachineConfigs, by OpenShift's rules.

mod members;
mod node;
mod pool;
mod sources;

pub use members::Members;
pub use node::{Node, is_name};
pub use pool::{Configuration, Pool, Pools};
pub(crate) use sources::modified;
pub use sources::{ConfigMeta, Configs, GENERATED_REGISTRIES, place, pools_of, sources};
