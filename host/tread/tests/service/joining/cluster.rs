//! A cluster as an admin installs it, with two pools that machines boot into.

use super::stub::Stub;
use crate::replica::{NAMESPACE, Replica, apply, free, has};
use crate::story::tread;
use crate::support::Bench;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::LazyLock;
use tread_test_bed::{ControlPlane, Options, eventually};

pub(super) const INFRA: &str = "node-role.kubernetes.io/infra";
/// By which nodes are workers here: NodeRestriction lets kubelets say this one.
pub(super) const WORKER: &str = "kubernetes.io/os";
pub(super) const GROUP: &str = "machineconfiguration.openshift.io";
pub(super) const KUBELET: &str = "/etc/kubernetes/kubelet.conf";
/// As an admin calls it.
pub(super) const BOOTSTRAP_SECRET: &str = "site-bootstrap";

pub(super) struct Cluster {
    pub(super) plane: ControlPlane,
    pub(super) machines: SocketAddr,
}

impl Cluster {
    /// As an admin installs it, with the pools `worker` and `infra`.
    pub(super) fn installed() -> Cluster {
        Cluster::of(|options| options)
    }

    /// The same with a log of every request.
    pub(super) fn logged() -> Cluster {
        Cluster::of(Options::with_audit_log)
    }

    /// Tests use the control plane one after the other, each by an address of its own.
    pub(super) fn of(with: impl FnOnce(Options) -> Options) -> Cluster {
        static FIRST: LazyLock<Vec<Value>> =
            LazyLock::new(|| manifests(SocketAddr::from(([127, 0, 0, 1], 1))));
        let plane = with(has(&FIRST)).start().unwrap();
        let machines = free();
        let mut objects = manifests(machines);
        objects.retain(|it| !FIRST.contains(it));
        apply(&plane, &objects);
        apply(
            &plane,
            &[pool("worker", json!({WORKER: "linux"})), pool("infra", json!({INFRA: ""}))],
        );
        let cluster = Cluster { plane, machines };
        cluster.config("40-kubelet", KUBELET, "kind:%20KubeletConfiguration%0AmaxPods:%20250%0A");
        cluster
    }

    pub(super) fn apply(&self, object: &Value) {
        self.plane.apply(&object.to_string()).unwrap();
    }

    pub(super) fn pool(&self, name: &str, labels: Value) {
        self.apply(&pool(name, labels));
    }

    /// As the agent of a node says it.
    pub(super) async fn says(&self, node: &str, status: Value) {
        let patch = json!({"status": status}).to_string();
        let patch = ["patch", "nup", node, "--subresource=status", "--type=merge", "-p", &patch];
        eventually(&format!("{node} has a NodeUpdate"), async || {
            (self.plane.kubectl(&patch).unwrap().code == 0).then_some(())
        })
        .await;
    }

