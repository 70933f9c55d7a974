//! Whoever asks what a change would do could try contents until nothing changes,
//! and would know a secret then. So each secret that is asked about counts as new:
//! the answer follows from what was asked, and not from what is there.

use super::body::Bodies;
use super::side::Side;
use std::collections::BTreeSet;
use tread_model::config::NodeConfig;
use tread_model::operator::Rendered;
use tread_model::read::{self, Input, TOGETHER};
use tread_model::secrets::is_secret_file;

/// What is asked about that may be a secret.
#[derive(Debug, Default)]
pub(super) struct Guessed {
    files: BTreeSet<String>,
    users: BTreeSet<String>,
}

impl Guessed {
    /// What the objects of a side say that are not in the cluster.
    pub(super) fn of(side: &Side, bodies: &Bodies) -> Guessed {
        let mut guessed = Guessed::default();
        for piece in side.configs.iter().filter(|piece| piece.is_given()) {
            let Some(bytes) = piece.bytes(bodies) else { continue };
            let input = [Input { name: piece.name(), bytes }];
            // What cannot be read is told as that, whatever it holds.
            let Ok((side, _)) = read::sides(&input, &input) else { continue };
            guessed.files.extend(side.config.files.iter().map(|file| file.path.to_string()));
            let users = side.config.users.iter().filter(|user| user.password_hash.is_some());
            guessed.users.extend(users.map(|user| user.name.to_string()));
        }
        guessed
    }

    /// Takes the secrets out of what is there, on both of its forms; the ids of
    /// what was taken out.
    pub(super) fn hide(
        &self,
        old: &mut NodeConfig<'_>,
        new: &mut NodeConfig<'_>,
        rendered: Option<&mut Rendered>,
    ) -> BTreeSet<String> {
        let mut hidden = BTreeSet::new();
        let is_secret = |config: &NodeConfig<'_>, path: &str| {
            let found = config.files.binary_search_by(|file| file.path.as_ref().cmp(path));
            let file = found.ok().and_then(|place| config.files.get(place));
            file.is_some_and(|file| is_secret_file(path, file.mode))
        };
        let there = old.files.iter().map(|file| file.path.as_ref());
        let secret: BTreeSet<String> = there
            .filter(|path| self.files.contains(*path))
            .filter(|path| is_secret(old, path) || is_secret(new, path))
            .map(str::to_owned)
            .collect();
        old.files.retain(|file| !secret.contains(file.path.as_ref()));
        // What the configs of a file are together follows from what is there, too.
        new.faults.retain(|fault| {
            let path = fault.id.strip_prefix("file:").unwrap_or_default();
            !(secret.contains(path) && fault.field.ends_with(TOGETHER))
        });
        for user in old.users.iter_mut().filter(|user| self.users.contains(user.name.as_ref())) {
            if user.password_hash.take().is_some() {
                hidden.insert(format!("password:{}", user.name));
            }
        }
        if let Some(rendered) = rendered {
            rendered.forget(&secret, !hidden.is_empty());
        }
        hidden.extend(secret.iter().map(|path| format!("file:{path}")));
        hidden
    }
}

#[cfg(test)]
mod tests;
