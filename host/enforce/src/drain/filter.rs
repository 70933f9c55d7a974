//! Which pods have to move, by kubectl's filters in kubectl's order.

use super::asked::Asked;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use std::fmt;
use tread_kube::api::rollout_drain::RefusedPods;
use tread_kube::dated::time;
use tread_model::protocol::Time;

/// On what a kubelet runs by itself.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

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
    /// It stays: the Rollout says so.
    Ignored,
    /// It was to be gone long ago, and is not waited for.
    Forgotten,
    /// It is not evicted: it ends by itself.
    WaitedFor,
    /// It came to the node although that is cordoned, as it would again. It stays, but for as long as
    /// it could not be evicted the node is not drained.
    CameBack,
    /// It keeps the node from being drained.
    Refused(Refusal),
}

/// Why a pod keeps its node from being drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The Rollout says so of pods that nobody makes anew.
    Unmanaged,
    /// And of those whose emptyDir would be lost.
    LocalStorage,
    /// What the Rollout says cannot be followed.
    Unreadable,
    /// What the API server tells of the pod cannot be read.
    Unread,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Unmanaged => {
                "it declares no controller that would make it anew, and the Rollout refuses such \
                 pods (drain.refuse): remove it"
            }
            Refusal::LocalStorage => {
                "it has local storage, and the Rollout refuses such pods (drain.refuse): remove it"
            }
            Refusal::Unreadable => "what the Rollout says of drains cannot be followed",
            Refusal::Unread => {
                "what the API server tells of it cannot be read, or its labels and its owner take \
                 more than 16 KiB, so nobody knows whether it may go: remove it, or move it by hand"
            }
        })
    }
}

impl Fate {
    /// Whether the node is drained only once it is gone.
    pub fn moves(self) -> bool {
        !matches!(self, Fate::OfDaemonSet | Fate::Mirror | Fate::Ignored | Fate::Forgotten)
    }

    /// Whether it is asked to go.
    pub(super) fn is_evicted(self) -> bool {
        self.moves() && !matches!(self, Fate::WaitedFor | Fate::CameBack | Fate::Refused(_))
    }
}

/// What becomes of a pod. `has_daemon_set` says whether the DaemonSet that owns it is there.
pub fn fate(pod: &Pod, has_daemon_set: bool, asked: &Asked, now: Time) -> Fate {
    let is_finished = is_finished(pod);
    let is_unmanaged = controller(pod).is_none() || daemon_set(pod).is_some();
    let is_any = |which: &[super::asked::Which]| which.iter().any(|which| which.has(pod));
    let refuses = |what| asked.refused.contains(&what);
    match () {
        () if is_forgotten(pod, asked, now) => Fate::Forgotten,
        () if has_daemon_set && daemon_set(pod).is_some() && !is_finished => Fate::OfDaemonSet,
        () if is_mirror(pod) => Fate::Mirror,
        () if asked.unreadable && pod.metadata.deletion_timestamp.is_none() => {
            Fate::Refused(Refusal::Unreadable)
        }
        () if is_any(&asked.ignored) => Fate::Ignored,
        // It goes already, or is at its end: nothing is lost by it.
        () if is_finished || pod.metadata.deletion_timestamp.is_some() => Fate::Moves,
        () if is_any(&asked.waited_for) => Fate::WaitedFor,
        () if has_local_storage(pod) && refuses(RefusedPods::LocalStorage) => {
            Fate::Refused(Refusal::LocalStorage)
        }
        () if is_unmanaged && refuses(RefusedPods::Unmanaged) => Fate::Refused(Refusal::Unmanaged),
        () if is_unmanaged => Fate::Unmanaged,
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

/// Whether the pod should have been gone for so long that it is not waited for any more. The time
/// of its deletion already includes its grace period.
fn is_forgotten(pod: &Pod, asked: &Asked, now: Time) -> bool {
    let due = pod.metadata.deletion_timestamp.as_ref().and_then(|at| time(at.0));
    asked.forget_after.zip(due).is_some_and(|(after, due)| now.since(due) > after)
}

fn is_mirror(pod: &Pod) -> bool {
    pod.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(MIRROR))
}

pub(super) fn is_finished(pod: &Pod) -> bool {
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
            assert_eq!(fate(&pod, there, &Asked::default(), Time::default()), is, "{what}");
        }
    }

    #[test]
    fn pods_stay_or_are_waited_for_as_the_rollout_says() {
        let settings = json!({
            "ignore": [{"namespaces": ["probes"]}],
            "waitFor": [{"pods": {"matchLabels": {"kind": "job"}}}],
            "refuse": ["Unmanaged", "LocalStorage"],
            "forgetAfter": "60s",
        });
        let asked = Asked::of(Some(&serde_json::from_value(settings).unwrap())).unwrap();
        let at = |second: i64| k8s_openapi::jiff::Timestamp::from_second(second).unwrap();
        let pod = |namespace: &str, more: Value| -> Pod {
            let owners = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o",
                "uid": "u", "controller": true}]);
            let mut pod = json!({
                "metadata": {"namespace": namespace, "ownerReferences": owners},
                "spec": {"containers": []},
            });
            for (pointer, value) in more.as_object().unwrap() {
                let (section, field) = pointer.split_once('.').unwrap();
                pod[section][field] = value.clone();
            }
            serde_json::from_value(pod).unwrap()
        };
        let now = tread_kube::dated::time(at(1000)).unwrap();
        let storage = json!([{"name": "v", "emptyDir": {}}]);
        let job = json!({"kind": "job"});
        let refused = Fate::Refused;
        for (what, pod, is) in [
            ("as ever", pod("a", json!({})), Fate::Moves),
            ("ignored", pod("probes", json!({})), Fate::Ignored),
            ("a job", pod("a", json!({"metadata.labels": job})), Fate::WaitedFor),
            (
                "a job that ended",
                pod("a", json!({"metadata.labels": job, "status.phase": "Succeeded"})),
                Fate::Moves,
            ),
            (
                "a job of an ignored namespace",
                pod("probes", json!({"metadata.labels": job})),
                Fate::Ignored,
            ),
            (
                "nobody's",
                pod("a", json!({"metadata.ownerReferences": []})),
                refused(Refusal::Unmanaged),
            ),
            (
                "nobody's, and going",
                pod(
                    "a",
                    json!({"metadata.ownerReferences": [], "metadata.deletionTimestamp": at(990)}),
                ),
                Fate::Moves,
            ),
            (
                "with local storage",
                pod("a", json!({"spec.volumes": storage})),
                refused(Refusal::LocalStorage),
            ),
            (
                "due for a minute",
                pod("a", json!({"metadata.deletionTimestamp": at(940)})),
                Fate::Moves,
            ),
            (
                "due for longer",
                pod("a", json!({"metadata.deletionTimestamp": at(939)})),
                Fate::Forgotten,
            ),
        ] {
            assert_eq!(fate(&pod, true, &asked, now), is, "{what}");
            assert_eq!(is.moves(), !matches!(is, Fate::Ignored | Fate::Forgotten), "{what}");
        }
        let unreadable = Asked::unreadable();
        let all = pod("probes", json!({}));
        assert_eq!(fate(&all, true, &unreadable, now), refused(Refusal::Unreadable));
    }
}
