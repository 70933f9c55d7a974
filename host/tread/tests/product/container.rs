//! The container of an agent: its node's kubelet has a runtime that only says that it runs pods,
//! so this starts the agent's program on the machine while the kubelet says that its pod runs,
//! with tokens that are bound to that pod.

use crate::machines::{AGENT, MOUNTED, agents_kubeconfig};
use crate::service::AGENTS;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
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
pub struct Container {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Container {
    pub fn start(
        plane: &'static ControlPlane,
        client: Client,
        node: String,
        machine: Arc<Machine>,
    ) -> Container {
        let stop = Arc::<AtomicBool>::default();
        let (stops, runtime) = (stop.clone(), Handle::current());
        let thread = std::thread::spawn(move || {
            let mut plays = Plays { plane, client, node, machine, boot: None, agent: None };
            while !stops.load(Ordering::Relaxed) {
                runtime.block_on(plays.looks());
                std::thread::sleep(BETWEEN);
            }
        });
        Container { stop, thread: Some(thread) }
    }
}

impl Drop for Container {
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
        let Some(boot) = running else { return };
        if self.boot.as_ref() != Some(&boot.id) {
            (self.agent, self.boot) = (None, Some(boot.id));
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), AGENTS);
        let of_node = ListParams::default().fields(&format!("spec.nodeName={}", self.node));
        for pod in pods.list(&of_node).await.map(|list| list.items).unwrap_or_default() {
            self.attends(&pod).await;
        }
    }

    async fn attends(&mut self, pod: &Pod) {
        let (name, uid) = (pod.name_any(), pod.uid().unwrap());
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if pod.metadata.deletion_timestamp.is_some() {
            if self.agent.as_ref() == Some(&uid) {
                self.agent = None;
                let _ = self.machine.run(["systemctl", "stop", AGENT]);
            }
        } else if phase == Some("Running")
            && self.agent.as_ref() != Some(&uid)
            && self.mounts(&name).await.is_some()
        {
            let started = self.machine.run(["systemctl", "restart", AGENT]);
            if started.is_ok_and(|said| said.status == Some(0)) {
                self.agent = Some(uid);
            }
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
