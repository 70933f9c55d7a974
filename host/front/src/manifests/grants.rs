//! What tread may do, each with its reason. The roles are made of this list, and
//! so is the test that proves each verb needed.

mod enforcing;
mod laptops;

pub use enforcing::{deleting, enforcing, enforcing_table};
pub(super) use laptops::for_laptops;

use crate::names::{NAME, SECRET};
use tread_kube::api::words::{
    CONFIG_GROUP, GROUP, MACHINE_CONFIG_GROUP, MACHINE_GROUP, OPERATOR_GROUP,
};
use tread_kube::held::NODE_MAINTENANCE;

/// The Lease of the leader.
pub const LEASE: &str = "tread";

/// Where something is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everywhere.
    Cluster,
    /// In tread's own namespace.
    Own,
    /// In the namespace of the agents.
    Agents,
}

/// A right of tread: what it may do with objects of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Where it may do so.
    pub scope: Scope,
    /// The API group; empty is the core.
    pub group: &'static str,
    /// The resource, with its subresource.
    pub resource: &'static str,
    /// What may be done with it.
    pub verbs: &'static [&'static str],
    /// With which ones; none: with all.
    pub names: &'static [&'static str],
    /// What for.
    pub why: &'static str,
}

pub(super) const READ: &[&str] = &["get", "list", "watch"];
const WATCH: &[&str] = &["list", "watch"];
const CLUSTER_API: &str = "cluster.x-k8s.io";
const TEMPLATES: &str = "infrastructure.cluster.x-k8s.io";
const WHAT_MACHINES_BOOT: &str = "which images new nodes boot from";
const STUCK: &str =
    "which machines of an old image wait for their node; only where replicas are missing";
const HOOKS: &str = "admissionregistration.k8s.io";

/// What stands for tread's own namespace in a name.
pub(super) const NAMESPACE: &str = "NAMESPACE";
/// The webhook's configuration.
const CONFIGURATION: &str = "tread.NAMESPACE";

/// The definitions of the kinds that a cluster may have, or may get later.
const DEFINITIONS: &[&str] = &[
    "awsmachinetemplates.infrastructure.cluster.x-k8s.io",
    "azuremachinetemplates.infrastructure.cluster.x-k8s.io",
    "bootimages.tread.dev",
    "clusteroperators.config.openshift.io",
    "clusterversions.config.openshift.io",
    "controlplanemachinesets.machine.openshift.io",
    "disruptionplans.tread.dev",
    "disruptionpolicies.tread.dev",
    "gcpmachinetemplates.infrastructure.cluster.x-k8s.io",
    "imagecontentsourcepolicies.operator.openshift.io",
    "imagedigestmirrorsets.config.openshift.io",
    "imagetagmirrorsets.config.openshift.io",
    "infrastructures.config.openshift.io",
    "machineconfigpools.machineconfiguration.openshift.io",
    "machineconfigs.machineconfiguration.openshift.io",
    "machineconfigurations.operator.openshift.io",
    "machinedeployments.cluster.x-k8s.io",
    "machinesets.cluster.x-k8s.io",
    "machinesets.machine.openshift.io",
    "metal3machinetemplates.infrastructure.cluster.x-k8s.io",
    NODE_MAINTENANCE.name,
    "provisionings.metal3.io",
    "vspheremachinetemplates.infrastructure.cluster.x-k8s.io",
];

const fn cluster(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
) -> Grant {
    Grant { scope: Scope::Cluster, group, resource, verbs, names: &[], why }
}

const fn own(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    names: &'static [&'static str],
    why: &'static str,
) -> Grant {
    Grant { scope: Scope::Own, group, resource, verbs, names, why }
}

