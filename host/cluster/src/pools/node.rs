//! What has to be known of a node.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;

const CURRENT: &str = "machineconfiguration.openshift.io/currentConfig";
const TOPOLOGY: &str = "machineconfiguration.openshift.io/controlPlaneTopology";
const OS: &str = "kubernetes.io/os";

/// What has to be known of a node: small, since there are thousands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Pools select it by these.
    pub labels: BTreeMap<String, String>,
    /// The rendered config that it has, as far as it says so.
    pub current: Option<String>,
    /// Whether there is nowhere to move its pods to.
    pub single_replica: bool,
}

impl Node {
    /// From the metadata of a Node.
    pub fn of(metadata: &mut ObjectMeta) -> Node {
        let annotations = metadata.annotations.take().unwrap_or_default();
        Node {
            labels: metadata.labels.take().unwrap_or_default(),
            current: annotations.get(CURRENT).filter(|name| !name.is_empty()).cloned(),
            single_replica: annotations.get(TOPOLOGY).is_some_and(|it| it == "SingleReplica"),
        }
    }

    /// Windows nodes are in no pool.
    pub(super) fn is_windows(&self) -> bool {
        self.labels.get(OS).is_some_and(|os| os == "windows")
    }
}
