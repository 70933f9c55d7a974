//! ClusterOperator `tread` as it stands in the cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde::Deserialize as _;
use serde_json::Value;
use tread_kube::api::words::{MADE_BY_LABEL, MANAGER};

/// The ClusterOperator as it stands there.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) is_ours: bool,
    pub(super) conditions: Vec<Condition>,
}

impl Standing {
    /// Reads what counts of it.
    pub fn read(object: &DynamicObject) -> Standing {
        let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
        let read = |it: &Value| Condition::deserialize(it).ok();
        Standing {
            uid: object.uid().unwrap_or_default(),
            version: object.resource_version().unwrap_or_default(),
            is_ours: object.labels().get(MADE_BY_LABEL).is_some_and(|it| it == MANAGER),
            conditions: conditions.into_iter().flatten().filter_map(read).collect(),
        }
    }
}
