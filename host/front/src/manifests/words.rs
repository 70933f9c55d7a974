//! What all objects share.

use crate::names::{AGENT, NAME};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;
use tread_kube::api::words::{NAME_LABEL, PART_OF_LABEL};

/// What selects tread's pods.
pub(super) fn selector() -> BTreeMap<String, String> {
    BTreeMap::from([(NAME_LABEL.to_owned(), NAME.to_owned())])
}

/// What finds everything that was installed.
pub(super) fn labels() -> BTreeMap<String, String> {
    labels_of(NAME)
}

/// The labels of something that has another name than tread.
pub(super) fn labels_of(name: &str) -> BTreeMap<String, String> {
    let labels = [(NAME_LABEL, name), (PART_OF_LABEL, NAME)];
    labels.map(|(label, value)| (label.to_owned(), value.to_owned())).into()
}

/// A name with the labels.
pub(super) fn named(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: Some(labels()),
        ..ObjectMeta::default()
    }
}

/// The name, the namespace and the labels of an object of the agents.
pub(super) fn named_for_agents(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta { labels: Some(labels_of(AGENT)), ..named(name, namespace) }
}
