//! Agents are answered on the node that the API server says of their token, and nobody else is.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails the test"
)]

use crate::support::web::{self, Answer};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use futures::future::BoxFuture;
use futures::stream::{self, FuturesUnordered, StreamExt as _};
use serde_json::json;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tower::ServiceExt as _;
use tread_front::http::{AgentReviewer, Agents, OfNode, Port, Refused, agents};
use tread_kube::agents::{AUDIENCE, Ask, GivenConfig, Instructions, PERMIT, WAIT, Wait};
use tread_kube::api::node_update::ConfigName;
use tread_kube::metrics::Metrics;
use tread_test_bed::{ControlPlane, Shared, eventually};

static BED: Shared = Shared::new(ControlPlane::options);

/// Who knows what is to be done: a revision, and a config of some size.
struct Knows {
    revision: watch::Sender<u32>,
    size: usize,
    waiting: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<(OfNode, Ask)>>>,
}

impl Knows {
    fn with(size: usize) -> Arc<Knows> {
        let (waiting, asked) = (Arc::default(), Arc::default());
        Arc::new(Knows { revision: watch::Sender::new(1), size, waiting, asked })
    }
}

struct Counts(Arc<AtomicUsize>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Agents for Knows {
    fn wait(&self, node: &OfNode, wait: Wait) -> BoxFuture<'static, Result<Instructions, Refused>> {
        let (mut revision, node, size) = (self.revision.subscribe(), node.clone(), self.size);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let waits = Counts(self.waiting.clone());
        Box::pin(async move {
            let _waits = waits;
            assert_ne!(wait.form, 99, "a panic, for a test");
            let is = |it: &u32| Some(it.to_string()) != wait.seen;
            let revision = revision.wait_for(is).await.unwrap().to_string();
            let name = ConfigName { name: "rendered".to_owned(), digest: "blake3:".to_owned() };
            let config = Arc::new(GivenConfig { name, text: "x".repeat(size) });
            let config = Some(config).filter(|_| size > 0);
            Ok(Instructions {
                revision,
                node: node.name,
                uid: node.uid,
                config,
                ..Instructions::default()
            })
        })
    }

    fn permit(&self, node: &OfNode, ask: Ask) -> BoxFuture<'static, tread_kube::agents::Answer> {
        let number = ask.number;
        self.asked.lock().unwrap().push((node.clone(), ask));
        Box::pin(async move { tread_kube::agents::Answer::Permitted { number, lasts: 1000 } })
    }
}

/// A namespace with agents on nodes, and the port that answers them.
struct Bed {
    plane: &'static ControlPlane,
    namespace: String,
    at: SocketAddr,
}

impl Bed {
    async fn with(knows: Arc<Knows>) -> Bed {
        Bed::remembering(Duration::from_secs(60), knows).await
    }

    async fn remembering(kept: Duration, knows: Arc<Knows>) -> Bed {
        let plane = BED.get().unwrap();
        let namespace = plane.namespace("agents").unwrap();
        let port = Port::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let bed = Bed { plane, namespace, at: port.address() };
        let router = bed.router_remembering(kept, knows).await;
        tokio::spawn(port.serve(router, std::future::pending()));
        for account in ["tread-agent", "other"] {
            plane
                .kubectl(&["create", "serviceaccount", account, "-n", &bed.namespace])
                .and_then(|ran| ran.success())
                .unwrap();
        }
        bed
    }

    /// What answers agents, without a port.
    async fn router(&self, knows: Arc<Knows>) -> Router {
        self.router_remembering(Duration::from_secs(60), knows).await
    }

    async fn router_remembering(&self, kept: Duration, knows: Arc<Knows>) -> Router {
        let client = tread_kube::client::client(self.plane.admin().client_config().await.unwrap());
        let account = (self.namespace.as_str(), "tread-agent");
        let reviewer = AgentReviewer::remembering(kept, client.unwrap(), account, Metrics::new());
        agents(reviewer, knows)
    }

