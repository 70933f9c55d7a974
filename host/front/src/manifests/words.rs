//! What all objects share.

use crate::names::NAME;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;
use tread_kube::api::words::{NAME_LABEL, PART_OF_LABEL};

/// What selects tread's pods.
pub(super) fn selector() -> BTreeMap<String, String> {
    BTreeMap::from([(NAME_LABEL.to_owned(), NAME.to_owned())])
}

/// What finds everything that was installed.
pub(super) fn labels() -> BTreeMap<String, String> {
    let mut labels = selector();
    labels.insert(PART_OF_LABEL.to_owned(), NAME.to_owned());
    labels
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
