//! Machines that wait long for their node, of an image that may be why. Machines
//! are listed only of a resource whose replicas lag: when that begins, when its
//! numbers change, and when the next machine has waited long enough.

use super::facts::Facts;
use super::machine::{Key, Machine};
use super::report::{Judged, Report, name_of};
use super::selector;
use super::settings::Settings;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::api::boot_images::STUCK_AFTER;
use tread_kube::api::conditions::Finding;
use tread_kube::api::machines::{self, CAPI_MACHINE, Kind, MACHINE, MACHINE_SET};
use tread_kube::asking::{Call, Failed, ask};
use tread_kube::events::{self, Note, Once};
use tread_kube::watching::parsed::{Parsed, each_by_itself};
use tread_kube::watching::served::served;

/// The condition that names them.
pub const MACHINES_JOIN: &str = "MachinesJoin";

/// How many machines are named.
const NAMED: usize = 5;

/// Before it is reported again what could not be.
const REPORT_AGAIN: Duration = Duration::from_secs(30);

/// A machine that is there, and whose node is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Since when the machine itself is there.
    pub since: Timestamp,
}

/// One that waits for too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// The resource that made it.
    pub resource: Key,
    /// The resource's UID.
    pub resource_uid: String,
    /// The machine that waits.
    pub machine: Waiting,
    /// What is wrong with the image that it boots, in words.
    pub image: String,
}

/// What is known of a resource whose replicas lag.
struct Listed {
    replicas: (i64, i64),
    waiting: Vec<Waiting>,
    /// When it is looked at again, if nothing is heard of it before.
    again: Instant,
}

/// What was found of all resources.
#[derive(Default)]
pub(super) struct Found {
    /// The machines that wait for too long.
    pub(super) stuck: Vec<Stuck>,
    /// Of which resources no machines can be found, and why. Nothing but a change of
    /// the resource mends that.
    pub(super) unknown: Vec<String>,
}

/// What was looked at, and reported.
#[derive(Default)]
pub(super) struct Watcher {
    looked: BTreeMap<Key, Listed>,
    reported: BTreeSet<String>,
    /// When it is reported again what could not be.
    pub(super) report_again: Option<Instant>,
}

impl Watcher {
    /// Looks where it is due, and says which machines are stuck. What could not be
    /// listed is the error; what was known of it stays.
    pub(super) async fn look(
        &mut self,
        settings: &Settings,
        facts: &Facts,
        report: &Report,
    ) -> (Found, Result<(), String>) {
        // Where this look ends before anything is reported, it is tried later.
        let again = Instant::now() + REPORT_AGAIN;
        self.report_again =
            self.report_again.map(|at| if at <= Instant::now() { again } else { at });
        let patience = patience(facts);
        let lagging: Vec<(&Judged, &Machine)> = lagging(facts, report).collect();
        self.looked.retain(|key, _| lagging.iter().any(|(judged, _)| judged.key == *key));
        let (mut found, mut problems) = (Found::default(), Vec::new());
        for (judged, machine) in lagging {
            let labels = match selector::query(&machine.selector) {
                Ok(labels) => labels,
                Err(why) => {
                    self.looked.remove(&judged.key);
                    found.unknown.push(format!("{}: {why}", name_of(&judged.key)));
                    continue;
                }
            };
            let known = self.looked.get(&judged.key);
            let is_due = known
                .is_none_or(|it| it.replicas != machine.replicas || it.again <= Instant::now());
            if is_due {
                match list(settings, &judged.key, &labels).await {
                    Ok(waiting) => {
                        let again = Instant::now() + next(&waiting, patience, Timestamp::now());
                        let replicas = machine.replicas;
                        self.looked.insert(judged.key.clone(), Listed { replicas, waiting, again });
                    }
                    Err(problem) => problems.push(problem),
                }
            }
            let waiting = self.looked.get(&judged.key).map(|it| it.waiting.as_slice());
            let waiting = waiting.unwrap_or_default();
            found.stuck.extend(too_long(judged, waiting, patience, Timestamp::now()));
        }
        self.reported.retain(|uid| found.stuck.iter().any(|it| it.machine.uid == *uid));
        let listed = if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) };
        (found, listed)
    }

    /// When it is to be looked again, without news.
    pub(super) fn again(&self) -> Option<Instant> {
        self.looked.values().map(|it| it.again).chain(self.report_again).min()
    }

    /// Reports each machine once: on it, and on its resource.
    pub(super) async fn report(&mut self, settings: &Settings, stuck: &[Stuck]) {
        let note = |text| Note { reason: events::Reason::MachineStuck, warns: true, text };
        self.report_again = None;
        for it in stuck {
            if self.reported.contains(&it.machine.uid) {
                continue;
            }
            let Notes { on_machine, on_resource } = notes(it);
            let once = settings.events.report_each(&on_machine.0, &note(on_machine.1), "").await;
            let Ok(once) = once else {
                self.report_again = Some(Instant::now() + REPORT_AGAIN);
                // The API server does not answer for the others either.
                return;
            };
            self.reported.insert(it.machine.uid.clone());
            if let Some((about, text)) = on_resource.filter(|_| once == Once::Now) {
                settings.events.report(&about, &note(text)).await;
            }
        }
    }
}

