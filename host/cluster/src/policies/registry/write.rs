//! What the leader writes: objects, statuses and Events. What fails is written
//! at a later look, as far as it still has to be.

use super::Settings;
use super::jobs::PATIENCE;
use super::pass::Listed;
use crate::api::{DisruptionPolicy, DisruptionPolicyStatus};
use crate::events::{Events, Note, Told};
use crate::leadership::Leading;
use crate::metrics::Metrics;
use crate::policies::register::{Ignored, Withdrawal, config_map_of};
use crate::policies::snapshot::{Place, Snapshot};
use crate::policies::status::{Found, status};
use crate::told::told;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use tokio::time::timeout;

/// Something to write.
#[derive(Debug)]
pub(super) enum Write {
    /// An object that there has to be.
    Create(Box<DisruptionPolicy>),
    /// An object that stands for nothing any more, with the Event.
    Delete { name: String, as_seen: Preconditions, note: Option<(ObjectReference, Note)> },
    /// A status that is another one, the copy that it does not name any more, and
    /// what to tell of it.
    Status {
        name: String,
        patch: Value,
        unnamed: Option<String>,
        notes: Vec<(ObjectReference, Note)>,
    },
    /// An Event that is told once.
    Tell { about: ObjectReference, note: Note },
}

impl Write {
    /// What it is about.
    pub(super) fn name(&self) -> String {
        match self {
            Write::Create(object) => format!("create {}", object.name_any()),
            Write::Delete { name, .. } => format!("delete {name}"),
            Write::Status { name, .. } => format!("status of {name}"),
            Write::Tell { about, note } => {
                format!("{} of {}", note.reason, about.uid.as_deref().unwrap_or_default())
            }
        }
    }
}

/// How a round of writing ended.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The API server did not answer, or has too much to do.
    pub(super) unreachable: bool,
    /// What was written, by [`Write::name`].
    pub(super) done: Vec<String>,
    /// What was not, and would not be if it were tried again at once.
    pub(super) refused: Vec<String>,
    /// Why something was not written: the last reason.
    pub(super) why: Option<String>,
    /// The objects, by UID, of which was told what.
    pub(super) told: Vec<(String, &'static str)>,
}

/// What has to be written.
pub(super) fn writes(
    snapshot: &Snapshot,
    create: Vec<DisruptionPolicy>,
    withdraw: Vec<Withdrawal>,
    ignored: Vec<Ignored>,
    told: &BTreeSet<(String, &'static str)>,
    listed: &[Listed],
) -> Vec<Write> {
    let mut writes: Vec<Write> = create.into_iter().map(Box::new).map(Write::Create).collect();
    // What is on its way goes when whoever holds it lets go.
    let object = |gone: &Withdrawal| snapshot.policies.get(&gone.name);
    let stays = |gone: &Withdrawal| {
        object(gone).is_none_or(|object| object.metadata.deletion_timestamp.is_none())
    };
    writes.extend(withdraw.into_iter().filter(stays).map(|gone| {
        let object = object(&gone);
        let version = object.and_then(|object| object.resource_version());
        let text = format!("{}: the policy decides nothing any more.", gone.why);
        let note = Note { reason: "PolicyWithdrawn", warns: false, text };
        let note = object.map(|object| (object.object_ref(&()), note));
        let as_seen = Preconditions { uid: Some(gone.uid), resource_version: version };
        Write::Delete { name: gone.name, as_seen, note }
    }));
    writes.extend(listed.iter().filter(|it| it.is_final).filter_map(|it| of_status(snapshot, it)));
    // Last: anybody who may write ConfigMaps somewhere can make many of these.
    let untold = ignored.into_iter().filter(|it| !told.contains(&(it.uid.clone(), it.reason)));
    writes.extend(untold.map(|it| Write::Tell {
        about: config_map(&it.place, it.uid),
        note: Note { reason: it.reason, warns: true, text: it.message },
    }));
    writes
}

fn of_status(snapshot: &Snapshot, it: &Listed) -> Option<Write> {
    let object = &it.object;
    let kept = it.kept.as_ref().map(|(version, place)| (version, place.as_str()));
    let found = Found { choice: &it.choice, newest: &it.attempt, kept, name: &it.name };
    let (after, note) = status(object, found, Timestamp::now());
    let before = object.status.clone().unwrap_or_default();
    if object.status.is_some() && before == after {
        return None;
    }
    let unnamed = before.kept_in.clone().filter(|place| after.kept_in.as_ref() != Some(place));
    let name = object.name_any();
    let patch = json!({
        // Only that object, and no other one of its name; nor over what another
        // leader wrote since.
        "metadata": {"uid": object.metadata.uid, "resourceVersion": object.metadata.resource_version},
        "status": difference(&before, &after)?,
    });
    let mut notes = Vec::new();
    if let Some(note) = note {
        notes.push((object.object_ref(&()), note.clone()));
        if let Some(source) = config_map_of(object) {
            let place = (source.namespace, source.name);
            let map = snapshot.config_maps.get(&place);
            notes.extend(map.map(|map| (config_map(&place, map.uid.clone()), note)));
        }
    }
    Some(Write::Status { name, patch, unnamed, notes })
}

/// What makes one status of the other, as a merge patch: what others write there
/// stays.
fn difference(before: &DisruptionPolicyStatus, after: &DisruptionPolicyStatus) -> Option<Value> {
    let fields = |status| match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    };
    let (before, mut after) = (fields(before)?, fields(after)?);
    let gone: Map<String, Value> = before
        .keys()
        .filter(|field| !after.contains_key(*field))
        .map(|field| (field.clone(), Value::Null))
        .collect();
    after.retain(|field, value| before.get(field) != Some(value));
    after.extend(gone);
    Some(Value::Object(after))
}

