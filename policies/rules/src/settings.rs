//! Rules as the settings write them.

use serde::{Deserialize, Serialize};

/// The settings.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// In the order in which they were written.
    pub rules: Vec<Rule>,
}

/// What to answer for which changes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Patterns, as in claims: `file:/etc/chrony.d/**`.
    pub r#match: Vec<String>,
    /// The answer.
    pub then: Then,
}

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Then {
    /// Which one.
    pub answer: Say,
    /// What makes the change take effect, if it acts.
    #[serde(default)]
    pub actions: Vec<Wanted>,
    /// Why, unless it abstains.
    #[serde(default)]
    pub reason: String,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Say {
    /// The actions make the change take effect.
    Act,
    /// The change must not be applied.
    Refuse,
    /// Others decide.
    Abstain,
}

/// One action.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Which one.
    #[serde(rename = "do")]
    pub what: Do,
    /// Of a reload or a restart.
    #[serde(default)]
    pub unit: Option<String>,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Boot the node without draining it.
    RebootUndrained,
}

impl Rule {
    /// What is wrong with it that its types cannot say.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let Then { answer, actions, reason } = &self.then;
        if self.r#match.is_empty() {
            return Some("it matches nothing");
        }
        if *answer != Say::Act && !actions.is_empty() {
            return Some("only an answer that acts has actions");
        }
        if *answer != Say::Abstain && reason.is_empty() {
            return Some("it says no reason");
        }
        actions.iter().find_map(Wanted::fault)
    }
}

impl Wanted {
    fn fault(&self) -> Option<&'static str> {
        match (self.what, self.unit.is_some()) {
            (Do::Reload, false) => Some("reload needs a unit"),
            (Do::Restart, false) => Some("restart needs a unit"),
            (Do::Reload | Do::Restart, true) | (_, false) => None,
            (_, true) => Some("only reload and restart take a unit"),
        }
    }
}
