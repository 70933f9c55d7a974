//! Rules as they stand in a DisruptionPolicy. What they mean, and every check
//! that a schema cannot make, is in `tread_model::rules`, which reads the same
//! text from a file.

use kube::KubeSchema;
use kube::core::Rule as Cel;
use serde::{Deserialize, Serialize};

/// What to answer for which changes: `match`, and one of `actions`, `refuse` and
/// `abstain`. The rule with the closest pattern decides; of equals the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Cel::new(
    "[has(self.actions), has(self.refuse), has(self.abstain)].exists(said, said)"
).message("says nothing: expected one of actions (which may be empty), refuse and abstain"))]
#[x_kube(validation = Cel::new(
    "[has(self.actions), has(self.refuse), has(self.abstain)].filter(said, said).size() < 2"
).message("says two things: expected only one of actions, refuse and abstain"))]
#[x_kube(validation = Cel::new("!has(self.refuse) || has(self.reason)")
    .message("a refusal needs a reason: say why, and what to do instead")
    .reason(kube::core::Reason::FieldValueRequired))]
#[x_kube(validation = Cel::new("!has(self.abstain) || !has(self.reason)")
    .message("a reason is never shown where a rule abstains: write it as a comment"))]
#[x_kube(validation = Cel::new(
    "!has(self.drain) || (has(self.actions) && self.actions.exists(a, a.do == 'reboot'))"
).message("drain stands only beside a reboot in actions; to drain alone, write {do: drain} in actions")
    .field_path(".drain"))]
#[x_kube(validation = Cel::new(
    "!has(self.actions) || self.actions.size() < 2 || !self.actions.exists(a, a.do == 'reboot')"
).message("a reboot stands alone: it drains the node and restarts everything")
    .field_path(".actions"))]
pub struct PolicyRule {
    /// Patterns: KIND or KIND:GLOB, such as file:/etc/chrony.conf,
    /// file:/etc/chrony.d/**, unit:crio.service, ssh-keys:core, kernel-arguments.
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 1024)))]
    pub r#match: Vec<String>,
    /// These make the change take effect; an empty list says that writing it is
    /// enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub actions: Option<Vec<RuleAction>>,
    /// Whether a reboot in actions drains the node first. False is for the admin
    /// layer only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<bool>,
    /// The change must not be applied. Can only be true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Cel::new("self").message("can only be true: leave it out"))]
    pub refuse: Option<bool>,
    /// Others decide. Can only be true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Cel::new("self").message("can only be true: leave it out"))]
    pub abstain: Option<bool>,
    /// Why, in one line; it stands in plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,
}

/// The names that systemd takes, with their types.
const UNIT: &str = r"^[A-Za-z0-9:_\\-][A-Za-z0-9:_.\\@-]*\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$";

/// What has to be done so that a change takes effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Cel::new("self.do in ['reload', 'restart'] == has(self.unit)")
    .message("reload and restart need a unit, such as crio.service; the others take none")
    .field_path(".unit"))]
pub struct RuleAction {
    /// What to do.
    pub r#do: Do,
    /// To which unit: a complete name, such as crio.service.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255), regex(pattern = UNIT))]
    pub unit: Option<String>,
}

/// What can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Do {
    /// Ask a unit to re-read its configuration.
    Reload,
    /// Stop and start a unit.
    Restart,
    /// Let systemd re-read its units.
    DaemonReload,
    /// Move the node's pods elsewhere first.
    Drain,
    /// Boot the node; it is drained first.
    Reboot,
}
