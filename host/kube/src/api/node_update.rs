//! What a node is to become, and how far it is.

use super::schemas::{TimeShape, few_conditions, free_object};
use crate::dated::timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use k8s_openapi::jiff::Timestamp;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tread_model::protocol::Time;

/// What a node is to become: written by tread's controllers only.
#[derive(Debug, Clone, Default, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "tread.dev",
    version = "v1alpha1",
    kind = "NodeUpdate",
    plural = "nodeupdates",
    shortname = "nup",
    category = "tread",
    status = "NodeUpdateStatus",
    derive = "Default",
    doc = "What a node is to become, and how far it is. It has the node's name.",
    printcolumn(name = "Pool", type_ = "string", json_path = ".spec.pool"),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "How far the node's agent is with the operation"
    ),
    printcolumn(
        name = "Step",
        type_ = "string",
        json_path = ".status.step",
        description = "What it does now: reload crio.service (3 of 5)"
    ),
    printcolumn(
        name = "Config",
        type_ = "string",
        json_path = ".status.current.name",
        description = "The config that the node has"
    ),
    printcolumn(name = "Since", type_ = "date", json_path = ".status.since"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message")
)]
#[serde(rename_all = "camelCase")]
pub struct NodeUpdateSpec {
    /// The pool that the node counts in.
    pub pool: String,
    /// What is to be done; nothing as long as nothing was to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<UpdateOrder>,
}

/// So far ahead a right clock may be: what is known of the API server's lags behind by a second.
const AHEAD: Duration = Duration::from_secs(60);

impl NodeUpdate {
    /// When the operation of its order failed, if it did. The agent says so by the node's own clock.
    /// Where that says a time before the order, or one well after now, it is wrong: the time of the
    /// order counts.
    pub fn failed_at(&self, now: Time) -> Option<Timestamp> {
        let said = self.status.as_ref().and_then(|status| status.since.as_ref()).map(|it| it.0);
        let order = self.spec.order.as_ref();
        let given = order.and_then(|order| order.go_since.as_ref()).map(|it| it.0);
        match (said, given) {
            (Some(said), Some(given)) if said < given || said > timestamp(now.after(AHEAD)) => {
                Some(given)
            }
            (said, given) => said.or(given),
        }
    }
}

/// The condition of a NodeUpdate, and of a Rollout, that says whether nodes have the newest config.
pub const UPDATED: &str = "Updated";

/// Why a node has not its config whose agent has to be upgraded before it gets an order: the reason
/// of the condition Updated.
pub const NEEDS_AGENT: &str = "NeedsAgent";

/// The same of a node that is taken for lost: by this whoever leads next knows that it was.
pub const LOST: &str = "Lost";

/// One operation on the node.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateOrder {
    /// Its id: 32 hexadecimal digits, never used again.
    pub operation: String,
    /// The config that the node gets.
    pub config: ConfigName,
    /// How much that disrupts it.
    pub disrupts: UpdateDisrupts,
    /// The transitions of the node's Lease under which this was written.
    // The API server knows no format of unsigned numbers, and warns of it.
    #[schemars(with = "i64", range(min = 0, max = 4_294_967_295_i64))]
    pub token: u32,
    /// How far it is, for the controllers.
    pub stage: UpdateStage,
    /// Whether an agent may have had it.
    #[serde(default)]
    pub given: bool,
    /// Whether an operation before it left the node unwell.
    #[serde(default)]
    pub unwell: bool,
    /// Until when a replica may cordon the node and evict its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeShape>")]
    pub hands_on: Option<MicroTime>,
    /// The operation that left the node unwell, where an admin asked to try again: what stands
    /// of it on the node is given up for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<String>,
    /// When that operation failed: whether it is tried again by itself, or since somebody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeShape>")]
    pub failed_at: Option<MicroTime>,
    /// How often a node that an operation left unwell was begun again for this config, whoever
    /// asked for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "i64", range(min = 0, max = 4_294_967_295_i64))]
    pub tried: u32,
    /// When an order that had no boot became one that boots, since a step of its plan failed; or, where an
    /// order without a boot left the node unwell, since when that one was under way. By this its pool
    /// begins nobody with a plan without a boot for this config, until that is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeShape>")]
    pub escalated: Option<MicroTime>,
    /// Whether it was closed after it had been withdrawn: then it is not the agent that refused it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
    /// Since when the agent may carry it out: one that does not end it in time is taken for lost. It
    /// stays once the order is closed, and says whether it was given before somebody asked to try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeShape>")]
    pub go_since: Option<MicroTime>,
    /// Since when the node is to be drained: by this its timeout counts, whoever drains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeShape>")]
    pub drain_since: Option<MicroTime>,
    /// Whether the node's pods are left on it, since no other node took them when its drain was due. This
    /// stays as it is until the order is prepared again: a taint that comes to the other nodes meanwhile
    /// makes no undrained boot of a drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves_pods: Option<bool>,
    /// The plan, as its digest covers it, for whoever carries it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_object")]
    pub plan: Option<Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A config of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigName {
    /// The MachineConfig that was rendered.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The digest of what it says of a node.
    #[schemars(length(max = 128))]
    pub digest: String,
}

