//! The Deployment, and what belongs to it.

use super::grants::LEASE;
use super::options::{Mode, Options};
use super::words::{labels, named, selector};
use crate::names::{MACHINES, NAME};
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment,
};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, Container, ContainerPort, EmptyDirVolumeSource, EnvVar, EnvVarSource,
    HTTPGetAction, Namespace, ObjectFieldSelector, PodAffinityTerm, PodAntiAffinity,
    PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile,
    SecurityContext, Service, ServiceAccount, ServicePort, ServiceSpec, Volume, VolumeMount,
    WeightedPodAffinityTerm,
};
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::BTreeMap;
use tread_kube::node_lease;

/// The plain port.
pub const HTTP: u16 = 8080;
/// The port with TLS.
pub const HTTPS: u16 = 8443;
/// The port for agents, with TLS.
pub const AGENTS: u16 = 8444;
/// The port for machines that boot, with TLS.
pub const MACHINES_PORT: u16 = crate::http::MACHINES_PORT;

const CACHE: &str = "/var/cache/tread";

pub(super) fn namespace(options: &Options) -> Namespace {
    let mut metadata = named(&options.namespace, None);
    let labels = metadata.labels.get_or_insert_default();
    for says in ["enforce", "warn"] {
        labels.insert(format!("pod-security.kubernetes.io/{says}"), "restricted".to_owned());
    }
    if options.with_monitoring {
        // OpenShift's Prometheus looks only there.
        labels.insert("openshift.io/cluster-monitoring".to_owned(), "true".to_owned());
    }
    Namespace { metadata, ..Namespace::default() }
}

pub(super) fn service_account(options: &Options) -> ServiceAccount {
    ServiceAccount { metadata: named(NAME, Some(&options.namespace)), ..ServiceAccount::default() }
}

/// The Lease of the leader, held by nobody: whoever finds none waits as if it
/// had been deleted from under a leader.
pub(super) fn lease(options: &Options) -> Lease {
    Lease { metadata: named(LEASE, Some(&options.namespace)), spec: Some(LeaseSpec::default()) }
}

