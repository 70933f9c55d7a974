//! The objects that tread keeps in the cluster, and those of others that it
//! reads, as types. The definitions that the API server needs are made of them:
//! [`crds()`].

// KubeSchema repeats each struct inside of a function.
#![allow(unreachable_pub)]

pub mod boot_images;
pub mod conditions;
pub mod crds;
pub mod disruption_plan;
pub mod disruption_policy;
pub mod machine_config;
pub mod machines;
pub mod mirrors;
pub mod node_update;
pub mod openshift;
pub mod rollout;
pub mod rollout_drain;
pub mod rules;
mod schemas;
pub mod shared;
pub mod words;

pub use boot_images::{BootImages, BootImagesSpec, BootImagesStatus};
pub use crds::crds;
pub use disruption_plan::{DisruptionPlan, DisruptionPlanSpec, DisruptionPlanStatus};
pub use disruption_policy::{DisruptionPolicy, DisruptionPolicySpec, DisruptionPolicyStatus};
pub use machine_config::{
    MachineConfig, MachineConfigPool, MachineConfigPoolSpec, MachineConfigSpec, POOL_KIND,
};
pub use mirrors::{ImageContentSourcePolicy, ImageDigestMirrorSet, ImageTagMirrorSet};
pub use node_update::{NodeUpdate, NodeUpdateSpec, NodeUpdateStatus};
pub use openshift::{ClusterVersion, MachineConfiguration};
pub use rollout::{Rollout, RolloutSpec, RolloutStatus};
