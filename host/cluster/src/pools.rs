//! Pools: which nodes they have, and which MachineConfigs, by OpenShift's rules.

mod config;
mod configs;
mod members;
mod node;
mod pool;
mod sources;

pub use config::ConfigMeta;
pub(crate) use config::modified;
pub use configs::Configs;
pub use members::Members;
pub use node::{Node, is_name};
pub use pool::{Configuration, Pool, Pools};
pub use sources::{GENERATED_REGISTRIES, place, pools_of, sources};
