//! OpenShift's object, as its API takes it.

use super::entry::Act;
use crate::openshift::api::API_VERSION;
use serde::Serialize;

/// OpenShift's object.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineConfiguration {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: Spec,
}

impl MachineConfiguration {
    /// The one that OpenShift reads, with nothing but this policy.
    pub(super) fn of(policy: NodeDisruptionPolicy) -> MachineConfiguration {
        MachineConfiguration {
            api_version: API_VERSION,
            kind: "MachineConfiguration",
            metadata: Metadata { name: "cluster" },
            spec: Spec { node_disruption_policy: policy },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Metadata {
    name: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_disruption_policy: NodeDisruptionPolicy,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct NodeDisruptionPolicy {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<FileEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) units: Vec<UnitEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sshkey: Option<KeyEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct FileEntry {
    pub(super) path: String,
    pub(super) actions: Vec<Act>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct UnitEntry {
    pub(super) name: String,
    pub(super) actions: Vec<Act>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct KeyEntry {
    pub(super) actions: Vec<Act>,
}
