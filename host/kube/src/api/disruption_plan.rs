//! What a change will do to the nodes of a pool, before and while it does.

use super::disruption_policy::{EffectWord, Layer};
use super::schemas::{ConditionShape, TimeShape};
use super::shared::Shared;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tread_model::effect::Effect;

/// Of which pool and for which cause the plan is. tread writes it, and owns it
/// by the pool.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema,
)]
#[kube(
    group = "tread.dev",
    version = "v1alpha1",
    kind = "DisruptionPlan",
    plural = "disruptionplans",
    shortname = "dplan",
    category = "tread",
    status = "DisruptionPlanStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "What a change will do to the nodes of a pool. Written by tread; never by hand.",
    selectable = ".spec.pool",
    printcolumn(name = "Pool", type_ = "string", json_path = ".spec.pool"),
    printcolumn(name = "Cause", type_ = "string", json_path = ".status.cause"),
    printcolumn(
        name = "Effect",
        type_ = "string",
        json_path = ".status.effect",
        description = "What will happen, by whoever rolls it out on this cluster"
    ),
    printcolumn(
        name = "Tread",
        type_ = "string",
        json_path = ".status.tread",
        description = "What tread would do instead, beside OpenShift's operator"
    ),
    printcolumn(
        name = "Because",
        type_ = "string",
        json_path = ".status.because",
        description = "The change that costs most, and why, by the rules of whoever rolls it out",
        priority = 1
    ),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.nodes"),
    printcolumn(
        name = "Fallbacks",
        type_ = "integer",
        json_path = ".status.fallbacks",
        description = "Changes that cost a reboot because no policy answers for them"
    ),
    printcolumn(name = "Stale", type_ = "boolean", json_path = ".status.stale"),
    printcolumn(
        name = "Pending",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Pending\")].reason",
        description = "What it waits for; Over or Withdrawn: nothing happens any more"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new("self == oldSelf")
    .message("a plan stays what it is for: tread makes another one for another pool or cause"))]
pub struct DisruptionPlanSpec {
    /// The MachineConfigPool.
    #[schemars(length(min = 1, max = 253))]
    pub pool: String,
    /// What made it necessary.
    pub cause: Cause,
}

/// What made a plan necessary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// The kind of the object: MachineConfig, ImageDigestMirrorSet,
    /// MachineConfigPool, ClusterVersion, …
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// What happened to it.
    pub event: CauseEvent,
}

/// What happened to the cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CauseEvent {
    /// It is new.
    Created,
    /// It says something else than before.
    #[default]
    Changed,
    /// It is gone.
    Deleted,
    /// Of a pool: what waited may go on now.
    Unpaused,
    /// Of a pool: its nodes are on the way to a rendered config.
    Rollout,
}

impl CauseEvent {
    /// The word for it in a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            CauseEvent::Created => "created",
            CauseEvent::Changed => "changed",
            CauseEvent::Deleted => "deleted",
            CauseEvent::Unpaused => "unpaused",
            CauseEvent::Rollout => "rollout",
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{} {}", self.kind, self.name, self.event.as_str())
    }
}

/// The plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionPlanStatus {
    /// The generation of the spec that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The cause in words, for a column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What will happen, by whoever rolls it out on this cluster: "reload
    /// crio.service", "drain + reboot", …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// What tread would do, where OpenShift's operator rolls it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tread: Option<String>,
    /// The change that costs most, and why, by the rules of whoever rolls it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// How many nodes it touches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i64>,
    /// How many changes cost a reboot because no policy answers for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallbacks: Option<i64>,
    /// Whether its policies or configs have changed since, so that it has to be
    /// made again.
    #[serde(default)]
    pub stale: bool,
    /// Covers everything that it was made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// When it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeShape>")]
    pub planned_at: Option<Time>,
    /// The ways that nodes will go, each with its steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transitions: Vec<Transition>,
    /// How many transitions are left out here; tread serves them over HTTP.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub transitions_left_out: i64,
    /// PodDisruptionBudgets that keep nodes from being drained until somebody changes them or
    /// their pods, where a drain is planned: as it was when this was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drain_blockers: Vec<DrainBlocker>,
    /// How many of these are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drain_blockers_left_out: i64,
    /// Nodes on their way that are not drained although a drain is planned, where tread rolls out:
    /// as it was when this was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_skipped: Option<DrainSkipped>,
    /// Nodes of the pool that are on their way, and that somebody else has, or is to have, for
    /// maintenance: as it was when this was written, by name, 10 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub flagged: Vec<FlaggedNode>,
    /// How many of these are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flagged_left_out: i64,
    /// Planned: whether it could be; Pending: whether it is still to happen, and
    /// what it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[schemars(with = "Vec<ConditionShape>")]
    pub conditions: Vec<Condition>,
}

