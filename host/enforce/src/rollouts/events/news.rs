//! Something that is reported in an Event, once.

use k8s_openapi::api::core::v1::ObjectReference;
use tread_kube::events::{Note, Reason};

/// Something to report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct News {
    pub(super) about: ObjectReference,
    pub(super) note: Note,
    /// What it is reported for once.
    pub(super) of: String,
}

impl News {
    pub(super) fn new(
        about: &ObjectReference,
        reason: Reason,
        warns: bool,
        text: String,
        of: String,
    ) -> News {
        News { about: about.clone(), note: Note { reason, warns, text }, of }
    }
}

pub(crate) fn about(kind: &str, version: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(version.to_owned()),
        kind: Some(kind.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}