fn config_map((namespace, name): &Place, uid: String) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("ConfigMap".to_owned()),
        namespace: Some(namespace.clone()),
        name: Some(name.clone()),
        uid: Some(uid),
        ..ObjectReference::default()
    }
}

/// Writes all of this, as long as this replica leads.
#[tracing::instrument(name = "write", skip_all)]
pub(super) async fn carry_out(settings: Settings, writes: Vec<Write>) -> Written {
    let Settings { client, namespace, metrics, events, leads, .. } = settings;
    let writer = Writer {
        policies: Api::all(client.clone()),
        copies: Api::namespaced(client, &namespace),
        metrics,
        events,
        leads,
    };
    let mut written = Written::default();
    for write in writes {
        // The next leader may know better by now.
        if !writer.leads.now() {
            break;
        }
        let name = write.name();
        let how = match write {
            Write::Create(object) => writer.create(&object).await,
            Write::Delete { name, as_seen, note } => writer.delete(&name, as_seen, note).await,
            Write::Status { name, patch, unnamed, notes } => {
                writer.status(&name, &patch, unnamed, notes).await
            }
            Write::Tell { about, note } => match writer.events.tell(&about, &note).await {
                Told::Answered => {
                    log(&name, &note);
                    written.told.push((about.uid.unwrap_or_default(), note.reason));
                    How::Done
                }
                Told::NoAnswer => How::Unreachable("Events: no answer".to_owned()),
            },
        };
        match how {
            How::Done => written.done.push(name),
            How::Refused(why) => {
                written.why = Some(format!("{name}: {why}"));
                written.refused.push(name);
            }
            // The others would fare no better.
            How::Unreachable(why) => {
                written.why = Some(format!("{name}: {why}"));
                written.unreachable = true;
                break;
            }
        }
    }
    written
}

/// Whoever reads the log learns what whoever looks at the object does.
fn log(name: &str, note: &Note) {
    let Note { reason, warns, text } = note;
    match warns {
        true => tracing::warn!(name, reason, "{text}"),
        false => tracing::info!(name, reason, "{text}"),
    }
}

/// How a write ended.
enum How {
    /// It is there, or need not be.
    Done,
    /// The API server does not want it, and says why.
    Refused(String),
    /// The API server does not answer, or has too much to do.
    Unreachable(String),
}

struct Writer {
    policies: Api<DisruptionPolicy>,
    copies: Api<ConfigMap>,
    metrics: Metrics,
    events: Events,
    leads: Leading,
}

impl Writer {
    async fn create(&self, object: &DisruptionPolicy) -> How {
        let name = object.name_any();
        let made = timeout(PATIENCE, self.policies.create(&PostParams::default(), object)).await;
        match made {
            Ok(Ok(_)) => {
                tracing::info!(policy = name, "registered");
                How::Done
            }
            // The watch has not seen it yet; if it never does, there is no hurry.
            Ok(Err(kube::Error::Api(status))) if status.is_already_exists() => {
                How::Refused(status.message.clone())
            }
            failed => self.failed("create", "disruptionpolicies", &name, failed),
        }
    }

    async fn delete(
        &self,
        name: &str,
        as_seen: Preconditions,
        note: Option<(ObjectReference, Note)>,
    ) -> How {
        let preconditions = Some(as_seen);
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        match timeout(PATIENCE, self.policies.delete(name, &params)).await {
            Ok(Ok(_)) => {
                tracing::info!(policy = name, "withdrawn");
                if let Some((about, note)) = note {
                    self.events.tell(&about, &note).await;
                }
                How::Done
            }
            Ok(Err(kube::Error::Api(status))) if status.is_not_found() => How::Done,
            failed => self.failed("delete", "disruptionpolicies", name, failed),
        }
    }

