//! Which nodes take the pods of another one, by the taints that stay on them.

use k8s_openapi::api::core::v1::{Node, Taint};
use std::collections::BTreeSet;
use tread_kube::held::is_passing;
use tread_model::joining::TAINT;

/// How the taints begin that are set for what a node is going through: by Kubernetes, by cloud providers, by
/// what makes machines, by what mends nodes, by networks that are not up there yet, and by whoever tells the
/// cluster autoscaler that a node is not.
const PASSING: [&str; 12] = [
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node.cluster.x-k8s.io/",
    "medik8s.io/",
    "remediation.medik8s.io/",
    "karpenter.sh/",
    "readiness.k8s.io/",
    "node.cilium.io/",
    "k8s.ovn.org/network-unavailable",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
];

/// How they end that agents of storage and networks take away once they are up.
const NOT_READY: &str = "/agent-not-ready";

/// The taints of a node that keep pods away for good, by their keys: those of cordons, of nodes that
/// are not ready, of nodes that join and of whoever drains a node come and go.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LastingTaints(BTreeSet<String>);

impl LastingTaints {
    /// Of a node.
    pub fn of(node: &Node) -> LastingTaints {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
        let comes_and_goes = |key: &str| {
            let is_known = PASSING.iter().any(|prefix| key.starts_with(prefix));
            is_passing(key) || is_known || key == TAINT || key.ends_with(NOT_READY)
        };
        let keeps_away = |it: &&Taint| it.effect != "PreferNoSchedule" && !comes_and_goes(&it.key);
        let lasting = taints.into_iter().flatten().filter(keeps_away);
        LastingTaints(lasting.map(|it| it.key.clone()).collect())
    }

    /// Whether a node with these taints takes the pods of a node with the other ones, be it now or
    /// once it is well and not cordoned. Pods are taken to tolerate all taints of their own node.
    pub fn takes_pods_of(&self, others: &LastingTaints) -> bool {
        self.0.is_subset(&others.0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn taints(spec: Value) -> LastingTaints {
        LastingTaints::of(&serde_json::from_value(json!({"spec": spec})).unwrap())
    }

    fn with(keys: &[&str], effect: &str) -> LastingTaints {
        let all: Vec<Value> =
            keys.iter().map(|key| json!({"key": key, "effect": effect})).collect();
        taints(json!({"taints": all}))
    }

    #[test]
    fn pods_go_where_their_own_node_has_every_taint_of_the_other() {
        let worker = taints(json!({}));
        let master = with(&["master"], "NoSchedule");
        let both = with(&["master", "gpu"], "NoExecute");
        for (from, to, expected) in [
            (&worker, &worker, true),
            (&worker, &master, false),
            (&master, &worker, true),
            (&master, &master, true),
            (&master, &both, false),
            (&both, &master, true),
            (&worker, &with(&["rather-not"], "PreferNoSchedule"), true),
            // They are down, or cordoned, for a while: pods wait for them, and are not killed.
            (&worker, &with(&["node.kubernetes.io/unreachable"], "NoExecute"), true),
            (&worker, &taints(json!({"unschedulable": true})), true),
        ] {
            assert_eq!(to.takes_pods_of(from), expected, "{from:?} to {to:?}");
        }
        // A cordoned node has a taint more, and its pods tolerate no more for it.
        assert!(with(&["node.kubernetes.io/unschedulable"], "NoSchedule").is_empty());
        // One that is about to be removed may yet stay, and one that is mended or not up yet comes back.
        for passing in [
            "ToBeDeletedByClusterAutoscaler",
            "karpenter.sh/disrupted",
            "medik8s.io/drain",
            "medik8s.io/remediation",
            "remediation.medik8s.io/fence-agents-remediation",
            "node.cluster.x-k8s.io/uninitialized",
            "node.cilium.io/agent-not-ready",
            "ebs.csi.aws.com/agent-not-ready",
            "k8s.ovn.org/network-unavailable",
            "startup-taint.cluster-autoscaler.kubernetes.io/gpu-driver",
            "ignore-taint.cluster-autoscaler.kubernetes.io/gpu-driver",
            "status-taint.cluster-autoscaler.kubernetes.io/suspended",
        ] {
            assert!(with(&[passing], "NoSchedule").takes_pods_of(&worker), "{passing}");
        }
    }

    #[test]
    fn a_node_that_joins_takes_pods_once_it_is_in_and_makes_no_other_one_alone() {
        let worker = taints(json!({}));
        let joins = with(&[TAINT], "NoSchedule");
        assert!(joins.is_empty() && joins.takes_pods_of(&worker) && worker.takes_pods_of(&joins));
        let joins = with(&[TAINT, "infra"], "NoSchedule");
        assert!(!joins.takes_pods_of(&worker), "it keeps them away once it is in, too");
        assert!(joins.takes_pods_of(&with(&["infra"], "NoSchedule")));
    }
}
