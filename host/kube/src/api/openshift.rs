//! Other objects of OpenShift, as far as tread reads them.

use super::schemas::free_object;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The one MachineConfiguration that OpenShift reads.
pub const MACHINE_CONFIGURATION: &str = "cluster";

/// How OpenShift's operator rolls out configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "operator.openshift.io",
    version = "v1",
    kind = "MachineConfiguration",
    plural = "machineconfigurations",
    derive = "PartialEq",
    derive = "Default",
    doc = "How OpenShift's operator rolls out configuration."
)]
#[serde(rename_all = "camelCase")]
pub struct MachineConfigurationSpec {
    /// What a change costs, by the operator's own rules. Kept as it is:
    /// `tread_model::openshift` reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_object")]
    pub node_disruption_policy: Option<Map<String, Value>>,
}

/// Which release the cluster runs, and which it is to run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "config.openshift.io",
    version = "v1",
    kind = "ClusterVersion",
    plural = "clusterversions",
    status = "ClusterVersionStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Which release the cluster runs, and which it is to run."
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVersionSpec {
    /// The release that an admin asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_update: Option<Release>,
}

/// A release.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// How far an update is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVersionStatus {
    /// The release that the cluster is going to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired: Option<Release>,
    /// The releases that it went to, the newest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<UpdateHistory>>,
}

/// An update.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateHistory {
    /// Completed or Partial.
    pub state: String,
    /// The version that it went to.
    pub version: String,
}
