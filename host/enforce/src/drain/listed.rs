//! A pod as it is listed: one that cannot be read hides none of the others.

use super::filter::MIRROR;
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Pod, PodSpec, PodStatus, Volume};
use kube::api::ObjectMeta;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::sync::Semaphore;

/// So many pods or budgets are asked for in one answer: each can be more than a megabyte.
pub(super) const PAGE: u32 = 20;
/// So many lists are on their way at a time, of whatever nodes. An answer is in memory as others wrote
/// it until what counts of it was taken.
pub(super) static LISTS: Semaphore = Semaphore::const_new(4);
/// What a drain goes by of a pod is no longer, or it counts as one that cannot be read.
const LONGEST: usize = 16 * 1024;

/// A pod, or as much of one as can be read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Listed {
    pub(super) pod: Pod,
    /// Whether it was read. Otherwise it has its name, namespace and UID.
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
        Ok(match serde_json::from_value(object).map(kept) {
            Ok(pod) if is_short(&pod) => Listed { pod, is_read: true },
            _ => Listed { pod: Pod { metadata, ..Pod::default() }, is_read: false },
        })
    }
}

/// What a drain goes by of a pod: whoever writes one writes more there, as much as they like.
fn kept(pod: Pod) -> Pod {
    let written = pod.metadata;
    let is_mirror = written.annotations.is_some_and(|all| all.contains_key(MIRROR));
    let mut owners = written.owner_references.into_iter().flatten();
    let metadata = ObjectMeta {
        name: written.name,
        namespace: written.namespace,
        uid: written.uid,
        labels: written.labels,
        annotations: is_mirror.then(|| BTreeMap::from([(MIRROR.to_owned(), String::new())])),
        owner_references: owners.find(|owner| owner.controller == Some(true)).map(|it| vec![it]),
        creation_timestamp: written.creation_timestamp,
        deletion_timestamp: written.deletion_timestamp,
        ..ObjectMeta::default()
    };
    let spec = pod.spec.map(|spec| {
        let stores = spec.volumes.into_iter().flatten().any(|volume| volume.empty_dir.is_some());
        let on_node =
            || Volume { empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() };
        let volumes = stores.then(|| vec![on_node()]);
        PodSpec { priority: spec.priority, volumes, ..PodSpec::default() }
    });
    let status = pod.status.map(|status| PodStatus { phase: status.phase, ..PodStatus::default() });
    Pod { metadata, spec, status }
}

fn is_short(pod: &Pod) -> bool {
    serde_json::to_vec(pod).is_ok_and(|text| text.len() <= LONGEST)
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

    #[test]
    fn of_a_pod_is_kept_what_its_drain_goes_by() {
        let read = |labels: usize, annotations: Value| -> Listed {
            let labels: BTreeMap<String, &str> =
                (0..labels).map(|at| (format!("l{at:02}"), "a value")).collect();
            let owner = |name: &str, controls: bool| {
                json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": "u",
                    "controller": controls})
            };
            let at = "2026-01-01T00:00:00Z";
            serde_json::from_value(json!({
                "metadata": {"name": "a", "namespace": "b", "uid": "c", "labels": labels,
                    "annotations": annotations, "finalizers": ["d"],
                    "ownerReferences": [owner("other", false), owner("set", true)],
                    "creationTimestamp": at, "deletionTimestamp": at},
                "spec": {"nodeName": "n", "priority": 7, "containers": [{"name": "c"}],
                    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]},
                "status": {"phase": "Running", "startTime": at},
            }))
            .unwrap()
        };
        let Listed { pod, is_read } = read(2, json!({MIRROR: "x", "other": "y"}));
        let at = "2026-01-01T00:00:00Z";
        let kept = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "b", "uid": "c",
                "labels": {"l00": "a value", "l01": "a value"}, "annotations": {MIRROR: ""},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "set",
                    "uid": "u", "controller": true}],
                "creationTimestamp": at, "deletionTimestamp": at},
            "spec": {"priority": 7, "containers": [], "volumes": [{"name": "", "emptyDir": {}}]},
            "status": {"phase": "Running"},
        });
        assert_eq!((json!(pod), is_read), (kept, true));
        assert!(read(2, json!({"other": "y"})).pod.metadata.annotations.is_none());
        // What others may write without a bound is not read.
        assert!(read(700, json!({"other": "y".repeat(LONGEST)})).is_read);
        let Listed { pod, is_read } = read(1000, json!({}));
        assert!(!is_read && pod.metadata.labels.is_none());
        assert_eq!((pod.name_any(), pod.namespace().as_deref()), ("a".to_owned(), Some("b")));
    }
}
