//! What no role can say: admission policies that hold tread and its agents to less than
//! their roles.

use super::options::Options;
use super::words::named;
use crate::names::{AGENT, NAME, agents_namespace, of_installation};
use serde_json::{Value, json};
use tread_model::joining::TAINT;

/// The node that a token is bound to: the API server says so from Kubernetes 1.32 on.
const NODE: &str =
    "request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')";

/// The conditions of a node that are the service's: those by which others see what is done to it.
const CONDITIONS: [&str; 4] =
    ["MaintenancePlanned", "MaintenanceInProgress", "DrainInProgress", "Drained"];

/// Of nodes that are to be left out of external load balancers.
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// What agents are called, too.
pub(super) fn of_agents(namespace: &str) -> String {
    format!("tread-agents.{namespace}")
}

/// An agent writes the status of its own node's NodeUpdate, and nothing else.
pub(super) fn agents(options: &Options) -> [Value; 2] {
    let namespace = options.namespace.as_str();
    let account = (agents_namespace(namespace), AGENT);
    let rules = json!([rule(
        "tread.dev",
        &["nodeupdates", "nodeupdates/status"],
        &["CREATE", "UPDATE", "DELETE"]
    )]);
    let validations = json!([
        {
            "expression": "request.?subResource.orValue('') == 'status'",
            "message": "an agent writes the status of its NodeUpdate alone: what stands in its spec \
                is ordered by tread's service",
        },
        {
            "expression": "variables.node != ''",
            "message": "this token of tread-agent says no node, so it may write nothing: agents \
                use the token that their DaemonSet's pods are given, which is bound to the pod; \
                and the API server has to be of Kubernetes 1.32 at least",
        },
        {
            "expression": "variables.node == '' || request.name == variables.node",
            "messageExpression": "'this token is of the agent on node ' + variables.node + \
                ', which may write the status of NodeUpdate ' + variables.node + ' alone, and \
                not of ' + request.name + ': see who uses the token of that node'",
        },
    ]);
    let variables = json!([{"name": "node", "expression": NODE}]);
    policy(&of_agents(namespace), &account, rules, variables, validations)
}

/// What the service writes besides its own objects.
pub(super) fn service(options: &Options) -> [Value; 2] {
    let (namespace, leases) = (options.namespace.as_str(), options.leases.as_str());
    let pools = "machineconfiguration.openshift.io";
    let rules = json!([
        rule("coordination.k8s.io", &["leases"], &["CREATE", "UPDATE", "DELETE"]),
        rule("", &["namespaces"], &["CREATE"]),
        rule("", &["nodes", "nodes/status"], &["UPDATE"]),
        rule(pools, &["machineconfigs"], &["CREATE", "UPDATE", "DELETE"]),
        rule(pools, &["machineconfigpools"], &["UPDATE"]),
        rule("machine.openshift.io", &["machines"], &["UPDATE"]),
        rule("cluster.x-k8s.io", &["machines"], &["UPDATE"]),
    ]);
    let variables = json!([
        {"name": "of", "expression": "request.resource.resource"},
        {"name": "is_changed", "expression":
            "variables.of in ['nodes', 'machineconfigpools', 'machines']"},
        // The one field of the spec that it may write.
        {"name": "own", "expression": "variables.of == 'nodes' ? 'unschedulable' : \
            variables.of == 'machineconfigpools' ? 'configuration' : ''"},
        {"name": "spec", "expression": "dyn(object).?spec.orValue({})"},
        {"name": "before", "expression": "dyn(oldObject).?spec.orValue({})"},
        // The one label that it may write.
        {"name": "label", "expression": format!("variables.of == 'nodes' ? '{EXCLUDED}' : ''")},
        {"name": "labels", "expression": "dyn(object.metadata).?labels.orValue({})"},
        {"name": "former", "expression": "dyn(oldObject.metadata).?labels.orValue({})"},
        // A node that registered as joining, and joins by this.
        {"name": "joins", "expression": format!("variables.of == 'nodes' && \
            variables.before.?taints.orValue([]).exists(it, it.key == '{TAINT}') && \
            !variables.spec.?taints.orValue([]).exists(it, it.key == '{TAINT}')")},
        {"name": "may", "expression": "[variables.own] + (variables.joins ? ['taints'] : [])"},
        {"name": "status", "expression": "dyn(object).?status.orValue({})"},
        {"name": "stood", "expression": "dyn(oldObject).?status.orValue({})"},
        // The one field of the status that it may write, and what of it is not its own.
        {"name": "told", "expression": "variables.of == 'nodes' ? 'conditions' : ''"},
        {"name": "others", "expression": conditions("status")},
        {"name": "those", "expression": conditions("stood")},
    ]);
    let validations = json!([
        {
            "expression":
                format!("variables.of != 'leases' || request.namespace in ['{namespace}', '{leases}']"),
            "message": format!("tread writes Leases in {namespace} and {leases} alone"),
        },
        {
            "expression":
                format!("variables.of != 'namespaces' || object.metadata.name == '{leases}'"),
            "message": format!("tread makes the namespace {leases} alone"),
        },
        {
            "expression": "variables.of != 'machineconfigs' || request.name.startsWith('rendered-')",
            "message": "tread writes MachineConfigs alone that it rendered: those called rendered-…",
        },
        {
            "expression": "!variables.is_changed || (variables.spec.all(field, field in variables.may \
                || (field in variables.before && variables.spec[field] == variables.before[field])) \
                && variables.before.all(field, field in variables.may || field in variables.spec))",
            "messageExpression": "'tread writes of the spec of ' + variables.of + ' ' + \
                (variables.own == '' ? 'nothing' : variables.own + ' alone')",
        },
        {
            "expression": "!variables.is_changed || variables.joins \
                || (variables.labels.all(label, label == variables.label \
                || (label in variables.former && variables.labels[label] == variables.former[label])) \
                && variables.former.all(label, label == variables.label || label in variables.labels))",
            "messageExpression": "'tread writes no labels of ' + variables.of + \
                (variables.label == '' ? '' : ' but ' + variables.label)",
        },
        {
            "expression": format!(
                "!variables.is_changed || ({} && {})", is_kept("ownerReferences"), is_kept("finalizers")
            ),
            "messageExpression": "'tread writes no ownerReferences and no finalizers of ' + variables.of",
        },
        {
            "expression": "!variables.is_changed || (variables.status.all(field, field == variables.told \
                || (field in variables.stood && variables.status[field] == variables.stood[field])) \
                && variables.stood.all(field, field == variables.told || field in variables.status) \
                && variables.others.all(it, it in variables.those) \
                && variables.those.all(it, it in variables.others))",
            "messageExpression": format!(
                "'tread writes of the status of ' + variables.of + ' ' + \
                (variables.told == '' ? 'nothing' : 'the conditions {} alone')",
                CONDITIONS.join(", ")
            ),
        },
    ]);
    policy(
        &of_installation(namespace),
        &(namespace.to_owned(), NAME),
        rules,
        variables,
        validations,
    )
}