    async fn status(
        &self,
        name: &str,
        patch: &Value,
        unnamed: Option<String>,
        notes: Vec<(ObjectReference, Note)>,
    ) -> How {
        let params = PatchParams::default();
        let patch = Patch::Merge(patch);
        match timeout(PATIENCE, self.policies.patch_status(name, &params, &patch)).await {
            Ok(Ok(_)) => {}
            // The watch says so, too. Where somebody wrote it since it was seen, or
            // another one of its name is there, it brings that, and this is tried again.
            Ok(Err(kube::Error::Api(status))) if status.is_not_found() => return How::Done,
            failed => return self.failed("patch", "disruptionpolicies", name, failed),
        }
        if let Some(place) = unnamed.filter(|_| self.leads.now()) {
            let params = DeleteParams::default();
            match timeout(PATIENCE, self.copies.delete(&place, &params)).await {
                Ok(Ok(_)) => {}
                Ok(Err(kube::Error::Api(status))) if status.is_not_found() => {}
                // It goes with the policy, at the latest.
                failed => {
                    self.failed("delete", "configmaps", &place, failed);
                }
            }
        }
        // The same for the policy and for its ConfigMap.
        if let Some((_, note)) = notes.first() {
            log(name, note);
        }
        for (about, note) in notes {
            self.events.tell(&about, &note).await;
        }
        How::Done
    }

    fn failed<T, E>(
        &self,
        verb: &'static str,
        kind: &'static str,
        name: &str,
        how: Result<Result<T, kube::Error>, E>,
    ) -> How {
        let (why, how) = match how {
            Ok(Ok(_)) => return How::Done,
            Ok(Err(error)) => {
                self.metrics.api_error(verb, kind, &error);
                let why = told(&error);
                let how = match &error {
                    kube::Error::Api(it) if (400..500).contains(&it.code) && it.code != 429 => {
                        How::Refused(why.clone())
                    }
                    _ => How::Unreachable(why.clone()),
                };
                (why, how)
            }
            Err(_) => {
                let why = "the API server does not answer".to_owned();
                (why.clone(), How::Unreachable(why))
            }
        };
        tracing::warn!(kind, name, verb, "not written, and tried again: {why}");
        how
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::load::{AllShipped, Shipped};
    use crate::policies::snapshot::Room;
    use crate::watching::Watches;
    use kube::Client;
    use tread_engine::sandbox::{Options, Sandbox};
    use tread_model::digest::Digest;

    #[tokio::test]
    async fn who_leads_no_longer_or_was_stopped_for_too_long_writes_nothing() {
        let asked = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", asked.local_addr().unwrap());
        let client = Client::try_from(kube::Config::new(url.parse().unwrap())).unwrap();
        let rules = Shipped { name: "rules", component: b"", digest: Digest::of(b"") };
        let settings = |leads| Settings {
            events: Events::new(client.clone(), "test", "Load"),
            client: client.clone(),
            namespace: "tread".to_owned(),
            replica: "test".to_owned(),
            sandbox: Sandbox::new(Options { cache_dir: None, ..Options::default() }).unwrap(),
            shipped: AllShipped { builtins: Vec::new(), rules },
            room: Room::default(),
            leads,
            watches: Watches::default(),
            metrics: Metrics::new(),
        };
        let told = |leads, at_most| Leading::told(tokio::sync::watch::channel(leads).1, at_most);
        // It still believes that it leads, and its time is over.
        let stopped = told(true, Some(std::time::Duration::ZERO));
        for leads in [told(false, None), stopped] {
            let as_seen = Preconditions { uid: Some("1".to_owned()), resource_version: None };
            let writes = vec![
                Write::Create(Box::new(DisruptionPolicy::new("a", Default::default()))),
                Write::Delete { name: "b".to_owned(), as_seen, note: None },
            ];
            let written = carry_out(settings(leads), writes).await;
            assert!(written.done.is_empty() && written.refused.is_empty() && !written.unreachable);
        }
    }

    #[test]
    fn a_patch_says_only_what_changed_and_leaves_what_others_wrote() {
        let text = |text: &str| Some(text.to_owned());
        let before = DisruptionPolicyStatus {
            version: text("1"),
            digest: text("a"),
            summary: text("same"),
            decisions: Some(7),
            ..Default::default()
        };
        let after = DisruptionPolicyStatus {
            version: text("2"),
            summary: text("same"),
            effects: text("none"),
            decisions: Some(7),
            ..Default::default()
        };
        let patch = difference(&before, &after).unwrap();
        assert_eq!(patch, json!({"version": "2", "digest": null, "effects": "none"}));
    }
}
