//! Which DisruptionPolicy objects there have to be.

use super::snapshot::{Place, PolicyMap, Snapshot};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use tread_kube::api::disruption_policy::{ConfigMapSource, Layer, Mode, Source};
use tread_kube::api::words::{MADE_BY_LABEL, MANAGER, POLICIES_LABEL, REGISTERED_BY_LABEL};
use tread_kube::api::{DisruptionPolicy, DisruptionPolicySpec, openshift};
use tread_kube::events::Reason;

/// The name of the object for the cluster's own nodeDisruptionPolicy.
pub const NODE_DISRUPTION_POLICY: &str = "node-disruption-policy";

/// Of an object's name.
const LONGEST_NAME: usize = 253;

/// What has to be done so that the objects are those that there have to be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Registration {
    /// Objects to make.
    pub create: Vec<DisruptionPolicy>,
    /// Objects that tread made, and that stand for nothing any more.
    pub withdraw: Vec<Withdrawal>,
    /// Objects that stand for nothing, by name with the reason, and stay for what
    /// an admin said in them.
    pub idle: BTreeMap<String, String>,
    /// ConfigMaps that are labelled as policies, and are none: for each namespace
    /// and reason.
    pub ignored: Vec<Ignored>,
}

impl Registration {
    /// Notes a ConfigMap that is none. Those of a namespace come one after the
    /// other, the newest last: nobody is told of each of thousands.
    fn ignore(&mut self, of: &Place, uid: &str, reason: Reason, message: impl FnOnce() -> String) {
        let (namespace, name) = of;
        let found =
            self.ignored.iter_mut().find(|it| it.namespace == *namespace && it.reason == reason);
        match found {
            Some(before) => {
                before.newest.clone_from(name);
                uid.clone_into(&mut before.uid);
                before.message = message();
                before.others = before.others.saturating_add(1);
            }
            None => self.ignored.push(Ignored {
                namespace: namespace.clone(),
                newest: name.clone(),
                uid: uid.to_owned(),
                reason,
                message: message(),
                others: 0,
            }),
        }
    }
}

/// An object that stands for nothing any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawal {
    /// Its name.
    pub name: String,
    /// Its UID, by which it is told from others of its name.
    pub uid: String,
    /// Why, for an Event.
    pub why: String,
    /// The fields in which an admin said something, which goes with it.
    pub lost: Vec<&'static str>,
}

/// ConfigMaps of a namespace that are labelled as policies, and are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// Their namespace.
    pub namespace: String,
    /// The newest of them, whose owner is told.
    pub newest: String,
    /// Its UID, by which it is told from others of its name.
    pub uid: String,
    /// For an Event.
    pub reason: Reason,
    /// Why, and what to do, for an Event.
    pub message: String,
    /// How many there are besides.
    pub others: usize,
}

/// What has to be done so that the objects are those that there have to be.
pub fn register(snapshot: &Snapshot) -> Registration {
    let mut out = Registration::default();
    builtins(snapshot, &mut out);
    node_disruption_policy(snapshot, &mut out);
    let wanted = self_registered(snapshot, &mut out);
    for (name, (place, map)) in &wanted {
        match snapshot.policies.get(name) {
            None => out.create.push(of_config_map(name, place, map)),
            Some(object) if registered_by(object).is_none() => {
                out.ignore(place, &map.uid, Reason::NameTaken, || {
                    format!(
                        "A DisruptionPolicy that did not come from a ConfigMap is named {name} \
                         already: rename this ConfigMap"
                    )
                });
            }
            // What is withdrawn below comes again when it is gone.
            Some(_) => {}
        }
    }
    for (name, object) in &snapshot.policies {
        let Some(uid) = registered_by(object) else { continue };
        let why = match (wanted.get(name), config_map_of(object)) {
            (Some((_, map)), _) if map.uid == uid || forbids(object) => continue,
            (_, Some(source)) => why_withdrawn(snapshot, &source, uid),
            _ => continue,
        };
        if forbids(object) {
            let why = format!("{why}: this object stays for what an admin said in it");
            out.idle.insert(name.clone(), why);
            continue;
        }
        let uid = object.metadata.uid.clone().unwrap_or_default();
        out.withdraw.push(Withdrawal { name: name.clone(), uid, why, lost: said(object) });
    }
    for it in out.ignored.iter_mut().filter(|it| it.others > 0) {
        it.message.push_str(&format!(". So it is with {} more ConfigMaps here", it.others));
    }
    out
}

