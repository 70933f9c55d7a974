//! Whether the node reaches an API server: a config that cuts it off is gone back from.
//!
//! A proxy on the node may answer although nobody is behind it. So where the kubelet's
//! kubeconfig says by which authority its API server is known, whoever answers has to prove
//! that it is one: by a TLS handshake with a certificate of that authority.

use crate::tree::Tree;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Where a kubelet reads which API server is its own: OpenShift's places, then kubeadm's.
const KUBECONFIGS: [&str; 4] = [
    "/etc/kubernetes/kubeconfig",
    "/var/lib/kubelet/kubeconfig",
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/bootstrap-kubelet.conf",
];
/// More than a kubeconfig, or a file of certificates, has.
const MOST: u64 = 1 << 20;
/// How long it may take to answer once.
const ANSWER: Duration = Duration::from_secs(5);
/// How long to wait before it is asked again.
const AGAIN: Duration = Duration::from_secs(5);

/// The API server that a node was told to reach, or its kubelet's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// `HOST:PORT`.
    pub(crate) address: String,
    /// The name that its certificate has to have.
    name: String,
    /// The certificates of the authority, in PEM; nothing where nobody knows it.
    authority: Option<Vec<u8>>,
}

impl Server {
    /// The one at this address, else the kubelet's own; nothing where there is neither.
    pub(crate) fn of(tree: &Tree, address: Option<&str>) -> Option<Server> {
        let own = of_kubelet(tree);
        let Some(address) = address else { return own };
        Some(match own {
            Some(own) if own.address == address => own,
            own => Server {
                address: address.to_owned(),
                name: host(address).to_owned(),
                authority: own.and_then(|own| own.authority),
            },
        })
    }

    /// Whether it has to prove who it is.
    pub(crate) fn is_known(&self) -> bool {
        self.authority.is_some()
    }

    /// Whether it answers. Where its authority is not known any answer counts, also that of a
    /// server that expects TLS: what is asked then is whether the network still leads there.
    pub(crate) async fn answers(&self) -> bool {
        let asked = async {
            match &self.authority {
                Some(authority) => self.proves_itself(authority).await,
                None => says_anything(&self.address).await.is_ok(),
            }
        };
        timeout(ANSWER, asked).await.is_ok_and(|answers| answers)
    }

    async fn proves_itself(&self, authority: &[u8]) -> bool {
        let (Some(trusting), Ok(name)) =
            (trusting(authority), ServerName::try_from(self.name.clone()))
        else {
            return false;
        };
        let Ok(stream) = TcpStream::connect(&self.address).await else { return false };
        TlsConnector::from(Arc::new(trusting)).connect(name, stream).await.is_ok()
    }
}

/// Whether a server answers within a time: looked up each time it is asked, since what it is
/// known by may be written anew meanwhile.
pub(crate) async fn answers_within(limit: Duration, server: impl Fn() -> Option<Server>) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(server) = server()
            && server.answers().await
        {
            return true;
        }
        if Instant::now() + AGAIN >= deadline {
            return false;
        }
        sleep(AGAIN).await;
    }
}

/// Trusts nobody but an authority; nothing where that has no certificate.
fn trusting(authority: &[u8]) -> Option<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_slice_iter(authority).flatten();
    let (added, _) = roots.add_parsable_certificates(certificates);
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().ok().filter(|_| added > 0)?;
    Some(builder.with_root_certificates(roots).with_no_client_auth())
}

async fn says_anything(address: &str) -> std::io::Result<u8> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await?;
    stream.read_u8().await
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    clusters: Vec<NamedCluster>,
    #[serde(default)]
    contexts: Vec<NamedContext>,
    #[serde(default)]
    current_context: Option<String>,
}

#[derive(Deserialize)]
struct NamedCluster {
    #[serde(default)]
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    #[serde(default)]
    certificate_authority: Option<String>,
    #[serde(default)]
    certificate_authority_data: Option<String>,
    #[serde(default)]
    tls_server_name: Option<String>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
}

/// The API server of this node's kubelet; nothing where there is no kubelet.
fn of_kubelet(tree: &Tree) -> Option<Server> {
    KUBECONFIGS.iter().find_map(|path| {
        let bytes = tree.read(path, MOST).ok()??;
        let cluster = cluster(std::str::from_utf8(&bytes).ok()?)?;
        let address = address(&cluster.server)?;
        let authority =
            authority(tree, path, &cluster).filter(|_| cluster.server.starts_with("https"));
        let name = cluster.tls_server_name.unwrap_or_else(|| host(&address).to_owned());
        Some(Server { address, name, authority })
    })
}

/// The cluster of a kubeconfig's current context, else its first one.
fn cluster(text: &str) -> Option<Cluster> {
    let Kubeconfig { clusters, contexts, current_context } = serde_saphyr::from_str(text).ok()?;
    let current = contexts.into_iter().find(|it| Some(&it.name) == current_context.as_ref());
    let current = current.map(|it| it.context.cluster);
    let at = clusters.iter().position(|it| Some(&it.name) == current.as_ref()).unwrap_or(0);
    let mut cluster = clusters.into_iter().nth(at)?.cluster;
    // What is empty is not said.
    for said in [
        &mut cluster.certificate_authority,
        &mut cluster.certificate_authority_data,
        &mut cluster.tls_server_name,
    ] {
        *said = said.take().filter(|text| !text.trim().is_empty());
    }
    Some(cluster)
}

/// The certificates by which a cluster is known.
fn authority(tree: &Tree, kubeconfig: &str, cluster: &Cluster) -> Option<Vec<u8>> {
    if let Some(data) = &cluster.certificate_authority_data {
        // Whoever writes YAML may fold it.
        let data: String = data.split_ascii_whitespace().collect();
        return base64_simd::STANDARD.decode_to_vec(data).ok();
    }
    let file = cluster.certificate_authority.as_deref()?;
    let folder = kubeconfig.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = if file.starts_with('/') { file.to_owned() } else { format!("{folder}/{file}") };
    tree.read(&path, MOST).ok()?
}

/// Whether a text is `HOST:PORT`, and not, say, a URL.
pub(crate) fn is_address(text: &str) -> bool {
    let Some((host_of, port)) = text.rsplit_once(':') else { return false };
    let has_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_name = |name: &str| ServerName::try_from(name).is_ok();
    let is_host = match host_of.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Some(number) => number.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host_of.contains(':') && is_name(host_of),
    };
    has_port && is_host
}

/// The host of `HOST:PORT`.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// `HOST:PORT` of a URL.
fn address(url: &str) -> Option<String> {
    let (rest, port) = match url.split_once("://")? {
        ("https", rest) => (rest, 443),
        ("http", rest) => (rest, 80),
        _ => return None,
    };
    let host = rest.split('/').next().filter(|host| !host.is_empty())?;
    let after_brackets = host.rsplit_once(']').map_or(host, |(_, after)| after);
    Some(match after_brackets.contains(':') {
        true => host.to_owned(),
        false => format!("{host}:{port}"),
    })
}

#[cfg(test)]
mod tests;
