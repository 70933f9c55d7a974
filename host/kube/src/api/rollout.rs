//! How the nodes of a pool get its newest config, and how far they are.

use super::node_update::{ConfigName, UpdateDisrupts};
use super::rollout_drain::DrainSettings;
use super::schemas::{ConditionShape, ExactSelectorShape, int_or_string, span};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::Rule as Cel;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// On a MachineConfigPool: its Rollout was made once. One that is missing after that was removed.
pub const MADE_ANNOTATION: &str = "tread.dev/rollout-made";
/// On a Rollout: tread made it in place of one that somebody removed.
pub const ANEW_ANNOTATION: &str = "tread.dev/made-anew";
/// How many nodes the status names that wait.
pub const NAMED: usize = 50;
/// How many machines it names that registered no node.
pub const MISSING: usize = 20;

/// How the nodes of a pool get its newest config. tread makes the object, one for each
/// MachineConfigPool and of its name, and never writes here again. One that takes the place of a Rollout
/// that somebody removed begins paused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "tread.dev",
    version = "v1alpha1",
    kind = "Rollout",
    plural = "rollouts",
    category = "tread",
    status = "RolloutStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "How the nodes of a pool get its newest config, and how far they are. It has the pool's name.",
    printcolumn(name = "Config", type_ = "string", json_path = ".status.target.name"),
    printcolumn(
        name = "Nodes",
        type_ = "integer",
        json_path = ".status.nodes",
        description = "How many nodes the pool has"
    ),
    printcolumn(
        name = "Updated",
        type_ = "integer",
        json_path = ".status.updated",
        description = "How many of them have the config"
    ),
    printcolumn(
        name = "UnderWay",
        type_ = "integer",
        json_path = ".status.underWay",
        description = "How many are being brought to it"
    ),
    printcolumn(
        name = "Failed",
        type_ = "integer",
        json_path = ".status.failed",
        description = "How many failed, or went back from it"
    ),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpec {
    /// Begin no node. Those that are under way finish.
    #[serde(default)]
    pub paused: bool,
    /// How many nodes of the pool may be unavailable, for whatever reason: a number or a
    /// percentage. Without it the pool's own maxUnavailable counts, and one without that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_string")]
    #[x_kube(validation = Cel::new("type(self) == int ? self >= 1 && self <= 1000000 : self.matches('^(100|[1-9]?[0-9])%$')")
        .message("write a number from 1 to 1000000, or a percentage such as 10%"))]
    pub max_unavailable: Option<IntOrString>,
    /// How many nodes at most may get a change at a time that neither drains nor boots them: one
    /// is first, then twice as many as succeeded. 100 unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub soft_limit: Option<i32>,
    /// After how many failed nodes no more are begun. 1 unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub halt_after: Option<i32>,
    /// Nodes with these labels come first, and all others wait until they have the config. Where no
    /// node of the pool has them, none is begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ExactSelectorShape>")]
    pub canary: Option<LabelSelector>,
    /// Which nodes come first. Without it zone by zone, in the order of their names, and in each
    /// the oldest node first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<RolloutOrder>,
    /// When nodes may be begun. At any time, if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub windows: Vec<RolloutWindow>,
    /// How nodes are drained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainSettings>,
    /// What becomes of a node that joins, and whose disk is not as the config of its pool says.
    #[serde(default)]
    pub new_nodes: NewNodes,
    /// The taints of a node that joins, from its first second in the pool. Later nobody writes
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[x_kube(validation = Cel::new("self.all(one, self.exists_one(it, it.key == one.key && it.effect == one.effect))")
        .message("a node has one taint of a key and an effect at most: take the others away"))]
    pub node_taints: Vec<NodeTaint>,
    /// How often a node is begun again by itself that an operation left unwell. Without it none
    /// is: `tread rollout retry` does it. One that went back is well, and halts its pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetrySettings>,
    /// Nodes that failed before this time, as they say it, are begun again, and changes go on
    /// that a failed step stopped before it: `tread rollout retry` sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schemas::WrittenTimeShape>")]
    #[x_kube(validation = Cel::new("self >= timestamp('2000-01-01T00:00:00Z') && self < timestamp('3000-01-01T00:00:00Z')")
        .message("write a time such as 2026-10-21T07:28:00Z"))]
    pub retry_failed_before: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
}

/// Which nodes of a pool come first. Canaries come before all, and the node of the replica of tread
/// that leads after all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutOrder {
    /// Zones (the label topology.kubernetes.io/zone) in the order in which they go. All others
    /// follow, by their names. `zones: [eu-1c, eu-1a]`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(max = 63)))]
    pub zones: Vec<String>,
    /// Which nodes of a zone come first.
    #[serde(default)]
    pub first: FirstNodes,
    /// Nodes with these labels come after all others. `last: {matchLabels: {db: primary}}`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ExactSelectorShape>")]
    pub last: Option<LabelSelector>,
}

