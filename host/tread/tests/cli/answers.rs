//! An API server that answers in a way that no cluster of the tests does.

use crate::support::Bench;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

/// An API server that gives everybody the same answer, and a kubeconfig for it.
fn answers(bench: &Bench, status: &'static str, kind: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let body = body.clone();
            std::thread::spawn(move || answer(&connection, status, kind, &body));
        }
    });
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         clusters: [{{name: a, cluster: {{server: 'http://{address}'}}}}]\n\
         users: [{{name: a, user: {{}}}}]\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
    );
    bench.write("kubeconfig", kubeconfig).to_str().unwrap().to_owned()
}

/// Answers each request of a connection.
fn answer(connection: &TcpStream, status: &str, kind: &str, body: &str) {
    let mut lines = BufReader::new(connection).lines();
    loop {
        let mut length = 0;
        loop {
            let Some(Ok(line)) = lines.next() else { return };
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let close = if length > 0 { "Connection: close\r\n" } else { "" };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nDate: Sat, 28 Nov 2026 12:00:00 GMT\r\n\
             {close}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut connection = connection;
        if connection.write_all(answer.as_bytes()).is_err() || length > 0 {
            return;
        }
    }
}

#[test]
fn whoever_is_not_known_is_told_to_log_in_and_of_no_rights() {
    let bench = Bench::new();
    let unauthorized = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": "Unauthorized", "reason": "Unauthorized", "code": 401}"#;
    let json = "application/json";
    let kubeconfig = answers(&bench, "401 Unauthorized", json, unauthorized.to_owned());
    let config = bench.write("new.yaml", crate::support::machine_config(&[("/etc/a", "b")]));
    let config = config.to_str().unwrap();
    for command in [
        &["plans"][..],
        &["policies", "--cluster"],
        &["pools"],
        &["pools", "check"],
        &["nodes"],
        &["bootimages"],
        &["rollout", "status"],
        &["lease", "list"],
        &["lease", "acquire", "node-1"],
        &["plan", "-f", config],
    ] {
        let ran = bench.tread(&[command, &["--kubeconfig", &kubeconfig]].concat());
        let said = ran.err();
        assert_eq!(ran.code(), 1, "{command:?}: {said}");
        assert!(said.contains("does not know who asks"), "{command:?}: {said}");
        assert!(said.contains("log in again"), "{command:?}: {said}");
        assert!(!said.contains("an admin can") && !said.contains("--holder"), "{said}");
        assert!(said.lines().count() <= 2, "{command:?}: {said}");
    }
}

#[test]
fn what_is_no_api_server_is_not_taken_for_one_that_does_not_answer() {
    let bench = Bench::new();
    let page = "<html><body>Welcome</body></html>".to_owned();
    let kubeconfig = answers(&bench, "200 OK", "text/html", page);
    for command in [&["plans"][..], &["pools"], &["nodes"]] {
        let ran = bench.tread(&[command, &["--kubeconfig", &kubeconfig]].concat());
        let said = ran.err();
        assert_eq!(ran.code(), 1, "{command:?}: {said}");
        assert!(said.contains("is no API server"), "{command:?}: {said}");
        assert!(!said.contains("no answer"), "{command:?}: {said}");
    }
}

#[test]
fn whoever_closes_the_list_of_leases_has_read_enough() {
    let bench = Bench::new();
    let none = r#"{"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList", "metadata": {},
        "items": []}"#;
    let kubeconfig = answers(&bench, "200 OK", "application/json", none.to_owned());
    let args = ["lease", "list", "--kubeconfig", &kubeconfig];
    assert_eq!(bench.tread(&args).code(), 0);
    let mut child = bench.command(&args).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
