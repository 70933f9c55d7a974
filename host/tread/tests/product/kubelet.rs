//! A played kubelet. It says that its node lives while the unit `kubelet.service` of its machine
//! runs, says that pods run which are put there, lets those go that are evicted, and starts the
//! agent with tokens that are bound to the agent's pod.

use crate::machines::{AGENT, KUBELET, MOUNTED, agents_kubeconfig};
use crate::service::AGENTS;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Handle;
use tread_kube::agents::AUDIENCE;
use tread_test_bed::ControlPlane;
use tread_test_machine::Machine;

/// Between two looks at its machine and its pods.
const BETWEEN: Duration = Duration::from_millis(500);

/// What lives until it is dropped.
pub struct Kubelet {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Kubelet {
    pub fn start(
        plane: &'static ControlPlane,
        client: Client,
        node: String,
        machine: Arc<Machine>,
    ) -> Kubelet {
        let stop = Arc::<AtomicBool>::default();
        let (told, runtime) = (stop.clone(), Handle::current());
        let thread = std::thread::spawn(move || {
            let mut plays = Plays { plane, client, node, machine, boot: None, agent: None };
            while !told.load(Ordering::Relaxed) {
                runtime.block_on(plays.looks());
                std::thread::sleep(BETWEEN);
            }
        });
        Kubelet { stop, thread: Some(thread) }
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

struct Plays {
    plane: &'static ControlPlane,
    client: Client,
    node: String,
    machine: Arc<Machine>,
    /// The boot that it was started in.
    boot: Option<String>,
    /// The pod of the agent that runs.
    agent: Option<String>,
}

impl Plays {
    async fn looks(&mut self) {
        let running = self.machine.boots().pop().filter(|boot| boot.end.is_none());
        let is_up = || {
            let said = self.machine.run(["systemctl", "is-active", KUBELET]);
            said.is_ok_and(|said| said.out.trim() == "active")
        };
        let Some(boot) = running.filter(|_| is_up()) else { return };
        let is_new = self.boot.as_ref() != Some(&boot.id);
        if is_new {
            self.agent = None;
        }
        // What the API server does not take now is said again at the next look.
        let is_said = self.says(&boot.id, !is_new).await.is_ok() && self.renews().await.is_ok();
        if is_said {
            self.boot = Some(boot.id);
        }
        let pods: Api<Pod> = Api::all(self.client.clone());
        let of_node = ListParams::default().fields(&format!("spec.nodeName={}", self.node));
        for pod in pods.list(&of_node).await.map(|list| list.items).unwrap_or_default() {
            self.attends(&pod).await;
        }
    }

    /// As a kubelet does, it is not Ready when it begins, and is a moment later.
    async fn says(&self, boot: &str, is_ready: bool) -> kube::Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = nodes.get(&self.node).await?;
        let status = if is_ready { "True" } else { "False" };
        let known = node.status.unwrap_or_default().conditions.unwrap_or_default();
        let known = known.into_iter().find(|it| it.type_ == "Ready" && it.status == status);
        let now = Time(Timestamp::now());
        let since = known.and_then(|it| it.last_transition_time).unwrap_or(now.clone());
        let info = json!({"bootID": boot, "machineID": "", "systemUUID": "", "kernelVersion": "",
            "osImage": "", "containerRuntimeVersion": "", "kubeletVersion": "v1.36.0",
            "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64"});
        let room = json!({"cpu": "8", "memory": "8Gi", "pods": "100"});
        let patch = json!({"status": {
            "nodeInfo": info, "capacity": room, "allocatable": room,
            "conditions": [{"type": "Ready", "status": status, "reason": "Played",
                "lastTransitionTime": since, "lastHeartbeatTime": now}],
        }});
        let params = PatchParams::default();
        nodes.patch_status(&self.node, &params, &Patch::Strategic(patch)).await.map(|_| ())
    }

    async fn renews(&self) -> kube::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": self.node}, "spec": {"holderIdentity": self.node,
            "leaseDurationSeconds": 40, "renewTime": MicroTime(Timestamp::now())}});
        let params = PatchParams::apply("kubelet").force();
        leases.patch(&self.node, &params, &Patch::Apply(&lease)).await.map(|_| ())
    }

    async fn attends(&mut self, pod: &Pod) {
        let (name, uid) = (pod.name_any(), pod.uid().unwrap());
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap());
        let is_agent = pod.namespace().as_deref() == Some(AGENTS);
        if pod.metadata.deletion_timestamp.is_some() {
            if is_agent && self.agent.take().is_some() {
                let _ = self.machine.run(["systemctl", "stop", AGENT]);
            }
            // Somebody else may have been quicker.
            let _ = pods.delete(&name, &DeleteParams::default().grace_period(0)).await;
            return;
        }
        if is_agent && self.agent.as_ref() != Some(&uid) && self.mounts(&name).await.is_some() {
            let started = self.machine.run(["systemctl", "restart", AGENT]);
            if started.is_ok_and(|said| said.status == Some(0)) {
                self.agent = Some(uid);
            }
        }
        let status = pod.status.clone().unwrap_or_default();
        if status.phase.as_deref() != Some("Running") {
            let now = Time(Timestamp::now());
            let is =
                |type_: &str| json!({"type": type_, "status": "True", "lastTransitionTime": now});
            let conditions: Vec<Value> =
                ["Initialized", "ContainersReady", "Ready"].into_iter().map(is).collect();
            let patch =
                json!({"status": {"phase": "Running", "startTime": now, "conditions": conditions}});
            let params = PatchParams::default();
            let _ = pods.patch_status(&name, &params, &Patch::Strategic(patch)).await;
        }
    }

    /// What the agent's container has mounted: tokens that are bound to its pod, and the
    /// authority of the service. Nothing as long as the service has not said which it is.
    async fn mounts(&self, pod: &str) -> Option<()> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), AGENTS);
        let map = maps.get_opt("tread-agents-ca").await.ok()??;
        let authority = map.data?.remove("ca.crt")?;
        let token = |more: &[&str]| {
            let bound = format!("--bound-object-name={pod}");
            let args =
                ["create", "token", "tread-agent", "-n", AGENTS, "--bound-object-kind=Pod", &bound];
            self.plane.kubectl(&[&args, more].concat()).ok()?.success().ok()
        };
        let audience = format!("--audience={AUDIENCE}");
        let files = [
            ("token", token(&[&audience])?),
            ("api-token", token(&[])?),
            ("ca.crt", authority),
            ("kubeconfig", agents_kubeconfig(self.plane)),
        ];
        self.machine.run_well(["mkdir", "-p", MOUNTED, "/var/lib/tread"]).ok()?;
        let at = self.machine.root().ok()?.join(MOUNTED.trim_start_matches('/'));
        for (name, text) in files {
            std::fs::write(at.join(name), text.trim()).ok()?;
        }
        Some(())
    }
}