/// A node that is flagged for maintenance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlaggedNode {
    /// The node.
    pub node: String,
    /// By whom, or by what: its Lease with holder, since when and for how long; a NodeMaintenance;
    /// a cordon, a condition, a label or a taint.
    pub why: String,
}

/// Nodes that are not drained.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainSkipped {
    /// How many.
    pub nodes: i64,
    /// Why: no other node takes the pods, or an admin wants none to be moved.
    pub why: String,
}

/// A budget that keeps nodes from being drained.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainBlocker {
    /// Its namespace and name.
    pub budget: String,
    /// Why it allows no disruption.
    pub why: String,
    /// Its pods on nodes of the pool, each with its node: the first of them. None where whoever
    /// made the plan may not list pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<BlockedPod>,
    /// How many more there are, as far as they were counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_pods: i64,
}

/// A pod that could not be evicted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockedPod {
    /// Its namespace and name.
    pub pod: String,
    /// The node that it is on.
    pub node: String,
}

/// The way that some nodes go, from one config to another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// The rendered config that the nodes have.
    pub from: String,
    /// The one that they are to get; empty if it is not rendered yet.
    pub to: String,
    /// The digest of what the nodes have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_digest: Option<String>,
    /// The digest of what they are to get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_digest: Option<String>,
    /// Which nodes.
    pub nodes: Nodes,
    /// Whether there is anything to do, and whether it may be done: nothing,
    /// apply or refuse.
    pub outcome: String,
    /// The plan in one line.
    pub summary: String,
    /// What OpenShift's operator will do, in its own words' order, where it
    /// rolls this out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// What each difference costs by the rules of OpenShift's operator, where it
    /// rolls this out; the costliest first. It counts others than tread does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operator_because: Vec<Shared<PlanBecause>>,
    /// How many of these are left out here; tread serves them over HTTP.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub operator_because_left_out: i64,
    /// What tread does, in order; never cut.
    #[serde(default)]
    pub steps: Vec<Shared<PlanStep>>,
    /// The most disruptive of the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<EffectWord>")]
    pub effect: Option<Effect>,
    /// The digest of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The policies that decided, as the digest covers them; never cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deciders: Vec<Shared<PlanDecider>>,
    /// False if a wall clock or the native stack had a part in it.
    #[serde(default)]
    pub reproducible: bool,
    /// Each difference, the costliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Shared<PlanChange>>,
    /// How many differences are left out here; tread serves them over HTTP.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changes_left_out: i64,
    /// What an admin should know besides, the gravest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Shared<String>>,
    /// How many warnings are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warnings_left_out: i64,
}

/// What a difference costs by the rules of OpenShift's operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanBecause {
    /// `file:/etc/chrony.conf`, `kernel-arguments`, …; `passwd` stands for keys and
    /// passwords of all users.
    pub id: String,
    /// What the operator does for it; refuse: it rejects the config, and the pool
    /// degrades.
    #[schemars(with = "EffectWord")]
    pub effect: Effect,
    /// By which rule.
    pub rule: String,
}

/// Some nodes: how many, and the first of them by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Nodes {
    /// How many.
    pub count: i64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<String>,
    /// Those of them that booted into another pool than the one that gives them its config.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strays: Vec<PlanStray>,
    /// How many of these are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub strays_left_out: i64,
}

/// A node that booted into one pool and counts in another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStray {
    /// The node.
    pub node: String,
    /// Which one of that name.
    pub uid: String,
    /// The pool that it booted into.
    pub booted: String,
    /// Why that is thought, and what is about to happen.
    pub because: String,
    /// The command that keeps it in the pool that it booted into.
    pub ends: String,
}

/// A step of a plan, or an action of a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// drain, write, update-ca-trust, daemon-reload, reload, restart, reboot or
    /// uncordon.
    pub r#do: String,
    /// To which unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// One difference, and what was decided on it. It never holds contents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanChange {
    /// `file:/etc/chrony.conf`, `kernel-arguments`, …
    pub id: String,
    /// added, changed or removed.
    pub edit: String,
    /// decided, fallback, failed or refused.
    pub verdict: String,
    /// What it asks for, before it is merged with the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<PlanStep>,
    /// Who decided; nobody did of a fallback, and of what tread itself refuses or
    /// knows to cost nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PlanPolicy>,
    /// Why, in a sentence.
    pub reason: String,
    /// What to do about it, where there is something to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// Which policy it was, to the byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanPolicy {
    /// Its name.
    pub name: String,
    /// Who speaks.
    pub layer: Layer,
    /// Its version.
    pub version: String,
    /// The sha256 digest of its module.
    pub digest: String,
    /// The sha256 digest of its settings.
    pub settings_digest: String,
}

