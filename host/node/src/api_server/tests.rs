#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::address::of_url;
use super::kubeconfig::cluster;
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
        ("api.example.com:6443", Some("api.example.com:6443")),
    ] {
        let text = format!("apiVersion: v1\nclusters:\n- name: a\n  cluster:\n    server: {url}\n");
        let found = cluster(&text).and_then(|cluster| of_url(&cluster.server));
        assert_eq!(found.map(|place| place.address).as_deref(), expected, "{url}");
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
    Server {
        address: address.to_owned(),
        name: host(address).to_owned(),
        authority: Authority::Unknown,
    }
}

#[tokio::test]
async fn of_whom_no_authority_is_known_any_answer_counts_and_silence_does_not() {
    let speaks = speaker(b"HTTP/1.0 400 Bad Request\r\n\r\n").await;
    assert_eq!(unknown(&speaks).answers().await, Ok(()));
    // A proxy without anybody behind it.
    let silent = unknown(&speaker(b"").await);
    assert!(silent.answers().await.is_err());
    assert!(answers_within(Duration::ZERO, || Ok(silent.clone())).await.is_err());
    let none = answers_within(Duration::ZERO, || Err("none".to_owned())).await;
    assert_eq!(none, Err("none".to_owned()));
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = unknown(&nobody.to_string()).answers().await.unwrap_err();
    assert!(refused.contains("refused"), "{refused}");
}

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn an_authority() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// An API server with a certificate of an authority for a name.
async fn api_server(authority: &Issuer, name: &str) -> String {
    api_server_with(authority, vec![name.to_owned()]).await
}

async fn api_server_with(authority: &Issuer, names: Vec<String>) -> String {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(names).unwrap();
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
        Server::of(&tree, None).unwrap().unwrap()
    };
    let right = api_server(&own, "127.0.0.1").await;
    for authority in [
        &data,
        &format!("{file}/etc/kubernetes/ca.crt"),
        &format!("{file}ca.crt"),
        &format!("{file}../../etc/./kubernetes/ca.crt"),
    ] {
        let server = known(&right, authority);
        assert!(server.is_known() && server.answers().await.is_ok(), "{authority}");
    }
    for (what, address, why) in [
        (
            "a proxy with an answer of its own",
            speaker(b"HTTP/1.0 503 No\r\n\r\n").await,
            "it does not speak TLS",
        ),
        ("a proxy with nobody behind it", speaker(b"").await, ""),
        (
            "a server of another authority",
            api_server(&other, "127.0.0.1").await,
            "its certificate does not prove that it is 127.0.0.1",
        ),
        (
            "a server of another name",
            api_server(&own, "elsewhere.example").await,
            "its certificate does not prove that it is 127.0.0.1",
        ),
    ] {
        // Also where an admin named it.
        for server in [known(&address, &data), Server::at(&tree, &address)] {
            let said = server.answers().await.unwrap_err();
            assert!(said.contains(why), "{what}: {said}");
        }
    }
    let elsewhere = api_server(&own, "elsewhere.example").await;
    let named = format!("{data}\n    tls-server-name: elsewhere.example");
    assert_eq!(known(&elsewhere, &named).answers().await, Ok(()));
}

/// A tree with a kubeconfig for this server, which is of this authority.
fn with_kubeconfig(dir: &std::path::Path, address: &str, authority: &str) -> Tree {
    std::fs::create_dir_all(dir.join("etc/kubernetes/pki")).unwrap();
    std::fs::create_dir_all(dir.join("var/lib/kubelet")).unwrap();
    let text = format!(
        "clusters:\n- name: a\n  cluster:\n    server: https://{address}\n    {authority}\n"
    );
    std::fs::write(dir.join("etc/kubernetes/real.conf"), text).unwrap();
    Tree::open(dir).unwrap()
}

#[tokio::test]
async fn a_kubeconfig_and_an_authority_that_are_links_of_root_prove_who_answers() {
    use std::os::unix::fs::symlink;
    let (own, other) = (an_authority(), an_authority());
    let dir = tempfile::tempdir().unwrap();
    let (right, wrong) =
        (api_server(&own, "127.0.0.1").await, api_server(&other, "127.0.0.1").await);
    let path = "certificate-authority: /etc/kubernetes/ca-current.crt";
    let tree = with_kubeconfig(dir.path(), &right, path);
    let at = |path: &str| dir.path().join(path);
    // Absolute and relative ones, one after another, as the kubelet leaves them.
    symlink("/etc/kubernetes/real.conf", at("etc/kubernetes/next.conf")).unwrap();
    symlink("../../../etc/kubernetes/next.conf", at("var/lib/kubelet/kubeconfig")).unwrap();
    symlink("pki/ca.crt", at("etc/kubernetes/ca-current.crt")).unwrap();
    std::fs::write(at("etc/kubernetes/pki/ca.crt"), own.pem()).unwrap();
    let server = Server::of(&tree, None).unwrap().unwrap();
    assert_eq!((server.is_known(), server.answers().await), (true, Ok(())));
    assert!(Server::at(&tree, &wrong).answers().await.is_err(), "any answer counts");
}

