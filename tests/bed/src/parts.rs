//! The parts of a control plane, and how each is started.

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::{ControlPlane, reuse};

/// A process of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controller manager: garbage collection, disruption budgets,
    /// namespaces, Deployments, node lifecycle…
    Controllers,
    /// What binds pods to nodes.
    Scheduler,
    /// kwok, which plays every node and kubelet.
    SimulatedNodes,
}

impl Part {
    /// The name of its process and of its log.
    pub fn name(self) -> &'static str {
        match self {
            Part::Etcd => "etcd",
            Part::ApiServer => "kube-apiserver",
            Part::Controllers => "kube-controller-manager",
            Part::Scheduler => "kube-scheduler",
            Part::SimulatedNodes => "kwok",
        }
    }
}

/// What signs the certificates of nodes.
pub(crate) const NODES: &str = "nodes";
const NODES_CERTIFICATE: &str = "nodes.crt";
const NODES_KEY: &str = "nodes.key";

/// What the API server shows its clients, with the authority that signed it.
pub(crate) const SERVING: &str = "apiserver";
pub(crate) const SERVING_CERTIFICATE: &str = "apiserver.crt";
const SERVING_KEY: &str = "apiserver.key";

/// What a control plane is to consist of besides etcd and the API server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub(crate) controllers: bool,
    scheduler: bool,
    simulated_nodes: bool,
    pub(crate) quick_kubelets: bool,
    pub(crate) audit_log: bool,
    pub(crate) readable_store: bool,
    pub(crate) registering: bool,
    pub(crate) users: Vec<(String, Vec<String>)>,
    pub(crate) definitions: Vec<CustomResourceDefinition>,
    pub(crate) objects: String,
    pub(crate) used: bool,
}

impl Options {
    /// With the controller manager.
    #[must_use]
    pub fn with_controllers(mut self) -> Options {
        self.controllers = true;
        self
    }

    /// With the scheduler, and the controller manager, which gives it work.
    #[must_use]
    pub fn with_scheduler(mut self) -> Options {
        self.scheduler = true;
        self.with_controllers()
    }

    /// With kwok: every Node becomes Ready, every pod on one runs.
    #[must_use]
    pub fn with_simulated_nodes(mut self) -> Options {
        self.simulated_nodes = true;
        self
    }

    /// With kubelets that say every two seconds that they live, and not every ten: for few nodes.
    #[must_use]
    pub fn with_quick_kubelets(mut self) -> Options {
        self.quick_kubelets = true;
        self
    }

    /// With a log of every request, see [`ControlPlane::audit_log`].
    #[must_use]
    pub fn with_audit_log(mut self) -> Options {
        self.audit_log = true;
        self
    }

    /// With objects as JSON in etcd, which forgets nothing: see [`ControlPlane::history`].
    #[must_use]
    pub fn with_readable_store(mut self) -> Options {
        self.readable_store = true;
        self
    }

    /// With an authority that signs the certificates of nodes, and the controller manager, which
    /// approves what the group `system:bootstrappers` asks for: as kubelets register by themselves.
    #[must_use]
    pub fn with_registering_nodes(mut self) -> Options {
        self.registering = true;
        self.with_controllers()
    }

    /// With a user who has a token of their own, see [`ControlPlane::user`].
    #[must_use]
    pub fn with_user(mut self, name: &str, groups: &[&str]) -> Options {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        self.users.push((name.to_owned(), groups));
        self
    }

    /// With these definitions, of which objects can be made.
    #[must_use]
    pub fn with_definitions(mut self, definitions: &[CustomResourceDefinition]) -> Options {
        self.definitions.extend_from_slice(definitions);
        self
    }

    /// With these objects, as YAML or JSON, which are applied after the definitions.
    #[must_use]
    pub fn with_objects(mut self, objects: &str) -> Options {
        objects.clone_into(&mut self.objects);
        self
    }

    /// Perhaps one that another test of this process has used, and that was put back to what it
    /// was at first, see [`crate::ControlPlane`]: without a start, and with its definitions and
    /// objects.
    #[must_use]
    pub fn maybe_used(mut self) -> Options {
        self.used = true;
        self
    }

