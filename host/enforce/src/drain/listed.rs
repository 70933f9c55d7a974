//! A pod as it is listed: one that cannot be read hides none of the others.

use k8s_openapi::api::core::v1::Pod;
use kube::api::ObjectMeta;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A pod, or as much of one as can be read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Listed {
    pub(super) pod: Pod,
    /// Whether all of it was read. Otherwise it has its name, namespace and UID.
    pub(super) is_read: bool,
}

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Listed, D::Error> {
        let mut object = Value::deserialize(from)?;
        // Whoever writes a pod writes there what they like, and nobody here reads it.
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let word = |field: &str| Some(object.get("metadata")?.get(field)?.as_str()?.to_owned());
        let metadata = ObjectMeta {
            name: word("name"),
            namespace: word("namespace"),
            uid: word("uid"),
            ..ObjectMeta::default()
        };
        Ok(match serde_json::from_value(object) {
            Ok(pod) => Listed { pod, is_read: true },
            Err(_) => Listed { pod: Pod { metadata, ..Pod::default() }, is_read: false },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::ResourceExt as _;
    use kube::core::ObjectList;
    use serde_json::json;

    #[test]
    fn a_pod_that_cannot_be_read_is_listed_by_its_name_beside_the_others() {
        // Later than any time that can be read here.
        let never = "9999-12-31T23:59:59Z";
        let pod = |name: &str, fields: Value, started: Option<&str>| {
            json!({
                "metadata": {"name": name, "namespace": "a", "uid": "u", "managedFields": fields},
                "spec": {"nodeName": "n", "containers": []},
                "status": {"startTime": started},
            })
        };
        let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [
            pod("well", json!([]), Some("2026-01-01T00:00:00Z")),
            pod("written", json!([{"manager": "m", "time": never}]), None),
            pod("odd", json!([]), Some(never)),
            {"metadata": "none"},
        ]});
        let list: ObjectList<Listed> = serde_json::from_value(list).unwrap();
        let found: Vec<(String, bool)> =
            list.items.iter().map(|it| (it.pod.name_any(), it.is_read)).collect();
        let found: Vec<(&str, bool)> =
            found.iter().map(|(name, it)| (name.as_str(), *it)).collect();
        assert_eq!(found, [("well", true), ("written", true), ("odd", false), ("", false)]);
        assert_eq!(list.items[2].pod.namespace().as_deref(), Some("a"));
        assert_eq!(list.items[2].pod.uid().as_deref(), Some("u"));
    }
}
