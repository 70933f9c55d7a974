//! What tread may do besides where it rolls out. What a role cannot say is said by an
//! admission policy: see `limits.rs`.

use super::{CLUSTER_API, Grant, READ, Scope, WATCH, as_table, cluster, own};
use crate::names::{AGENTS_AUTHORITY, MACHINES_SECRET};
use tread_kube::api::words::{GROUP, MACHINE_CONFIG_GROUP, MACHINE_GROUP};
use tread_model::joining::{BOOTSTRAP_SECRET, KEYS_SECRET, TOKENS_SECRET};

/// The slots of all pools.
const SLOTS: &str = "tread-slots";

const SKIPS_REMEDIATION: &str = "while a node is disrupted its Machine is marked so that nobody \
    replaces it; an admission policy refuses all but annotations";
const MACHINE_GOES: &str = "a node whose Machine is being removed is never begun";

/// The definitions of the kinds that are watched in this mode alone.
const DEFINITIONS: &[&str] = &[
    "machines.cluster.x-k8s.io",
    "machines.machine.openshift.io",
    "nodeupdates.tread.dev",
    "rollouts.tread.dev",
];

/// What it may do besides in the mode `enforce`.
pub fn enforcing() -> Vec<Grant> {
    vec![
        cluster(
            "",
            "namespaces",
            &["create"],
            "the namespace of the nodes' Leases is made where nobody did that yet; names cannot be given \
             here, so an admission policy refuses others",
        ),
        cluster(
            "",
            "nodes",
            &["get", "patch"],
            "a node is read afresh before each act, cordoned, and left out of load balancers; one that \
             joins gets the labels and taints of its pool; an admission policy refuses all but that and \
             annotations",
        ),
        cluster(
            "",
            "nodes/status",
            &["patch"],
            "others see by its conditions that a node is drained; an admission policy refuses all but these \
             conditions",
        ),
        cluster(
            "",
            "pods",
            &["list"],
            "a drain moves the pods of a node, and sees those that come later",
        ),
        cluster(
            "",
            "pods/eviction",
            &["create"],
            "a drain asks for evictions, so that budgets hold",
        ),
        cluster(
            "apps",
            "daemonsets",
            READ,
            "a drain leaves their pods; machine-config-daemon halts it",
        ),
        cluster(
            "coordination.k8s.io",
            "leases",
            &["create", "delete", "get", "update"],
            "nodes are shared by Leases in a namespace that may not be there yet, where no role can be \
             bound then; an admission policy refuses writes elsewhere. A node proves itself by its kubelet's",
        ),
        cluster(
            "policy",
            "poddisruptionbudgets",
            &["watch"],
            "a drain names the budgets that hold a pod, and a node that one of them keeps from being begun \
             is looked at again when it changes",
        ),
        Grant {
            names: DEFINITIONS,
            ..cluster(
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                WATCH,
                "a kind that is not installed is waited for, and found as soon as it is",
            )
        },
        cluster(
            MACHINE_CONFIG_GROUP,
            "machineconfigs",
            &["create", "delete"],
            "what nodes get is rendered, and removed when nobody names it any more; an admission policy \
             refuses those that are not called rendered-…",
        ),
        cluster(
            MACHINE_CONFIG_GROUP,
            "machineconfigpools",
            &["patch"],
            "a pool's spec.configuration names the config that its nodes get, and an annotation says that it \
             had a Rollout; an admission policy refuses all but that field and annotations",
        ),
        cluster(MACHINE_CONFIG_GROUP, "machineconfigpools/status", &["patch"], "how far a pool is"),
        cluster(MACHINE_GROUP, "machines", &["watch"], MACHINE_GOES),
        cluster(CLUSTER_API, "machines", &["get", "watch"], MACHINE_GOES),
        cluster(CLUSTER_API, "machines", &["patch"], SKIPS_REMEDIATION),
        cluster(
            GROUP,
            "nodeupdates",
            &["create", "get", "list", "patch", "update", "watch"],
            "what each node is to become is an object, written onto the version that was read",
        ),
        cluster(
            GROUP,
            "nodeupdates/status",
            &["patch"],
            "what its agent cannot know: the condition Updated, and which pods its drain waits for",
        ),
        cluster(
            GROUP,
            "rollouts",
            &["create", "list", "watch"],
            "each pool has one, made once; its spec is the admin's, and it goes with its pool",
        ),
        cluster(
            GROUP,
            "rollouts/status",
            &["patch", "update"],
            "who is next, and who waits for whom",
        ),
        own(
            "",
            "secrets",
            &["list", "watch"],
            &[BOOTSTRAP_SECRET, KEYS_SECRET, TOKENS_SECRET],
            "what machines that boot are served by, and sign themselves with; an admin gives the first of them",
        ),
        own("", "secrets", &["patch"], &[TOKENS_SECRET], "a token for each pool"),
        own(
            "",
            "secrets",
            &["list", "update", "watch"],
            &[MACHINES_SECRET],
            "the certificate by which machines that boot know tread, and the key of its authority",
        ),
        own(
            "",
            "configmaps",
            &["update"],
            &[SLOTS],
            "the slots of all pools, written only while there is room, so that budgets hold",
        ),
        agents(
            "configmaps",
            &["create"],
            &[],
            "by which authority agents know the service; names cannot be given here",
        ),
        agents("configmaps", &["patch"], &[AGENTS_AUTHORITY], "the same"),
    ]
}

/// What it may do besides with `--delete-pods`.
pub fn deleting() -> Vec<Grant> {
    vec![cluster(
        "",
        "pods",
        &["delete"],
        "with `--delete-pods`: a drain that takes too long deletes pods where a Rollout asks for it \
         (spec.drain.afterTimeout)",
    )]
}

/// The list as a table, for people.
pub fn enforcing_table() -> String {
    as_table([enforcing(), deleting()].concat())
}

const fn agents(
    resource: &'static str,
    verbs: &'static [&'static str],
    names: &'static [&'static str],
    why: &'static str,
) -> Grant {
    Grant { scope: Scope::Agents, ..own("", resource, verbs, names, why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::grants::rules;
    use tread_kube::api::crds;

    #[test]
    fn what_enforcing_needs_besides_is_granted_nowhere_else() {
        for grant in enforcing() {
            let same = |it: &&Grant| {
                (it.scope, it.group, it.resource) == (grant.scope, grant.group, grant.resource)
                    && (it.names.is_empty() || it.names == grant.names)
            };
            for before in rules().iter().filter(same) {
                let twice = grant.verbs.iter().find(|verb| before.verbs.contains(verb));
                assert_eq!(twice, None, "{grant:?} and {before:?}");
            }
        }
        assert!(enforcing().iter().all(|grant| grant.resource != "validatingadmissionpolicies"));
    }

    #[test]
    fn every_kind_of_the_mode_enforce_can_be_waited_for() {
        let all = enforcing();
        let names: Vec<&str> = all
            .iter()
            .filter(|grant| grant.resource == "customresourcedefinitions")
            .flat_map(|grant| grant.names.iter().copied())
            .collect();
        for crd in crds::enforcing() {
            let name = crd.metadata.name.unwrap();
            assert!(names.contains(&name.as_str()), "{name} in {names:?}");
        }
    }
}
