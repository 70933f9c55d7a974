//! Whether the node reaches an API server: a config that cuts it off is gone back from.

use crate::tree::Tree;
use serde::Deserialize;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// Where a kubelet reads which API server is its own: OpenShift's places, then kubeadm's.
const KUBECONFIGS: [&str; 4] = [
    "/etc/kubernetes/kubeconfig",
    "/var/lib/kubelet/kubeconfig",
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/bootstrap-kubelet.conf",
];
/// More than a kubeconfig has.
const MOST: u64 = 1 << 20;
/// How long it may take to answer once.
const ANSWER: Duration = Duration::from_secs(5);
/// How long to wait before it is asked again.
const AGAIN: Duration = Duration::from_secs(5);

/// The API server of this node's kubelet, as `HOST:PORT`; nothing where there is no kubelet.
pub(crate) fn of_kubelet(tree: &Tree) -> Option<String> {
    KUBECONFIGS.iter().find_map(|path| {
        let bytes = tree.read(path, MOST).ok()??;
        server(std::str::from_utf8(&bytes).ok()?)
    })
}

/// The server that a kubeconfig names first.
fn server(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Kubeconfig {
        clusters: Vec<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        cluster: Cluster,
    }
    #[derive(Deserialize)]
    struct Cluster {
        server: String,
    }
    let read: Kubeconfig = serde_saphyr::from_str(text).ok()?;
    address(&read.clusters.first()?.cluster.server)
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

/// Whether somebody answers there. Any answer counts, also that of a server that expects TLS:
/// what is asked is whether the network still leads there.
pub(crate) async fn answers(address: &str) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await?;
        stream.read_u8().await
    };
    timeout(ANSWER, asked).await.is_ok_and(|answer| answer.is_ok())
}

/// Whether somebody answers there within a time.
pub(crate) async fn answers_within(address: &str, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if answers(address).await {
            return true;
        }
        if Instant::now() + AGAIN >= deadline {
            return false;
        }
        sleep(AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use tokio::net::TcpListener;

    #[test]
    fn the_server_of_a_kubeconfig_is_where_the_kubelet_goes() {
        for (url, expected) in [
            ("https://api-int.example.com:6443", Some("api-int.example.com:6443")),
            ("https://api-int.example.com", Some("api-int.example.com:443")),
            ("https://api.example.com/k8s/clusters/c-1", Some("api.example.com:443")),
            ("https://[fd00::1]:6443/", Some("[fd00::1]:6443")),
            ("https://[fd00::1]", Some("[fd00::1]:443")),
            ("https://", None),
            ("api.example.com:6443", None),
        ] {
            let text =
                format!("apiVersion: v1\nclusters:\n- name: a\n  cluster:\n    server: {url}\n");
            assert_eq!(server(&text).as_deref(), expected, "{url}");
        }
        assert_eq!(server("clusters: []"), None);
        assert_eq!(server("- no kubeconfig"), None);
    }

    #[tokio::test]
    async fn whoever_says_anything_answers_and_whoever_is_not_there_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let says = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n").await.unwrap();
            drop(stream);
            // A proxy without anybody behind it.
            let (stream, _) = listener.accept().await.unwrap();
            drop(stream);
        });
        assert!(answers(&address).await);
        assert!(!answers(&address).await);
        says.await.unwrap();
        assert!(!answers(&address).await);
        assert!(!answers_within(&address, Duration::ZERO).await);
    }
}
