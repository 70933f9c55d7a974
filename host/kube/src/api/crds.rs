//! The definitions that the API server needs.

use super::boot_images::BootImages;
use super::disruption_plan::DisruptionPlan;
use super::disruption_policy::DisruptionPolicy;
use super::machine_config::{MachineConfig, MachineConfigPool};
use super::mirrors::{ImageContentSourcePolicy, ImageDigestMirrorSet, ImageTagMirrorSet};
use super::node_update::NodeUpdate;
use super::openshift::{ClusterVersion, MachineConfiguration};
use super::rollout::Rollout;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

/// Everything that tread may install.
pub fn crds() -> Vec<CustomResourceDefinition> {
    [own(), inputs()].concat()
}

/// tread's own objects.
pub fn own() -> Vec<CustomResourceDefinition> {
    vec![DisruptionPolicy::crd(), DisruptionPlan::crd(), BootImages::crd()]
}

/// tread's own objects where it rolls out.
pub fn enforcing() -> Vec<CustomResourceDefinition> {
    vec![NodeUpdate::crd(), Rollout::crd()]
}

/// OpenShift's objects that tread cannot do without: for clusters that have none.
pub fn inputs() -> Vec<CustomResourceDefinition> {
    vec![MachineConfig::crd(), MachineConfigPool::crd()]
}

/// OpenShift's objects that tread reads where they are: for tests, and for
/// clusters that want mirrors by these objects.
pub fn openshift() -> Vec<CustomResourceDefinition> {
    vec![
        ImageContentSourcePolicy::crd(),
        ImageDigestMirrorSet::crd(),
        ImageTagMirrorSet::crd(),
        MachineConfiguration::crd(),
        ClusterVersion::crd(),
    ]
}
