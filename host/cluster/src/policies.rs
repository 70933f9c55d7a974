//! Who decides: from ConfigMaps and DisruptionPolicy objects to the policies
//! that take part in plans.
//!
//! What is decided here is decided by pure functions over a [`Snapshot`] of the
//! cluster, so that every replica decides alike.

pub mod choose;
pub mod current;
pub mod kept;
pub mod load;
pub mod material;
pub mod names;
pub(crate) mod read;
pub mod register;
pub mod registry;
pub mod snapshot;
pub mod status;

pub use snapshot::Snapshot;
