//! The agents, one on each node, and what they reach.

use super::limits::of_agents;
use super::options::Options;
use super::words::{labels_of, named, named_for_agents, selector};
use super::workload::AGENTS;
use crate::names::{
    AGENT, AGENTS_AUTHORITY, AGENTS_AUTHORITY_KEY, AGENTS_SERVICE, NAME, agents_namespace,
};
use serde_json::{Value, json};
use tread_kube::agents::AUDIENCE;

/// Where an agent finds the token for the service.
const TOKEN: &str = "/var/run/secrets/tread.dev/agents";
/// Where it finds whom to trust there.
const AUTHORITY: &str = "/var/run/secrets/tread.dev/authority";
/// Where it finds what the API server takes, as every client looks for it.
const API_SERVER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How long a token lasts; the kubelet exchanges it before.
const LASTS: u32 = 3600;

/// Its own, since it takes pods that see their host. OpenShift would add the selector of its cluster to
/// these, and a DaemonSet's pod for any other node would be made again and again.
pub(super) fn namespace(options: &Options) -> Value {
    let mut metadata = named_for_agents(&agents_namespace(&options.namespace), None);
    metadata
        .annotations
        .get_or_insert_default()
        .insert("openshift.io/node-selector".to_owned(), String::new());
    let labels = metadata.labels.get_or_insert_default();
    for says in ["enforce", "warn"] {
        labels.insert(format!("pod-security.kubernetes.io/{says}"), "privileged".to_owned());
    }
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

pub(super) fn service_account(options: &Options) -> Value {
    let namespace = agents_namespace(&options.namespace);
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "automountServiceAccountToken": false,
        "metadata": named_for_agents(AGENT, Some(&namespace)),
    })
}

/// Lets OpenShift admit the agents' pods, as the labels of their namespace let Kubernetes. Elsewhere
/// there is no such role, and nothing is granted.
pub(super) fn admitted_on_openshift(options: &Options) -> Value {
    let namespace = agents_namespace(&options.namespace);
    let group = "rbac.authorization.k8s.io";
    json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "RoleBinding",
        "metadata": named_for_agents(&format!("{AGENT}-privileged"), Some(&namespace)),
        "roleRef": {
            "apiGroup": group,
            "kind": "ClusterRole",
            "name": "system:openshift:scc:privileged",
        },
        "subjects": [{"kind": "ServiceAccount", "name": AGENT, "namespace": namespace}],
    })
}

/// An agent tells how far it is, and reads nothing.
pub(super) fn role(options: &Options) -> [Value; 2] {
    let name = of_agents(&options.namespace);
    let (group, metadata) = ("rbac.authorization.k8s.io", named_for_agents(&name, None));
    let version = format!("{group}/v1");
    [
        json!({
            "apiVersion": version,
            "kind": "ClusterRole",
            "metadata": metadata,
            "rules": [{
                "apiGroups": ["tread.dev"],
                "resources": ["nodeupdates/status"],
                "verbs": ["patch"],
            }],
        }),
        json!({
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{
                "kind": "ServiceAccount",
                "name": AGENT,
                "namespace": agents_namespace(&options.namespace),
            }],
        }),
    ]
}

/// Where agents ask: apart from what people and webhooks ask, so that neither waits for the other.
pub(super) fn service(options: &Options) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": named(AGENTS_SERVICE, Some(&options.namespace)),
        "spec": {
            "ports": [{"name": "agents", "port": AGENTS, "targetPort": AGENTS}],
            "selector": selector(),
        },
    })
}

pub(super) fn daemon_set(options: &Options) -> Value {
    let labels = labels_of(AGENT);
    let metadata = named_for_agents(AGENT, Some(&agents_namespace(&options.namespace)));
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": {tread_kube::api::words::NAME_LABEL: AGENT}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": labels}, "spec": pod(options)},
        },
    })
}

fn pod(options: &Options) -> Value {
    json!({
        "automountServiceAccountToken": false,
        "containers": [container(options)],
        // With the host's network, and the cluster's names.
        "dnsPolicy": "ClusterFirstWithHostNet",
        "hostNetwork": true,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "priorityClassName": "system-node-critical",
        "serviceAccountName": AGENT,
        // It may die at any time: what goes on is on the host.
        "terminationGracePeriodSeconds": 5,
        "tolerations": [{"operator": "Exists"}],
        "volumes": volumes(options),
    })
}

fn container(options: &Options) -> Value {
    let host = &options.host;
    let service = format!("https://{AGENTS_SERVICE}.{}.svc:{AGENTS}", options.namespace);
    let of_host = host
        .mounts
        .iter()
        .enumerate()
        .map(|(number, (path, _))| json!({"name": of_host(number), "mountPath": path}));
    let given = [("token", TOKEN), ("authority", AUTHORITY), ("api-server", API_SERVER)];
    let given =
        given.map(|(name, path)| json!({"name": name, "mountPath": path, "readOnly": true}));
    let capabilities = match host.capabilities.as_slice() {
        [] => json!({"drop": ["ALL"]}),
        add => json!({"add": add, "drop": ["ALL"]}),
    };
    json!({
        "name": NAME,
        "image": options.image,
        "args": [
            "agent",
            "--service", service,
            "--token", format!("{TOKEN}/token"),
            "--ca", format!("{AUTHORITY}/{AGENTS_AUTHORITY_KEY}"),
        ],
        "env": [{"name": "TREAD_LOG", "value": "info"}],
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            // A config and a plan, each of megabytes at most.
            "limits": {"memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": capabilities,
            "readOnlyRootFilesystem": true,
            "runAsGroup": host.user,
            "runAsUser": host.user,
            // A confined domain may neither ask systemd nor write what the host executes.
            "seLinuxOptions": {"type": "spc_t"},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": of_host.chain(given).collect::<Vec<_>>(),
    })
}

fn volumes(options: &Options) -> Vec<Value> {
    let host = options.host.mounts.iter().enumerate();
    let mut all: Vec<Value> = host
        .map(|(number, (path, kind))| {
            json!({"name": of_host(number), "hostPath": {"path": path, "type": kind}})
        })
        .collect();
    let token = |source: Value| json!({"serviceAccountToken": source});
    let for_service = json!({"audience": AUDIENCE, "expirationSeconds": LASTS, "path": "token"});
    let for_api_server = json!({"expirationSeconds": LASTS, "path": "token"});
    // As the API server keeps it, or each apply would change it.
    let of_pod = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
    let namespace = json!({"path": "namespace", "fieldRef": of_pod});
    all.extend([
        json!({"name": "token", "projected": {"sources": [token(for_service)]}}),
        // tread writes it: a pod that comes before waits for it.
        json!({"name": "authority", "configMap": {
            "name": AGENTS_AUTHORITY,
            "items": [{"key": AGENTS_AUTHORITY_KEY, "path": AGENTS_AUTHORITY_KEY}],
        }}),
        json!({"name": "api-server", "projected": {"sources": [
            token(for_api_server),
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ]}}),
    ]);
    all
}

/// Names of volumes are short, and hold no slashes.
fn of_host(number: usize) -> String {
    format!("host-{number}")
}
