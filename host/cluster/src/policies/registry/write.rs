//! What has to be written: objects, statuses and Events. What is in the cluster
//! is compared with what has to be there, as the API server keeps it.

use super::chosen::Chosen;
use super::entry::{Entry, Kept};
use crate::policies::register::{Ignored, Withdrawal, config_map_of};
use crate::policies::snapshot::{Place, Snapshot};
use crate::policies::status::{self, Found};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;
use kube::api::Preconditions;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tread_kube::api::{DisruptionPolicy, DisruptionPolicyStatus};
use tread_kube::events::{Note, Reason};

/// What the API server did not keep of a status is written again after that: its
/// definition may be a newer one by then.
const KEPT_AGAIN: Duration = Duration::from_secs(600);

/// One write that is due.
#[derive(Debug)]
pub(super) enum Write {
    /// An object that there has to be.
    Create(Box<DisruptionPolicy>),
    /// An object that stands for nothing any more, with the Event.
    Delete { name: String, as_seen: Preconditions, note: Option<(ObjectReference, Note)> },
    /// A status that is another one.
    Status(Box<NewStatus>),
    /// A copy that nobody needs.
    Sweep { place: String, as_seen: Preconditions },
    /// An Event that is reported once, of a namespace.
    Report { namespace: String, about: ObjectReference, note: Note },
}

/// A status that is another one, the copy that it does not name any more, and
/// what to report of it.
#[derive(Debug)]
pub(super) struct NewStatus {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) patch: Value,
    /// What it is to be as a whole.
    pub(super) wanted: DisruptionPolicyStatus,
    pub(super) unnamed: Option<String>,
    pub(super) notes: Vec<(ObjectReference, Note)>,
}

impl Write {
    /// The copy that it removes besides.
    pub(super) fn removes(&self) -> Option<String> {
        match self {
            Write::Status(it) => it.unnamed.clone(),
            _ => None,
        }
    }

    /// What it is about.
    pub(super) fn name(&self) -> String {
        match self {
            Write::Create(object) => format!("create {}", object.name_any()),
            Write::Delete { name, .. } => format!("delete {name}"),
            Write::Status(it) => format!("status of {}", it.name),
            Write::Sweep { place, .. } => format!("copy {place}"),
            Write::Report { about, note, .. } => {
                format!("{} of {}", note.reason, about.uid.as_deref().unwrap_or_default())
            }
        }
    }
}

/// All that has to be in the cluster.
pub(super) struct Wanted {
    pub(super) create: Vec<DisruptionPolicy>,
    pub(super) withdraw: Vec<Withdrawal>,
    pub(super) listed: Vec<Chosen>,
    /// What never decided, and waits to be loaded.
    pub(super) waiting: Vec<Arc<DisruptionPolicy>>,
    /// What has a new version that waits to be loaded.
    pub(super) behind: Vec<Arc<DisruptionPolicy>>,
    /// How many wait for their turn.
    pub(super) before_them: usize,
    pub(super) unreported: Vec<Ignored>,
}

/// What has to be written, of each namespace in turn; Events last: anybody who
/// may write ConfigMaps somewhere can bring many of them about.
pub(super) fn writes(
    entries: &BTreeMap<String, Entry>,
    snapshot: &Snapshot,
    wanted: Wanted,
) -> Vec<Write> {
    let known =
        |object: &DisruptionPolicy| entries.get(object.metadata.uid.as_deref()?)?.written.as_ref();
    let Wanted { create, withdraw, listed, waiting, behind, before_them, unreported } = wanted;
    let mut writes: Vec<(String, Write)> = Vec::new();
    writes.extend(create.into_iter().map(|it| (namespace_of(&it), Write::Create(Box::new(it)))));
    for gone in withdraw {
        let object = snapshot.policies.get(&gone.name);
        // What is on its way goes when whoever holds it lets go.
        if object.is_some_and(|object| object.metadata.deletion_timestamp.is_some()) {
            continue;
        }
        let namespace = object.map(|object| namespace_of(object)).unwrap_or_default();
        writes.push((namespace, delete(object.map(Arc::as_ref), gone)));
    }
    for it in listed.iter().filter(|it| it.is_final) {
        let kept = it.kept.as_ref().map(|(version, place)| (version, place.as_str()));
        let found = |object: &DisruptionPolicy| {
            let found = Found {
                choice: &it.choice,
                newest: &it.attempt,
                kept,
                name: &it.name,
                retry: it.retry,
            };
            status::status(object, found, Timestamp::now())
        };
        let write = of_status(snapshot, &it.object, known(&it.object), found);
        writes.extend(write.map(|write| (namespace_of(&it.object), write)));
    }
    let (new, newer) = (waiting.iter().map(|it| (it, true)), behind.iter().map(|it| (it, false)));
    for (object, is_new) in new.chain(newer) {
        let found = |object: &DisruptionPolicy| {
            let now = Timestamp::now();
            let status = match is_new {
                true => status::waiting(object, before_them, now),
                false => status::waiting_behind(object, before_them, now),
            };
            (status, None)
        };
        let write = of_status(snapshot, object, known(object), found);
        writes.extend(write.map(|write| (namespace_of(object), write)));
    }
    let mut writes = in_turn(writes);
    writes.extend(unreported.into_iter().map(|it| Write::Report {
        about: config_map(&(it.namespace.clone(), it.newest), it.uid),
        note: Note { reason: it.reason, warns: true, text: it.message },
        namespace: it.namespace,
    }));
    writes
}

