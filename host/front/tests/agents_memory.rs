//! What a connection of an agent costs that waits for something to do.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it measured"
)]

use axum::Router;
use axum::routing::post;
use rcgen::KeyPair;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tread_front::http::Port;

/// What tells this program that it is the server of the test below.
const SERVES: &str = "TREAD_TEST_SERVES_AGENTS";
/// Before it is counted: what is there once.
const FIRST: usize = 50;
const CONNECTIONS: usize = 500;
/// So much is promised of one.
const MOST: usize = 64 << 10;

/// The other process, which ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

type Agent = StreamOwned<ClientConnection, TcpStream>;

fn agent(at: &str, config: &Arc<ClientConfig>) -> Agent {
    let name = ServerName::try_from("localhost").unwrap();
    let tls = ClientConnection::new(config.clone(), name).unwrap();
    let mut agent = StreamOwned::new(tls, TcpStream::connect(at).unwrap());
    let (token, body) = ("t".repeat(1200), r#"{"form":1}"#);
    let length = body.len();
    let request = format!(
        "POST /v1/agent/wait HTTP/1.1\r\nHost: tread\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    agent.write_all(request.as_bytes()).unwrap();
    agent.flush().unwrap();
    agent
}

#[test]
fn a_connection_of_an_agent_that_waits_costs_64_kib_at_most() {
    if let Some(certificate) = std::env::var_os(SERVES) {
        return serve(Path::new(&certificate));
    }
    let dir = tempfile();
    let certificate = dir.join("certificate");
    let name = "agents_memory::a_connection_of_an_agent_that_waits_costs_64_kib_at_most";
    let mut server = Server(
        Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(SERVES, &certificate)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut said = BufReader::new(server.0.stdout.take().unwrap()).lines();
    // After what the runner of tests says, perhaps in the same line.
    let mut says = |what: &str| {
        let said = said.find_map(|line| Some(line.unwrap().split_once(what)?.1.to_owned()));
        said.unwrap_or_else(|| panic!("the server ended before it said {what}"))
    };
    let at = says("listens at ");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(std::fs::read(&certificate).unwrap())).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let first: Vec<Agent> = (0..FIRST).map(|_| agent(&at, &config)).collect();
    says(&format!("waiting: {FIRST}."));
    let before = resident(server.0.id());
    let all: Vec<Agent> = (0..CONNECTIONS).map(|_| agent(&at, &config)).collect();
    says(&format!("waiting: {}.", FIRST + CONNECTIONS));
    let each = (resident(server.0.id()) - before) / CONNECTIONS;
    println!("a connection that waits: {each} bytes");
    assert!(each <= MOST, "{each} bytes");
    drop((first, all));
    std::fs::remove_dir_all(dir).unwrap();
}

fn tempfile() -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("tread-agents-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// How much of a process is resident, in bytes.
fn resident(process: u32) -> usize {
    let mut text = String::new();
    let status = std::fs::File::open(format!("/proc/{process}/status"));
    status.unwrap().read_to_string(&mut text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// The port of agents, where nothing is to be done for ever.
fn serve(certificate: &Path) {
    let key = KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let own = params.self_signed(&key).unwrap();
    std::fs::write(certificate, own.der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![own.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(async {
        let port = Port::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        println!("listens at {}", port.address());
        let waiting = Arc::new(AtomicUsize::new(0));
        let waits = move |_: String| {
            println!("waiting: {}.", waiting.fetch_add(1, Ordering::SeqCst) + 1);
            std::future::pending::<()>()
        };
        let router = Router::new().route("/v1/agent/wait", post(waits));
        port.serve_agents(Arc::new(config), router, std::future::pending()).await.unwrap();
    });
}
