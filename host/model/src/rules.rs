//! Inline rules: policies that need no code. They are evaluated by the built-in
//! component `rules`, whose settings are a [`RuleSet`]; what they claim is
//! computed here, from the rules themselves.

mod check;
mod claims;
mod inline;
mod manifest;
mod matching;

pub use check::warnings;
pub use manifest::{Manifest, manifest};
pub use matching::deciding_rule;

use crate::description::Claim;
use crate::openshift;
use crate::problem::Problems;
use crate::read::fields::{Fields, Report, unknown, unless};
use crate::read::{Input, document_values};
use crate::verdict::{Action, Layer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The settings of the component `rules`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSet {
    /// In the order in which they were written.
    pub rules: Vec<Rule>,
}

/// What to answer for which changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Patterns, as in claims.
    pub r#match: Vec<String>,
    /// The answer.
    pub then: Then,
}

/// What a rule answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Then {
    /// These actions make the change take effect.
    Act {
        /// None at all: writing is enough.
        actions: Vec<RuleAction>,
        /// Why.
        reason: String,
    },
    /// The change must not be applied.
    Refuse {
        /// Why, and what to do instead.
        reason: String,
    },
    /// Others decide.
    Abstain,
}

/// An action as the settings write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RuleAction {
    /// Ask a unit to re-read its configuration.
    Reload {
        /// Its name.
        unit: String,
    },
    /// Stop and start a unit.
    Restart {
        /// Its name.
        unit: String,
    },
    /// Let systemd re-read its units.
    DaemonReload,
    /// Move the node's pods elsewhere first.
    Drain,
    /// Boot the node; it is drained first.
    Reboot,
    /// Boot the node without draining it: admin layer only.
    RebootUndrained,
}

impl RuleAction {
    /// The action that a verdict names.
    pub fn action(&self) -> Action {
        match self {
            RuleAction::Reload { unit } => Action::Reload(unit.clone()),
            RuleAction::Restart { unit } => Action::Restart(unit.clone()),
            RuleAction::DaemonReload => Action::DaemonReload,
            RuleAction::Drain => Action::Drain,
            RuleAction::Reboot => Action::Reboot,
            RuleAction::RebootUndrained => Action::RebootUndrained,
        }
    }
}

/// A policy that is made of rules.
#[derive(Debug, Clone, PartialEq)]
pub struct RulesPolicy {
    /// What it is called in plans.
    pub name: String,
    /// Who speaks.
    pub layer: Layer,
    /// Whether, in the template layer, it drops what built-ins say of the
    /// changes on which it acts.
    pub may_relax: bool,
    /// The settings for the component `rules`: a [`RuleSet`].
    pub settings: serde_json::Value,
    /// What the rules claim, and the effects that they have: in place of what
    /// the component declares. Rules that abstain claim nothing.
    pub claims: Vec<Claim>,
    /// What an admin should know besides; part of the plan.
    pub warnings: Vec<String>,
}

/// Reads a file of rules: DisruptionPolicy objects with inline rules, and
/// OpenShift's MachineConfiguration.
pub fn read(input: &Input<'_>) -> Result<Vec<RulesPolicy>, Problems> {
    read_for(input, Use::Enforce)
}

/// As [`read`], for rules that are only tried: their mode may be `Shadow`.
pub fn read_shadow(input: &Input<'_>) -> Result<Vec<RulesPolicy>, Problems> {
    read_for(input, Use::Shadow)
}

/// As [`read`], whatever their mode: for whoever checks manifests.
pub fn read_any(input: &Input<'_>) -> Result<Vec<RulesPolicy>, Problems> {
    read_for(input, Use::Check)
}

/// What rules are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Enforce,
    Shadow,
    Check,
}

impl Use {
    fn takes(self, mode: &str) -> bool {
        match self {
            Use::Enforce => mode == "Enforce",
            Use::Shadow => ["Enforce", "Shadow"].contains(&mode),
            Use::Check => ["Enforce", "Shadow", "Disabled"].contains(&mode),
        }
    }
}

fn read_for(input: &Input<'_>, wanted: Use) -> Result<Vec<RulesPolicy>, Problems> {
    let mut problems = Vec::new();
    let mut policies: Vec<RulesPolicy> = Vec::new();
    let mut names = BTreeSet::new();
    for document in document_values(input)? {
        let mut report = Report::new(input.name, &document.label);
        if let Some(object) = Fields::object(&document.value, "", &mut report)
            && let Some(policy) = read_object(&object, wanted, &mut report)
        {
            if !names.insert(policy.name.clone()) {
                let message = format!("{:?} is the name of an earlier policy too", policy.name);
                report.problem("metadata.name", message);
            }
            policies.push(policy);
        }
        problems.extend(report.into_problems());
    }
    unless(problems, policies)
}

const KINDS: [(&str, &str); 2] =
    [("DisruptionPolicy", inline::API_VERSION), ("MachineConfiguration", openshift::API_VERSION)];

fn read_object(object: &Fields<'_>, wanted: Use, report: &mut Report) -> Option<RulesPolicy> {
    let kind = object.required_string("kind", report)?;
    let Some((_, version)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        report.problem(
            object.at("kind"),
            unknown("kind of rules", kind, &KINDS.map(|(kind, _)| kind)),
        );
        return None;
    };
    let found = object.required_string("apiVersion", report)?;
    if found != *version {
        let message = format!("{kind} has to be of {version}, found {found:?}");
        report.problem(object.at("apiVersion"), message);
        return None;
    }
    match kind {
        "DisruptionPolicy" => inline::read(object, wanted, report),
        _ => openshift::read(object, report),
    }
}

#[cfg(test)]
mod tests;
