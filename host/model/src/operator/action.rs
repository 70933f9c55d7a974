//! What an entry of the operator's nodeDisruptionPolicy does.

use crate::effect::Effect;
use crate::verdict::Action;
use serde_json::Value;
use std::borrow::Cow;

/// The unit that `Special` reloads.
pub(super) const CRIO: &str = "crio.service";

/// An action of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OperatorAction {
    None,
    Drain,
    Reboot,
    DaemonReload,
    Reload(Cow<'static, str>),
    Restart(Cow<'static, str>),
    /// Reloads CRI-O, and drains where its check of registries.conf says so.
    Special,
}

use OperatorAction::{DaemonReload, Drain, Reboot, Reload, Restart, Special};

impl OperatorAction {
    pub(super) fn effect(&self) -> Effect {
        match self {
            OperatorAction::None => Effect::None,
            Reload(_) | DaemonReload | Special => Effect::Reload,
            Restart(_) => Effect::Restart,
            Drain => Effect::Drain,
            Reboot => Effect::Reboot,
        }
    }

    /// What runs on the node, if anything does.
    pub(super) fn command(&self) -> Option<String> {
        match self {
            OperatorAction::None | Drain | Reboot => None,
            DaemonReload => Some("daemon-reload".to_owned()),
            Reload(unit) => Some(format!("reload {unit}")),
            Restart(unit) => Some(format!("restart {unit}")),
            Special => Some(format!("reload {CRIO}")),
        }
    }

    /// In the words of policies. Of what it may do, the least.
    pub(super) fn action(&self) -> Option<Action> {
        Some(match self {
            OperatorAction::None => return None,
            Drain => Action::Drain,
            Reboot => Action::Reboot,
            DaemonReload => Action::DaemonReload,
            Reload(unit) => Action::Reload(unit.to_string()),
            Restart(unit) => Action::Restart(unit.to_string()),
            Special => Action::Reload(CRIO.to_owned()),
        })
    }

    pub(super) fn read(action: &Value) -> OperatorAction {
        let service = |of: &str| {
            let name = action.get(of).and_then(|of| of.get("serviceName"));
            name.and_then(Value::as_str).map(|name| Cow::Owned(name.to_owned()))
        };
        match action.get("type").and_then(Value::as_str) {
            Some("None") => OperatorAction::None,
            Some("Drain") => Drain,
            Some("DaemonReload") => DaemonReload,
            Some("Special") => Special,
            Some("Reload") => service("reload").map_or(Reboot, Reload),
            Some("Restart") => service("restart").map_or(Reboot, Restart),
            // The API server lets nothing else through.
            _ => Reboot,
        }
    }
}
