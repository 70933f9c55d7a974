//! What talks to an API server: the objects as types, watching and writing them,
//! Leases, Events and metrics.

#![allow(
    clippy::duplicated_attributes,
    reason = "each printer column of a custom resource has its own"
)]

pub mod advice;
pub mod agents;
pub mod api;
pub mod asking;
pub mod budgets;
pub mod clean;
pub mod client;
pub mod dated;
pub mod errors;
pub mod events;
pub mod held;
pub mod leadership;
pub mod metrics;
pub mod node_lease;
pub mod order;
pub mod paging;
pub mod resting;
pub mod review;
mod short_watches;
pub mod watching;
pub mod whole;