/// All that tread may do in the mode `advise`.
pub fn rules() -> Vec<Grant> {
    vec![
        cluster(
            "",
            "configmaps",
            READ,
            "policies are ConfigMaps with a label in any allowed namespace: their metadata is watched by \
             that label, and their bytes are read; a role cannot be bound to a label",
        ),
        cluster(
            "",
            "namespaces",
            WATCH,
            "an admin allows policies in a namespace by a label on it",
        ),
        cluster(
            "",
            "nodes",
            WATCH,
            "plans say how many nodes go from which config, and which of them somebody else has",
        ),
        cluster(
            "coordination.k8s.io",
            "leases",
            WATCH,
            "which nodes somebody else has, by their Leases: in the one namespace of these, which may \
             not be there yet, where no role can be bound then",
        ),
        cluster(
            NODE_MAINTENANCE.group,
            NODE_MAINTENANCE.plural,
            WATCH,
            "which nodes somebody maintains",
        ),
        cluster(
            "policy",
            "poddisruptionbudgets",
            &["list"],
            "a plan that drains names the budgets that would block it; pods are not read for that",
        ),
        cluster(MACHINE_CONFIG_GROUP, "machineconfigs", READ, "what nodes have and are to get"),
        cluster(
            MACHINE_CONFIG_GROUP,
            "machineconfigpools",
            WATCH,
            "which nodes get what, and what is paused",
        ),
        cluster(
            OPERATOR_GROUP,
            "imagecontentsourcepolicies",
            WATCH,
            "mirrors become files on nodes",
        ),
        cluster(CONFIG_GROUP, "imagedigestmirrorsets", WATCH, "mirrors become files on nodes"),
        cluster(CONFIG_GROUP, "imagetagmirrorsets", WATCH, "mirrors become files on nodes"),
        cluster(
            OPERATOR_GROUP,
            "machineconfigurations",
            WATCH,
            "its nodeDisruptionPolicy is an admin's policy",
        ),
        Grant {
            names: &[NAME],
            ..cluster(
                CONFIG_GROUP,
                "clusteroperators",
                &["delete", "list", "watch"],
                "its own, which holds back updates, is removed where nobody asks for it any more",
            )
        },
        cluster(CONFIG_GROUP, "clusterversions", WATCH, "an update brings new configs"),
        cluster(CONFIG_GROUP, "infrastructures", WATCH, "a single node makes no machines"),
        cluster(MACHINE_GROUP, "controlplanemachinesets", WATCH, WHAT_MACHINES_BOOT),
        cluster(MACHINE_GROUP, "machines", &["list"], STUCK),
        cluster(MACHINE_GROUP, "machinesets", WATCH, WHAT_MACHINES_BOOT),
        cluster(CLUSTER_API, "machinedeployments", WATCH, WHAT_MACHINES_BOOT),
        cluster(CLUSTER_API, "machines", &["list"], STUCK),
        cluster(CLUSTER_API, "machinesets", WATCH, WHAT_MACHINES_BOOT),
        cluster(TEMPLATES, "awsmachinetemplates", WATCH, WHAT_MACHINES_BOOT),
        cluster(TEMPLATES, "azuremachinetemplates", WATCH, WHAT_MACHINES_BOOT),
        cluster(TEMPLATES, "gcpmachinetemplates", WATCH, WHAT_MACHINES_BOOT),
        cluster(TEMPLATES, "metal3machinetemplates", WATCH, WHAT_MACHINES_BOOT),
        cluster(TEMPLATES, "vspheremachinetemplates", WATCH, WHAT_MACHINES_BOOT),
        cluster(
            "metal3.io",
            "provisionings",
            WATCH,
            "whether bare metal boots an image of its own",
        ),
        Grant {
            scope: Scope::Cluster,
            group: "apiextensions.k8s.io",
            resource: "customresourcedefinitions",
            verbs: WATCH,
            names: DEFINITIONS,
            why: "a kind that is not installed is waited for, and found as soon as it is",
        },
        cluster(
            GROUP,
            "disruptionpolicies",
            &["create", "delete", "list", "watch"],
            "each policy is listed as an object, made and taken away with its ConfigMap; its spec is the admin's",
        ),
        cluster(GROUP, "disruptionpolicies/status", &["patch"], "how it stands with each policy"),
        cluster(
            GROUP,
            "disruptionplans",
            &["create", "delete", "list", "watch"],
            "each change is previewed as an object",
        ),
        cluster(GROUP, "disruptionplans/status", &["patch", "update"], "what each change will do"),
        cluster(
            GROUP,
            "bootimages",
            &["create", "list", "watch"],
            "boot images are judged as one object, made once; its spec is the admin's",
        ),
        cluster(GROUP, "bootimages/status", &["patch"], "whether boot images are too old"),
        cluster(
            "events.k8s.io",
            "events",
            &["create", "patch"],
            "authors are told on their ConfigMap, in its namespace, what became of it",
        ),
        cluster(
            "authentication.k8s.io",
            "tokenreviews",
            &["create"],
            "who asks for plans and policies by HTTP",
        ),
        cluster(
            "authorization.k8s.io",
            "subjectaccessreviews",
            &["create"],
            "whether whoever asks by HTTP may read the objects, and whether another tread may write",
        ),
        Grant {
            scope: Scope::Cluster,
            group: HOOKS,
            resource: "validatingwebhookconfigurations",
            verbs: &["list", "patch", "watch"],
            names: &[CONFIGURATION],
            why: "the API server is told which certificates to trust, in tread's own configuration",
        },
        own(
            "",
            "configmaps",
            &["create", "delete", "patch"],
            &[],
            "the last good version of each policy is kept, and former stream metadata",
        ),
        own(
            "coordination.k8s.io",
            "leases",
            &["create"],
            &[],
            "one replica leads; names cannot be given here",
        ),
        own(
            "coordination.k8s.io",
            "leases",
            &["get", "list", "update", "watch"],
            &[LEASE],
            "one replica leads",
        ),
        own(
            "",
            "secrets",
            &["create"],
            &[],
            "the webhook's certificates; names cannot be given here",
        ),
        own(
            "",
            "secrets",
            &["list", "update", "watch"],
            &[SECRET],
            "the webhook's certificates, which all replicas serve",
        ),
    ]
}