/// How long a machine may wait.
fn patience(facts: &Facts) -> SignedDuration {
    let minutes = facts.object.as_deref().and_then(|object| object.spec.stuck_after_minutes);
    SignedDuration::from_mins(minutes.unwrap_or(STUCK_AFTER))
}

/// The resources whose image may be why replicas are missing.
fn lagging<'f>(
    facts: &'f Facts,
    report: &'f Report,
) -> impl Iterator<Item = (&'f Judged, &'f Machine)> {
    let suspects = report.resources.iter().filter(|it| it.is_suspect());
    suspects.filter_map(|judged| {
        let machine = facts.machines.get(&judged.key)?;
        let (wanted, ready) = machine.replicas;
        (ready < wanted && !machine.selector.is_empty()).then_some((judged, &**machine))
    })
}

/// How long it is waited for the next one that is stuck. One that was not there
/// yet cannot be so earlier than after the whole time.
fn next(waiting: &[Waiting], patience: SignedDuration, now: Timestamp) -> Duration {
    let left = waiting.iter().map(|it| patience - now.duration_since(it.since));
    let soonest = left.filter(|left| left.is_positive()).min().unwrap_or(patience);
    Duration::try_from(soonest.min(patience)).unwrap_or(Duration::from_secs(60))
}

/// Those that wait for too long.
pub fn too_long(
    judged: &Judged,
    waiting: &[Waiting],
    patience: SignedDuration,
    now: Timestamp,
) -> Vec<Stuck> {
    let stuck = waiting.iter().filter(|it| now.duration_since(it.since) >= patience);
    stuck
        .map(|machine| Stuck {
            resource: judged.key.clone(),
            resource_uid: judged.uid.clone(),
            machine: machine.clone(),
            image: judged.of_image.message.clone(),
        })
        .collect()
}

/// The kind of the machines that a resource makes.
fn kind_of_machines(key: &Key) -> Kind {
    let is_ours = key.kind.ends_with(MACHINE_SET.group);
    if is_ours { MACHINE } else { CAPI_MACHINE }
}

async fn list(settings: &Settings, key: &Key, labels: &str) -> Result<Vec<Waiting>, String> {
    let kind = kind_of_machines(key);
    let why = |why: Failed| format!("{} of {}: {why}", kind.plural, name_of(key));
    let resource = served(&settings.client, &settings.metrics, &kind).await.map_err(why)?;
    let api: Api<DynamicObject> =
        Api::namespaced_with(settings.client.clone(), &key.namespace, &resource);
    let params = ListParams::default().labels(labels);
    let (api, call) = (each_by_itself(api), Call::new("list", kind.name).within(&key.namespace));
    let found = ask(&settings.metrics, call, api.list(&params)).await.map_err(why)?;
    let all = found.items.into_iter().filter_map(Parsed::read);
    Ok(all.filter_map(|it| Waiting::read(&it)).collect())
}

