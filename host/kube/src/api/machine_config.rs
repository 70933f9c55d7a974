//! OpenShift's MachineConfig and MachineConfigPool. Where the cluster has none
//! of its own, tread's definitions stand in: the same names and fields.

pub use tread_model::read::{POOL_KIND, ROLE_LABEL};

use super::schemas::{ReferenceShape, SelectorShape, free_object, int_or_string};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a MachineConfig says of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "machineconfiguration.openshift.io",
    version = "v1",
    kind = "MachineConfig",
    plural = "machineconfigs",
    shortname = "mc",
    derive = "PartialEq",
    derive = "Default",
    doc = "Configuration of nodes: files, units, keys, kernel arguments, operating system.",
    printcolumn(
        name = "IgnitionVersion",
        type_ = "string",
        json_path = ".spec.config.ignition.version"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MachineConfigSpec {
    /// The image that holds extensions for the operating system.
    #[serde(rename = "baseOSExtensionsContainerImage", skip_serializing_if = "Option::is_none")]
    pub base_os_extensions_container_image: Option<String>,
    /// An Ignition config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_object")]
    pub config: Option<Map<String, Value>>,
    /// Extensions of the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Vec<String>>,
    /// FIPS mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fips: Option<bool>,
    /// Arguments of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<Vec<String>>,
    /// default, realtime or 64k-pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_type: Option<String>,
    /// The image of the operating system.
    #[serde(rename = "osImageURL", skip_serializing_if = "Option::is_none")]
    pub os_image_url: Option<String>,
}

/// Nodes that have the same configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "machineconfiguration.openshift.io",
    version = "v1",
    kind = "MachineConfigPool",
    plural = "machineconfigpools",
    shortname = "mcp",
    status = "MachineConfigPoolStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Nodes that have the same configuration.",
    printcolumn(name = "Config", type_ = "string", json_path = ".status.configuration.name"),
    printcolumn(
        name = "Updated",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Updated\")].status"
    ),
    printcolumn(
        name = "Updating",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Updating\")].status"
    ),
    printcolumn(
        name = "Degraded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Degraded\")].status"
    ),
    printcolumn(name = "MachineCount", type_ = "integer", json_path = ".status.machineCount"),
    printcolumn(
        name = "ReadyMachineCount",
        type_ = "integer",
        json_path = ".status.readyMachineCount"
    ),
    printcolumn(
        name = "UpdatedMachineCount",
        type_ = "integer",
        json_path = ".status.updatedMachineCount"
    ),
    printcolumn(
        name = "DegradedMachineCount",
        type_ = "integer",
        json_path = ".status.degradedMachineCount"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MachineConfigPoolSpec {
    /// The rendered config that the nodes are to get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<PoolConfiguration>,
    /// Which MachineConfigs are merged for the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SelectorShape>")]
    pub machine_config_selector: Option<LabelSelector>,
    /// Which nodes are in the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SelectorShape>")]
    pub node_selector: Option<LabelSelector>,
    /// How many nodes may be out of service at a time, as a number or a
    /// percentage; 1 unless it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_string")]
    pub max_unavailable: Option<IntOrString>,
    /// Whether nodes stay as they are.
    #[serde(default)]
    pub paused: bool,
}

/// A rendered config, and what it is made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolConfiguration {
    /// The rendered MachineConfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The MachineConfigs that it is made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<ReferenceShape>>")]
    pub source: Option<Vec<ObjectReference>>,
}

/// How far a pool is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineConfigPoolStatus {
    /// The generation of the spec that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The rendered config that all updated nodes have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<PoolConfiguration>,
    /// How many nodes there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_count: Option<i32>,
    /// How many have the config that they are to have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_machine_count: Option<i32>,
    /// How many of these are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_machine_count: Option<i32>,
    /// How many are out of service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable_machine_count: Option<i32>,
    /// How many failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degraded_machine_count: Option<i32>,
    /// Updated, Updating, Degraded, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<PoolCondition>>,
}

/// A condition of a pool: unlike others it need not have a reason or a time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolCondition {
    /// Updated, Updating, Degraded, RenderDegraded, NodeDegraded, …
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// A word for it.
    #[serde(default)]
    pub reason: String,
    /// A sentence for it.
    #[serde(default)]
    pub message: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: Option<String>,
}

impl From<Condition> for PoolCondition {
    fn from(condition: Condition) -> PoolCondition {
        PoolCondition {
            type_: condition.type_,
            status: condition.status,
            reason: condition.reason,
            message: condition.message,
            last_transition_time: Some(condition.last_transition_time.0.to_string()),
        }
    }
}