    /// A pod of an account, on a node that is made; both are called so.
    fn pod(&self, name: &str, account: &str, is_on_node: bool) -> String {
        let node = format!("{}-{name}", self.namespace);
        let on = if is_on_node { format!("nodeName: {node},") } else { String::new() };
        let namespace = &self.namespace;
        self.plane
            .apply(&format!(
                "
apiVersion: v1
kind: Node
metadata: {{name: {node}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{{on} serviceAccountName: {account}, containers: [{{name: agent, image: tread}}]}}
"
            ))
            .unwrap();
        node
    }

    fn token(&self, account: &str, more: &[&str]) -> String {
        let args = ["create", "token", account, "-n", &self.namespace];
        let ran = self.plane.kubectl(&[&args[..], more].concat()).unwrap();
        ran.success().unwrap().trim().to_owned()
    }

    fn token_of_pod(&self, account: &str, pod: &str) -> String {
        let audience = format!("--audience={AUDIENCE}");
        let bound = format!("--bound-object-name={pod}");
        self.token(account, &[&audience, "--bound-object-kind=Pod", &bound])
    }

    async fn post(&self, path: &str, token: &str, body: &str) -> Answer {
        web::insist(self.at, &request(path, token, body)).await
    }

    async fn wait(&self, token: &str, seen: Option<u32>) -> Answer {
        let seen = seen.map(|seen| seen.to_string());
        self.post(WAIT, token, &json!({"form": 1, "seen": seen}).to_string()).await
    }
}

fn request(path: &str, token: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: tread\r\nConnection: close\r\nContent-Length: {length}\r\n\
         Authorization: Bearer {token}\r\n\r\n{body}"
    )
    .into_bytes()
}

fn ask(number: u64) -> String {
    let operation = "0123456789abcdef0123456789abcdef";
    json!({"operation": operation, "what": "write", "number": number}).to_string()
}

/// Asks for a permit without a port.
async fn asks(router: &Router, token: &str, body: Body) -> Response {
    let bearer = format!("Bearer {token}");
    let request = Request::post(PERMIT).header("Authorization", bearer).body(body).unwrap();
    router.clone().oneshot(request).await.unwrap()
}

