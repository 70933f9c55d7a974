//! What a kubelet's kubeconfig says of its API server.

use super::address::{Place, host, of_url};
use crate::tree::Tree;
use serde::Deserialize;

/// Where a kubelet reads which API server is its own: OpenShift's places, then kubeadm's.
const KUBECONFIGS: [&str; 4] = [
    "/etc/kubernetes/kubeconfig",
    "/var/lib/kubelet/kubeconfig",
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/bootstrap-kubelet.conf",
];
/// More than a kubeconfig, or a file of certificates, has.
const MOST: u64 = 1 << 20;

/// Whose certificate an API server has to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Authority {
    /// Nobody says whose.
    Unknown,
    /// That of one of these authorities: certificates in PEM.
    Known(Vec<u8>),
    /// Somebody says whose, and it cannot be read; why.
    Unreadable(String),
}

/// The API server of a kubelet.
#[derive(Debug)]
pub(super) struct Own {
    /// `HOST:PORT`.
    pub(super) address: String,
    /// The name that its certificate has to have.
    pub(super) name: String,
    pub(super) authority: Authority,
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
pub(super) struct Cluster {
    pub(super) server: String,
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

/// The API server of this node's kubelet; nothing where there is no kubelet. Where the first
/// kubeconfig that is there cannot be read: why not. The next one may name another API server,
/// or one that need not prove who it is.
pub(super) fn of_kubelet(tree: &Tree) -> Result<Option<Own>, String> {
    for path in KUBECONFIGS {
        let bytes = tree.read_followed(path, MOST).map_err(|error| error.to_string())?;
        if let Some(bytes) = bytes {
            let none = || format!("{path} is no kubeconfig that names an API server");
            return own(tree, path, &bytes).ok_or_else(none).map(Some);
        }
    }
    Ok(None)
}

fn own(tree: &Tree, path: &str, bytes: &[u8]) -> Option<Own> {
    let cluster = cluster(std::str::from_utf8(bytes).ok()?)?;
    let Place { address, is_https } = of_url(&cluster.server)?;
    let authority = match is_https {
        true => authority(tree, path, &cluster),
        false => Authority::Unknown,
    };
    let name = cluster.tls_server_name.unwrap_or_else(|| host(&address).to_owned());
    Some(Own { address, name, authority })
}

/// The cluster of a kubeconfig's current context, else its first one.
pub(super) fn cluster(text: &str) -> Option<Cluster> {
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
fn authority(tree: &Tree, kubeconfig: &str, cluster: &Cluster) -> Authority {
    if let Some(data) = &cluster.certificate_authority_data {
        // Whoever writes YAML may fold it.
        let data: String = data.split_ascii_whitespace().collect();
        return match base64_simd::STANDARD.decode_to_vec(data) {
            Ok(pem) => Authority::Known(pem),
            Err(_) => Authority::Unreadable(format!(
                "the certificate-authority-data of {kubeconfig} is no Base64"
            )),
        };
    }
    let Some(file) = cluster.certificate_authority.as_deref() else { return Authority::Unknown };
    let folder = kubeconfig.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = if file.starts_with('/') { file.to_owned() } else { format!("{folder}/{file}") };
    match tree.read_followed(&path, MOST) {
        Ok(Some(pem)) => Authority::Known(pem),
        Ok(None) => {
            Authority::Unreadable(format!("{path}, which {kubeconfig} names, is not there"))
        }
        Err(error) => Authority::Unreadable(error.to_string()),
    }
}
