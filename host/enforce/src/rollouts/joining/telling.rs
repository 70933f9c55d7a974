//! What is told of nodes that join, or are held.

use super::super::settings::Settings;
use super::super::telling::about;
use futures::{StreamExt as _, stream};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;
use tread_cluster::index::Kept;
use tread_kube::api::NodeUpdate;
use tread_kube::api::conditions::{Finding, set};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::events::{Note, Reason};
use tread_model::joining::{Held, JOINED};

const UPDATES: &str = "nodeupdates";

/// More than these do not wait: whoever is held is told of again at the next look.
const ROOM: usize = 4096;
/// How many are written at a time.
const AT_ONCE: usize = 8;

/// What became of a node.
#[derive(Debug, Clone)]
pub(super) enum What {
    Joined(String),
    /// Its agent brings what Ignition cannot, before it joins this pool.
    Prepares(String),
    Held(Held),
}

/// What is to be told. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct News(mpsc::Sender<(String, String, What)>);

impl News {
    pub(super) fn new() -> (News, mpsc::Receiver<(String, String, What)>) {
        let (news, told) = mpsc::channel(ROOM);
        (News(news), told)
    }

    pub(super) fn tell(&self, node: &str, uid: String, what: What) {
        if self.0.try_send((node.to_owned(), uid, what)).is_err() {
            tracing::debug!(node, "what became of it is told later: too much waits");
        }
    }
}

/// Writes what comes, for as long as it is polled: no node waits for it.
pub(super) async fn write(
    settings: Settings,
    updates: Kept<String, Arc<NodeUpdate>>,
    told: mpsc::Receiver<(String, String, What)>,
) {
    let news = stream::unfold(told, async |mut told| Some((told.recv().await?, told)));
    let writing = news.for_each_concurrent(AT_ONCE, async |(node, uid, what)| {
        let updates = updates.now().unwrap_or_default();
        let (of, update) = ((node.as_str(), uid.as_str()), updates.get(&node).map(|it| &**it));
        let written = match &what {
            What::Held(why) => held(&settings, of, update, why).await,
            What::Joined(pool) => joined(&settings, of, update, pool).await,
            What::Prepares(pool) => prepares(&settings, of, update, pool).await,
        };
        if let Err(failed) = written
            && failed.outcome != CallOutcome::Conflict
        {
            tracing::warn!(node, error = %failed, "what became of a node cannot be told");
        }
    });
    writing.await;
    std::future::pending().await
}

/// Says in a node's NodeUpdate what it waits for before it joins.
async fn prepares(
    settings: &Settings,
    (node, uid): (&str, &str),
    update: Option<&NodeUpdate>,
    pool: &str,
) -> Result<(), Failed> {
    let message = format!(
        "it joins pool {pool} once its agent has brought what Ignition cannot: image, kernel, arguments \
         or extensions. That costs one boot at most, and no pod is put there meanwhile"
    );
    let reason = "Prepares".to_owned();
    let finding = Finding { type_: JOINED, status: Some(false), reason, message };
    say_of(settings, (node, uid), update, finding).await.map(drop)
}

/// Says in a node's NodeUpdate, and in an Event, why it is held, unless it says so already.
async fn held(
    settings: &Settings,
    (node, uid): (&str, &str),
    update: Option<&NodeUpdate>,
    held: &Held,
) -> Result<(), Failed> {
    let says = held.says(node);
    let finding = Finding {
        type_: JOINED,
        status: Some(false),
        reason: held.word().to_owned(),
        message: says.clone(),
    };
    if !say_of(settings, (node, uid), update, finding).await? {
        return Ok(());
    }
    tracing::warn!(node, reason = held.word(), "a node that registered as joining is held");
    let note = Note { reason: Reason::NodeHeld, warns: true, text: says };
    // What cannot be written is in the log and in the metrics.
    drop(settings.events.tell_each(&about("Node", "v1", node, uid), &note, held.word()).await);
    Ok(())
}

/// Tells that a node has joined a pool; in its NodeUpdate where that said otherwise before.
async fn joined(
    settings: &Settings,
    (node, uid): (&str, &str),
    update: Option<&NodeUpdate>,
    pool: &str,
) -> Result<(), Failed> {
    let note = Note {
        reason: Reason::NodeJoined,
        warns: false,
        text: format!("it has joined pool {pool}, by its claim"),
    };
    drop(settings.events.tell_each(&about("Node", "v1", node, uid), &note, pool).await);
    let Some(update) = update.filter(|update| says_held(update)) else { return Ok(()) };
    let message = format!("it has joined pool {pool}");
    let reason = "Joined".to_owned();
    say(settings, update, Finding { type_: JOINED, status: Some(true), reason, message }).await?;
    Ok(())
}

/// Whether a NodeUpdate says that its node is held.
fn says_held(update: &NodeUpdate) -> bool {
    let conditions = update.status.as_ref().map_or(&[][..], |status| &status.conditions);
    conditions.iter().any(|it| it.type_ == JOINED && it.status == "False")
}

async fn make(settings: &Settings, node: &str, uid: &str) -> Result<NodeUpdate, Failed> {
    let call = Call::new("create", UPDATES);
    let object = json!({
        "apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
        "metadata": {"name": node, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}]},
        // It is in none.
        "spec": {"pool": ""},
    });
    let object: NodeUpdate =
        serde_json::from_value(object).map_err(|error| call.clone().refused(error.to_string()))?;
    let api: Api<NodeUpdate> = Api::all(settings.acts.client.clone());
    ask(&settings.acts.metrics, call, api.create(&PostParams::default(), &object)).await
}

/// Says it in a node's NodeUpdate, which is made where there is none.
async fn say_of(
    settings: &Settings,
    (node, uid): (&str, &str),
    update: Option<&NodeUpdate>,
    finding: Finding,
) -> Result<bool, Failed> {
    match update {
        Some(update) => say(settings, update, finding).await,
        None => say(settings, &make(settings, node, uid).await?, finding).await,
    }
}

/// Whether something was written.
async fn say(settings: &Settings, update: &NodeUpdate, finding: Finding) -> Result<bool, Failed> {
    let known = update.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let mut conditions = known.to_vec();
    let generation = update.metadata.generation.unwrap_or_default();
    set(&mut conditions, finding, generation, Timestamp::now());
    let one = |all: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition]| {
        let one = all.iter().find(|it| it.type_ == JOINED);
        one.map(|it| (it.status.clone(), it.reason.clone(), it.message.clone()))
    };
    if one(known) == one(&conditions) {
        return Ok(false);
    }
    let name = update.metadata.name.clone().unwrap_or_default();
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    let api: Api<NodeUpdate> = Api::all(settings.acts.client.clone());
    let call = Call::new("patch", UPDATES).of_status();
    let params = PatchParams::default();
    match ask(&settings.acts.metrics, call, api.patch_status(&name, &params, &patch)).await {
        Err(failed) if failed.outcome == CallOutcome::Gone => Ok(false),
        told => told.map(|_| true),
    }
}
