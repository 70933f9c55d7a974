//! What an agent keeps of its own, over restarts and boots.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tread_kube::api::node_update::{ConfigName, EndedOperation, UpdatePhase};
use tread_kube::node_lease::parse_operation;
use tread_model::protocol::Local;
use tread_node::tree::{Folder, PathError, Tree};

const FOLDER: &str = "/var/lib/tread/agent";
const FILE: &str = "kept";
const NEXT: &str = "kept.next";
const MOST: u64 = 1 << 20;

/// What is kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Kept {
    /// The node's name, as the service says.
    pub(crate) node: String,
    /// The node's UID: what is known of orders counts for it alone.
    pub(crate) uid: Option<String>,
    /// How often an agent began here, for the numbers of its questions.
    pub(crate) begun: u64,
    /// The highest token of an order that it took.
    pub(crate) token: u32,
    /// The operation that it is in, or was in last.
    pub(crate) taken: Option<Taken>,
    /// The config that the node has.
    pub(crate) current: Option<ConfigName>,
    /// How the last operations ended.
    pub(crate) ended: Vec<EndedOperation>,
    /// The adoption that, before the machine joins, brings what it could not boot with (another OS
    /// image, for instance), and the digest of its config. It is tried once.
    pub(crate) brings: Option<(String, String)>,
    /// The name of that config: a later tread may make its digest in another way.
    pub(crate) brings_name: Option<String>,
    /// The operation that ended unfinished, because the node that it was ordered for was deleted,
    /// because it was closed as done while it waited for a boot, or because somebody let the machine
    /// in that it was to bring to its config. A boot brings the rest of its changes into effect.
    pub(crate) gone: Option<String>,
    /// In which boot it did, where that is known.
    pub(crate) gone_in: Option<String>,
    /// What was written of it last, by its digest.
    pub(crate) written: Option<String>,
}

/// An operation that was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Taken {
    pub(crate) operation: String,
    pub(crate) config: ConfigName,
    pub(crate) token: u32,
    /// Whether its plan has a boot.
    pub(crate) boots: bool,
    pub(crate) phase: UpdatePhase,
    /// Since when it is in that.
    pub(crate) since: MicroTime,
    /// What an admin has to know of its end.
    #[serde(default)]
    pub(crate) message: String,
}

/// A name has no more characters.
const NAME: usize = 253;

impl Kept {
    /// What stays valid once the node was deleted and made anew under its name: earlier orders
    /// count no more, except the operation whose changes are on the disk.
    pub(crate) fn anew(self) -> Kept {
        let Kept { begun, gone, gone_in, taken, mut ended, brings, brings_name, .. } = self;
        let is_gone = |operation: &String| gone.as_ref() == Some(operation);
        ended.retain(|it| is_gone(&it.operation));
        let taken = taken.filter(|it| is_gone(&it.operation)).map(|it| Taken { token: 0, ..it });
        let brings = brings.filter(|(operation, _)| is_gone(operation));
        let brings_name = brings_name.filter(|_| brings.is_some());
        Kept { begun, taken, ended, gone, gone_in, brings, brings_name, ..Kept::default() }
    }

    /// Notes that the node has only a part of a config, under a name and a digest that no config
    /// has. So the only plan that leads away from it is the one that is always allowed, which
    /// boots.
    pub(crate) fn has_a_part(&mut self) {
        let is_gone = |operation: &String| self.gone.as_ref() == Some(operation);
        let taken = self.taken.as_ref().filter(|it| is_gone(&it.operation));
        let brings = self.brings.as_ref().filter(|(operation, _)| is_gone(operation));
        let Some(config) = taken
            .map(|it| it.config.name.as_str())
            .or_else(|| brings.map(|(_, digest)| digest.as_str()))
        else {
            return;
        };
        let name = format!("part-of-{config}").chars().take(NAME).collect();
        self.current = Some(ConfigName { name, digest: String::new() });
    }

