//! Reading DisruptionPolicy objects, those included that say nothing that could
//! be followed.

use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tread_kube::api::disruption_policy::{Layer, Mode, Source};
use tread_kube::api::{DisruptionPolicy, DisruptionPolicySpec};
use tread_model::description::Claim;
use tread_model::rules;
use tread_model::verdict::{Failure, FailureKind};

/// A DisruptionPolicy as it stands in the cluster.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// What can be read of it.
    pub(crate) object: Arc<DisruptionPolicy>,
    /// Why that is not all.
    pub(crate) unreadable: Option<Failure>,
    /// Of an object that is not all read: what its rules claim, as far as that can be read.
    pub(crate) claims: Vec<Claim>,
}

/// Reads an object. A status that cannot be read counts as none: it is written
/// again.
pub(crate) fn policy(object: DynamicObject) -> Policy {
    let DynamicObject { mut metadata, data, .. } = object;
    metadata.managed_fields = None;
    let spec = data.get("spec").unwrap_or(&Value::Null);
    let (spec, unreadable, claims) = match serde_path_to_error::deserialize(spec) {
        Ok(spec) => (spec, None, Vec::new()),
        Err(error) => {
            let path = match error.path().to_string().as_str() {
                "." => "spec".to_owned(),
                path => format!("spec.{path}"),
            };
            let message = format!("{path} cannot be read: {}", error.into_inner());
            let failure = Failure { kind: FailureKind::InvalidSettings, message };
            let claims = spec.get("rules").map(rules::claimed).unwrap_or_default();
            (what_can_be_read(spec), Some(failure), claims)
        }
    };
    let status = data.get("status").and_then(part);
    Policy { object: Arc::new(DisruptionPolicy { metadata, spec, status }), unreadable, claims }
}

fn what_can_be_read(spec: &Value) -> DisruptionPolicySpec {
    DisruptionPolicySpec {
        layer: spec.get("layer").and_then(part::<Layer>),
        source: spec.get("source").and_then(part::<Source>),
        mode: spec.get("mode").and_then(part::<Mode>).unwrap_or_default(),
        approved: spec.get("approved").and_then(part::<bool>).unwrap_or_default(),
        ..DisruptionPolicySpec::default()
    }
}

fn part<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(spec: &Value, status: &Value) -> Policy {
        let object = json!({"metadata": {"name": "a"}, "spec": spec, "status": status});
        policy(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn what_cannot_be_read_is_named_by_its_field() {
        let source = json!({"configMap": {"namespace": "a", "name": "b"}});
        for (spec, words) in [
            (json!({"mode": "Sometimes"}), "spec.mode cannot be read: unknown variant"),
            (json!({"source": source, "approved": "yes"}), "spec.approved cannot be read"),
            (json!({"rules": [{"match": ["a"]}, {"match": 5}]}), "spec.rules[1].match cannot"),
            (json!("text"), "spec cannot be read: invalid type: string"),
        ] {
            let read = read(&spec, &Value::Null);
            let failure = read.unreadable.unwrap();
            assert!(failure.message.contains(words), "{failure}");
            assert_eq!(read.object.spec.source.is_some(), spec.get("source").is_some());
        }
        let rules = json!([{"match": ["file:/a", "file:b"]}, {"match": 5}]);
        let known = read(&json!({ "rules": rules }), &Value::Null).claims;
        assert_eq!(known.into_iter().map(|it| it.changes).collect::<Vec<_>>(), ["file:/a"]);
        let approved = read(&json!({"approved": true, "rules": 5}), &Value::Null);
        assert!(approved.unreadable.is_some() && approved.object.spec.approved);
    }

    #[test]
    fn a_status_that_cannot_be_read_counts_as_none() {
        let spec = json!({"source": {"builtin": "registries"}});
        let broken = read(&spec, &json!({"state": "Enlightened"}));
        assert!(broken.unreadable.is_none());
        assert_eq!(broken.object.status, None);
        let fine = read(&spec, &json!({"state": "Loaded"}));
        assert!(fine.object.status.is_some());
    }
}