impl Waiting {
    /// Of a machine that is Provisioned, and has no node.
    pub fn read(machine: &DynamicObject) -> Option<Waiting> {
        let data = &machine.data;
        if data.pointer("/status/phase")? != "Provisioned"
            || data.pointer("/status/nodeRef/name").is_some()
            || machine.metadata.deletion_timestamp.is_some()
        {
            return None;
        }
        let conditions = data.pointer("/status/conditions").and_then(Value::as_array);
        let there = conditions.into_iter().flatten().find(|it| {
            let type_ = it.get("type").and_then(Value::as_str);
            let is_it = matches!(type_, Some("InstanceExists" | "InfrastructureReady"));
            is_it && it.get("status").and_then(Value::as_str) == Some("True")
        });
        let at = there.and_then(|it| it.get("lastTransitionTime")?.as_str()?.parse().ok());
        Some(Waiting {
            name: machine.name_any(),
            uid: machine.uid().unwrap_or_default(),
            since: at.or_else(|| machine.creation_timestamp().map(|it| it.0))?,
        })
    }
}

/// What is said of one machine.
fn sentence(stuck: &Stuck) -> String {
    let (Stuck { resource, machine, .. }, made_by) = (stuck, name_of(&stuck.resource));
    let (namespace, name, since) = (&resource.namespace, &machine.name, machine.since);
    format!("{namespace}/{name}, made by {made_by}, is there since {since} and has no node")
}

const CAUSE: &str = "Probably the image is why: one that is too old boots, and then cannot read its config \
                     or join";

/// Whether machines get their nodes, in words, and of which resources that is not known.
pub fn machines_join(stuck: &[Stuck], unknown: &[String]) -> Finding {
    let (status, reason, message) = match stuck {
        [] => {
            (true, "AsExpected", "no machine of an image that is too old waits for its node".into())
        }
        [first, ..] => {
            let named: Vec<String> = stuck.iter().take(NAMED).map(sentence).collect();
            let more = more(stuck.len());
            let (image, resource) = (&first.image, name_of(&first.resource));
            let text = format!(
                "{}{more}. {CAUSE}: {image}. `tread bootimages patch {resource}` says what to do; the \
                 machine's console says what happened",
                named.join("; ")
            );
            (false, "MachineStuck", text)
        }
    };
    let message = match unknown {
        [] => message,
        all => {
            let named: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
            let (named, more) = (named.join("; "), more(all.len()));
            format!("{message}. Machines cannot be looked for of {named}{more}")
        }
    };
    Finding { type_: MACHINES_JOIN, status: Some(status), reason: reason.to_owned(), message }
}

/// How many there are beyond those that are named.
fn more(all: usize) -> String {
    match all.saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    }
}

fn reference(kind: &Kind, key: &Key, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(format!("{}/{}", kind.group, kind.version)),
        kind: Some(kind.kind.to_owned()),
        namespace: Some(key.namespace.clone()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// What is reported of a machine.
struct Notes {
    on_machine: (ObjectReference, String),
    on_resource: Option<(ObjectReference, String)>,
}

fn notes(stuck: &Stuck) -> Notes {
    let key = &stuck.resource;
    let (machine, resource) = (&stuck.machine, name_of(key));
    let cause =
        format!("{CAUSE}: {}. `tread bootimages patch {resource}` says what to do", stuck.image);
    let of_machine = (
        reference(&kind_of_machines(key), key, &machine.name, &machine.uid),
        format!("It is there since {} and has no node. {cause}", machine.since),
    );
    let kind = machines::ALL.iter().find(|kind| kind.name == key.kind);
    let of_resource = kind.map(|kind| {
        (
            reference(kind, key, &key.name, &stuck.resource_uid),
            format!(
                "Machine {} is there since {} and has no node. {cause}",
                machine.name, machine.since
            ),
        )
    });
    Notes { on_machine: of_machine, on_resource: of_resource }
}