pub(super) fn service(options: &Options) -> Service {
    let port = |name: &str, port: u16, target: u16| ServicePort {
        name: Some(name.to_owned()),
        port: port.into(),
        target_port: Some(IntOrString::Int(target.into())),
        ..ServicePort::default()
    };
    Service {
        metadata: named(NAME, Some(&options.namespace)),
        spec: Some(ServiceSpec {
            selector: Some(selector()),
            ports: Some(vec![port("https", 443, HTTPS), port("http", HTTP, HTTP)]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// Where machines ask that are no nodes yet: from outside of the cluster, by whatever answers
/// there for a Service, or at a port of each node.
pub(super) fn ignition(options: &Options) -> Option<Service> {
    let at = options.ignition.as_ref()?;
    let (kind, port, node_port) = match at.is_of_nodes() {
        true => ("NodePort", MACHINES_PORT, Some(i32::from(at.port))),
        false => ("LoadBalancer", at.port, None),
    };
    // Only so the address of a machine is seen that asks. At a port of nodes it would have those
    // answer alone on which a replica runs, and nobody leads machines to these.
    let policy = node_port.is_none().then(|| "Local".to_owned());
    Some(Service {
        metadata: named(MACHINES, Some(&options.namespace)),
        spec: Some(ServiceSpec {
            type_: Some(kind.to_owned()),
            external_traffic_policy: policy,
            selector: Some(selector()),
            ports: Some(vec![ServicePort {
                name: Some("ignition".to_owned()),
                port: port.into(),
                target_port: Some(IntOrString::Int(MACHINES_PORT.into())),
                node_port,
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    })
}

/// One pod at a time is evicted, so that a drain of the nodes leaves one.
pub(super) fn disruption_budget(options: &Options) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: named(NAME, Some(&options.namespace)),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(selected()),
            // One that is not ready must not block a drain.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    }
}

/// These ports, and no other: who asks at them is known by token, or is the API
/// server, whose address no selector knows.
pub(super) fn network_policy(options: &Options) -> NetworkPolicy {
    let ports = ports(options).map(|(_, port)| NetworkPolicyPort {
        port: Some(IntOrString::Int(port.into())),
        protocol: Some("TCP".to_owned()),
        end_port: None,
    });
    NetworkPolicy {
        metadata: named(NAME, Some(&options.namespace)),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(selected()),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(vec![NetworkPolicyIngressRule {
                ports: Some(ports.collect()),
                from: None,
            }]),
            egress: None,
        }),
    }
}

pub(super) fn deployment(options: &Options) -> Deployment {
    let strategy = RollingUpdateDeployment {
        max_surge: Some(IntOrString::Int(1)),
        max_unavailable: Some(IntOrString::Int(0)),
    };
    let pod = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels()), ..ObjectMeta::default() }),
        spec: Some(pod(options)),
    };
    Deployment {
        metadata: named(NAME, Some(&options.namespace)),
        spec: Some(DeploymentSpec {
            replicas: Some(2),
            selector: selected(),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(strategy),
            }),
            template: pod,
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

fn selected() -> LabelSelector {
    LabelSelector { match_labels: Some(selector()), match_expressions: None }
}

fn pod(options: &Options) -> PodSpec {
    let apart = WeightedPodAffinityTerm {
        weight: 100,
        pod_affinity_term: PodAffinityTerm {
            label_selector: Some(selected()),
            topology_key: "kubernetes.io/hostname".to_owned(),
            ..PodAffinityTerm::default()
        },
    };
    // What it evicts must not take its place: only tread gives the room on the node back.
    let priority = (options.mode == Mode::Enforce).then(|| "system-cluster-critical".to_owned());
    PodSpec {
        service_account_name: Some(NAME.to_owned()),
        priority_class_name: priority,
        containers: vec![container(options)],
        affinity: Some(Affinity {
            pod_anti_affinity: Some(PodAntiAffinity {
                preferred_during_scheduling_ignored_during_execution: Some(vec![apart]),
                ..PodAntiAffinity::default()
            }),
            ..Affinity::default()
        }),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            ..PodSecurityContext::default()
        }),
        termination_grace_period_seconds: Some(30),
        volumes: Some(vec![Volume {
            name: "cache".to_owned(),
            empty_dir: Some(EmptyDirVolumeSource {
                size_limit: Some(Quantity("1Gi".to_owned())),
                medium: None,
            }),
            ..Volume::default()
        }]),
        ..PodSpec::default()
    }
}

fn container(options: &Options) -> Container {
    let set = |name: &str, value: &str| EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        value_from: None,
    };
    let of_pod = |name: &str, path: &str| EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector { field_path: path.to_owned(), api_version: None }),
            ..EnvVarSource::default()
        }),
    };
    // The node that it runs on is the last of its pool.
    let of_node = (options.mode == Mode::Enforce).then(|| of_pod("NODE_NAME", "spec.nodeName"));
    let port = |(name, port): (&str, u16)| ContainerPort {
        name: Some(name.to_owned()),
        container_port: port.into(),
        ..ContainerPort::default()
    };
    let quantities = |all: &[(&str, &str)]| {
        let all =
            all.iter().map(|(name, value)| ((*name).to_owned(), Quantity((*value).to_owned())));
        Some(all.collect::<BTreeMap<_, _>>())
    };
    Container {
        name: NAME.to_owned(),
        image: Some(options.image.clone()),
        args: Some(args(options)),
        env: Some(
            of_node
                .into_iter()
                .chain([
                    of_pod("POD_NAME", "metadata.name"),
                    of_pod("POD_NAMESPACE", "metadata.namespace"),
                    set("TREAD_LOG", "info"),
                    // A directory within the volume: tread makes it itself, so that only its
                    // own user may enter it.
                    set("TREAD_CACHE_DIR", &format!("{CACHE}/compiled")),
                ])
                .collect(),
        ),
        ports: Some(ports(options).map(port).collect()),
        liveness_probe: Some(probe("/healthz", 6)),
        readiness_probe: Some(probe("/readyz", 3)),
        resources: Some(ResourceRequirements {
            requests: quantities(&[("cpu", "50m"), ("memory", "128Mi")]),
            // Its own 200 MB, the code of policies, and two compilers.
            limits: quantities(&[("cpu", "2"), ("memory", "1Gi")]),
            claims: None,
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            read_only_root_filesystem: Some(true),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(vec![VolumeMount {
            name: "cache".to_owned(),
            mount_path: CACHE.to_owned(),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    }
}

/// What it listens on.
fn ports(options: &Options) -> impl Iterator<Item = (&'static str, u16)> {
    let enforces = options.mode == Mode::Enforce;
    let agents = enforces.then_some(("agents", AGENTS));
    let machines = options.ignition.as_ref().map(|_| ("ignition", MACHINES_PORT));
    [("http", HTTP), ("https", HTTPS)].into_iter().chain(agents).chain(machines)
}

fn probe(path: &str, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String("http".to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(10),
        timeout_seconds: Some(5),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}

fn args(options: &Options) -> Vec<String> {
    let block = options.block_upgrades.then_some("--block-upgrades");
    let all = ["serve", "--mode", options.mode.name()].into_iter().chain(block);
    let ignition =
        options.ignition.iter().flat_map(|at| ["--ignition-address".to_owned(), at.to_string()]);
    let leases = (options.leases != node_lease::NAMESPACE)
        .then(|| ["--lease-namespace".to_owned(), options.leases.clone()]);
    let times = [("--ready-for", options.ready_for), ("--boot-for", options.boot_for)];
    let times = times.into_iter().filter_map(|(name, time)| {
        time.map(|time| [name.to_owned(), format!("{}s", time.as_secs())])
    });
    let named = leases.into_iter().chain(times).flatten().chain(options.joining.iter().cloned());
    all.map(str::to_owned).chain(ignition).chain(named).collect()
}
