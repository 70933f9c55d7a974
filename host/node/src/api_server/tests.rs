#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

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
        let text = format!("apiVersion: v1\nclusters:\n- name: a\n  cluster:\n    server: {url}\n");
        let found = cluster(&text).and_then(|cluster| address(&cluster.server));
        assert_eq!(found.as_deref(), expected, "{url}");
    }
    assert!(cluster("clusters: []").is_none());
    assert!(cluster("- no kubeconfig").is_none());
    let two = "clusters:\n- {name: a, cluster: {server: 'https://a'}}\n\
               - {name: b, cluster: {server: 'https://b'}}\n\
               contexts:\n- {name: c, context: {cluster: b, user: u}}\ncurrent-context: c\n";
    assert_eq!(cluster(two).unwrap().server, "https://b");
    assert_eq!([host("[fd00::1]:443"), host("a.example:1")], ["fd00::1", "a.example"]);
}

/// Says this to everybody, and goes.
async fn speaker(says: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 64]).await;
            let _ = stream.write_all(says).await;
        }
    });
    address
}

fn unknown(address: &str) -> Server {
    Server { address: address.to_owned(), name: host(address).to_owned(), authority: None }
}

#[tokio::test]
async fn of_whom_no_authority_is_known_any_answer_counts_and_silence_does_not() {
    assert!(unknown(&speaker(b"HTTP/1.0 400 Bad Request\r\n\r\n").await).answers().await);
    // A proxy without anybody behind it.
    let silent = unknown(&speaker(b"").await);
    assert!(!silent.answers().await);
    assert!(!answers_within(Duration::ZERO, || Some(silent.clone())).await);
    assert!(!answers_within(Duration::ZERO, || None).await);
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert!(!unknown(&nobody.to_string()).answers().await);
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn an_authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// An API server with a certificate of an authority for a name.
async fn api_server(authority: &Authority, name: &str) -> String {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let _ = acceptor.accept(stream).await;
        }
    });
    address
}

#[tokio::test]
async fn whose_authority_the_kubeconfig_knows_has_to_prove_itself_and_a_proxy_does_not() {
    let (own, other) = (an_authority(), an_authority());
    let dir = tempfile::tempdir().unwrap();
    let kubernetes = dir.path().join("etc/kubernetes");
    std::fs::create_dir_all(&kubernetes).unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    let pem = own.pem();
    std::fs::write(kubernetes.join("ca.crt"), &pem).unwrap();
    let data = base64_simd::STANDARD.encode_to_string(&pem);
    let (file, data) = ("certificate-authority: ", format!("certificate-authority-data: {data}"));
    let known = |address: &str, authority: &str| {
        let text = format!(
            "clusters:\n- name: a\n  cluster:\n    server: https://{address}\n    {authority}\n"
        );
        std::fs::write(kubernetes.join("kubeconfig"), text).unwrap();
        Server::of(&tree, None).unwrap()
    };
    let right = api_server(&own, "127.0.0.1").await;
    for authority in [&data, &format!("{file}/etc/kubernetes/ca.crt"), &format!("{file}ca.crt")] {
        let server = known(&right, authority);
        assert!(server.is_known() && server.answers().await, "{authority}");
    }
    for (what, address) in [
        ("a proxy with an answer of its own", speaker(b"HTTP/1.0 503 No\r\n\r\n").await),
        ("a proxy with nobody behind it", speaker(b"").await),
        ("a server of another authority", api_server(&other, "127.0.0.1").await),
        ("a server of another name", api_server(&own, "elsewhere.example").await),
    ] {
        assert!(!known(&address, &data).answers().await, "{what}");
        // Also where an admin named it.
        assert!(!Server::of(&tree, Some(&address)).unwrap().answers().await, "{what}");
    }
    let elsewhere = api_server(&own, "elsewhere.example").await;
    let named = format!("{data}\n    tls-server-name: elsewhere.example");
    assert!(known(&elsewhere, &named).answers().await);
    assert!(!known(&right, &format!("{file}missing.crt")).is_known());
}

#[test]
fn an_address_that_leads_nowhere_is_none() {
    for address in ["api.example.com:6443", "10.0.0.1:443", "[fd00::1]:6443", "localhost:1"] {
        assert!(is_address(address), "{address}");
    }
    for none in [
        "",
        "api.example.com",
        "https://api.example.com:6443",
        "https://api.example.com",
        "api.example.com:6443/",
        "api.example.com:",
        ":6443",
        "api.example.com:0",
        "api.example.com:65536",
        "fd00::1:6443",
        "[fd00::1]",
        "[api.example.com]:6443",
        "user@api.example.com:6443",
        "api example.com:6443",
    ] {
        assert!(!is_address(none), "{none}");
    }
}

#[test]
fn what_a_kubeconfig_leaves_empty_or_folds_is_read_as_the_kubelet_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let kubernetes = dir.path().join("etc/kubernetes");
    std::fs::create_dir_all(&kubernetes).unwrap();
    std::fs::write(kubernetes.join("ca.crt"), "PEM of a file").unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    let of = |rest: &str| {
        let text =
            format!("clusters:\n- name: a\n  cluster:\n    server: https://api.example\n{rest}");
        std::fs::write(kubernetes.join("kubeconfig"), text).unwrap();
        Server::of(&tree, None).unwrap()
    };
    let empty = of(
        "    certificate-authority-data: ''\n    tls-server-name: ''\n    certificate-authority: ca.crt\n",
    );
    assert_eq!(empty.authority.as_deref(), Some(&b"PEM of a file"[..]));
    assert_eq!(empty.name, "api.example");
    assert!(!of("    certificate-authority-data: ''\n").is_known());
    assert!(!of("    certificate-authority: ''\n").is_known());
    // Base64 of `PEM of data`, on two lines.
    let folded = of("    certificate-authority-data: |\n      UEVNIG9m\n      IGRhdGE=\n");
    assert_eq!(folded.authority.as_deref(), Some(&b"PEM of data"[..]));
}
