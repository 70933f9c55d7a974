//! What all objects share.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;

/// What selects tread's pods.
pub(super) fn selector() -> BTreeMap<String, String> {
    BTreeMap::from([("app.kubernetes.io/name".to_owned(), super::NAME.to_owned())])
}

/// What finds everything that was installed.
pub(super) fn labels() -> BTreeMap<String, String> {
    let mut labels = selector();
    labels.insert("app.kubernetes.io/part-of".to_owned(), super::NAME.to_owned());
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
