//! One rule: what it matches, and what it answers.

use crate::verdict::Action;
use serde::{Deserialize, Serialize};

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
        /// The reason, in words.
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