/// Those that come with tread come back when they are deleted.
fn builtins(snapshot: &Snapshot, out: &mut Registration) {
    for builtin in &snapshot.builtins {
        let has_it = |object: &DisruptionPolicy| source(object).builtin.as_ref() == Some(builtin);
        if !snapshot.policies.values().any(|object| has_it(object)) {
            let source = Source { builtin: Some(builtin.clone()), ..Source::default() };
            out.create.push(object(free_name(snapshot, builtin), Layer::Builtin, source));
        }
    }
}

fn node_disruption_policy(snapshot: &Snapshot, out: &mut Registration) {
    let name = openshift::MACHINE_CONFIGURATION;
    let has_it =
        |object: &DisruptionPolicy| source(object).machine_configuration.as_deref() == Some(name);
    let there: Vec<_> = snapshot.policies.iter().filter(|(_, object)| has_it(object)).collect();
    if snapshot.has_node_disruption_policy && there.is_empty() {
        let source = Source { machine_configuration: Some(name.to_owned()), ..Source::default() };
        let name = free_name(snapshot, NODE_DISRUPTION_POLICY);
        out.create.push(object(name, Layer::Admin, source));
    }
    if snapshot.has_node_disruption_policy {
        return;
    }
    for (name, object) in there.into_iter().filter(|(_, object)| made_by_tread(object)) {
        let uid = object.metadata.uid.clone().unwrap_or_default();
        let why = "MachineConfiguration/cluster has no nodeDisruptionPolicy any more".to_owned();
        out.withdraw.push(Withdrawal { name: name.clone(), uid, why, lost: Vec::new() });
    }
}

/// The ConfigMaps that have to have an object, by its name.
fn self_registered<'s>(
    snapshot: &'s Snapshot,
    out: &mut Registration,
) -> BTreeMap<String, (&'s Place, &'s PolicyMap)> {
    // Who came first stays, so that nobody can push others out.
    let mut maps: Vec<_> = snapshot.config_maps.iter().collect();
    maps.sort_by_key(|(place, map)| (map.created, *place));
    let mut of_namespace: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wanted: BTreeMap<String, (&Place, &PolicyMap)> = BTreeMap::new();
    // Once for all: there may be very many ConfigMaps that are ignored.
    let named = named_by_admins(snapshot);
    for (place, map) in maps {
        let (namespace, name) = place;
        if named.contains(place) {
            continue;
        }
        if !snapshot.allows(namespace) {
            out.ignore(place, &map.uid, Reason::NamespaceNotAllowed, || {
                format!(
                    "Policies from the namespace {namespace} are not loaded: an admin can allow \
                     them with `kubectl label namespace {namespace} {POLICIES_LABEL}=allowed`"
                )
            });
            continue;
        }
        let object = format!("{namespace}.{name}");
        if object.len() > LONGEST_NAME {
            out.ignore(place, &map.uid, Reason::NameTooLong, || {
                format!(
                    "The policy would be listed as NAMESPACE.NAME with {} characters, and \
                     {LONGEST_NAME} are allowed: give the ConfigMap a shorter name",
                    object.len()
                )
            });
            continue;
        }
        let count = of_namespace.entry(namespace).or_default();
        if *count >= snapshot.room.registered_of_namespace {
            let most = snapshot.room.registered_of_namespace;
            out.ignore(place, &map.uid, Reason::TooManyPolicies, || {
                format!("The namespace {namespace} has {most} policies already, which is the most")
            });
            continue;
        }
        if wanted.len() >= snapshot.room.registered {
            let most = snapshot.room.registered;
            out.ignore(place, &map.uid, Reason::TooManyPolicies, || {
                format!("There are {most} policies already, the most")
            });
            continue;
        }
        match wanted.entry(object) {
            Entry::Vacant(place_for) => {
                *count += 1;
                place_for.insert((place, map));
            }
            // Dots in names can make two places read alike.
            Entry::Occupied(other) => {
                let object = other.key().clone();
                out.ignore(place, &map.uid, Reason::NameTaken, || {
                    format!("Another ConfigMap is listed as {object} already: rename this one")
                });
            }
        }
    }
    wanted
}