#[tokio::test]
async fn what_is_named_and_cannot_be_read_lets_nobody_be_taken_for_the_api_server() {
    use std::os::unix::fs::{lchown, symlink};
    let own = an_authority();
    let speaks = api_server(&own, "127.0.0.1").await;
    for (what, authority, why) in [
        ("missing", "certificate-authority: missing.crt", "missing.crt, which /etc/kubernetes"),
        ("no link of root", "certificate-authority: link.crt", "a link that root does not own"),
        ("a circle", "certificate-authority: circle.crt", "more than 40 links"),
        ("a folder", "certificate-authority: /etc", "it is a folder"),
        ("no PEM", "certificate-authority: /etc/kubernetes/kubeconfig", "has no certificate"),
        ("no Base64", "certificate-authority-data: '?'", "is no Base64"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join("etc/kubernetes").join(path);
        let tree = with_kubeconfig(dir.path(), &speaks, authority);
        symlink("real.conf", at("kubeconfig")).unwrap();
        symlink("circle.crt", at("circle.crt")).unwrap();
        symlink("ca.crt", at("link.crt")).unwrap();
        lchown(at("link.crt"), Some(1000), Some(1000)).unwrap();
        std::fs::write(at("ca.crt"), own.pem()).unwrap();
        for server in [Server::of(&tree, None).unwrap().unwrap(), Server::at(&tree, &speaks)] {
            let said = server.answers().await.unwrap_err();
            assert!(server.is_known() && said.contains(why), "{what}: {said}");
        }
        std::fs::remove_file(at("kubeconfig")).unwrap();
        lchown(at("real.conf"), Some(1000), Some(1000)).unwrap();
        symlink("real.conf", at("kubeconfig")).unwrap();
        lchown(at("kubeconfig"), Some(1000), Some(1000)).unwrap();
        let said = Server::of(&tree, None).unwrap_err();
        assert!(said.contains("a link that root does not own"), "{said}");
        assert!(Server::at(&tree, &speaks).answers().await.is_err());
    }
}

#[tokio::test]
async fn what_a_stranger_has_in_a_certificate_fills_no_terminal() {
    let own = an_authority();
    let dir = tempfile::tempdir().unwrap();
    let many: Vec<String> = (0..500).map(|index| format!("{index}.elsewhere.example")).collect();
    let stranger = api_server_with(&own, many).await;
    let data = base64_simd::STANDARD.encode_to_string(own.pem());
    let tree =
        with_kubeconfig(dir.path(), &stranger, &format!("certificate-authority-data: {data}"));
    std::os::unix::fs::symlink("real.conf", dir.path().join("etc/kubernetes/kubeconfig")).unwrap();
    let said = Server::of(&tree, None).unwrap().unwrap().answers().await.unwrap_err();
    assert!(said.contains("its certificate does not prove"), "{said}");
    assert!(said.len() <= MOST_WHY && !said.contains('\n'), "{said}");
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
        Server::of(&tree, None).unwrap().unwrap()
    };
    let empty = of(
        "    certificate-authority-data: ''\n    tls-server-name: ''\n    certificate-authority: ca.crt\n",
    );
    assert_eq!(empty.authority, Authority::Known(b"PEM of a file".to_vec()));
    assert_eq!(empty.name, "api.example");
    assert!(!of("    certificate-authority-data: ''\n").is_known());
    assert!(!of("    certificate-authority: ''\n").is_known());
    // Base64 of `PEM of data`, on two lines.
    let folded = of("    certificate-authority-data: |\n      UEVNIG9m\n      IGRhdGE=\n");
    assert_eq!(folded.authority, Authority::Known(b"PEM of data".to_vec()));
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_read_is_not_passed_over_for_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let kubernetes = dir.path().join("etc/kubernetes");
    std::fs::create_dir_all(&kubernetes).unwrap();
    let speaks = speaker(b"x").await;
    // Of the next one nobody has to prove anything.
    let next = format!("clusters:\n- name: a\n  cluster:\n    server: http://{speaks}\n");
    std::fs::write(kubernetes.join("kubelet.conf"), next).unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    assert!(Server::of(&tree, None).unwrap().is_some());
    for (what, text) in [("empty", ""), ("cut short", "clusters:\n- name"), ("none", "a: b\n")] {
        std::fs::write(kubernetes.join("kubeconfig"), text).unwrap();
        let said = Server::of(&tree, None).unwrap_err();
        assert!(said.contains("/etc/kubernetes/kubeconfig is no kubeconfig"), "{what}: {said}");
        // Nor does any answer count of the one that was reached before.
        assert!(Server::at(&tree, &speaks).answers().await.is_err(), "{what}");
    }
    std::fs::remove_file(kubernetes.join("kubeconfig")).unwrap();
    std::fs::create_dir(kubernetes.join("kubeconfig")).unwrap();
    let said = Server::of(&tree, None).unwrap_err();
    assert!(said.contains("/etc/kubernetes/kubeconfig"), "{said}");
}

#[tokio::test]
async fn a_server_without_a_scheme_or_with_one_in_capitals_has_to_prove_who_it_is() {
    let own = an_authority();
    let dir = tempfile::tempdir().unwrap();
    let kubernetes = dir.path().join("etc/kubernetes");
    std::fs::create_dir_all(&kubernetes).unwrap();
    std::fs::write(kubernetes.join("ca.crt"), own.pem()).unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    let (right, proxy) =
        (api_server(&own, "127.0.0.1").await, speaker(b"HTTP/1.0 503 No\r\n\r\n").await);
    let at = |scheme: &str, address: &str| {
        let text = format!(
            "clusters:\n- name: a\n  cluster:\n    server: {scheme}{address}\n    certificate-authority: ca.crt\n"
        );
        std::fs::write(kubernetes.join("kubeconfig"), text).unwrap();
        Server::of(&tree, None).unwrap().unwrap()
    };
    for scheme in ["https://", "HTTPS://", ""] {
        assert_eq!(at(scheme, &right).answers().await, Ok(()), "{scheme}");
        let proxy = at(scheme, &proxy);
        assert!(proxy.is_known() && proxy.answers().await.is_err(), "{scheme}");
    }
    for scheme in ["http://", "HTTP://"] {
        let proxy = at(scheme, &proxy);
        assert!(!proxy.is_known() && proxy.answers().await.is_ok(), "{scheme}");
    }
}