/// Which nodes of a zone come first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FirstNodes {
    /// Those that are there for longest.
    #[default]
    Oldest,
    /// Those that came last.
    Newest,
    /// Those whose names come first.
    Name,
}

/// How often a node is begun again by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetrySettings {
    /// So often at most, for one config. `attempts: 3`
    #[schemars(range(min = 1, max = 10))]
    pub attempts: i32,
    /// How long after it failed, by its own clock, the first time; twice as long each time after
    /// that, a day at most. 10 minutes unless set. `firstAfter: 10m`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "span")]
    pub first_after: Option<String>,
}

/// That a text is the key of a taint, as the API server asks of a node's.
const KEY: &str = "self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$')";
/// The same of its value.
const VALUE: &str = "self.matches('^([A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?)?$')";

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTaint {
    /// Its key: dedicated, node-role.kubernetes.io/infra.
    #[schemars(length(min = 1, max = 316))]
    #[x_kube(validation = Cel::new("!self.startsWith('tread.dev/')").message("taints of tread.dev are tread's"))]
    #[x_kube(validation = Cel::new(KEY).message("write a key as labels have: dedicated, example.com/dedicated"))]
    pub key: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    #[x_kube(validation = Cel::new(VALUE)
        .message("write a value as labels have: letters, digits, - _ and . between them"))]
    pub value: String,
    /// What it does to pods that do not tolerate it.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// They are not put there.
    NoSchedule,
    /// They are put elsewhere where that is possible.
    PreferNoSchedule,
    /// They are not put there, and those that are there go.
    NoExecute,
}

/// When nodes may be begun.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutWindow {
    /// On which days it opens: Mon, Tue, Wed, Thu, Fri, Sat, Sun. On each, if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 7))]
    pub days: Vec<String>,
    /// When it opens: 22:00.
    pub start: String,
    /// How long it is open: 4h, 1h 30m. A week at most.
    pub lasts: String,
    /// By which clocks: Europe/Berlin. UTC unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How long before its end the last node begins. Until its end, unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_start: Option<String>,
    /// What becomes of nodes that are under way at its end.
    #[serde(default)]
    pub overrun: Overrun,
}

/// What becomes of nodes that are under way when a window ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Overrun {
    /// They finish.
    #[default]
    Finish,
    /// Those that have written nothing turn back, and are uncordoned; the others finish.
    TurnBack,
}

/// What becomes of a node that joins, and whose disk is not as the config of its pool says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NewNodes {
    /// It is left as it is, and its NodeUpdate says what differs.
    #[default]
    Hold,
    /// It is brought to the config of its pool.
    Overwrite,
}

/// How far it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// The generation of the spec that all of this is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The config that the nodes are to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ConfigName>,
    /// How much that disrupts the node that it disrupts most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disrupts: Option<UpdateDisrupts>,
    /// How many nodes the pool has.
    #[serde(default)]
    pub nodes: i32,
    /// How many of them have the config.
    #[serde(default)]
    pub updated: i32,
    /// How many are being brought to it.
    #[serde(default)]
    pub under_way: i32,
    /// How many failed, or went back from it.
    #[serde(default)]
    pub failed: i32,
    /// Nodes that are begun, or are being brought to it, in their order: 50 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub next: Vec<String>,
    /// Nodes that wait, in their order, and for whom: 50 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub waiting: Vec<WaitingNode>,
    /// How many more wait.
    #[serde(default)]
    pub more_waiting: i32,
    /// Nodes that are being drained, with what keeps them: 50 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub draining: Vec<DrainingNode>,
    /// Machines that fetched the config to boot with it, and registered no node within 30 minutes:
    /// the newest 20 of a day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub missing: Vec<MissingMachine>,
    /// Whether it stands in place of a Rollout that somebody removed, and was not resumed since.
    #[serde(default)]
    pub made_anew: bool,
    /// All of it in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Updated: whether all nodes have it. Progressing: whether nodes are brought to it, or may
    /// be. Rendered: whether the pool's config could be made. Serves: where machines are served
    /// that boot, whether they get a kubeconfig to register with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>")]
    pub conditions: Vec<Condition>,
}

/// A node that waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingNode {
    /// Its name.
    pub node: String,
    /// Why, in words.
    pub why: String,
    /// Since when its change waits: when the config was made that it is to get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schemas::TimeShape>")]
    pub since: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
}

/// A machine that fetched a config, and registered no node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissingMachine {
    /// From where it asked, as the service saw it: that of a machine, or of what stands before it.
    pub address: String,
    /// When, as 2026-10-21T07:28:00Z.
    pub fetched: String,
}

/// A node that is being drained.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainingNode {
    /// Its name.
    pub node: String,
    /// How many pods have to move.
    pub pods_left: i32,
    /// Since when it takes longer than the timeout of its drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schemas::TimeShape>")]
    pub late_since: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
    /// Those that do not move, and why: 10 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub blocked: Vec<String>,
}
