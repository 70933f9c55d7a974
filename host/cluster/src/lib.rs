//! Kubernetes: the custom resources of tread, and the controllers that read and
//! write them.

#![allow(
    clippy::duplicated_attributes,
    reason = "each printer column of a custom resource has its own"
)]

pub mod admission;
pub mod api;
pub mod boot_images;
pub mod clean;
pub mod client;
pub mod events;
pub mod http;
pub mod installations;
pub mod leadership;
pub mod listed;
pub mod manifests;
pub mod metrics;
pub mod plans;
pub mod policies;
pub mod pools;
pub mod previews;
pub mod shutdown;
pub mod told;
pub mod watching;
pub mod whole;