    /// Whether what ended unfinished was no order.
    pub(crate) fn is_gone_without_an_order(&self) -> bool {
        let taken = self.taken.as_ref().map(|taken| &taken.operation);
        self.gone.is_some() && self.gone.as_ref() != taken
    }

    /// What was left of it is done.
    pub(crate) fn is_whole(&mut self) {
        (self.gone, self.gone_in) = (None, None);
        if self.current.as_ref().is_some_and(|current| current.digest.is_empty()) {
            (self.current, self.written) = (None, None);
        }
    }

    /// Whether the node booted since something ended unfinished here, or nobody knows that.
    pub(crate) fn has_booted_since(&self, boot: Option<&String>) -> bool {
        self.gone_in.as_ref().zip(boot).is_none_or(|(then, now)| then != now)
    }

    /// What the protocol asks of it.
    pub(crate) fn local(&self) -> Local {
        let taken = self.taken.as_ref();
        let operation =
            taken.and_then(|it| Some((parse_operation(&it.operation)?, it.phase.into())));
        Local { operation, token: self.token }
    }
}

/// Where it is kept: a file of root's, which has all of it at once.
pub(crate) struct Keeps {
    tree: Tree,
    kept: Mutex<Kept>,
}

impl Keeps {
    /// Of this node. What cannot be read is told of, and forgotten.
    pub(crate) fn of(tree: &Tree) -> Result<Keeps, PathError> {
        let folder = tree.private_folder(FOLDER)?;
        let read = folder.read(FILE, MOST).map_err(|error| PathError::io(FOLDER, error))?;
        let kept = match read.as_deref().map(serde_json::from_slice::<Kept>) {
            Some(Ok(kept)) => kept,
            Some(Err(error)) => {
                tracing::warn!(file = %folder.path_of(FILE), %error, "this file cannot be read: the agent starts with an empty one");
                Kept::default()
            }
            None => Kept::default(),
        };
        Ok(Keeps { tree: tree.clone(), kept: Mutex::new(kept) })
    }

    pub(crate) fn get(&self) -> Kept {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes it, on the disk first.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Kept)) -> io::Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = kept.clone();
        change(&mut next);
        if next != *kept {
            self.write(&serde_json::to_vec(&next)?)?;
            *kept = next;
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        // Somebody may have removed it.
        let folder: Folder = self.tree.private_folder(FOLDER).map_err(io::Error::other)?;
        folder.remove_own(NEXT)?;
        folder.append(NEXT, bytes)?;
        folder.replace_own(NEXT, FILE)?;
        folder.sync()
    }

    /// The first number for the questions of this process. No number is used twice, not even after
    /// a boot or if the file was lost.
    pub(crate) fn first_number(&self) -> io::Result<u64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.change(|kept| kept.begun = kept.begun.saturating_add(1).max(now))?;
        Ok(self.get().begun << 24)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn what_is_kept_is_there_again_and_no_number_comes_twice() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        let keeps = Keeps::of(&tree).unwrap();
        let first = keeps.first_number().unwrap();
        keeps.change(|kept| kept.token = 7).unwrap();
        let again = Keeps::of(&tree).unwrap();
        assert_eq!(again.get(), keeps.get());
        let second = again.first_number().unwrap();
        assert!(second > first + (1 << 20), "{first} {second}");
        // Half a file is none.
        std::fs::write(dir.path().join("var/lib/tread/agent/kept"), "{").unwrap();
        let lost = Keeps::of(&tree).unwrap();
        assert_eq!(lost.get(), Kept::default());
        assert!(lost.first_number().unwrap() >= first);
        std::fs::remove_dir_all(dir.path().join("var/lib/tread/agent")).unwrap();
        lost.change(|kept| kept.token = 8).unwrap();
        assert_eq!(Keeps::of(&tree).unwrap().get().token, 8);
    }
}
