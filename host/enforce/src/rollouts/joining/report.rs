//! What is reported of nodes that join, or are held: in their NodeUpdates, and in Events.

use super::super::events::about;
use super::super::marks::is_of;
use super::super::objects::own_conditions;
use super::super::settings::Settings;
use futures::{StreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::sync::mpsc;
use tread_cluster::index::Kept;
use tread_kube::api::NodeUpdate;
use tread_kube::api::conditions::{Finding, set};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::events::{Note, Reason};
use tread_model::joining::{GAVE_UP, Held, JOINED};

const UPDATES: &str = "nodeupdates";

/// More than these do not wait: whoever is held is reported again at the next look.
const ROOM: usize = 4096;
/// How many are written at a time: nodes that join meanwhile are worth more.
const AT_ONCE: usize = 2;
/// How often a NodeUpdate is written that others write at the same time.
const TRIES: usize = 3;

/// What became of a node.
#[derive(Debug, Clone)]
pub(super) enum What {
    Joined(String),
    /// Its agent brings what Ignition cannot, before it joins this pool.
    Prepares(String),
    Held(Held),
    /// It cannot join now, whatever its claim says: a word, and why.
    Waits(&'static str, String),
}

/// What is to be reported. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct News(mpsc::Sender<(String, String, What)>);

impl News {
    pub(super) fn new() -> (News, mpsc::Receiver<(String, String, What)>) {
        let (news, queue) = mpsc::channel(ROOM);
        (News(news), queue)
    }

    pub(super) fn report(&self, node: &str, uid: String, what: What) {
        if self.0.try_send((node.to_owned(), uid, what)).is_err() {
            tracing::debug!(node, "what became of it is told later: too much waits");
        }
    }
}

/// Writes what comes, for as long as it is polled: no node waits for it.
pub(super) async fn write(
    settings: Settings,
    updates: Kept<String, Arc<NodeUpdate>>,
    queue: mpsc::Receiver<(String, String, What)>,
) {
    let news = stream::unfold(queue, async |mut queue| Some((queue.recv().await?, queue)));
    let writing = news.for_each_concurrent(AT_ONCE, async |(node, uid, what)| {
        let updates = updates.now().unwrap_or_default();
        // That of a node that had the name before goes with it.
        let update = updates.get(&node).filter(|it| is_of(it, &uid)).map(|it| &**it);
        let of = (node.as_str(), uid.as_str());
        let written = match &what {
            What::Held(why) => held(&settings, of, update, why).await,
            What::Joined(pool) => {
                joined(&settings, of, pool).await;
                Ok(())
            }
            What::Prepares(pool) => prepares(&settings, of, update, pool).await,
            What::Waits(word, why) => waits(&settings, of, update, (word, why)).await,
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
    let says = update.and_then(|it| it.status.as_ref()?.message.as_deref());
    let message = prepares_says(node, pool, says);
    let reason = "Prepares".to_owned();
    let finding = Finding { type_: JOINED, status: Some(false), reason, message };
    say_of(settings, (node, uid), update, finding).await.map(drop)
}

/// What a node waits for before it joins, by its agent's word where that gave up.
fn prepares_says(node: &str, pool: &str, says: Option<&str>) -> String {
    match says.filter(|says| says.starts_with(GAVE_UP)) {
        Some(says) => format!(
            "{says}. That is not tried again: to let it in without that, tread pools admit {node} --pool {pool}; \
             or else remove the machine, and start another"
        ),
        None => format!(
            "it joins pool {pool} once its agent has brought what Ignition cannot: image, kernel, arguments \
             or extensions. That costs one boot at most, and no pod is put there meanwhile. To let it in without \
             that: tread pools admit {node} --pool {pool}"
        ),
    }
}

/// Says in a node's NodeUpdate, and in an Event, why it cannot join now.
async fn waits(
    settings: &Settings,
    (node, uid): (&str, &str),
    update: Option<&NodeUpdate>,
    (word, why): (&str, &str),
) -> Result<(), Failed> {
    let message = format!("it is held, and in no pool, until that is mended: {why}");
    report_held(settings, (node, uid), update, (word, message)).await
}

/// Says in a node's NodeUpdate, and in an Event, why it is held, unless it says so already.
async fn held(
    settings: &Settings,
    (node, uid): (&str, &str),
    update: Option<&NodeUpdate>,
    held: &Held,
) -> Result<(), Failed> {
    report_held(settings, (node, uid), update, (held.word(), held.says(node))).await
}

/// Says a word and a sentence in a node's NodeUpdate, and in an Event, unless it says so already.
async fn report_held(
    settings: &Settings,
    (node, uid): (&str, &str),
    update: Option<&NodeUpdate>,
    (word, says): (&str, String),
) -> Result<(), Failed> {
    let finding = Finding {
        type_: JOINED,
        status: Some(false),
        reason: word.to_owned(),
        message: says.clone(),
    };
    if !say_of(settings, (node, uid), update, finding).await? {
        return Ok(());
    }
    tracing::warn!(node, reason = word, "a node that registered as joining is held");
    let note = Note { reason: Reason::NodeHeld, warns: true, text: says };
    // What cannot be written is in the log and in the metrics.
    drop(settings.events.report_each(&about("Node", "v1", node, uid), &note, word).await);
    Ok(())
}

/// Reports that a node has joined a pool. Its NodeUpdate, where it says otherwise, is written with those
/// of all nodes that count in a pool.
async fn joined(settings: &Settings, (node, uid): (&str, &str), pool: &str) {
    let note = Note {
        reason: Reason::NodeJoined,
        warns: false,
        text: format!("it has joined pool {pool}, by its claim"),
    };
    drop(settings.events.report_each(&about("Node", "v1", node, uid), &note, pool).await);
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

/// Whether something was written. Where somebody else writes it meanwhile, what stands there then
/// is added to.
async fn say(settings: &Settings, update: &NodeUpdate, finding: Finding) -> Result<bool, Failed> {
    let name = update.metadata.name.clone().unwrap_or_default();
    let api: Api<NodeUpdate> = Api::all(settings.acts.client.clone());
    let mut update = Cow::Borrowed(update);
    for _ in 0..TRIES {
        let Some(conditions) = with(&update, &finding) else { return Ok(false) };
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": update.metadata.resource_version},
            "status": {"conditions": conditions},
        }));
        let call = Call::new("patch", UPDATES).of_status();
        let params = PatchParams::default();
        match ask(&settings.acts.metrics, call, api.patch_status(&name, &params, &patch)).await {
            Err(failed) if failed.outcome == CallOutcome::Gone => return Ok(false),
            Err(failed) if failed.outcome == CallOutcome::Conflict => {
                let call = Call::new("get", UPDATES);
                update = Cow::Owned(ask(&settings.acts.metrics, call, api.get(&name)).await?);
            }
            written => return written.map(|_| true),
        }
    }
    Ok(false)
}

/// The conditions of a NodeUpdate with this one, unless it says so already.
fn with(update: &NodeUpdate, finding: &Finding) -> Option<Vec<Condition>> {
    let known = update.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let mut conditions = own_conditions(known);
    let generation = update.metadata.generation.unwrap_or_default();
    set(&mut conditions, finding.clone(), generation, Timestamp::now());
    let one = |all: &[Condition]| {
        let one = all.iter().find(|it| it.type_ == JOINED);
        one.map(|it| (it.status.clone(), it.reason.clone(), it.message.clone()))
    };
    (one(known) != one(&conditions)).then_some(conditions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_kube::api::NodeUpdateStatus;

    #[test]
    fn a_node_whose_agent_gave_up_says_why_and_the_way_out() {
        let gave_up = format!("{GAVE_UP}: the image cannot be read");
        for (says, part) in [
            (None, "once its agent has brought"),
            (Some("it reads its config"), "once its agent has brought"),
            (Some(gave_up.as_str()), "the image cannot be read. That is not tried again"),
        ] {
            let message = prepares_says("one", "infra", says);
            assert!(message.contains(part), "{message}");
            assert!(message.contains("tread pools admit one --pool infra"), "{message}");
        }
    }

    #[test]
    fn what_a_node_is_told_drives_no_terminal_and_is_told_once() {
        let mut update: NodeUpdate = serde_json::from_value(json!({
            "metadata": {"name": "node", "generation": 1}, "spec": {"pool": ""},
        }))
        .unwrap();
        let finding = Finding {
            type_: JOINED,
            status: Some(false),
            reason: "Elsewhere".to_owned(),
            message: "in \u{1b}[31minfra\u{7}\nforged: line\u{202e}".to_owned(),
        };
        let conditions = with(&update, &finding).unwrap();
        assert_eq!(conditions[0].message, "in [31minfra; forged: line");
        let status = NodeUpdateStatus { conditions, ..NodeUpdateStatus::default() };
        update.status = Some(status);
        assert_eq!(with(&update, &finding), None);
    }
}
