//! Whoever asks what a change would do could try contents until nothing changes,
//! and would know a secret then. So each secret that is asked about counts as new:
//! the answer follows from what was asked, and not from what is there.

use super::body::Bodies;
use super::parsed::Parsed;
use super::reading::ReadSide;
use super::side::Side;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use tread_model::config::{Fault, NodeConfig};
use tread_model::effect::Effect;
use tread_model::operator::{Because, Forecast, Rendered};
use tread_model::read::{self, Input, TOGETHER};
use tread_model::secrets::is_secret_file;

/// Groups with their passwords, as what only provisioning can set.
const GROUPS: &str = "users:groups";

/// What only provisioning can set and holds no secret; all else of that may: keys of disks,
/// passwords of groups, headers by which something is fetched, logins to a proxy.
const NO_SECRETS: [&str; 7] = [
    "ignition:kernel-arguments",
    "ignition:timeouts",
    "storage:directories",
    "storage:disks",
    "storage:filesystems",
    "storage:links",
    "storage:raid",
];

/// What is asked about that may be a secret.
#[derive(Debug, Default)]
pub(super) struct Guessed {
    files: BTreeSet<String>,
    users: BTreeSet<String>,
    /// Ids of what only provisioning can set.
    fixed: BTreeSet<String>,
}

impl Guessed {
    /// What the objects of a side say that are not in the cluster.
    pub(super) fn of(side: &Side, bodies: &Bodies, parsed: &Parsed) -> Guessed {
        let mut guessed = Guessed::default();
        for piece in side.configs.iter().filter(|piece| piece.is_given()) {
            let Some(bytes) = piece.bytes(bodies) else { continue };
            let config = parsed.of(piece, bodies);
            if let Some(known) = config.and_then(|config| config.read(bytes)) {
                guessed.add(known.alone());
                continue;
            }
            let input = [Input { name: piece.name(), bytes }];
            // What cannot be read is told as that, whatever it holds.
            if let Ok(side) = read::side_in_order("new", &input) {
                guessed.add(&side.config);
            }
        }
        guessed
    }

    fn add(&mut self, config: &NodeConfig<'_>) {
        self.files.extend(config.files.iter().map(|file| file.path.to_string()));
        let users = config.users.iter().filter(|user| user.password_hash.is_some());
        self.users.extend(users.map(|user| user.name.to_string()));
        let fixed = config.fixed.iter().map(|fixed| fixed.id.as_str());
        self.fixed.extend(fixed.filter(|id| !NO_SECRETS.contains(id)).map(str::to_owned));
    }

    /// Takes the secrets out of what is there, on both of its forms; the ids of
    /// what was taken out.
    pub(super) fn hide(
        &self,
        old: &mut ReadSide<'_>,
        new: &mut Cow<'_, ReadSide<'_>>,
        rendered: Option<&mut Arc<Rendered>>,
    ) -> BTreeSet<String> {
        let mut hidden = BTreeSet::new();
        let is_secret = |config: &NodeConfig<'_>, path: &str| {
            let found = config.files.binary_search_by(|file| file.path.as_ref().cmp(path));
            let file = found.ok().and_then(|place| config.files.get(place));
            file.is_some_and(|file| is_secret_file(path, file.mode))
        };
        let there = old.config().files.iter().map(|file| file.path.as_ref());
        let secret: BTreeSet<String> = there
            .filter(|path| self.files.contains(*path))
            .filter(|path| is_secret(old.config(), path) || is_secret(new.config(), path))
            .map(str::to_owned)
            .collect();
        if !secret.is_empty() {
            old.forget_files(&secret);
        }
        // A fault that several configs have only together would also tell what is there.
        let follows = |fault: &Fault| {
            let path = fault.id.strip_prefix("file:").unwrap_or_default();
            secret.contains(path) && fault.field.ends_with(TOGETHER)
        };
        if new.config().faults.iter().any(follows) {
            new.to_mut().config_mut().faults.retain(|fault| !follows(fault));
        }
        let users = old.config_mut().users.iter_mut();
        for user in users.filter(|user| self.users.contains(user.name.as_ref())) {
            if user.password_hash.take().is_some() {
                hidden.insert(format!("password:{}", user.name));
            }
        }
        if let Some(rendered) = rendered.filter(|_| !(secret.is_empty() && hidden.is_empty())) {
            Arc::make_mut(rendered).forget(&secret, !hidden.is_empty());
        }
        hidden.extend(secret.iter().map(|path| format!("file:{path}")));
        let fixed = old.config_mut().fixed.extract_if(.., |fixed| self.fixed.contains(&fixed.id));
        hidden.extend(fixed.map(|fixed| fixed.id));
        hidden
    }
}

/// What the operator does where groups count as new: it rejects them, whatever there were.
pub(super) fn rejected(hidden: &BTreeSet<String>) -> Option<Forecast> {
    let because = hidden.get(GROUPS).map(|id| Because {
        id: id.clone(),
        effect: Effect::Refuse,
        rule: "groups cannot be changed".to_owned(),
    })?;
    Some(Forecast {
        effect: because.effect,
        summary: format!("rejected, the pool degrades: {}", because.id),
        drain: false,
        reboot: false,
        actions: Vec::new(),
        because: vec![because],
    })
}

#[cfg(test)]
mod tests;