/// The ConfigMaps that admins' own objects name: it is no other's business where
/// they are.
fn named_by_admins(snapshot: &Snapshot) -> BTreeSet<Place> {
    let own = snapshot.policies.values().filter(|object| registered_by(object).is_none());
    own.filter_map(|object| config_map_of(object))
        .map(|source| (source.namespace, source.name))
        .collect()
}

fn why_withdrawn(snapshot: &Snapshot, source: &ConfigMapSource, uid: &str) -> String {
    let ConfigMapSource { namespace, name, .. } = source;
    let place = (namespace.clone(), name.clone());
    match snapshot.config_maps.get(&place) {
        Some(map) if map.uid != uid => {
            format!("The ConfigMap {namespace}/{name} was deleted and made anew")
        }
        Some(_) if named_by_admins(snapshot).contains(&place) => {
            format!("Another DisruptionPolicy names the ConfigMap {namespace}/{name}")
        }
        Some(_) if !snapshot.allows(namespace) => {
            format!("Policies from the namespace {namespace} are not allowed any more")
        }
        Some(_) => format!("The ConfigMap {namespace}/{name} has no room any more"),
        None => format!("The ConfigMap {namespace}/{name}, or its label, is gone"),
    }
}

/// Whether an admin restricted the policy in a way that the ConfigMap's owner could undo by making
/// the ConfigMap anew, if the object were deleted with it. What the admin granted besides goes no
/// further: another module is not loaded, or decides nothing.
fn forbids(object: &DisruptionPolicy) -> bool {
    object.spec.mode != Mode::Enforce || object.spec.digest.is_some()
}

/// The fields in which an admin said something of a policy that its namespace
/// ships.
pub(super) fn said(object: &DisruptionPolicy) -> Vec<&'static str> {
    let spec = &object.spec;
    let all = [
        ("approved", spec.approved),
        ("limits", spec.limits.is_some()),
        ("mayRelax", spec.may_relax),
        ("readSecrets", spec.read_secrets),
        ("settings", spec.settings.is_some()),
    ];
    all.into_iter().filter(|(_, is_said)| *is_said).map(|(field, _)| field).collect()
}

/// The UID of the ConfigMap that an object was made for.
pub fn registered_by(object: &DisruptionPolicy) -> Option<&str> {
    object.metadata.labels.as_ref()?.get(REGISTERED_BY_LABEL).map(String::as_str)
}

fn made_by_tread(object: &DisruptionPolicy) -> bool {
    let labels = object.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.get(MADE_BY_LABEL).is_some_and(|by| by == MANAGER))
}

fn source(object: &DisruptionPolicy) -> Source {
    object.spec.source.clone().unwrap_or_default()
}

/// The ConfigMap that an object names.
pub fn config_map_of(object: &DisruptionPolicy) -> Option<ConfigMapSource> {
    object.spec.source.as_ref()?.config_map.clone()
}

/// A name that no object has: an admin may have given it to another one.
fn free_name(snapshot: &Snapshot, name: &str) -> String {
    let nth = |number: usize| match number {
        0 => name.to_owned(),
        1 => format!("tread.{name}"),
        number => format!("tread.{name}.{number}"),
    };
    // One more than there are is free.
    let mut names = (0..snapshot.policies.len().saturating_add(2)).map(nth);
    names.find(|it| !snapshot.policies.contains_key(it)).unwrap_or_default()
}

fn object(name: String, layer: Layer, source: Source) -> DisruptionPolicy {
    let spec =
        DisruptionPolicySpec { layer: Some(layer), source: Some(source), ..Default::default() };
    let mut object = DisruptionPolicy::new(&name, spec);
    object.metadata.labels = Some([(MADE_BY_LABEL.to_owned(), MANAGER.to_owned())].into());
    object
}

fn of_config_map(name: &str, (namespace, map_name): &Place, map: &PolicyMap) -> DisruptionPolicy {
    let config_map = ConfigMapSource {
        namespace: namespace.clone(),
        name: map_name.clone(),
        // The ConfigMap names its key itself, and may change its mind.
        key: None,
    };
    let source = Source { config_map: Some(config_map), ..Source::default() };
    let mut object = object(name.to_owned(), Layer::Template, source);
    let labels = object.metadata.labels.get_or_insert_default();
    labels.insert(REGISTERED_BY_LABEL.to_owned(), map.uid.clone());
    object
}

#[cfg(test)]
mod tests;
