//! A mark by which somebody else has a node, and what it says of itself: which one it is, since when,
//! and why. Who set it stands in `managedFields` alone, whose fields are not read of what is watched.

use crate::clean::clean;
use crate::dated::timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kube::core::DynamicObject;
use serde_json::Value;
use tread_model::protocol::{HeldBy, Time};

/// The reason of conditions that tread sets itself.
pub const OWN_REASON: &str = "TreadUpdate";

/// Conditions by which somebody says that a node is drained or maintained.
pub(super) const DRAINS: &str = "DrainInProgress";
pub(super) const MAINTAINS: [&str; 2] = ["MaintenancePlanned", "MaintenanceInProgress"];
/// medik8s: of a node that is being drained, and of one that nobody may touch.
pub(super) const MEDIK8S_DRAIN: &str = "medik8s.io/drain";
pub(super) const MEDIK8S_EXCLUDE: &str = "remediation.medik8s.io/exclude-from-remediation";
/// Of nodes that an autoscaler is about to remove.
pub(super) const AUTOSCALERS: [&str; 3] =
    ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"];
/// On each node that is cordoned, whoever did it.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The longest that is repeated of what others write.
const LONGEST: usize = 100;

/// A mark by which somebody else has a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Who has the node by it.
    pub by: HeldBy,
    /// Which one it is, and why, as far as that is known.
    what: String,
    since: Option<Timestamp>,
}

impl Mark {
    /// The mark on a node by which somebody else has it, its cordon left out.
    pub fn of(node: &Node) -> Option<Mark> {
        let found = Found::on(node)?;
        let by = found.by();
        let (what, since) = match found {
            Found::Deletion => {
                let since = node.metadata.deletion_timestamp.as_ref();
                (String::new(), since.map(|at| at.0))
            }
            Found::Taint(_, taint) => {
                let value = taint.value.as_deref().filter(|value| !value.is_empty());
                let value = value.map(|value| format!("={}", short(value))).unwrap_or_default();
                let what = format!("by the taint {}{value}", short(&taint.key));
                (what, taint.time_added.as_ref().map(|at| at.0))
            }
            Found::Condition(_, condition) => {
                let type_ = &condition.type_;
                let why = [condition.reason.as_deref(), condition.message.as_deref()];
                let why: Vec<String> = why.into_iter().flatten().map(short).collect();
                let why: Vec<String> = why.into_iter().filter(|text| !text.is_empty()).collect();
                let why = match why.is_empty() {
                    true => String::new(),
                    false => format!(" ({})", why.join(": ")),
                };
                let what = format!("by the condition {type_}{why}");
                (what, condition.last_transition_time.as_ref().map(|at| at.0))
            }
            Found::Label => (format!("by the label {MEDIK8S_EXCLUDE}"), None),
        };
        Some(Mark { by, what, since })
    }

    /// The cordon of a node that somebody else cordoned.
    pub fn of_cordon(node: &Node) -> Mark {
        Mark { by: HeldBy::Cordon, what: String::new(), since: cordoned_since(node) }
    }

