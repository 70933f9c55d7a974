//! What `tread manifests --mode enforce` installs, and the service as a process.

use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tread_test_bed::{ControlPlane, eventually, free_port};

pub const TREAD: &str = env!("CARGO_BIN_EXE_tread");
pub const NAMESPACE: &str = "tread-system";
pub const AGENTS: &str = "tread-system-agents";
const NAME: &str = "service";

/// An address where nothing listens.
fn free() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

pub struct Service<'a> {
    plane: &'a ControlPlane,
    plain: SocketAddr,
    pub agents: SocketAddr,
}

/// The Secret whose kubeconfig machines get that boot into a pool, as an admin calls it.
pub const BOOTSTRAP_SECRET: &str = "site-bootstrap";

impl<'a> Service<'a> {
    /// Installs it, and starts one with the rights that its pods would have.
    pub async fn start(plane: &'a ControlPlane) -> Service<'a> {
        Service::with(plane, &[], &[]).await
    }

    /// The same where it also serves machines that boot, which reach it where it listens.
    pub async fn with_machines(plane: &'a ControlPlane) -> Service<'a> {
        let listens = free();
        let reached = format!("--ignition-address={listens}");
        let secret = format!("--bootstrap-secret={BOOTSTRAP_SECRET}");
        let listens = format!("--listen-ignition={listens}");
        let installed = [reached.as_str(), &secret];
        Service::with(plane, &installed, &[&installed[..], &[&listens]].concat()).await
    }

    async fn with(plane: &'a ControlPlane, installed: &[&str], served: &[&str]) -> Service<'a> {
        let (plain, tls, agents) = (free(), free(), free());
        install(plane, tls, installed);
        let access = plane.service_account(NAMESPACE, "tread").unwrap();
        let words = [
            "serve",
            "--mode=enforce",
            &format!("--namespace={NAMESPACE}"),
            &format!("--listen={plain}"),
            &format!("--listen-tls={tls}"),
            &format!("--listen-agents={agents}"),
            "--tls-name=127.0.0.1",
        ];
        let words = [&words[..], served].concat();
        plane.spawn(NAME, &access, Path::new(TREAD), &words).unwrap();
        let service = Service { plane, plain, agents };
        eventually("the service is ready, and asked for warnings", async || {
            if let Some(end) = plane.ended(NAME).unwrap() {
                panic!("{end}\n{}", plane.end_of_log(NAME));
            }
            let (status, text) = service.get("/readyz").await?;
            (status == 200 && text.contains("warnings are asked for")).then_some(())
        })
        .await;
        service
    }

    async fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.plain).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: tread\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.plane.log(NAME)).unwrap_or_default()
    }
}

/// All that is printed but the Deployment, which this process stands for. The API server reaches
/// no Service here, so that it asks for warnings at the process itself.
fn install(plane: &ControlPlane, tls: SocketAddr, more: &[&str]) {
    let args = ["manifests", "--mode=enforce", "--with-inputs", "--image=tread", "-o", "json"];
    let printed = Command::new(TREAD).args(args).args(more).output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let mut list: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let objects = list["items"].as_array_mut().unwrap();
    objects.retain(|object| object["kind"] != "Deployment");
    for object in objects {
        if object["kind"] == "ValidatingWebhookConfiguration" {
            let url = format!("https://{tls}/warn");
            object["webhooks"][0]["clientConfig"] = json!({"url": url});
        }
    }
    plane.apply(&list.to_string()).unwrap();
    let wait = ["wait", "--for=condition=Established", "--timeout=600s", "crd", "--all"];
    plane.kubectl(&wait).unwrap().success().unwrap();
}
