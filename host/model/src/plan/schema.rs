//! The plan as it is serialised.
//!
//! This is the schema [`SCHEMA`]: fields are added to it, never renamed or removed
//! within a version. It never holds contents.

use super::decider::Decider;
use super::difference::Difference;
use super::steps::{Step, needs_daemon_reload, steps};
use crate::change::Edit;
use crate::digest::{Digest, Sha256};
use crate::effect::Effect;
use crate::verdict::{Action, Layer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The name and version of the JSON form.
pub const SCHEMA: &str = "tread.dev/plan/v1";

/// What has to happen so that a node goes from one config to the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// [`SCHEMA`]
    pub schema: &'static str,
    /// Whether there is anything to do, and whether it may be done.
    pub outcome: PlanOutcome,
    /// The most disruptive thing that the steps do.
    pub effect: Effect,
    /// The answer in one line.
    pub summary: String,
    /// Whether the node's pods are moved elsewhere first.
    pub drain: bool,
    /// Whether the node boots.
    pub reboot: bool,
    /// What is done, in order; empty when there is nothing to do or the change
    /// is refused.
    pub steps: Vec<Step>,
    /// Each difference, by id.
    pub changes: Vec<PlannedChange>,
    /// The policies that were asked, by layer and name.
    pub policies: Vec<PolicyIdentity>,
    /// Those of them that decided, as the digest covers them.
    pub deciders: Vec<Decider>,
    /// What an admin should know besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// False if a wall clock or the native stack had a part in it: then the
    /// same inputs may give another plan.
    pub reproducible: bool,
    /// Covers both configs, the policies that decided, and the steps.
    pub digest: Digest,
    /// The digest of the config that the node has.
    pub from: Digest,
    /// The digest of the config that it is to get.
    pub to: Digest,
}

impl Plan {
    /// The steps that some of its changes would cost by themselves. There are none if
    /// it has none of them, or if one of them is refused.
    pub fn steps_of(&self, ids: &BTreeSet<String>) -> Vec<Step> {
        let own = || self.changes.iter().filter(|change| ids.contains(&change.id));
        let refused = own().any(|change| change.outcome == ChangeOutcome::Refused);
        if refused || own().next().is_none() {
            return Vec::new();
        }
        let daemon_reload = own().any(|change| needs_daemon_reload(&change.id));
        steps(own().flat_map(|change| &change.decided), daemon_reload)
    }
}

/// Whether there is anything to do, and whether it may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanOutcome {
    /// Both configs mean the same.
    Nothing,
    /// The steps lead from one to the other.
    Apply,
    /// A running node cannot, or must not, be changed like this.
    Refuse,
}

/// One difference, and what was decided on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedChange {
    /// `file:/etc/chrony.conf`, `kernel-arguments`, …
    pub id: String,
    /// Added, changed or removed.
    pub edit: Edit,
    /// How the decision came about.
    pub outcome: ChangeOutcome,
    /// What this change asks for, before it is merged with the others.
    pub actions: Vec<Step>,
    /// The same as it was decided: a reboot among it may say that it needs no drain.
    #[serde(skip)]
    pub decided: Vec<Action>,
    /// Who decided; null for a fallback, for what the host refuses, and for what it
    /// says costs nothing.
    pub decided_by: Option<PolicyIdentity>,
    /// Why, in a sentence; what others ask for besides follows, in a sentence
    /// for each.
    pub reason: String,
    /// The sentences of `reason` on what others ask for besides.
    #[serde(skip)]
    pub also: Vec<String>,
    /// What to do about it, where there is something to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Where more than one policy spoke: what each of them said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<GivenAnswer>,
    /// What it would cost without the admin layer, where that differs; only
    /// there if somebody asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<Overruled>,
    /// How much differs, and in what; only there if somebody asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
}

/// What an admin's answer stands in place of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overruled {
    /// How that decision would come about.
    pub outcome: ChangeOutcome,
    /// What it would ask for.
    pub actions: Vec<Step>,
    /// Who would decide; null for a fallback.
    pub decided_by: Option<PolicyIdentity>,
    /// The reason, in words.
    pub reason: String,
}

/// How the decision on a change came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeOutcome {
    /// A policy answered.
    Decided,
    /// No policy answered: it costs a reboot.
    Fallback,
    /// A policy failed: it costs a reboot.
    Failed,
    /// It must not be applied.
    Refused,
}

/// Which policy it was, to the byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyIdentity {
    /// Its name.
    pub policy: String,
    /// Who speaks.
    pub layer: Layer,
    /// Its version.
    pub version: String,
    /// The digest of its component.
    pub digest: Sha256,
    /// The digest of its settings.
    pub settings_digest: Sha256,
}

/// What one policy said of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GivenAnswer {
    /// Which policy.
    pub policy: String,
    /// Its layer.
    pub layer: Layer,
    /// `abstain`, `act`, `refuse`, or the stable name of its failure.
    pub answer: String,
    /// What it asks for.
    pub actions: Vec<Step>,
    /// The reason, in words.
    pub reason: String,
    /// Whether it counted. It does not where a policy that may relax it acted.
    pub counted: bool,
}

impl From<&PolicyIdentity> for Decider {
    fn from(policy: &PolicyIdentity) -> Decider {
        Decider {
            policy: policy.policy.clone(),
            layer: policy.layer,
            digest: policy.digest,
            settings_digest: policy.settings_digest,
        }
    }
}
