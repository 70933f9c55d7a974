//! Nodes are let in, some at a time, while others are looked at already.

use super::patch::{Patch, patch};
use super::serving::Joining;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch as Written, PatchParams};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tread_kube::asking::{Call, CallOutcome, Failed, ask};

/// How many are let in at a time.
const AT_ONCE: usize = 16;

/// A node that is to be let in, and the write that does it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) uid: String,
    version: String,
    pub(super) pool: String,
    patch: Value,
}

impl Entry {
    pub(super) fn new(name: &str, pool: &str, of: Patch<'_>) -> Entry {
        Entry {
            name: name.to_owned(),
            uid: of.uid.to_owned(),
            version: of.version.to_owned(),
            pool: pool.to_owned(),
            patch: patch(of),
        }
    }
}

/// What became of a node that was to be let in.
#[derive(Debug)]
pub(super) enum Ended {
    /// It is in.
    Joined(Entry),
    /// Somebody else wrote it, or it is gone: the watch brings that. Or this replica does not lead any
    /// more, and whoever leads lets it in, as another leader may have begun by other rules.
    Left,
    /// It was not written, and is tried again.
    Failed(Entry, Failed),
}

/// All that are let in now, and that were.
#[derive(Debug)]
pub(super) struct Letting {
    room: Arc<Semaphore>,
    tasks: JoinSet<(Entry, Result<bool, Failed>)>,
    /// The nodes that are written now: each once at a time.
    now: BTreeSet<String>,
    /// The versions of nodes that are or were written: the watch brings newer ones.
    written: BTreeMap<String, String>,
}

impl Default for Letting {
    fn default() -> Letting {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let (tasks, now, written) = Default::default();
        Letting { room, tasks, now, written }
    }
}

impl Letting {
    /// Forgets nodes that have another version by now than the one that was written.
    pub(super) fn keep<'v>(&mut self, version: impl Fn(&str) -> Option<&'v str>) {
        let is_kept =
            |node: &str, written: &str| self.now.contains(node) || version(node) == Some(written);
        self.written.retain(|node, written| is_kept(node, written));
    }

    /// Whether a node is being written, or was as it is known.
    pub(super) fn has(&self, node: &str) -> bool {
        self.written.contains_key(node)
    }

    /// Begins to let a node in, once there is room among those that are let in at a time.
    pub(super) fn begin(&mut self, joining: &Joining, entry: Entry) {
        self.now.insert(entry.name.clone());
        self.written.insert(entry.name.clone(), entry.version.clone());
        let (joining, room) = (joining.clone(), Arc::clone(&self.room));
        self.tasks.spawn(async move {
            let _room = room.acquire().await;
            let written = let_in(&joining, &entry).await;
            (entry, written)
        });
    }

    /// What became of the next one; `None` where nobody is let in.
    pub(super) async fn ended(&mut self) -> Option<Ended> {
        let (entry, written) = match self.tasks.join_next().await? {
            Ok(ended) => ended,
            // Whose it was is not known. It is tried again once somebody has written the node.
            Err(_) => {
                tracing::error!("a node's joining was interrupted; please report it");
                self.now.clear();
                return Some(Ended::Left);
            }
        };
        self.now.remove(&entry.name);
        Some(match written {
            Ok(true) => Ended::Joined(entry),
            Err(it) if matches!(it.outcome, CallOutcome::Conflict | CallOutcome::Gone) => {
                Ended::Left
            }
            Ok(false) => {
                self.written.remove(&entry.name);
                Ended::Left
            }
            Err(failed) => {
                self.written.remove(&entry.name);
                Ended::Failed(entry, failed)
            }
        })
    }
}

/// One patch, onto the version that was settled. Whether it was written.
async fn let_in(joining: &Joining, entry: &Entry) -> Result<bool, Failed> {
    if !joining.settings.leads.now() {
        return Ok(false);
    }
    let acts = &joining.settings.acts;
    let call = Call::new("patch", "nodes");
    let api: Api<Node> = Api::all(acts.client.clone());
    let (params, patch) = (PatchParams::default(), Written::Merge(&entry.patch));
    ask(&acts.metrics, call, api.patch(&entry.name, &params, &patch)).await?;
    tracing::info!(node = entry.name, pool = entry.pool, "a node has joined");
    Ok(true)
}
