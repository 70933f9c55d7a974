//! Pools: which nodes they have, and which MachineConfigs, by OpenShift's rules.

mod config;
mod configs;
mod members;
mod node;
mod owner;
mod place;
mod pool;
mod rolls_out;
mod selector;
mod sources;
mod stray;
mod taints;
mod wanted;

pub(crate) use config::modified;
pub use config::{ConfigMeta, Owned};
pub use configs::Configs;
pub use members::{Member, Members};
pub use node::Node;
pub use owner::owner;
pub use place::{Place, place_of, pool_of, says_unplaced, unreadable};
pub use pool::{Configuration, MASTER, Pool, Pools, WORKER};
pub use rolls_out::RollsOut;
pub use selector::Selects;
pub use sources::{GENERATED_REGISTRIES, place, pools_of, sources};
pub use stray::{Stray, Strays, joins, unseen};
pub(crate) use stray::{joined, quoted};
pub use taints::LastingTaints;
pub use wanted::Wanted;