/// Whether a list in the metadata is as it was.
fn is_kept(list: &str) -> String {
    format!(
        "dyn(object.metadata).?{list}.orValue([]) == dyn(oldObject.metadata).?{list}.orValue([])"
    )
}

/// The conditions in a status of a node that are not the service's.
fn conditions(status: &str) -> String {
    let own = CONDITIONS.join("', '");
    format!(
        "variables.of != 'nodes' ? [] : variables.{status}.?conditions.orValue([])\
         .filter(it, !(it.type in ['{own}']))"
    )
}

fn rule(group: &str, resources: &[&str], operations: &[&str]) -> Value {
    json!({
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": operations,
        "resources": resources,
        "scope": "*",
    })
}

/// A policy for what one service account asks, and that it holds everywhere.
fn policy(
    name: &str,
    (namespace, account): &(String, &str),
    rules: Value,
    variables: Value,
    validations: Value,
) -> [Value; 2] {
    let who = format!("request.userInfo.username == 'system:serviceaccount:{namespace}:{account}'");
    let (group, metadata) = ("admissionregistration.k8s.io/v1", named(name, None));
    [
        json!({
            "apiVersion": group,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConditions": [{"name": format!("is-{account}"), "expression": who}],
                "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": rules},
                "variables": variables,
                "validations": validations,
            },
        }),
        json!({
            "apiVersion": group,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }),
    ]
}

/// The service's Leases go before what agents write: on a busy API server those wait with all
/// service accounts, and a Lease that is not renewed in time stops a node halfway.
pub(super) fn flow(options: &Options) -> Value {
    let namespace = options.namespace.as_str();
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": named(&of_installation(namespace), None),
        "spec": {
            "distinguisherMethod": {"type": "ByUser"},
            "matchingPrecedence": 500,
            // Each API server has this level.
            "priorityLevelConfiguration": {"name": "leader-election"},
            "rules": [{
                "resourceRules": [{
                    "apiGroups": ["coordination.k8s.io"],
                    "namespaces": [namespace, options.leases],
                    "resources": ["leases"],
                    "verbs": ["*"],
                }],
                "subjects": [{
                    "kind": "ServiceAccount",
                    "serviceAccount": {"name": NAME, "namespace": namespace},
                }],
            }],
        },
    })
}
