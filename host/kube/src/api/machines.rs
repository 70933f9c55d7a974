//! The kinds of others that say what new nodes boot. tread reads a few of their
//! fields, and knows them by this table alone: for watches, for what it waits for
//! where they are not installed, and for the minimal definitions of tests.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ApiResource;
use serde_json::{Value, json};

/// A kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// What it is called in checks: `machinesets.machine.openshift.io`.
    pub name: &'static str,
    /// Its group.
    pub group: &'static str,
    /// The version that is read.
    pub version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// In lower case and plural.
    pub plural: &'static str,
    /// Whether each object is in a namespace.
    pub namespaced: bool,
}

impl Kind {
    /// The versions in which it can be read, the newest first, if there are several.
    pub fn versions(&self) -> &'static [&'static str] {
        match self.group.ends_with("cluster.x-k8s.io") {
            true => &["v1beta2", "v1beta1"],
            false => &[],
        }
    }

    /// As kube asks for it.
    pub fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version: format!("{}/{}", self.group, self.version),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }
}

macro_rules! kinds {
    ($(#[$doc:meta])* $list:ident: $($id:ident: $kind:literal, $plural:literal, $group:literal, $version:literal, $namespaced:literal;)*) => {
        $(
            #[doc = concat!("`", $plural, ".", $group, "`")]
            pub const $id: Kind = Kind {
                name: concat!($plural, ".", $group),
                group: $group,
                version: $version,
                kind: $kind,
                plural: $plural,
                namespaced: $namespaced,
            };
        )*
        $(#[$doc])*
        pub const $list: &[Kind] = &[$($id),*];
    };
}

kinds! {
    /// All that are read for boot images alone.
    ALL:
    MACHINE_SET: "MachineSet", "machinesets", "machine.openshift.io", "v1beta1", true;
    CONTROL_PLANE_MACHINE_SET: "ControlPlaneMachineSet", "controlplanemachinesets", "machine.openshift.io", "v1", true;
    CAPI_MACHINE_SET: "MachineSet", "machinesets", "cluster.x-k8s.io", "v1beta1", true;
    CAPI_MACHINE_DEPLOYMENT: "MachineDeployment", "machinedeployments", "cluster.x-k8s.io", "v1beta1", true;
    AWS_TEMPLATE: "AWSMachineTemplate", "awsmachinetemplates", "infrastructure.cluster.x-k8s.io", "v1beta2", true;
    AZURE_TEMPLATE: "AzureMachineTemplate", "azuremachinetemplates", "infrastructure.cluster.x-k8s.io", "v1beta1", true;
    GCP_TEMPLATE: "GCPMachineTemplate", "gcpmachinetemplates", "infrastructure.cluster.x-k8s.io", "v1beta1", true;
    VSPHERE_TEMPLATE: "VSphereMachineTemplate", "vspheremachinetemplates", "infrastructure.cluster.x-k8s.io", "v1beta1", true;
    METAL3_TEMPLATE: "Metal3MachineTemplate", "metal3machinetemplates", "infrastructure.cluster.x-k8s.io", "v1beta1", true;
    INFRASTRUCTURE: "Infrastructure", "infrastructures", "config.openshift.io", "v1", false;
    PROVISIONING: "Provisioning", "provisionings", "metal3.io", "v1alpha1", false;
    CLUSTER_OPERATOR: "ClusterOperator", "clusteroperators", "config.openshift.io", "v1", false;
}

kinds! {
    /// Those that are read for more than boot images: which release the cluster runs, how OpenShift's
    /// updater of boot images is set, and which stream the nodes of a pool are of.
    KNOWN:
    CLUSTER_VERSION: "ClusterVersion", "clusterversions", "config.openshift.io", "v1", false;
    MACHINE_CONFIGURATION: "MachineConfiguration", "machineconfigurations", "operator.openshift.io", "v1", false;
    POOL: "MachineConfigPool", "machineconfigpools", "machineconfiguration.openshift.io", "v1", false;
}

/// What a resource of OpenShift makes. They are watched where tread rolls out.
pub const MACHINE: Kind = Kind {
    name: "machines.machine.openshift.io",
    group: MACHINE_SET.group,
    version: MACHINE_SET.version,
    kind: "Machine",
    plural: "machines",
    namespaced: true,
};

/// The same of Cluster API.
pub const CAPI_MACHINE: Kind = Kind {
    name: "machines.cluster.x-k8s.io",
    group: CAPI_MACHINE_SET.group,
    version: CAPI_MACHINE_SET.version,
    ..MACHINE
};

/// Minimal definitions, which take anything: for tests, and for trying tread out.
pub fn definitions() -> Result<Vec<CustomResourceDefinition>, serde_json::Error> {
    ALL.iter().map(definition).collect()
}

/// What objects of a kind have besides themselves.
fn subresources(kind: &Kind) -> Value {
    match *kind {
        CLUSTER_OPERATOR => json!({"status": {}}),
        MACHINE_SET | CONTROL_PLANE_MACHINE_SET | CAPI_MACHINE_SET | CAPI_MACHINE_DEPLOYMENT => {
            json!({"scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}})
        }
        _ => json!({}),
    }
}

/// The same of one kind.
pub fn definition(kind: &Kind) -> Result<CustomResourceDefinition, serde_json::Error> {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    serde_json::from_value(json!({
        "metadata": {
            "name": kind.name,
            // The API server asks for it of groups below k8s.io.
            "annotations": {"api-approved.kubernetes.io": "unapproved, minimal definition for tests"},
        },
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "plural": kind.plural,
                "singular": kind.kind.to_ascii_lowercase(),
            },
            "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
            "versions": [{
                "name": kind.version,
                "served": true,
                "storage": true,
                "subresources": subresources(kind),
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": anything, "status": anything},
                }},
            }],
        },
    }))
}