/// The first of each, then the second of each, and so on.
fn in_turn(writes: Vec<(String, Write)>) -> Vec<Write> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut numbered: Vec<(usize, Write)> = Vec::with_capacity(writes.len());
    for (namespace, write) in writes {
        let count = counts.entry(namespace).or_default();
        numbered.push((*count, write));
        *count += 1;
    }
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, write)| write).collect()
}

/// Whose policy it is: empty, if an admin's or tread's own.
fn namespace_of(object: &DisruptionPolicy) -> String {
    config_map_of(object).map(|it| it.namespace).unwrap_or_default()
}

fn delete(object: Option<&DisruptionPolicy>, gone: Withdrawal) -> Write {
    let version = object.and_then(|object| object.resource_version());
    let mut text = format!("{}: the policy decides nothing any more.", gone.why);
    let lost = gone.lost.iter().map(|field| format!("spec.{field}")).collect::<Vec<_>>().join(", ");
    if !lost.is_empty() {
        text.push_str(&format!(
            " What an admin had said in this object is lost with it: {lost}. If the policy comes \
             back, say it again."
        ));
    }
    let note = Note { reason: Reason::PolicyWithdrawn, warns: !gone.lost.is_empty(), text };
    let note = object.map(|object| (object.object_ref(&()), note));
    let as_seen = Preconditions { uid: Some(gone.uid), resource_version: version };
    Write::Delete { name: gone.name, as_seen, note }
}

fn of_status(
    snapshot: &Snapshot,
    object: &Arc<DisruptionPolicy>,
    known: Option<&Kept>,
    found: impl Fn(&DisruptionPolicy) -> (DisruptionPolicyStatus, Option<Note>),
) -> Option<Write> {
    let stands = object.status.clone().unwrap_or_default();
    // What the API server kept of what was written stands for all of it.
    let known = known.filter(|known| known.kept == stands && known.kept != known.wanted);
    let (before, (after, note)) = match known {
        None => (stands.clone(), found(object)),
        Some(known) => {
            let mut whole = DisruptionPolicy::clone(object);
            whole.status = Some(known.wanted.clone());
            (known.wanted.clone(), found(&whole))
        }
    };
    let is_tried_again = known.is_some_and(|known| known.at.elapsed() >= KEPT_AGAIN);
    if object.status.is_some() && before == after && !is_tried_again {
        return None;
    }
    let unnamed = before.kept_in.clone().filter(|place| after.kept_in.as_ref() != Some(place));
    let patch = json!({
        // Only that object, and no other one of its name; nor over what another
        // leader wrote since.
        "metadata": {"uid": object.metadata.uid, "resourceVersion": object.metadata.resource_version},
        "status": difference(&stands, &after)?,
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
    let uid = object.uid().unwrap_or_default();
    let name = object.name_any();
    Some(Write::Status(Box::new(NewStatus { name, uid, patch, wanted: after, unnamed, notes })))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_with_much_to_write_does_not_come_before_all_others() {
        let write = |name: &str| Write::Sweep {
            place: name.to_owned(),
            as_seen: Preconditions { uid: None, resource_version: None },
        };
        let mut all: Vec<(String, Write)> =
            (0..50).map(|n| ("many".to_owned(), write(&format!("many-{n}")))).collect();
        all.push(("one".to_owned(), write("one")));
        let names: Vec<String> = in_turn(all).iter().map(Write::name).collect();
        assert_eq!(names[..3], ["copy many-0", "copy one", "copy many-1"]);
        assert_eq!(names.len(), 51);
    }

    #[test]
    fn what_the_api_server_dropped_is_not_written_again_and_again() {
        let text = |text: &str| Some(text.to_owned());
        let kept = DisruptionPolicyStatus { version: text("1"), ..Default::default() };
        let wanted = DisruptionPolicyStatus { newest_digest: text("d"), ..kept.clone() };
        let mut object = DisruptionPolicy { status: Some(kept.clone()), ..Default::default() };
        object.metadata.name = text("a");
        let object = Arc::new(object);
        let written = |ago: u64| Kept {
            wanted: wanted.clone(),
            kept: kept.clone(),
            at: tokio::time::Instant::now() - Duration::from_secs(ago),
        };
        let write = |known: Option<&Kept>, now: &DisruptionPolicyStatus| {
            of_status(&Snapshot::default(), &object, known, |_| (now.clone(), None))
        };
        assert!(write(None, &wanted).is_some(), "it was never written");
        assert!(write(Some(&written(0)), &wanted).is_none());
        assert!(write(Some(&written(601)), &wanted).is_some(), "the definition may be newer");
        let other = DisruptionPolicyStatus { version: text("2"), ..wanted.clone() };
        let Some(Write::Status(it)) = write(Some(&written(0)), &other) else { panic!() };
        assert_eq!(it.patch["status"], json!({"version": "2", "newestDigest": "d"}));
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
