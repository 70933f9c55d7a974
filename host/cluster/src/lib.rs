//! What is known of a cluster, and foretold of it: pools, policies, previews, plans
//! and boot images.

pub mod boot_images;
pub mod flags;
pub mod index;
pub mod labels;
pub mod listed;
pub mod membership;
pub mod plans;
pub mod policies;
pub mod pools;
pub mod previews;
mod updates;
pub mod weight;
