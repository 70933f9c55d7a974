//! Everything that is read for boot images, and where it is.

use tread_kube::api::machines::{self, INFRASTRUCTURE, Kind, PROVISIONING};
use tread_kube::api::words::NAME;

pub use tread_kube::api::machines::{
    CLUSTER_OPERATOR, CLUSTER_VERSION, MACHINE_CONFIGURATION, POOL,
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
    machines::KNOWN.iter().copied()
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
pub use tread_kube::api::words::OPERATORS_NAMESPACE as CATALOGUE_NAMESPACE;
/// The ConfigMap with it.
pub const CATALOGUE: &str = "coreos-bootimages";

/// The ConfigMap in which tread keeps former stream metadata.
pub const KEPT: &str = "tread-boot-images";
/// How many releases are kept.
pub const MOST_KEPT: usize = 20;