/// A policy that decided, as the digest of a plan covers it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanDecider {
    /// Its name.
    pub name: String,
    /// Who speaks.
    pub layer: Layer,
    /// The sha256 digest of its module.
    pub digest: String,
    /// The sha256 digest of its settings.
    pub settings_digest: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl PlanStep {
    /// How disruptive it is; what a newer version calls by another word counts as
    /// the most.
    pub fn effect(&self) -> Effect {
        match self.r#do.as_str() {
            "write" | "uncordon" => Effect::None,
            "update-ca-trust" | "daemon-reload" | "reload" => Effect::Reload,
            "restart" => Effect::Restart,
            "drain" => Effect::Drain,
            _ => Effect::Reboot,
        }
    }
}

impl PlanChange {
    /// How disruptive it is by itself.
    pub fn effect(&self) -> Effect {
        match self.verdict.as_str() {
            "refused" => Effect::Refuse,
            _ => self.actions.iter().map(PlanStep::effect).max().unwrap_or(Effect::None),
        }
    }
}

impl From<&tread_model::plan::Step> for PlanStep {
    fn from(step: &tread_model::plan::Step) -> PlanStep {
        use tread_model::plan::Step;
        let (word, unit) = match step {
            Step::Drain => ("drain", None),
            Step::Write => ("write", None),
            Step::UpdateCaTrust => ("update-ca-trust", None),
            Step::DaemonReload => ("daemon-reload", None),
            Step::Reload { unit } => ("reload", Some(unit)),
            Step::Restart { unit } => ("restart", Some(unit)),
            Step::Reboot => ("reboot", None),
            Step::Uncordon => ("uncordon", None),
        };
        PlanStep { r#do: word.to_owned(), unit: unit.cloned() }
    }
}

impl From<&tread_model::operator::Because> for PlanBecause {
    fn from(because: &tread_model::operator::Because) -> PlanBecause {
        let tread_model::operator::Because { id, effect, rule } = because.clone();
        PlanBecause { id, effect, rule }
    }
}

impl From<&tread_model::plan::PolicyIdentity> for PlanPolicy {
    fn from(identity: &tread_model::plan::PolicyIdentity) -> PlanPolicy {
        PlanPolicy {
            name: identity.policy.clone(),
            layer: identity.layer.into(),
            version: identity.version.clone(),
            digest: identity.digest.to_string(),
            settings_digest: identity.settings_digest.to_string(),
        }
    }
}

impl From<&tread_model::plan::Decider> for PlanDecider {
    fn from(decider: &tread_model::plan::Decider) -> PlanDecider {
        PlanDecider {
            name: decider.policy.clone(),
            layer: decider.layer.into(),
            digest: decider.digest.to_string(),
            settings_digest: decider.settings_digest.to_string(),
        }
    }
}

impl From<&tread_model::plan::PlannedChange> for PlanChange {
    fn from(change: &tread_model::plan::PlannedChange) -> PlanChange {
        use tread_model::change::Edit;
        use tread_model::plan::ChangeOutcome;
        let edit = match change.edit {
            Edit::Added => "added",
            Edit::Changed => "changed",
            Edit::Removed => "removed",
        };
        let verdict = match change.outcome {
            ChangeOutcome::Decided => "decided",
            ChangeOutcome::Fallback => "fallback",
            ChangeOutcome::Failed => "failed",
            ChangeOutcome::Refused => "refused",
        };
        PlanChange {
            id: change.id.clone(),
            edit: edit.to_owned(),
            verdict: verdict.to_owned(),
            actions: change.actions.iter().map(PlanStep::from).collect(),
            policy: change.decided_by.as_ref().map(PlanPolicy::from),
            reason: change.reason.clone(),
            advice: change.advice.as_deref().map(tread_model::plan::in_a_cluster),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::plan::Step;

    #[test]
    fn a_step_is_written_as_in_the_json_of_a_plan() {
        let unit = || "crio.service".to_owned();
        for step in [
            Step::Drain,
            Step::Write,
            Step::UpdateCaTrust,
            Step::DaemonReload,
            Step::Reload { unit: unit() },
            Step::Restart { unit: unit() },
            Step::Reboot,
            Step::Uncordon,
        ] {
            let own = serde_json::to_value(PlanStep::from(&step)).unwrap();
            assert_eq!(own, serde_json::to_value(&step).unwrap());
            assert_eq!(PlanStep::from(&step).effect(), step.effect());
        }
    }

    #[test]
    fn a_cause_reads_as_a_sentence() {
        let cause = Cause {
            kind: "MachineConfig".to_owned(),
            name: "99-worker-ssh".to_owned(),
            event: CauseEvent::Deleted,
        };
        assert_eq!(cause.to_string(), "MachineConfig/99-worker-ssh deleted");
    }
}