    pub(super) fn config(&self, name: &str, path: &str, text: &str) {
        let config = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfig",
            "metadata": {"name": name, "labels": {format!("{GROUP}/role"): "worker"}},
            "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [
                {"path": path, "mode": 420, "contents": {"source": format!("data:,{text}")}}]}}}});
        // Not applied: a large one would not fit into the annotation.
        let create = ["create", "-f", "-"];
        let ran = self.plane.admin().kubectl_with_input(&create, &config.to_string());
        ran.unwrap().success().unwrap();
    }

    /// What `tread manifests` installs, as a process.
    pub(super) async fn serves(&self) -> Replica<'_> {
        let (listen, agents) = (self.machines.to_string(), free().to_string());
        let args = ["--mode=enforce", "--listen-agents", &agents, "--listen-ignition", &listen];
        let args = [&args[..], &["--ignition-address", &listen, "--claims-last=172800s"]].concat();
        let args = [&args[..], &["--bootstrap-secret", BOOTSTRAP_SECRET]].concat();
        let replica = Replica::start_so(&self.plane, NAMESPACE, &[], &args);
        eventually("it is up", async || {
            if let Some(end) = self.plane.ended(&replica.name).unwrap() {
                panic!("{end}\n{}", self.plane.end_of_log(&replica.name));
            }
            replica.get("/readyz").await.filter(|(_, text)| !text.contains("failed start: "))
        })
        .await;
        replica
    }

    pub(super) fn tread(&self, args: &[&str]) -> (i32, String, String) {
        tread(&self.plane, &[&["pools"], args].concat())
    }

    /// The user data of a pool, once there is one.
    pub(super) async fn stub(&self, pool: &str) -> Stub {
        let secret = eventually("the stub of a pool", async || {
            let (code, out, _) = self.tread(&["stub", pool]);
            (code == 0).then_some(out)
        })
        .await;
        // It is a Secret that an API server takes.
        let name = "openshift-machine-api";
        self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        self.plane.apply(&secret).unwrap();
        Stub::of(&serde_json::from_str(&secret).unwrap())
    }

    /// Registers a node as its kubelet does, by its own credentials.
    pub(super) fn registers(&self, name: &str, claim: &str) {
        let user = format!("system:node:{name}");
        let access = self.plane.impersonate(&user, &["system:nodes"]).unwrap();
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {WORKER: "linux"}},
            "spec": {"taints": [{"key": "tread.dev/joining", "value": claim, "effect": "NoSchedule"}]}});
        let ran = access.kubectl_with_input(&["create", "-f", "-"], &node.to_string()).unwrap();
        ran.success().unwrap();
    }

    pub(super) async fn is_in_infra(&self, node: &str) {
        eventually(&format!("{node} is in infra"), async || {
            let (_, out, _) = self.tread(&["explain", node, "-o", "json"]);
            let said: Value = serde_json::from_str(&out).ok()?;
            (said["pool"] == "infra" && said["held"].is_null()).then_some(())
        })
        .await;
    }

    pub(super) fn nobody_was_forbidden_anything(&self, replica: &Replica<'_>) {
        let log = replica.log();
        let lines: Vec<&str> = log.lines().filter(|it| it.contains("forbidden")).collect();
        assert!(lines.is_empty(), "{lines:#?}");
        assert!(self.plane.ended(&replica.name).unwrap().is_none());
    }
}

/// What `tread manifests` says where machines ask at this address, without what stands for this
/// process. The API server reaches no Service here.
pub(super) fn manifests(machines: SocketAddr) -> Vec<Value> {
    let address = machines.to_string();
    let args = ["manifests", "--mode=enforce", "--with-inputs", "--image=tread", "-o", "json"];
    let args = [&args[..], &["--ignition-address", &address, "--claims-last=48h"]].concat();
    let args = [&args[..], &["--bootstrap-secret", BOOTSTRAP_SECRET]].concat();
    let mut list = Bench::new().tread(&args).json();
    let mut objects: Vec<Value> = serde_json::from_value(list["items"].take()).unwrap();
    let service = objects.iter().find(|it| it["spec"]["type"] == "LoadBalancer").unwrap();
    assert_eq!(service["spec"]["ports"][0]["port"], machines.port());
    assert_eq!(service["spec"]["externalTrafficPolicy"], "Local", "addresses are seen");
    let serves = objects.iter().find(|it| it["kind"] == "Deployment").unwrap();
    let serves = &serves["spec"]["template"]["spec"]["containers"][0]["args"];
    let lasts = serves.as_array().unwrap().iter().find(|it| **it == "--claims-last=172800s");
    assert!(lasts.is_some(), "{serves}");
    let named = format!("--bootstrap-secret={BOOTSTRAP_SECRET}");
    assert!(serves.as_array().unwrap().iter().any(|it| *it == named), "{serves}");
    let is_left_out = ["Deployment", "ValidatingWebhookConfiguration"];
    objects.retain(|it| !is_left_out.iter().any(|kind| it["kind"] == *kind));
    objects
}

pub(super) fn pool(name: &str, labels: Value) -> Value {
    pool_of(name, json!({"matchLabels": labels}))
}

pub(super) fn pool_of(name: &str, selector: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfigPool",
        "metadata": {"name": name}, "spec": {
            "machineConfigSelector": {"matchLabels": {format!("{GROUP}/role"): "worker"}},
            "nodeSelector": selector}})
}
