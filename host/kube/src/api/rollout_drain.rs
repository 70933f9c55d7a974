//! How the nodes of a pool are drained.

use super::schemas::{ExactSelectorShape, span};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::KubeSchema;
use kube::core::Rule as Cel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the nodes of a pool are drained. Without any of it each pod gets the time that it asks for,
/// and is waited for as long as its budgets hold it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Cel::new("!has(self.afterTimeout) || self.afterTimeout != 'Delete' || has(self.timeout)")
    .message("afterTimeout: Delete needs a timeout: write how long budgets are waited for, such as timeout: 30m"))]
pub struct DrainSettings {
    /// Move no pod: the node is cordoned, and boots with its pods on it. `skip: true`
    #[serde(default)]
    pub skip: bool,
    /// How long a pod has to end, in place of what it asks for itself. `gracePeriod: 30s`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "span")]
    pub grace_period: Option<String>,
    /// After how long a drain takes too long: it is told then, and goes on as afterTimeout says.
    /// It counts from when the node was to be cordoned, whoever carries it out. `timeout: 30m`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "span")]
    pub timeout: Option<String>,
    /// What happens after the timeout. `afterTimeout: Delete`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_timeout: Option<AfterTimeout>,
    /// Pods that stay where they are.
    /// `ignore: [{namespaces: [monitoring], pods: {matchLabels: {app: probe}}}]`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub ignore: Vec<SomePods>,
    /// Pods that are not evicted: the drain waits until they end by themselves.
    /// `waitFor: [{pods: {matchExpressions: [{key: batch.kubernetes.io/job-name, operator: Exists}]}}]`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub wait_for: Vec<SomePods>,
    /// Pods that keep a node from being drained, as with kubectl drain, which wants --force or
    /// --delete-emptydir-data for them: Unmanaged or LocalStorage. A node with one is not begun.
    /// `refuse: [Unmanaged]`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub refuse: Vec<RefusedPods>,
    /// How long after its end was due a pod is not waited for any more that does not go: its
    /// kubelet may be gone. `forgetAfter: 10m`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "span")]
    pub forget_after: Option<String>,
    /// Take the node out of external load balancers when it is cordoned, and wait so long before
    /// its pods move: by the label node.kubernetes.io/exclude-from-external-load-balancers, which
    /// is taken away with the cordon, unless it was there before. `leaveLoadBalancers: 30s`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "span")]
    pub leave_load_balancers: Option<String>,
}

/// Some pods: those of these namespaces that have these labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Cel::new("has(self.namespaces) || has(self.pods)")
    .message("say which pods: by namespaces, by labels (pods), or by both"))]
pub struct SomePods {
    /// Their namespaces; none: any. `namespaces: [monitoring]`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,
    /// Their labels; none: all pods of the namespaces. `pods: {matchLabels: {app: probe}}`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ExactSelectorShape>")]
    pub pods: Option<LabelSelector>,
}

/// What happens after the timeout of a drain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AfterTimeout {
    /// It goes on, and is told of.
    #[default]
    Wait,
    /// Pods that are still there are deleted, whatever their budgets say: those of waitFor too,
    /// those of refuse not.
    Delete,
}

/// Pods that keep a node from being drained.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum RefusedPods {
    /// Those that nobody makes anew.
    Unmanaged,
    /// Those with an emptyDir, whose contents would be lost.
    LocalStorage,
}
