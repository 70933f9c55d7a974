//! `tread serve` beside a control plane, as it is installed.

#![allow(unreachable_pub, dead_code, reason = "not every test needs all of it")]

use crate::support::Bench;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::LazyLock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tread_kube::api::{crds, machines};
use tread_kube::held::NODE_MAINTENANCE;
use tread_test_bed::{Access, ControlPlane, Options, eventually, free_port, unique};

const TREAD: &str = env!("CARGO_BIN_EXE_tread");
pub const NAMESPACE: &str = "tread-system";
/// Where OpenShift's machine API has its objects.
pub const MACHINES: &str = "openshift-machine-api";
/// Where OpenShift's operator of machine configs is.
pub const OPERATOR: &str = "openshift-machine-config-operator";

/// An address where nothing listens.
pub fn free() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

pub struct Replica<'a> {
    pub plane: &'a ControlPlane,
    pub name: String,
    pub pid: u32,
    pub plain: SocketAddr,
    pub tls: SocketAddr,
}

impl<'a> Replica<'a> {
    /// As the pod of the Deployment: with its service account.
    pub fn start(plane: &'a ControlPlane) -> Replica<'a> {
        Replica::start_with(plane, &[])
    }

    /// The same with these variables set.
    pub fn start_with(plane: &'a ControlPlane, variables: &[(&str, &str)]) -> Replica<'a> {
        Replica::start_in(plane, NAMESPACE, variables)
    }

    /// The same in this namespace.
    pub fn start_in(
        plane: &'a ControlPlane,
        namespace: &str,
        variables: &[(&str, &str)],
    ) -> Replica<'a> {
        Replica::start_so(plane, namespace, variables, &[])
    }

    /// The same with more arguments.
    pub fn start_so(
        plane: &'a ControlPlane,
        namespace: &str,
        variables: &[(&str, &str)],
        more: &[&str],
    ) -> Replica<'a> {
        let access = plane.service_account(namespace, "tread").unwrap();
        Replica::start_as(plane, &access, namespace, variables, more)
    }

    /// The same with access that was given before.
    pub fn start_as(
        plane: &'a ControlPlane,
        access: &Access,
        namespace: &str,
        variables: &[(&str, &str)],
        more: &[&str],
    ) -> Replica<'a> {
        let (name, plain, tls) = (unique("tread"), free(), free());
        let (listen, listen_tls) = (plain.to_string(), tls.to_string());
        let set: Vec<String> =
            variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let args = [
            TREAD,
            "serve",
            "--namespace",
            namespace,
            "--listen",
            &listen,
            "--listen-tls",
            &listen_tls,
            "--tls-name",
            "127.0.0.1",
        ];
        let args = set.iter().map(String::as_str).chain(args).chain(more.iter().copied());
        let args: Vec<&str> = args.collect();
        let pid = plane.spawn(&name, access, Path::new("/usr/bin/env"), &args).unwrap();
        Replica { plane, name, pid, plain, tls }
    }

    pub async fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.plain).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: tread\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    pub async fn ready(&self) {
        eventually("ready", async || {
            if let Some(end) = self.plane.ended(&self.name).unwrap() {
                panic!("{end}\n{}", self.plane.end_of_log(&self.name));
            }
            self.get("/readyz").await.filter(|(status, _)| *status == 200)
        })
        .await;
    }

    pub async fn leads(&self) -> bool {
        let metrics = self.get("/metrics").await;
        metrics.is_some_and(|(_, text)| text.contains("\ntread_leads 1\n"))
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.plane.log(&self.name)).unwrap()
    }
}

pub fn install(plane: &ControlPlane, outside: &SocketAddr) {
    apply(plane, &manifests(outside));
}

/// What an admin installs where tread rolls out, but for what only a cluster runs: a process of the
/// test stands for the Deployment, and the API server reaches no Service here.
pub fn install_enforcing(plane: &ControlPlane) {
    let args = ["manifests", "--mode=enforce", "--with-inputs", "--image=tread", "-o", "json"];
    let mut list = Bench::new().tread(&args).json();
    let is_left_out = ["Deployment", "ValidatingWebhookConfiguration"];
    let objects = list["items"].as_array_mut().unwrap();
    objects.retain(|it| !is_left_out.iter().any(|kind| it["kind"] == *kind));
    plane.apply(&list.to_string()).unwrap();
}

/// A control plane where tread is installed, with the definitions and namespaces of OpenShift and
/// of all that tread reads where it is there. The API server asks nobody yet. Tests use it one
/// after the other.
pub fn installed() -> ControlPlane {
    static OPTIONS: LazyLock<Options> = LazyLock::new(|| {
        let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
        let namespace = |name: &&str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let namespaces = [MACHINES, OPERATOR].each_ref().map(namespace);
        let maintenance = machines::definition(&NODE_MAINTENANCE).unwrap();
        has(&[manifests(&nobody), namespaces.to_vec()].concat())
            .with_definitions(&crds::openshift())
            .with_definitions(&machines::definitions().unwrap())
            .with_definitions(&[maintenance])
    });
    OPTIONS.clone().start().unwrap()
}

/// Control planes with these objects, which tests use one after the other.
pub fn has(objects: &[Value]) -> Options {
    let is_definition = |it: &&Value| it["kind"] == "CustomResourceDefinition";
    let definitions = objects.iter().filter(is_definition);
    let definitions: Vec<_> =
        definitions.map(|it| serde_json::from_value(it.clone()).unwrap()).collect();
    let others: Vec<&Value> = objects.iter().filter(|it| !is_definition(it)).collect();
    let others = json!({"apiVersion": "v1", "kind": "List", "items": others}).to_string();
    ControlPlane::options().with_definitions(&definitions).with_objects(&others).maybe_used()
}

/// The nodes of [`with_nodes`].
pub const NODES: [&str; 3] = ["node-0", "node-1", "node-2"];

/// A control plane that knows what rollouts are, with three nodes. Tests use it one after the other.
pub fn with_nodes() -> ControlPlane {
    let node = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    has(&NODES.map(node)).with_definitions(&crds::enforcing()).start().unwrap()
}

/// Has the API server of [`installed`] ask here.
pub fn asks(plane: &ControlPlane, outside: &SocketAddr) {
    let mut objects = manifests(outside);
    objects.retain(|it| it["kind"] == "ValidatingWebhookConfiguration");
    apply(plane, &objects);
}

pub fn apply(plane: &ControlPlane, objects: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    plane.apply(&list.to_string()).unwrap();
}

/// What an admin installs where the API server reaches tread at this address.
fn manifests(outside: &SocketAddr) -> Vec<Value> {
    let outside = format!("https://{outside}");
    let args = ["manifests", "--with-inputs", "-o", "json", "--outside", &outside];
    let mut list = Bench::new().tread(&args).json();
    serde_json::from_value(list["items"].take()).unwrap()
}
