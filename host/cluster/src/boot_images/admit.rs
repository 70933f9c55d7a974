//! What is said of a request to the API server: a machine resource that would
//! make machines from an image that is too old, and an update that the images
//! are too old for. Nothing is refused.

use super::Known;
use super::facts::Facts;
use super::kinds::CLUSTER_VERSION;
use super::machine::{Key, Machine, makes_machines};
use super::report::{Report, name_of};
use crate::api::machines::{self, Kind};
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, Operation};
use serde_json::Value;
use tread_model::boot_images::{Outcome, Release, Verdict, shown};

impl Known {
    /// What to say of a request: nothing, or one line.
    pub fn warnings(&self, request: &AdmissionRequest<DynamicObject>) -> Vec<String> {
        let known = self.now();
        let Some(known) = known.as_deref() else { return Vec::new() };
        warning(&known.0, &known.1, request).into_iter().collect()
    }
}

/// The one line that is said of a request, if there is any.
pub fn warning(
    facts: &Facts,
    report: &Report,
    request: &AdmissionRequest<DynamicObject>,
) -> Option<String> {
    let object = request.object.as_ref()?;
    let resource = &request.resource;
    let is = |kind: &Kind| kind.group == resource.group && kind.plural == resource.resource;
    if is(&CLUSTER_VERSION) {
        return update(report, object, request.old_object.as_ref());
    }
    let kind = machines::ALL.iter().find(|kind| makes_machines(kind) && is(kind))?;
    let key = Key {
        kind: kind.name,
        namespace: request.namespace.clone().unwrap_or_default(),
        name: match request.name.as_str() {
            "" => object.metadata.generate_name.clone().unwrap_or_default(),
            name => name.to_owned(),
        },
    };
    let replicas =
        |object: &DynamicObject| object.data.pointer("/spec/replicas").and_then(Value::as_i64);
    // What says nothing of replicas gets one machine.
    let wanted = replicas(object).unwrap_or(1);
    let had = match request.operation {
        Operation::Create => 0,
        Operation::Update => request.old_object.as_ref().and_then(replicas).unwrap_or(1),
        _ => return None,
    };
    if wanted <= had {
        return None;
    }
    let machine = match request.sub_resource.as_deref() {
        Some("scale") => facts.machines.get(&key)?.clone(),
        Some(_) => return None,
        None => Machine::read(kind, object),
    };
    if machine.left_out.is_some() {
        return None;
    }
    let verdict = report.of(facts, &key, &machine);
    too_old(&verdict).then(|| {
        format!(
            "tread: {} boots new machines from an image that is too old, and they may not become \
             nodes: {}; `tread bootimages patch {}` says what to do",
            shown(&name_of(&key)),
            verdict.message,
            shown(&name_of(&key))
        )
    })
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
        format!(
            "tread: boot images are too old for {}, and new machines may not become nodes: {}; \
             `tread bootimages` lists them",
            shown(&wanted),
            verdict.message
        )
    })
}
