//! What a request to the API server would change.

use super::Previewer;
use crate::api::disruption_plan::{Cause, CauseEvent};
use crate::pools::POOL_KIND;
use crate::previews::{Change, warnings};
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, Operation};

/// The kinds of objects that redirect image pulls.
pub const MIRROR_KINDS: [&str; 3] =
    ["ImageContentSourcePolicy", "ImageDigestMirrorSet", "ImageTagMirrorSet"];

impl Previewer {
    /// What a request would do to nodes: a line for each pool.
    pub async fn warnings(&self, request: &AdmissionRequest<DynamicObject>) -> Vec<String> {
        let deleted = request.operation == Operation::Delete;
        let object = if deleted { request.old_object.as_ref() } else { request.object.as_ref() };
        let Some(object) = object else { return Vec::new() };
        let Some((change, cause)) = change(&request.kind.kind, object, deleted) else {
            return Vec::new();
        };
        if !self.is_ready() {
            return vec![
                "tread: still starting, so what this does to nodes is not known".to_owned(),
            ];
        }
        if let Some(why) = self.unselected(&change) {
            return vec![format!("tread: {why}")];
        }
        match self.preview(&[change]).await {
            Ok(previews) => warnings(&previews, &cause),
            Err(why) => vec![format!("tread: what this does to nodes is not known: {why}")],
        }
    }
}

/// What an object changes that is written, or deleted; None if it is none that
/// nodes follow.
pub fn change(kind: &str, object: &DynamicObject, deleted: bool) -> Option<(Change, Cause)> {
    let mut name = object.name_any();
    if name.is_empty() {
        // The API server makes one up later.
        name = format!("{}…", object.metadata.generate_name.as_deref().unwrap_or_default());
    }
    let body = || {
        let mut object = object.clone();
        object.metadata.managed_fields = None;
        serde_json::to_vec(&object).ok()
    };
    let event = if deleted { CauseEvent::Deleted } else { CauseEvent::Changed };
    let cause = Cause { kind: kind.to_owned(), name: name.clone(), event };
    if let Some(kind) = MIRROR_KINDS.iter().find(|known| **known == kind) {
        let key = (*kind, name);
        let change = match deleted {
            true => Change::NoMirror(key),
            false => Change::Mirror(key, body()?.into()),
        };
        return Some((change, cause));
    }
    let rendered = object.owner_references().iter().any(|owner| owner.kind == POOL_KIND);
    if kind != "MachineConfig" || rendered {
        return None;
    }
    let change = match deleted {
        true => Change::NoMachineConfig(name),
        false => {
            Change::MachineConfig { name, labels: object.labels().clone(), body: body()?.into() }
        }
    };
    Some((change, cause))
}
