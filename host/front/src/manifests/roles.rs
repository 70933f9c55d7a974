//! The roles, made of what is granted.

use super::grants::{Grant, NAMESPACE, READ, Scope, blocking, rules};
use super::options::Options;
use super::words::named;
use crate::names::{NAME, of_installation, view_name};
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use tread_kube::api::words::GROUP;

fn policy_rules(all: Vec<Grant>, wanted: Scope, namespace: &str) -> Vec<PolicyRule> {
    let named = |names: &[&str]| {
        names.iter().map(|name| name.replace(NAMESPACE, namespace)).collect::<Vec<_>>()
    };
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    all.into_iter()
        .filter(|grant| grant.scope == wanted)
        .map(|grant| PolicyRule {
            api_groups: Some(vec![grant.group.to_owned()]),
            resources: Some(vec![grant.resource.to_owned()]),
            verbs: owned(grant.verbs),
            resource_names: (!grant.names.is_empty()).then(|| named(grant.names)),
            non_resource_urls: None,
        })
        .collect()
}

fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: "rbac.authorization.k8s.io".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

fn service_account(namespace: &str) -> Vec<Subject> {
    vec![Subject {
        kind: "ServiceAccount".to_owned(),
        name: NAME.to_owned(),
        namespace: Some(namespace.to_owned()),
        api_group: None,
    }]
}

pub(super) fn cluster_role(options: &Options) -> ClusterRole {
    let namespace = options.namespace.as_str();
    let more = if options.block_upgrades { blocking() } else { Vec::new() };
    let all = rules().into_iter().chain(more).collect();
    let rules = Some(policy_rules(all, Scope::Cluster, namespace));
    let metadata = named(&of_installation(namespace), None);
    ClusterRole { metadata, rules, aggregation_rule: None }
}

pub(super) fn cluster_role_binding(namespace: &str) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: named(&of_installation(namespace), None),
        role_ref: reference("ClusterRole", &of_installation(namespace)),
        subjects: Some(service_account(namespace)),
    }
}

pub(super) fn role(namespace: &str) -> Role {
    Role {
        metadata: named(NAME, Some(namespace)),
        rules: Some(policy_rules(rules(), Scope::Own, namespace)),
    }
}

pub(super) fn role_binding(namespace: &str) -> RoleBinding {
    RoleBinding {
        metadata: named(NAME, Some(namespace)),
        role_ref: reference("Role", NAME),
        subjects: Some(service_account(namespace)),
    }
}

/// For people: whoever has the role `view` of the whole cluster may read plans
/// and policies, by kubectl and by HTTP.
pub(super) fn view(namespace: &str) -> ClusterRole {
    let mut metadata = named(&view_name(namespace), None);
    let labels = metadata.labels.get_or_insert_default();
    for role in ["view", "cluster-reader"] {
        labels.insert(format!("rbac.authorization.k8s.io/aggregate-to-{role}"), "true".to_owned());
    }
    let rule = PolicyRule {
        api_groups: Some(vec![GROUP.to_owned()]),
        resources: Some(
            ["bootimages", "disruptionplans", "disruptionpolicies"].map(str::to_owned).to_vec(),
        ),
        verbs: READ.iter().map(|&verb| verb.to_owned()).collect(),
        ..PolicyRule::default()
    };
    ClusterRole { metadata, rules: Some(vec![rule]), aggregation_rule: None }
}