/// Waits until the API server has said in time whose this token is: that is remembered.
async fn known(router: &Router, token: &str) {
    eventually("whose the token is", async || {
        (asks(router, token, Body::from(ask(1))).await.status() == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_answered_on_the_node_of_its_token_and_nobody_else_is() {
    let knows = Knows::with(0);
    let bed = Bed::with(knows.clone()).await;
    let (one, two) = (bed.pod("one", "tread-agent", true), bed.pod("two", "tread-agent", true));
    for (pod, node) in [("one", &one), ("two", &two)] {
        let token = bed.token_of_pod("tread-agent", pod);
        let answer = bed.wait(&token, None).await;
        assert_eq!((answer.status, &answer.json()["node"]), (200, &json!(node)), "{}", answer.body);
        let uid = ["get", "node", node.as_str(), "-o", "jsonpath={.metadata.uid}"];
        let uid = bed.plane.kubectl(&uid).unwrap().success().unwrap();
        assert_eq!(answer.json()["uid"], json!(uid));
        let answer = bed.post(PERMIT, &token, &ask(7)).await;
        assert_eq!(answer.json(), json!({"permitted": {"number": 7, "lasts": 1000}}));
        let (of, asked) = knows.asked.lock().unwrap().pop().unwrap();
        assert_eq!((&of.name, asked.number), (node, 7));
    }
    // Whoever says in the request which node it is, is not understood.
    let token = bed.token_of_pod("tread-agent", "one");
    let said = bed.post(WAIT, &token, &json!({"form": 1, "node": two}).to_string()).await;
    assert_eq!(said.status, 400);

    bed.pod("nowhere", "tread-agent", false);
    bed.pod("stranger", "other", true);
    let audience = format!("--audience={AUDIENCE}");
    let bound = ["--bound-object-kind=Pod", "--bound-object-name=one"];
    for (what, token, status, says) in [
        ("the API server's audience", bed.token("tread-agent", &bound), 401, "tread.dev/agents"),
        (
            "another audience",
            bed.token("tread-agent", &[&["--audience=vault"], &bound[..]].concat()),
            401,
            "tread.dev/agents",
        ),
        ("no pod", bed.token("tread-agent", &[&audience]), 403, "bound to no pod on a node"),
        (
            "a pod that is on no node",
            bed.token_of_pod("tread-agent", "nowhere"),
            403,
            "bound to no pod on a node",
        ),
        (
            "another account on a node",
            bed.token_of_pod("other", "stranger"),
            403,
            ":other is no agent of this tread",
        ),
        ("a made-up one", "a.b.c".to_owned(), 401, "does not know this token"),
        ("none", String::new(), 401, "Authorization: Bearer"),
    ] {
        for path in [WAIT, PERMIT] {
            let answer = bed.post(path, &token, &ask(8)).await;
            assert_eq!(answer.status, status, "{what}: {}", answer.body);
            assert!(answer.error().contains(says), "{what}: {}", answer.error());
        }
    }
    assert!(knows.asked.lock().unwrap().is_empty(), "nobody else was given a permit");
    assert_eq!(knows.waiting.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_a_pod_that_is_gone_is_of_no_use_a_moment_later() {
    let knows = Knows::with(0);
    let kept = Duration::from_millis(100);
    let bed = Bed::remembering(kept, knows.clone()).await;
    bed.pod("one", "tread-agent", true);
    let token = bed.token_of_pod("tread-agent", "one");
    assert_eq!(bed.wait(&token, None).await.status, 200);
    // It waits when its pod goes: what comes then is not for it.
    let waits = bed.wait(&token, Some(1));
    tokio::pin!(waits);
    tokio::select! {
        answer = &mut waits => panic!("{answer:?}"),
        () = eventually("it waits", async || {
            (knows.waiting.load(Ordering::SeqCst) == 1).then_some(())
        }) => {}
    }
    let delete = ["delete", "pod", "one", "-n", &bed.namespace, "--force", "--grace-period=0"];
    bed.plane.kubectl(&delete).and_then(|ran| ran.success()).unwrap();
    eventually("the API server knows it no more", async || {
        (bed.post(PERMIT, &token, &ask(1)).await.status == 401).then_some(())
    })
    .await;
    knows.revision.send_replace(2);
    assert_eq!(waits.await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_waits_until_there_is_something_else_and_only_its_newest_question_does() {
    let knows = Knows::with(0);
    let bed = Bed::with(knows.clone()).await;
    bed.pod("one", "tread-agent", true);
    let token = bed.token_of_pod("tread-agent", "one");
    let first = bed.wait(&token, Some(1));
    tokio::pin!(first);
    tokio::select! {
        answer = &mut first => panic!("{answer:?}"),
        () = eventually("it waits", async || {
            (knows.waiting.load(Ordering::SeqCst) == 1).then_some(())
        }) => {}
    }
    let second = bed.wait(&token, Some(1));
    tokio::pin!(second);
    let first = tokio::select! {
        answer = &mut second => panic!("{answer:?}"),
        answer = &mut first => answer,
    };
    assert_eq!(first.status, 409);
    knows.revision.send_replace(2);
    assert_eq!(second.await.status, 200);
    // Who leaves waits no more.
    let mut leaves = TcpStream::connect(bed.at).await.unwrap();
    leaves.write_all(&request(WAIT, &token, r#"{"form":1,"seen":"2"}"#)).await.unwrap();
    let waiting = async |count: usize| {
        eventually("so many wait", async || {
            (knows.waiting.load(Ordering::SeqCst) == count).then_some(())
        })
        .await;
    };
    waiting(1).await;
    drop(leaves);
    waiting(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_question_is_refused_with_a_sentence_and_stops_nobody() {
    let knows = Knows::with(0);
    let bed = Bed::with(knows.clone()).await;
    bed.pod("one", "tread-agent", true);
    let token = bed.token_of_pod("tread-agent", "one");
    for (path, body, status) in [
        (WAIT, String::new(), 400),
        (WAIT, "{".to_owned(), 400),
        (WAIT, r#"{"form":-1}"#.to_owned(), 400),
        (WAIT, r#"{"form":1,"more":1}"#.to_owned(), 400),
        (WAIT, format!(r#"{{"form":1,"seen":"{}"}}"#, "x".repeat(5000)), 413),
        (WAIT, "[".repeat(4000), 400),
        (WAIT, r#"{"form":99}"#.to_owned(), 500),
        (PERMIT, r#"{"operation":"x","what":"repartition","number":1}"#.to_owned(), 400),
        (PERMIT, "\u{0}".to_owned(), 400),
        ("/v1/agent", "{}".to_owned(), 404),
    ] {
        let answer = bed.post(path, &token, &body).await;
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.body);
        assert!(!answer.error().is_empty());
    }
    let get = web::get(bed.at, WAIT, Some(&token)).await;
    assert_eq!(get.status, 405);
    assert_eq!(bed.wait(&token, None).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_sends_many_questions_by_halves_keeps_no_other_one_from_a_permit() {
    let knows = Knows::with(0);
    let bed = Bed::with(knows.clone()).await;
    bed.pod("slow", "tread-agent", true);
    bed.pod("well", "tread-agent", true);
    let slow = bed.token_of_pod("tread-agent", "slow");
    let well = bed.token_of_pod("tread-agent", "well");
    // More than are answered at a time, and than one address may have connections to this port.
    let router = bed.router(knows).await;
    for token in [&slow, &well] {
        known(&router, token).await;
    }
    let (half, more) = (Ok::<_, Infallible>("{"), 300);
    let halves = || stream::iter([half]).chain(stream::pending());
    let mut halves: FuturesUnordered<_> =
        (0..more).map(|_| asks(&router, &slow, Body::from_stream(halves()))).collect();
    let mut refused = 0;
    for _ in 4..more {
        let status = halves.next().await.unwrap().status();
        // Those that hold a place are given up after a while, on a slow machine before all are
        // refused.
        assert!([429, 408].contains(&status.as_u16()), "{status}");
        refused += usize::from(status == 429);
    }
    assert!(refused > 0);
    let mut permitted = pin!(asks(&router, &well, Body::from(ask(7))));
    let permitted = loop {
        tokio::select! {
            answer = &mut permitted => break answer,
            Some(answer) = halves.next() => drop(answer),
        }
    };
    assert_eq!(permitted.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_hang_or_do_not_read_keep_no_other_one_waiting() {
    // More than what the system takes of a connection that nobody reads.
    let knows = Knows::with(8 << 20);
    let bed = Bed::with(knows.clone()).await;
    bed.pod("slow", "tread-agent", true);
    bed.pod("well", "tread-agent", true);
    let slow = bed.token_of_pod("tread-agent", "slow");
    let well = bed.token_of_pod("tread-agent", "well");
    // From here on it is remembered whose the token is.
    assert_eq!(bed.wait(&slow, None).await.status, 200);
    let whole = request(WAIT, &slow, r#"{"form":1}"#);
    let half = whole.split_last().unwrap().1;
    let mut hanging = Vec::new();
    for _ in 0..10 {
        for sent in [half, &whole] {
            let mut stream = TcpStream::connect(bed.at).await.unwrap();
            stream.write_all(sent).await.unwrap();
            hanging.push(stream);
        }
        // This one is being told: the next question would end one that still waits.
        let mut first = [0; 12];
        hanging.last_mut().unwrap().read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
    }
    let answer = bed.wait(&well, None).await;
    assert_eq!(answer.status, 200, "{}", answer.headers);
    assert_eq!(answer.json()["config"]["text"].as_str().map(str::len), Some(8 << 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_holds_eight_connections_at_a_time_and_keeps_no_other_one_out() {
    let knows = Knows::with(0);
    let bed = Bed::with(knows.clone()).await;
    bed.pod("greedy", "tread-agent", true);
    bed.pod("well", "tread-agent", true);
    let greedy = bed.token_of_pod("tread-agent", "greedy");
    let well = bed.token_of_pod("tread-agent", "well");
    let metrics = Metrics::new();
    let port = Port::bind("127.0.0.1:0".parse().unwrap()).unwrap().counting(&metrics);
    let at = port.address();
    let router = bed.router(knows).await;
    for token in [&greedy, &well] {
        known(&router, token).await;
    }
    tokio::spawn(port.serve_agents_plainly(router, std::future::pending()));
    let (of_node, more) = (8, 12);
    let whole = request(WAIT, &greedy, r#"{"form":1}"#);
    let half = whole.split_last().unwrap().1;
    // What is not sent is waited for on each.
    let mut halves: FuturesUnordered<_> = (0..more).map(|_| web::send(at, half)).collect();
    let mut refused = 0;
    for _ in of_node..more {
        let answer = halves.next().await.unwrap().unwrap();
        // Those that have a place are given up after a while, on a slow machine before all are
        // refused.
        assert!([429, 408].contains(&answer.status), "{}", answer.body);
        if answer.status == 429 {
            refused += 1;
            assert!(answer.error().contains("too many connections"), "{}", answer.body);
        }
    }
    assert!(refused > 0);
    let text = metrics.text().unwrap();
    let counted = "tread_connections_turned_away_total{port=\"agents\",how=\"refused\"}";
    assert!(text.contains(&format!("{counted} {refused}")), "{text}");
    let question = request(WAIT, &well, r#"{"form":1}"#);
    let mut answered = pin!(web::send(at, &question));
    let answer = loop {
        tokio::select! {
            answer = &mut answered => break answer.unwrap(),
            Some(answer) = halves.next() => drop(answer),
        }
    };
    assert_eq!(answer.status, 200, "{}", answer.body);
}
