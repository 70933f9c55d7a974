//! Which pods have to move, by kubectl's filters in kubectl's order.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// On what a kubelet runs by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What becomes of a pod when its node is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It stays: a DaemonSet would bring it back at once.
    OfDaemonSet,
    /// It stays: its kubelet runs it by itself.
    Mirror,
    /// It moves.
    Moves,
    /// It moves, and what it stored on the node is lost.
    LosesStorage,
    /// It is removed, and nobody makes it anew.
    Unmanaged,
}

impl Fate {
    /// Whether the node is drained only once it is gone.
    pub fn moves(self) -> bool {
        !matches!(self, Fate::OfDaemonSet | Fate::Mirror)
    }
}

/// What becomes of a pod. `has_daemon_set` says whether the DaemonSet that owns it is there.
pub fn fate(pod: &Pod, has_daemon_set: bool) -> Fate {
    let is_finished = is_finished(pod);
    let owner = controller(pod);
    match () {
        () if is_mirror(pod) => Fate::Mirror,
        () if has_daemon_set && daemon_set(pod).is_some() && !is_finished => Fate::OfDaemonSet,
        () if is_finished => Fate::Moves,
        () if owner.is_none() || daemon_set(pod).is_some() => Fate::Unmanaged,
        () if has_local_storage(pod) => Fate::LosesStorage,
        () => Fate::Moves,
    }
}

/// The DaemonSet that owns a pod, by name.
pub(crate) fn daemon_set(pod: &Pod) -> Option<&str> {
    let owner = controller(pod)?;
    let is_one = owner.kind == "DaemonSet" && owner.api_version == "apps/v1";
    is_one.then_some(owner.name.as_str())
}

fn controller(pod: &Pod) -> Option<&OwnerReference> {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true))
}

fn is_mirror(pod: &Pod) -> bool {
    pod.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(MIRROR))
}

fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn has_local_storage(pod: &Pod) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref());
    volumes.unwrap_or_default().iter().any(|volume| volume.empty_dir.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn pods_move_or_stay_as_kubectl_has_it() {
        let owner = |kind: &str, version: &str, controls: bool| json!([{"apiVersion": version, "kind": kind, "name": "o", "uid": "u", "controller": controls}]);
        let set = || owner("ReplicaSet", "apps/v1", true);
        let daemon = || owner("DaemonSet", "apps/v1", true);
        let pod = |owners: Value, phase: &str, mirror: bool, storage: bool| -> Pod {
            let annotations = if mirror { json!({MIRROR: "x"}) } else { json!({}) };
            let volumes = if storage { json!([{"name": "v", "emptyDir": {}}]) } else { json!([]) };
            serde_json::from_value(json!({
                "metadata": {"annotations": annotations, "ownerReferences": owners},
                "spec": {"volumes": volumes, "containers": []},
                "status": {"phase": phase},
            }))
            .unwrap()
        };
        for (what, pod, there, is) in [
            ("of a ReplicaSet", pod(set(), "Running", false, false), true, Fate::Moves),
            ("with an emptyDir", pod(set(), "Running", false, true), true, Fate::LosesStorage),
            ("nobody's", pod(json!([]), "Running", false, false), true, Fate::Unmanaged),
            (
                "owned, not controlled",
                pod(owner("ReplicaSet", "apps/v1", false), "Running", false, false),
                true,
                Fate::Unmanaged,
            ),
            ("nobody's, finished", pod(json!([]), "Failed", false, true), true, Fate::Moves),
            ("of a DaemonSet", pod(daemon(), "Running", false, true), true, Fate::OfDaemonSet),
            ("of one that is gone", pod(daemon(), "Running", false, false), false, Fate::Unmanaged),
            (
                "of a DaemonSet, finished",
                pod(daemon(), "Succeeded", false, false),
                true,
                Fate::Moves,
            ),
            (
                "of another API's DaemonSet",
                pod(owner("DaemonSet", "x.io/v1", true), "Running", false, false),
                true,
                Fate::Moves,
            ),
            ("the kubelet's", pod(json!([]), "Running", true, false), true, Fate::Mirror),
        ] {
            assert_eq!(fate(&pod, there), is, "{what}");
        }
    }
}