/// How much an operation disrupts a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateDisrupts {
    /// Not at all: it only writes.
    Nothing,
    /// Units are told; nothing is drained.
    Softly,
    /// The node is drained, and does not boot.
    Drain,
    /// The node is drained, and boots.
    Reboot,
}

/// How far an order is, for the controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateStage {
    /// The node is cordoned and drained. No agent is given the order.
    Prepare,
    /// The agent carries it out.
    Go,
    /// The agent turns back if it has written nothing, and says so.
    Withdrawn,
    /// Nothing more comes of it.
    Closed,
}

/// How far the node's agent is: its word.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeUpdateStatus {
    /// The operation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub operation: Option<String>,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<UpdatePhase>,
    /// What is done now, and which step of the plan that is: reload crio.service (3 of 5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 300))]
    pub step: Option<String>,
    /// Since when, by the node's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeShape>")]
    pub since: Option<MicroTime>,
    /// What an admin has to know, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// The newest form of orders that the agent knows. One that does not say it knows the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i64>", range(min = 0, max = 4_294_967_295_i64))]
    pub form: Option<u32>,
    /// The highest token of an order that the agent took: the next one has a higher token, also
    /// where this NodeUpdate was removed or is an older one again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i64>", range(min = 0, max = 4_294_967_295_i64))]
    pub token: Option<u32>,
    /// The config that the node has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<ConfigName>,
    /// Which boot of the node this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub boot_id: Option<String>,
    /// The version of the image that the node booted from first, as its disk says (the aleph file
    /// of CoreOS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub boot_image: Option<String>,
    /// How the last operations ended, the newest first: ten at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub ended: Vec<EndedOperation>,
    /// What has to move before the node is disrupted, or keeps it from being begun: by tread's
    /// controllers. It is gone once no pod has to move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainOfNode>,
    /// Updated: whether the node has the newest config of its pool. Its reason is NeedsAgent as
    /// long as the agent has to be upgraded before it gets an order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "few_conditions")]
    pub conditions: Vec<Condition>,
}

/// How far the drain of a node is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainOfNode {
    /// Who asked for it: the Rollout of a pool.
    #[schemars(length(max = 1024))]
    pub asked_by: String,
    /// What for, and how far it is, in a sentence.
    #[schemars(length(max = 1024))]
    pub why: String,
    /// Since when it is on its way; nothing as long as it is not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeShape>")]
    pub since: Option<MicroTime>,
    /// After when it takes longer than its timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeShape>")]
    pub deadline: Option<MicroTime>,
    /// How many pods have to move.
    pub pods_left: i32,
    /// The first of them, those that do not move before all others: 20 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub pods: Vec<PodLeft>,
}

/// A pod that has to move.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodLeft {
    /// Its namespace and name.
    #[schemars(length(max = 512))]
    pub pod: String,
    /// Why it does not move, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub why: Option<String>,
}

/// How far an agent is with an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdatePhase {
    /// It has the order, and has written nothing.
    Waiting,
    /// It has begun to write, or more.
    Begun,
    /// A step failed: the node needs a boot that its plan did not have.
    NeedsBoot,
    /// It has the new config, and is well.
    Done,
    /// Nothing was written, and nothing will be.
    TurnedBack,
    /// It has the old config again, and is well.
    WentBack,
    /// It is not well, and nothing more is done by itself.
    Degraded,
}

/// How an operation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedOperation {
    /// Which.
    #[schemars(length(max = 32))]
    pub operation: String,
    /// The config that the node was to get.
    #[schemars(length(max = 253))]
    pub config: String,
    /// How.
    pub phase: UpdatePhase,
    /// When, by the node's clock.
    #[schemars(with = "TimeShape")]
    pub at: MicroTime,
    /// What an admin had to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
}
