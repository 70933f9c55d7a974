//! What is said of a request to the API server: a machine resource that would
//! make machines from an image that is too old, and an update that the images
//! are too old for. Nothing is refused.

use super::facts::Facts;
use super::kinds::CLUSTER_VERSION;
use super::machine::{Brought, Key, Machine, Unread, brought, makes_machines};
use super::report::{Report, name_of};
use super::settings::Known;
use crate::weight::Weight;
use kube::core::DynamicObject;
use kube::core::admission::Operation;
use serde::Deserialize;
use std::sync::Arc;
use tread_kube::api::machines::{self, Kind};
use tread_kube::review::Asked;
use tread_kube::watching::parsed::Parsed;
use tread_kube::whole::Whole;
use tread_model::boot_images::{Outcome, Release, Verdict, shown};

impl Known {
    /// What to say of a request: nothing, or one line.
    pub fn warnings(&self, asked: &Asked) -> Vec<String> {
        let known = self.now();
        let Some(known) = known.as_deref() else { return Vec::new() };
        warning(&known.0, &known.1, asked).into_iter().collect()
    }
}

/// The one line that is said of a request, if there is any.
pub fn warning(facts: &Facts, report: &Report, asked: &Asked) -> Option<String> {
    let is = |kind: &Kind| kind.group == asked.group && kind.plural == asked.resource;
    let kind = machines::ALL.iter().find(|kind| makes_machines(kind) && is(kind));
    if kind.is_none() && !is(&CLUSTER_VERSION) {
        return None;
    }
    let object = asked.object.as_ref()?;
    let before = asked.before.as_ref();
    let Some(kind) = kind else {
        return update(report, &read(object).ok()?, before.and_then(|it| read(it).ok()).as_ref());
    };
    let (key, machine) = more_machines(facts, asked, kind)?;
    if machine.left_out.is_some() {
        return None;
    }
    let verdict = report.of(facts, &key, &machine);
    too_old(&verdict).then(|| {
        let name = name_of(&key);
        let name = shown(&name);
        let (name, says) = match is_named(asked) {
            true => (name.clone(), format!("`tread bootimages patch {name}` says what to do")),
            false => (made_up(&name), "`tread bootimages` lists it once it is there".to_owned()),
        };
        format!(
            "tread: {name} boots new machines from an image that is too old ({says}): {}",
            verdict.message
        )
    })
}

/// The machine resource that would make more machines than before, as it would be then.
pub(crate) fn more_machines(
    facts: &Facts,
    asked: &Asked,
    kind: &'static Kind,
) -> Option<(Key, Arc<Machine>)> {
    let object = asked.object.as_ref()?;
    let before = asked.before.as_ref();
    let key = Key {
        kind: kind.name,
        namespace: asked.namespace.clone(),
        // The API server makes a name up before it asks, and says so in the object alone.
        name: match (asked.name.as_str(), object.name.as_str()) {
            ("", "") => object.generate_name.clone(),
            ("", name) | (name, _) => name.to_owned(),
        },
    };
    // A machine resource that says nothing of replicas gets one machine.
    // A Scale that says nothing means none.
    let unsaid = if asked.subresource.is_some() { 0 } else { 1 };
    let wanted = replicas(object).unwrap_or(unsaid);
    let had = match asked.operation {
        Operation::Create => 0,
        Operation::Update => before.and_then(replicas).unwrap_or(unsaid),
        _ => return None,
    };
    if wanted <= had {
        return None;
    }
    let machine = match asked.subresource.as_deref() {
        Some("scale") => Arc::clone(facts.machines.get(&key)?),
        Some(_) => return None,
        None => Arc::new(match read(object) {
            Ok(object) => Machine::read(kind, &object),
            Err(unread) => Machine::unread(kind, &unread.metadata, unread.why),
        }),
    };
    Some((key, machine))
}

/// Whether the object of a request has a name, and not only how one that is made up begins.
pub(crate) fn is_named(asked: &Asked) -> bool {
    !asked.name.is_empty() || asked.object.as_ref().is_some_and(|it| !it.name.is_empty())
}

/// How an object is called whose name the API server makes up: by its beginning, and so that
/// nobody takes it for a name that a command could find.
pub(crate) fn made_up(begins: &str) -> String {
    format!("{begins}… (the rest of its name is made up later)")
}

/// What a machine resource may take as values: a hundred times as much as any does.
const LARGEST: usize = 4 << 20;

/// The object, or why it cannot be read, as a watch would have it.
fn read(object: &Whole) -> Brought {
    let unread = |why: String| Unread { metadata: Box::default(), why };
    if Weight::of(&object.body).takes() > LARGEST {
        return Err(unread("it holds more values than any machine resource does".to_owned()));
    }
    let mut text = serde_json::Deserializer::from_slice(&object.body);
    Parsed::deserialize(&mut text).map_err(|error| unread(error.to_string())).and_then(brought)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Scaled {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    replicas: Option<i64>,
}

/// Also of what is nested without end.
fn replicas(object: &Whole) -> Option<i64> {
    serde_json::from_slice::<Scaled>(&object.body).ok()?.spec.replicas
}

fn too_old(verdict: &Verdict) -> bool {
    matches!(verdict.outcome, Outcome::Blocks | Outcome::Warns)
}

fn update(report: &Report, object: &DynamicObject, old: Option<&DynamicObject>) -> Option<String> {
    let target = |object: &DynamicObject| {
        let version = object.data.pointer("/spec/desiredUpdate/version")?.as_str()?;
        (!version.is_empty()).then(|| version.to_owned())
    };
    let wanted = target(object)?;
    if old.and_then(target).as_ref() == Some(&wanted) {
        return None;
    }
    let release = Release::parse(&wanted)?;
    let verdict = report.to(Some(release));
    too_old(&verdict).then(|| {
        let wanted = shown(&wanted);
        let what = if verdict.is_of_image() {
            format!("boot images are too old for {wanted} (`tread bootimages` lists them)")
        } else {
            format!("whether boot images are new enough for {wanted} cannot be told")
        };
        let theirs = report.theirs().map(|theirs| format!(". {theirs}")).unwrap_or_default();
        format!("tread: {what}: {}{theirs}", verdict.message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tread_kube::api::machines::MACHINE_SET;

    fn asked(name: &str, metadata: &Value) -> Asked {
        let object = json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
            "metadata": metadata, "spec": {"replicas": 1}});
        let review = json!({"request": {"uid": "1", "operation": "CREATE",
            "kind": {"kind": "MachineSet"}, "namespace": "machines", "name": name,
            "resource": {"group": "machine.openshift.io", "resource": "machinesets"},
            "object": object}});
        Asked::read(review.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn one_is_named_by_its_name_and_never_by_how_that_begins() {
        let begins = json!({"generateName": "infra-"});
        let made = json!({"generateName": "infra-", "name": "infra-x7k2p"});
        for (name, metadata, expected, named) in [
            ("infra-a", json!({"name": "infra-a"}), "infra-a", true),
            // As the API server asks: the request does not have the name that it made up.
            ("", made, "infra-x7k2p", true),
            ("", begins, "infra-", false),
        ] {
            let asked = asked(name, &metadata);
            let (key, _) = more_machines(&Facts::default(), &asked, &MACHINE_SET).unwrap();
            assert_eq!((&*key.name, is_named(&asked)), (expected, named));
        }
        assert!(made_up("machines/infra-").starts_with("machines/infra-… (the rest of its name"));
    }
}