    /// Starts it, and waits until it is ready.
    ///
    /// # Errors
    /// A part did not come up; the error shows the end of its log.
    pub fn start(self) -> Result<ControlPlane> {
        if self.used { reuse::take_or_start(self) } else { ControlPlane::start_with(self) }
    }
}

impl ControlPlane {
    /// What it consists of, in the order in which it starts.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let Options { controllers, scheduler, simulated_nodes, .. } = self.options;
        [
            (true, Part::Etcd),
            (true, Part::ApiServer),
            (controllers, Part::Controllers),
            (scheduler, Part::Scheduler),
            (simulated_nodes, Part::SimulatedNodes),
        ]
        .into_iter()
        .filter_map(|(wanted, part)| wanted.then_some(part))
        .collect()
    }

    pub(crate) fn arguments(&self, part: Part) -> Vec<String> {
        let path = |name: &str| self.path(name).display().to_string();
        let kubeconfig = format!("--kubeconfig={}", self.kubeconfig().display());
        let quick_kubelets = self.options.quick_kubelets;
        let mut args = vec![part.name().to_owned()];
        match part {
            Part::Etcd => args.push(path("etcd")),
            Part::ApiServer => {
                args.extend([
                    format!("--etcd-servers=unix://{}", path("etcd/client.sock")),
                    format!("--tls-cert-file={}", path(SERVING_CERTIFICATE)),
                    format!("--tls-private-key-file={}", path(SERVING_KEY)),
                    format!("--secure-port={}", self.port),
                    // With the supervisor, which keeps the port for this one.
                    "--permit-port-sharing".to_owned(),
                    "--bind-address=127.0.0.1".to_owned(),
                    // Nothing reaches it by the `kubernetes` Service.
                    "--advertise-address=127.0.0.1".to_owned(),
                    "--endpoint-reconciler-type=none".to_owned(),
                    "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
                    format!("--service-account-key-file={}", path("service-accounts.key")),
                    format!("--service-account-signing-key-file={}", path("service-accounts.key")),
                    "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                    format!("--token-auth-file={}", path("tokens.csv")),
                    "--authorization-mode=RBAC,Node".to_owned(),
                    // Without the first a node could write whatever it likes, and a test shows
                    // nothing. The second is on in OpenShift: who is to set which owners.
                    "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement"
                        .to_owned(),
                    // A pod needs no ServiceAccount to be there first.
                    "--disable-admission-plugins=ServiceAccount".to_owned(),
                    "--allow-privileged".to_owned(),
                    "--profiling=false".to_owned(),
                ]);
                if self.options.registering {
                    args.push(format!("--client-ca-file={}", path(NODES_CERTIFICATE)));
                }
                if self.options.readable_store {
                    args.push("--storage-media-type=application/json".to_owned());
                    args.push("--etcd-compaction-interval=0".to_owned());
                }
                if self.options.audit_log {
                    args.extend([
                        format!("--audit-policy-file={}", path("audit.yaml")),
                        format!("--audit-log-path={}", self.audit_log().display()),
                    ]);
                }
            }
            Part::Controllers => {
                args.extend([
                    kubeconfig,
                    "--secure-port=0".to_owned(),
                    "--leader-elect=false".to_owned(),
                    format!("--service-account-private-key-file={}", path("service-accounts.key")),
                ]);
                if self.options.registering {
                    args.extend([
                        format!("--cluster-signing-cert-file={}", path(NODES_CERTIFICATE)),
                        format!("--cluster-signing-key-file={}", path(NODES_KEY)),
                    ]);
                }
            }
            Part::Scheduler => args.extend([
                kubeconfig,
                "--secure-port=0".to_owned(),
                "--leader-elect=false".to_owned(),
            ]),
            Part::SimulatedNodes => args.extend([
                kubeconfig,
                "--manage-all-nodes".to_owned(),
                format!("--node-lease-duration-seconds={}", if quick_kubelets { 8 } else { 40 }),
                // No server for logs and exec: nothing listens.
                "--node-port=0".to_owned(),
                format!("--config={}", path("kwok.yaml")),
            ]),
        }
        args
    }
}
