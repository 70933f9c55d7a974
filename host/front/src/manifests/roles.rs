//! The roles, made of what is granted.

use super::grants::{
    Grant, NAMESPACE, READ, Scope, blocking, deleting, enforcing, for_laptops, rules,
};
use super::options::{Mode, Options};
use super::words::named;
use crate::names::{NAME, agents_namespace, of_installation, read_name, view_name};
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use tread_kube::api::words::GROUP;
use tread_model::joining::BOOTSTRAP_SECRET;

fn policy_rules(options: &Options, wanted: Scope) -> Vec<PolicyRule> {
    let wanted = granted(options).into_iter().filter(|grant| grant.scope == wanted);
    wanted.map(|grant| policy_rule(options, grant)).collect()
}

fn policy_rule(options: &Options, grant: Grant) -> PolicyRule {
    let named = |name: &&str| match &options.bootstrap {
        Some(bootstrap) if *name == BOOTSTRAP_SECRET => bootstrap.clone(),
        _ => name.replace(NAMESPACE, &options.namespace),
    };
    let named = |names: &[&str]| names.iter().map(named).collect::<Vec<_>>();
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![grant.group.to_owned()]),
        resources: Some(vec![grant.resource.to_owned()]),
        verbs: owned(grant.verbs),
        resource_names: (!grant.names.is_empty()).then(|| named(grant.names)),
        non_resource_urls: None,
    }
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

/// All that is granted.
fn granted(options: &Options) -> Vec<Grant> {
    let blocking = if options.block_upgrades { blocking() } else { Vec::new() };
    let enforces = options.mode == Mode::Enforce;
    let enforcing = if enforces { enforcing() } else { Vec::new() };
    let deleting = if enforces && options.delete_pods { deleting() } else { Vec::new() };
    [rules(), blocking, enforcing, deleting].concat()
}

pub(super) fn cluster_role(options: &Options) -> ClusterRole {
    let namespace = options.namespace.as_str();
    let rules = Some(policy_rules(options, Scope::Cluster));
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

/// In its own namespace.
pub(super) fn role(options: &Options) -> Role {
    role_in(options, Scope::Own, &options.namespace)
}

pub(super) fn role_binding(namespace: &str) -> RoleBinding {
    role_binding_in(namespace, namespace)
}

/// The service's, in the namespace of its agents.
pub(super) fn among_agents(options: &Options) -> (Role, RoleBinding) {
    let agents = agents_namespace(&options.namespace);
    (role_in(options, Scope::Agents, &agents), role_binding_in(&agents, &options.namespace))
}

fn role_in(options: &Options, scope: Scope, place: &str) -> Role {
    Role { metadata: named(NAME, Some(place)), rules: Some(policy_rules(options, scope)) }
}

fn role_binding_in(place: &str, namespace: &str) -> RoleBinding {
    RoleBinding {
        metadata: named(NAME, Some(place)),
        role_ref: reference("Role", NAME),
        subjects: Some(service_account(namespace)),
    }
}

/// For people who plan from a laptop: what commands look at there, and nothing that writes.
pub(super) fn read(options: &Options) -> ClusterRole {
    let grants = for_laptops(options.mode == Mode::Enforce).into_iter();
    let rules = grants.map(|grant| {
        let mut rule = policy_rule(options, grant);
        rule.verbs.retain(|verb| READ.contains(&verb.as_str()));
        rule
    });
    ClusterRole {
        metadata: named(&read_name(&options.namespace), None),
        rules: Some(rules.filter(|rule| !rule.verbs.is_empty()).collect()),
        aggregation_rule: None,
    }
}

/// For people: whoever has the role `view` of the whole cluster may read plans
/// and policies, by kubectl and by HTTP.
pub(super) fn view(options: &Options) -> ClusterRole {
    let namespace = options.namespace.as_str();
    let mut metadata = named(&view_name(namespace), None);
    let labels = metadata.labels.get_or_insert_default();
    for role in ["view", "cluster-reader"] {
        labels.insert(format!("rbac.authorization.k8s.io/aggregate-to-{role}"), "true".to_owned());
    }
    let mut resources = vec!["bootimages", "disruptionplans", "disruptionpolicies"];
    if options.mode == Mode::Enforce {
        resources.extend(["nodeupdates", "rollouts"]);
    }
    let rule = PolicyRule {
        api_groups: Some(vec![GROUP.to_owned()]),
        resources: Some(resources.into_iter().map(str::to_owned).collect()),
        verbs: READ.iter().map(|&verb| verb.to_owned()).collect(),
        ..PolicyRule::default()
    };
    ClusterRole { metadata, rules: Some(vec![rule]), aggregation_rule: None }
}
