//! Everything that is read for boot images, and where it is.

use tread_kube::api::machines::{self, INFRASTRUCTURE, Kind, PROVISIONING};
use tread_kube::api::words::NAME;

pub use tread_kube::api::machines::CLUSTER_OPERATOR;

/// Which release the cluster runs, and with which it was installed.
pub const CLUSTER_VERSION: Kind = Kind {
    name: "clusterversions.config.openshift.io",
    group: "config.openshift.io",
    version: "v1",
    kind: "ClusterVersion",
    plural: "clusterversions",
    namespaced: false,
};

/// How OpenShift's updater of boot images is set, and how it stands with it.
pub const MACHINE_CONFIGURATION: Kind = Kind {
    name: "machineconfigurations.operator.openshift.io",
    group: "operator.openshift.io",
    version: "v1",
    kind: "MachineConfiguration",
    plural: "machineconfigurations",
    namespaced: false,
};

/// Which stream the nodes of a pool are of.
pub const POOL: Kind = Kind {
    name: "machineconfigpools.machineconfiguration.openshift.io",
    group: "machineconfiguration.openshift.io",
    version: "v1",
    kind: "MachineConfigPool",
    plural: "machineconfigpools",
    namespaced: false,
};

/// All kinds of others.
pub fn all() -> impl Iterator<Item = Kind> {
    watched().chain(known())
}

/// Those that are watched for boot images alone.
pub fn watched() -> impl Iterator<Item = Kind> {
    machines::ALL.iter().copied()
}

/// Those that the index knows.
pub fn known() -> impl Iterator<Item = Kind> {
    [CLUSTER_VERSION, MACHINE_CONFIGURATION, POOL].into_iter()
}

/// The name of the one object that counts, of a kind that has only one.
pub fn the_one(kind: &Kind) -> Option<&'static str> {
    match kind.name {
        name if name == CLUSTER_VERSION.name => Some("version"),
        name if name == MACHINE_CONFIGURATION.name => Some("cluster"),
        name if name == INFRASTRUCTURE.name => Some("cluster"),
        name if name == PROVISIONING.name => Some("provisioning-configuration"),
        name if name == CLUSTER_OPERATOR.name => Some(NAME),
        _ => None,
    }
}

/// Where OpenShift keeps the stream metadata of the running release.
pub const CATALOGUE_NAMESPACE: &str = "openshift-machine-config-operator";
/// The ConfigMap with it.
pub const CATALOGUE: &str = "coreos-bootimages";

/// The ConfigMap in which tread keeps former stream metadata.
pub const KEPT: &str = "tread-boot-images";
/// On a ConfigMap in tread's own namespace: it holds stream metadata of an older release.
pub const GIVEN_LABEL: &str = "tread.dev/boot-images";
/// How many releases are kept.
pub const MOST_KEPT: usize = 20;

/// On a machine resource: the version of its image, which an admin vouches for.
pub const ANNOTATION: &str = "tread.dev/boot-image";
/// On a machine resource or a pool: its stream.
pub const STREAM_LABEL: &str = "machineconfiguration.openshift.io/osstream";