/// What it may do besides with `--block-upgrades`.
pub fn blocking() -> Vec<Grant> {
    vec![
        cluster(
            CONFIG_GROUP,
            "clusteroperators",
            &["create"],
            "with `--block-upgrades`: updates are held back while boot images are too old; names \
             cannot be given here",
        ),
        Grant {
            names: &[NAME],
            ..cluster(
                CONFIG_GROUP,
                "clusteroperators/status",
                &["patch"],
                "with `--block-upgrades`: why updates are held back",
            )
        },
    ]
}

/// The list as a table, for people.
pub fn table() -> String {
    as_table([rules(), blocking()].concat())
}

fn as_table(grants: Vec<Grant>) -> String {
    let mut table =
        String::from("| where | what | may be | what for |\n| --- | --- | --- | --- |\n");
    for Grant { scope, group, resource, verbs, names, why } in grants {
        let place = match scope {
            Scope::Cluster => "everywhere",
            Scope::Own => "own namespace",
            Scope::Agents => "agents' namespace",
        };
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        let names =
            if names.is_empty() { String::new() } else { format!(" `{}`", names.join("`, `")) };
        let verbs = verbs.join(", ");
        table.push_str(&format!("| {place} | {resource}{group}{names} | {verbs} | {why} |\n"));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_kube::api::crds;

    const WRITES: &[&str] = &[
        "create",
        "update",
        "patch",
        "delete",
        "deletecollection",
        "bind",
        "escalate",
        "impersonate",
        "*",
    ];

    #[test]
    fn in_advise_mode_nothing_of_the_clusters_nodes_pools_and_configs_may_be_written() {
        let own = [GROUP, "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", HOOKS];
        for grant in rules().into_iter().filter(|grant| grant.scope == Scope::Cluster) {
            let writes: Vec<_> = grant.verbs.iter().filter(|verb| WRITES.contains(verb)).collect();
            let is_own = own.contains(&grant.group)
                || (grant.resource, grant.names) == ("clusteroperators", &[NAME][..]);
            assert!(writes.is_empty() || is_own, "{grant:?}");
            assert!(
                writes.is_empty() || grant.group != HOOKS || grant.names == [CONFIGURATION],
                "{grant:?}"
            );
        }
    }

    #[test]
    fn every_kind_that_has_a_definition_can_be_waited_for() {
        let machines = tread_kube::api::machines::definitions().unwrap();
        let all = [crds::crds(), crds::openshift(), machines].concat();
        let mut names: Vec<_> = all.into_iter().filter_map(|crd| crd.metadata.name).collect();
        // medik8s defines it.
        names.push(NODE_MAINTENANCE.name.to_owned());
        names.sort();
        assert_eq!(names, DEFINITIONS);
    }

    #[test]
    fn nothing_is_granted_by_a_wildcard_or_without_a_reason_or_twice() {
        let mut seen = Vec::new();
        for grant in [rules(), enforcing(), deleting()].concat() {
            assert!(!grant.why.is_empty() && !grant.verbs.is_empty(), "{grant:?}");
            let words = [grant.verbs, grant.names, &[grant.group, grant.resource]].concat();
            assert!(!words.iter().any(|word| word.contains('*')), "{grant:?}");
            assert!(grant.verbs.is_sorted(), "{grant:?}");
            for verb in grant.verbs {
                let one = (grant.scope, grant.group, grant.resource, *verb, grant.names);
                assert!(!seen.contains(&one), "{one:?} is granted twice");
                seen.push(one);
            }
        }
        // Nobody's secrets but the own one, and in advise nobody's pods.
        let of_others = |it: &Grant| it.scope != Scope::Own && it.resource == "secrets";
        assert!(![rules(), blocking(), enforcing()].concat().iter().any(of_others));
        assert!(rules().iter().all(|grant| !grant.resource.starts_with("pods")));
    }
}
