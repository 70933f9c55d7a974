//! How much something disturbs a node.

use serde::{Deserialize, Serialize};

/// The ranking that claims, listings and `--max` share, from the least to the
/// most disruptive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The files are written; nothing else happens.
    None,
    /// A unit re-reads its configuration; `daemon-reload` and updating the CA
    /// trust count as this too.
    Reload,
    /// A unit stops and starts.
    Restart,
    /// The node's pods are moved elsewhere first.
    Drain,
    /// The node is drained and boots.
    Reboot,
    /// The change is not applied at all.
    Refuse,
}

impl Effect {
    /// The word for it in output and settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::None => "none",
            Effect::Reload => "reload",
            Effect::Restart => "restart",
            Effect::Drain => "drain",
            Effect::Reboot => "reboot",
            Effect::Refuse => "refuse",
        }
    }
}

impl std::fmt::Display for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