    /// A NodeMaintenance.
    pub fn of_maintenance(object: &DynamicObject) -> Mark {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let reason = object.data.get("spec").and_then(|spec| spec.get("reason"));
        let reason = reason.and_then(Value::as_str).filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!(" ({})", short(reason))).unwrap_or_default();
        Mark {
            by: HeldBy::Maintenance,
            what: format!("by NodeMaintenance {}{reason}", short(name)),
            since: object.metadata.creation_timestamp.as_ref().map(|at| at.0),
        }
    }

    /// A Machine that is being deleted, or has this annotation, by which it is to be.
    pub fn of_machine(metadata: &ObjectMeta, annotation: Option<&str>) -> Mark {
        let text = |text: &Option<String>| short(text.as_deref().unwrap_or_default());
        let machine = format!("Machine {}/{}", text(&metadata.namespace), text(&metadata.name));
        let deleted = metadata.deletion_timestamp.as_ref().map(|at| at.0);
        let what = match annotation.filter(|_| deleted.is_none()) {
            Some(annotation) => format!("{machine} by the annotation {annotation}"),
            None => machine,
        };
        Mark { by: HeldBy::Deletion, what, since: deleted }
    }

    /// Whether the API server says since when it is there.
    pub fn says_since(&self) -> bool {
        self.since.is_some()
    }

    /// Who has the node, by what, why and since when, in words. `seen` is since when it is seen,
    /// which counts only where nobody says more.
    pub fn says(&self, seen: Option<Time>) -> String {
        let mut said = says(self.by).to_owned();
        if !self.what.is_empty() {
            said.push_str(&format!(": {}", self.what));
        }
        match (self.since, seen) {
            (Some(since), _) => said.push_str(&format!(", since {since:.0}")),
            (None, Some(seen)) => said.push_str(&format!(", seen since {:.0}", timestamp(seen))),
            (None, None) => {}
        }
        said
    }
}

/// Since when a node is cordoned, where that was noted.
pub fn cordoned_since(node: &Node) -> Option<Timestamp> {
    let taint = taints(node).iter().find(|taint| taint.key == UNSCHEDULABLE)?;
    taint.time_added.as_ref().map(|at| at.0)
}

/// Who has a node, in words.
pub fn says(by: HeldBy) -> &'static str {
    match by {
        HeldBy::Cordon => "somebody cordoned it",
        HeldBy::Drain => "somebody drains it",
        HeldBy::Maintenance => "it is maintained, or is to be",
        HeldBy::Autoscaler => "an autoscaler is about to remove it",
        HeldBy::Deletion => "it, or its Machine, is being deleted",
    }
}

/// What on a node says that somebody else has it, its cordon left out.
pub(super) enum Found<'n> {
    Deletion,
    Taint(HeldBy, &'n Taint),
    Condition(HeldBy, &'n NodeCondition),
    /// medik8s' exclude label.
    Label,
}

impl<'n> Found<'n> {
    pub(super) fn on(node: &'n Node) -> Option<Found<'n>> {
        if node.metadata.deletion_timestamp.is_some() {
            return Some(Found::Deletion);
        }
        let taint = |by, keys: &[&str]| {
            let taint = taints(node).iter().find(|taint| keys.contains(&taint.key.as_str()));
            taint.map(|taint| Found::Taint(by, taint))
        };
        let condition = |by, type_: &str| {
            let conditions = node.status.as_ref().and_then(|it| it.conditions.as_deref());
            let found = conditions.unwrap_or_default().iter().find(|it| says_so(it, type_));
            found.map(|condition| Found::Condition(by, condition))
        };
        taint(HeldBy::Autoscaler, &AUTOSCALERS)
            .or_else(|| condition(HeldBy::Drain, DRAINS))
            .or_else(|| taint(HeldBy::Drain, &[MEDIK8S_DRAIN]))
            .or_else(|| is_excluded(node).then_some(Found::Label))
            .or_else(|| MAINTAINS.iter().find_map(|it| condition(HeldBy::Maintenance, it)))
    }

    pub(super) fn by(&self) -> HeldBy {
        match self {
            Found::Deletion => HeldBy::Deletion,
            Found::Taint(by, _) | Found::Condition(by, _) => *by,
            Found::Label => HeldBy::Maintenance,
        }
    }
}

fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

/// Whether a condition is of this type and holds, and is somebody else's.
fn says_so(condition: &NodeCondition, type_: &str) -> bool {
    condition.type_ == type_
        && condition.status == "True"
        && condition.reason.as_deref() != Some(OWN_REASON)
}

fn is_excluded(node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    labels.and_then(|all| all.get(MEDIK8S_EXCLUDE)).is_some_and(|value| value == "true")
}

fn short(text: &str) -> String {
    clean(text).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests;
