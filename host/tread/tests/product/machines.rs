//! Machines with a systemd of their own, on which an agent runs.

use crate::program::program;
use crate::service::TREAD;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tread_test_bed::{ControlPlane, free_port};
use tread_test_machine::{Builder, Machine};

/// How long a machine lives whose test takes as long as it may, however busy this one is.
const LIFETIME: Duration = Duration::from_secs(2700);
/// The unit that stands for the agent's container.
pub const AGENT: &str = "tread-agent.service";
/// Kubernetes' own kubelet, with a container runtime that only says that it runs pods.
pub const KUBELET: &str = "kubelet.service";
/// How the kubelet reaches the API server, with the credentials of its node.
const KUBELETS_KUBECONFIG: &str = "/etc/kubernetes/kubelet.kubeconfig";
/// Kubernetes' programs, all in one.
pub const KUBERNETES: &str = "/opt/kubernetes";
/// What the agent's container has mounted, but for what is its host's.
pub const MOUNTED: &str = "/run/agent";
/// The file that all machines have before tread comes.
pub const FIRST: (&str, &str) = ("/etc/motd", "hello");

/// It says in its log each time that it is told to read again.
const SOFT: &str = "[Service]\n\
    Type=notify\n\
    NotifyAccess=all\n\
    ExecStart=/bin/sh -c 'echo start >> /var/soft.log; systemd-notify --ready; exec sleep infinity'\n\
    ExecReload=/bin/sh -c 'echo reload >> /var/soft.log'\n";

/// As the container: root without any capability.
fn agent(service: SocketAddr) -> String {
    format!(
        "[Service]\n\
         Environment=KUBECONFIG={MOUNTED}/kubeconfig TREAD_LOG=info\n\
         ExecStart=/opt/tread agent --service https://{service} --token {MOUNTED}/token --ca {MOUNTED}/ca.crt\n\
         Restart=always\n\
         RestartSec=1\n\
         CapabilityBoundingSet=\n\
         NoNewPrivileges=yes\n"
    )
}

/// All machines have the network of the test: each kubelet has a port of its own.
fn kubelet(node: &str) -> String {
    let port = free_port();
    format!(
        "[Service]\n\
         ExecStart={KUBERNETES} kubemark --morph=kubelet --name={node} --kubeconfig={KUBELETS_KUBECONFIG} \
         --kubelet-port={port} --kubelet-read-only-port=0 --use-host-image-service=false\n\
         Restart=always\n\
         RestartSec=1\n"
    )
}

/// How whoever is on a machine reaches the API server.
pub fn kubeconfig(plane: &ControlPlane, authority: &str, user: Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {
            "server": plane.url(), "certificate-authority": authority}}],
        "users": [{"name": "it", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    })
    .to_string()
}

/// What the agent's pod finds by its service account.
pub fn agents_kubeconfig(plane: &ControlPlane) -> String {
    let user = json!({"tokenFile": format!("{MOUNTED}/api-token")});
    kubeconfig(plane, "/etc/kubernetes/ca.crt", user)
}

/// Who a node is to the API server.
pub fn user_of(node: &str) -> String {
    format!("system:node:{node}")
}

/// What every machine has on its disk before anything of a cluster is there.
pub fn image(plane: &ControlPlane, service: SocketAddr) -> Builder {
    let authority = std::fs::read(plane.certificate_authority()).unwrap();
    Machine::build()
        .lifetime(LIFETIME)
        .unit(AGENT, &agent(service))
        .file("/etc/kubernetes/ca.crt", authority)
}

/// That machine, switched off.
pub fn made(image: Builder) -> Machine {
    let machine = image.make().unwrap();
    let bed = PathBuf::from(std::env::var_os("TREAD_BED").unwrap());
    put(&machine, &bed.join("control-plane"), KUBERNETES);
    put(&machine, Path::new(TREAD), "/opt/tread");
    put(&machine, program(), "/opt/tread-node");
    machine.reboots_by_itself(true);
    machine
}

/// A machine after its first boot, with all that is on its disk before it joins.
pub fn boot(plane: &ControlPlane, service: SocketAddr, node: &str) -> Machine {
    let access = plane.user(&user_of(node)).unwrap();
    let access = std::fs::read(access.kubeconfig()).unwrap();
    let access: Value = serde_json::from_slice(&access).unwrap();
    let user = access["users"][0]["user"].clone();
    let image = image(plane, service)
        .unit_at_boot("soft.service", SOFT)
        .unit_at_boot(KUBELET, &kubelet(node))
        .file(FIRST.0, FIRST.1)
        .file("/etc/kubernetes/kubeconfig", kubeconfig(plane, "/etc/kubernetes/ca.crt", json!({})))
        .file(KUBELETS_KUBECONFIG, kubeconfig(plane, "/etc/kubernetes/ca.crt", user));
    let machine = made(image);
    machine.start().unwrap();
    machine.wait_until_running().unwrap();
    machine
}

/// A program, on the machine's disk. It is large, and all machines may share it.
fn put(machine: &Machine, program: &Path, at: &str) {
    let at = machine.disk().join(at.trim_start_matches('/'));
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    if std::fs::hard_link(program, &at).is_err() {
        std::fs::copy(program, &at).unwrap();
    }
}

/// What `tread node status` says on a machine.
pub fn status(machine: &Machine) -> Value {
    let said = machine.run_well(["/opt/tread-node", "node", "status", "-o", "json"]).unwrap();
    serde_json::from_str(&said).unwrap()
}

/// What a file of the machine says.
pub fn text(machine: &Machine, path: &str) -> String {
    let at = machine.disk().join(path.trim_start_matches('/'));
    std::fs::read_to_string(at).unwrap_or_default()
}
