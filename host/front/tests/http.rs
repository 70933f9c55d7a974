//! What is answered by HTTP, to whom, and what nobody can do to it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a helper of a test fails the test"
)]

use crate::support::web;
use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tread_front::http::{Check, Items, Limits, Lists, Port, Reviewer, guarded, lists, plain};
use tread_kube::metrics::Metrics;
use tread_test_bed::{Access, ControlPlane, Part, Shared, eventually};

static BED: Shared = Shared::new(|| ControlPlane::options().with_user("alice", &["readers"]));

/// Serves until it is dropped.
struct Served {
    at: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Served {
    fn start(router: Router) -> Served {
        Served::counting(router, &Metrics::new())
    }

    fn counting(router: Router, metrics: &Metrics) -> Served {
        let port = Port::bind("127.0.0.1:0".parse().unwrap()).unwrap().counting(metrics);
        let at = port.address();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(port.serve(router, async {
            let _ = stopped.await;
        }));
        Served { at, stop: Some(stop), task }
    }
}

struct Known;

impl Lists for Known {
    fn plans(&self) -> Items {
        items(vec![json!({"metadata": {"name": "worker.99-chrony"}})])
    }

    fn plan(&self, name: &str) -> Option<Vec<u8>> {
        let plan = || json!({"metadata": {"name": name}, "status": {"changes": 9000}});
        (name == "worker.99-chrony").then(|| plan().to_string().into_bytes())
    }

    fn policies(&self) -> Items {
        items(vec![json!({"metadata": {"name": "registries"}})])
    }

    fn boot_images(&self) -> Items {
        items(vec![json!({"name": "worker-a"})])
    }
}

fn items(all: Vec<Value>) -> Items {
    Box::new(all.into_iter().map(|it| it.to_string().into_bytes()))
}

fn tread(client: kube::Client) -> Served {
    Served::start(lists(Reviewer::new(client, "tread-two", Metrics::new()), Arc::new(Known)))
}

/// The token in a kubeconfig, or one made for a service account.
fn token(access: &Access) -> String {
    let config: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(access.kubeconfig()).unwrap()).unwrap();
    config["users"][0]["user"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_has_a_line_for_each_check_and_says_why_not() {
    let checks = Arc::new(Mutex::new(vec![Check::good("policies", "14 loaded")]));
    let asked = checks.clone();
    let readiness = Arc::new(move || asked.lock().unwrap().clone());
    let served = Served::start(plain(readiness, Metrics::new()));
    let ready = web::get(served.at, "/readyz", None).await;
    assert_eq!((ready.status, ready.body.as_str()), (200, "ready\nok policies: 14 loaded\n"));
    let message = "configmaps is forbidden\nok everything: \u{1b}[32mfine\u{202e}";
    checks.lock().unwrap().push(Check::bad("watches", message));
    let not = web::get(served.at, "/readyz", None).await;
    assert_eq!(not.status, 503);
    let lines: Vec<&str> = not.body.lines().collect();
    assert_eq!(
        lines,
        [
            "not ready",
            "failed watches: configmaps is forbidden; ok everything: [32mfine",
            "ok policies: 14 loaded"
        ]
    );
    // It is alive all the same.
    assert_eq!(web::get(served.at, "/healthz", None).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_counted_can_be_read() {
    let metrics = Metrics::new();
    metrics.leads.set(1);
    let served = Served::start(plain(Arc::new(Vec::new), metrics));
    let answer = web::get(served.at, "/metrics", None).await;
    assert_eq!(answer.status, 200);
    assert!(answer.headers.contains("content-type: application/openmetrics-text; version=1.0.0"));
    assert!(answer.body.contains("\ntread_leads 1\n"), "{}", answer.body);
    assert!(answer.body.ends_with("# EOF\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_read_the_objects_may_read_them_here() {
    let plane = BED.get().unwrap();
    let served = tread(plane.client().await.unwrap());
    let alice = token(plane.user("alice").unwrap());
    for path in [
        "/v1/plans",
        "/v1/plans/worker.99-chrony",
        "/v1/plans/no-such",
        "/v1/policies",
        "/v1/bootimages",
    ] {
        let answer = web::known(served.at, path, Some(&alice)).await;
        assert_eq!(answer.status, 403, "{path}: a name must not be told to her");
        assert!(answer.error().contains("alice may not "), "{}", answer.error());
        let role = "bind the ClusterRole tread-view.tread-two";
        assert!(answer.error().ends_with(role), "{}", answer.error());
        assert!(!answer.body.contains("chrony") || path.contains("chrony"), "{}", answer.body);
    }
    // One who may read one plan by name, and list policies.
    plane
        .apply(
            "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: some}
rules:
- {apiGroups: [tread.dev], resources: [disruptionplans], resourceNames: [worker.99-chrony], verbs: [get]}
- {apiGroups: [tread.dev], resources: [disruptionpolicies], verbs: [list]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: some}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: some}
subjects: [{kind: ServiceAccount, name: robot, namespace: default}]
",
        )
        .unwrap();
    let robot = token(&plane.service_account("default", "robot").unwrap());
    // The authorizer of the API server learns of a role a moment later, and an
    // answer counts for some seconds.
    eventually("the role is known", async || {
        (web::known(served.at, "/v1/policies", Some(&robot)).await.status == 200).then_some(())
    })
    .await;
    let policies = web::known(served.at, "/v1/policies", Some(&robot)).await;
    assert_eq!(policies.json()["items"][0]["metadata"]["name"], "registries");
    let one = web::known(served.at, "/v1/plans/worker.99-chrony", Some(&robot)).await;
    assert_eq!((one.status, &one.json()["status"]["changes"]), (200, &json!(9000)));
    assert_eq!(web::known(served.at, "/v1/plans", Some(&robot)).await.status, 403);
    assert_eq!(web::known(served.at, "/v1/plans/another", Some(&robot)).await.status, 403);
    // One who may read all is told what is not there.
    plane
        .kubectl(&["create", "serviceaccount", "all"])
        .and_then(|_| {
            plane.kubectl(&[
                "create",
                "clusterrolebinding",
                "all",
                "--clusterrole=cluster-admin",
                "--serviceaccount=default:all",
            ])
        })
        .unwrap()
        .success()
        .unwrap();
    let all = token(&plane.service_account("default", "all").unwrap());
    eventually("the binding is known", async || {
        (web::known(served.at, "/v1/plans", Some(&all)).await.status == 200).then_some(())
    })
    .await;
    let missing = web::known(served.at, "/v1/plans/no-such", Some(&all)).await;
    assert_eq!(missing.status, 404);
    assert!(missing.error().contains("/v1/plans lists them"));
    assert_eq!(web::known(served.at, "/v1/plans/No_Such", Some(&all)).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_no_token_of_the_cluster_is_told_how_to_get_one() {
    let plane = BED.get().unwrap();
    let served = tread(plane.client().await.unwrap());
    for made_up in [None, Some("abc"), Some("a.b.c"), Some(&"x".repeat(17_000) as &str)] {
        let answer = web::known(served.at, "/v1/plans", made_up).await;
        assert_eq!(answer.status, 401);
        assert!(answer.headers.contains("www-authenticate: bearer"));
        assert!(answer.error().contains("kubectl create token"), "{}", answer.error());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_the_api_server_count_for_seconds_and_not_without_end() {
    let plane = ControlPlane::options().with_audit_log().with_user("alice", &[]).start().unwrap();
    let served = tread(plane.client().await.unwrap());
    let alice = token(plane.user("alice").unwrap());
    let begun = std::time::Instant::now();
    for _ in 0..50 {
        assert_eq!(web::known(served.at, "/v1/plans", Some(&alice)).await.status, 403);
        assert_eq!(web::known(served.at, "/v1/plans", Some("made-up")).await.status, 401);
    }
    let log = std::fs::read_to_string(plane.audit_log()).unwrap();
    let reviews = log.lines().filter(|line| {
        line.contains("\"resource\":\"tokenreviews\"")
            || line.contains("\"resource\":\"subjectaccessreviews\"")
    });
    let reviews = reviews.count();
    // Three in ten seconds, however long the requests took.
    let most = 3 * (usize::try_from(begun.elapsed().as_secs()).unwrap() / 10 + 1) + 3;
    assert!((1..=most).contains(&reviews), "{reviews} reviews for 100 requests, and not {most}");
    let pause = plane.pause(Part::ApiServer).unwrap();
    // Neither yes nor no.
    let answer = web::get(served.at, "/v1/plans", Some("another")).await;
    assert_eq!(answer.status, 503);
    assert!(answer.error().contains("does not answer"), "{}", answer.error());
    pause.resume().unwrap();
    eventually("it is back", async || {
        (web::get(served.at, "/v1/plans", Some("a third")).await.status == 401).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_can_stop_it() {
    let served = Served::start(plain(Arc::new(Vec::new), Metrics::new()));
    let post = |path: &str, body: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    for (request, status) in [
        (post("/healthz", ""), 405),
        (post("/nothing", &"x".repeat(10_000)), 404),
        ("GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_owned(), 404),
        ("GET /%ff%00 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_owned(), 404),
        ("garbage\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(1000)), 431),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(100_000)), 414),
    ] {
        let answer = web::send(served.at, request.as_bytes()).await.unwrap();
        assert_eq!(answer.status, status, "{}", &request[..40.min(request.len())]);
    }
    for bytes in
        [&b"\x16\x03\x01\x02\x00"[..], b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0xff; 4096]]
    {
        let mut stream = TcpStream::connect(served.at).await.unwrap();
        let _ = stream.write_all(bytes).await;
    }
    assert_eq!(web::get(served.at, "/healthz", None).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_one_failed_answer_and_a_slow_one_is_given_up() {
    let hangs = Arc::new(AtomicUsize::new(0));
    let entered = hangs.clone();
    let router = Router::new()
        .route("/panic", get(async || -> &'static str { panic!("on purpose") }))
        .route(
            "/hang",
            get(async move || {
                entered.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            }),
        )
        .route("/fine", get(async || "fine"))
        .route(
            "/read",
            axum::routing::post(async |body: axum::body::Bytes| body.len().to_string()),
        );
    let limits = Limits { at_a_time: 2, time: Duration::from_secs(2), body: 100 };
    let served = Served::start(guarded(router, limits));
    let answer = web::known(served.at, "/panic", None).await;
    assert_eq!(answer.status, 500);
    assert!(!answer.body.contains("on purpose"), "{}", answer.body);
    // Many at a time: two are answered, the others wait, all within the time.
    let many: Vec<_> = (0..8)
        .map(|_| {
            let at = served.at;
            tokio::spawn(async move { web::get(at, "/hang", None).await.status })
        })
        .collect();
    for one in many {
        assert_eq!(one.await.unwrap(), 503);
    }
    assert!(hangs.load(Ordering::SeqCst) >= 2);
    assert_eq!(web::known(served.at, "/fine", None).await.body, "fine");
    let body = |length: usize| {
        let body = "x".repeat(length);
        format!(
            "POST /read HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    assert_eq!(web::insist(served.at, body(100).as_bytes()).await.body, "100");
    assert_eq!(web::insist(served.at, body(101).as_bytes()).await.status, 413);
    // A body that never ends costs no more than the time.
    let half =
        "POST /read HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 50\r\n\r\nhalf";
    assert_eq!(web::send(served.at, half.as_bytes()).await.unwrap().status, 503);
}

const PROBE: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// A connection of a peer of its own.
async fn connected(from: u8, to: SocketAddr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, from], 0))).unwrap();
    socket.connect(to).await.unwrap()
}

/// What it answers to this; empty if it closes without.
async fn answered(mut stream: TcpStream, request: &[u8]) -> String {
    // It may be closed at any time.
    let _ = stream.write_all(request).await;
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_of_one_peer_or_of_many_keep_nobody_out_and_are_counted() {
    let metrics = Metrics::new();
    let served = Served::counting(plain(Arc::new(Vec::new), metrics.clone()), &metrics);
    let (mut silent, mut least) = (Vec::new(), 0);
    for peer in 1..=6 {
        let begun = std::time::Instant::now();
        for _ in 0..70 {
            silent.push(connected(peer, served.at).await);
        }
        // Also for that peer itself: the kubelet may have its address.
        for from in [peer, 99] {
            let answer = answered(connected(from, served.at).await, PROBE).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{peer} {from}: {answer:?}");
        }
        // On a busy machine they end by themselves before there are too many.
        least += if begun.elapsed() < Duration::from_secs(4) { 6 } else { 0 };
    }
    let text = web::get(served.at, "/metrics", None).await.body;
    let closed = text.lines().find(|line| line.contains("port=\"plain\",how=\"closed\""));
    let closed = closed.unwrap_or_else(|| panic!("{text}")).rsplit_once(' ').unwrap().1;
    assert!(closed.parse::<u32>().unwrap() >= least, "{closed}, and not {least}");
    // The others end by themselves.
    for stream in &mut silent {
        let mut said = [0; 512];
        let ended = tokio::time::timeout(Duration::from_secs(600), stream.read(&mut said)).await;
        assert!(ended.is_ok(), "it stays open");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_all_connections_are_being_answered_probes_are_answered_too() {
    let metrics = Metrics::new();
    let hangs = Arc::new(AtomicUsize::new(0));
    let entered = hangs.clone();
    let hang = get(async move || {
        entered.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<()>().await;
    });
    let router =
        plain(Arc::new(Vec::new), metrics.clone()).merge(Router::new().route("/hang", hang));
    let served = Served::counting(router, &metrics);
    let mut busy = Vec::new();
    for peer in 1..=4 {
        for _ in 0..64 {
            let mut stream = connected(peer, served.at).await;
            stream.write_all(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
            busy.push(stream);
        }
    }
    eventually("all of them are being answered", async || {
        (hangs.load(Ordering::SeqCst) == 256).then_some(())
    })
    .await;
    let request = b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = answered(connected(99, served.at).await, request).await;
    assert!(answer.contains("too many connections are open"), "{answer:?}");
    for _ in 0..100 {
        for from in [1, 99] {
            let answer = answered(connected(from, served.at).await, PROBE).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{from}: {answer:?}");
        }
    }
    drop(busy);
    eventually("room", async || {
        let answer = web::get(served.at, "/metrics", None).await;
        (answer.status == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn made_up_tokens_of_one_peer_cost_few_reviews_and_do_not_keep_others_out() {
    let plane = ControlPlane::options().with_audit_log().with_user("alice", &[]).start().unwrap();
    let served = tread(plane.client().await.unwrap());
    let alice = token(plane.user("alice").unwrap());
    let begun = std::time::Instant::now();
    let ask = async |from: u8, token: &str| {
        let request = format!(
            "GET /v1/plans HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer \
             {token}\r\n\r\n"
        );
        answered(connected(from, served.at).await, request.as_bytes()).await
    };
    let (mut refused, mut unanswered) = (0, 0);
    for number in 0..300 {
        let answer = ask(1, &format!("made-up-{number}")).await;
        // On a busy machine the API server does not say in time.
        if answer.starts_with("HTTP/1.1 503") {
            unanswered += 1;
            continue;
        }
        let is_refused = answer.starts_with("HTTP/1.1 429") && answer.contains("ask again in");
        assert!(is_refused || answer.starts_with("HTTP/1.1 401"), "{answer}");
        refused += usize::from(is_refused);
    }
    let most = 10 + usize::try_from(begun.elapsed().as_secs()).unwrap() + 1 + unanswered;
    assert!(refused + most >= 300, "{refused} of 300 were refused");
    // Whoever asks from elsewhere is told what she may, and what was known stays known.
    eventually("both are told", async || {
        let begun = std::time::Instant::now();
        let told = [ask(2, &alice).await, ask(1, &alice).await];
        let both = told.iter().all(|answer| answer.starts_with("HTTP/1.1 403"));
        // What is known counts for seconds, and a question is given up after five.
        assert!(both || begun.elapsed() > Duration::from_secs(4), "{told:?}");
        both.then_some(())
    })
    .await;
    let log = std::fs::read_to_string(plane.audit_log()).unwrap();
    let reviews = log.lines().filter(|line| line.contains("\"resource\":\"tokenreviews\""));
    let reviews = reviews.filter(|line| line.contains("ResponseComplete")).count();
    let most = 10 + usize::try_from(begun.elapsed().as_secs()).unwrap() + 2 + unanswered;
    assert!(reviews <= most, "{reviews} reviews, and not {most}");
}

/// An API server that knows everybody and allows everything, once it answers; and how often it was
/// asked.
fn knows_everybody(answers: watch::Receiver<bool>) -> (kube::Client, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut answers = answers.clone();
        let answer = match request.uri().path().ends_with("/tokenreviews") {
            true => json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                "spec": {}, "status": {"authenticated": true, "user": {"username": "alice"}}}),
            false => json!({"apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview", "spec": {}, "status": {"allowed": true}}),
        };
        async move {
            answers.wait_for(|answers| *answers).await?;
            let body = kube::client::Body::from(answer.to_string().into_bytes());
            Ok::<_, tower::BoxError>(http::Response::builder().status(201).body(body)?)
        }
    });
    (kube::Client::new(service, "default"), asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn many_readers_behind_one_address_wait_for_their_turns_and_none_is_refused() {
    let answers = watch::Sender::new(false);
    let (client, asked) = knows_everybody(answers.subscribe());
    let served = tread(client);
    let readers: Vec<_> = (0..16)
        .map(|number| {
            let at = served.at;
            tokio::spawn(async move {
                loop {
                    let begun = std::time::Instant::now();
                    let token = format!("token-{number}");
                    let answer = web::get(at, "/v1/plans", Some(&token)).await;
                    // On a busy machine it takes too long: then it is asked again.
                    if answer.status != 503 || begun.elapsed() < Duration::from_secs(4) {
                        break answer;
                    }
                }
            })
        })
        .collect();
    eventually("some are asked about", async || (asked.load(Ordering::SeqCst) >= 4).then_some(()))
        .await;
    answers.send_replace(true);
    for reader in readers {
        let answer = reader.await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_the_api_server_does_not_answer_are_no_made_up_tokens() {
    // Nobody listens there.
    let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let served = tread(kube::Client::try_from(nowhere).unwrap());
    for number in 0..40 {
        let answer = web::get(served.at, "/v1/plans", Some(&format!("token-{number}"))).await;
        assert_eq!(answer.status, 503, "{number}: {}", answer.body);
    }
}

/// How many bodies there are, and the most at a time.
#[derive(Default)]
struct Bodies {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// A body of which it is known when it is gone.
struct Noted(Arc<Bodies>);

impl Noted {
    fn begin(all: &Arc<Bodies>) -> Noted {
        let now = all.now.fetch_add(1, Ordering::SeqCst) + 1;
        all.most.fetch_max(now, Ordering::SeqCst);
        Noted(Arc::clone(all))
    }
}

impl AsRef<[u8]> for Noted {
    fn as_ref(&self) -> &[u8] {
        static LARGE: [u8; 64 << 20] = [b'a'; 64 << 20];
        &LARGE
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_do_not_read_is_bounded_and_given_up() {
    const TIME: Duration = Duration::from_secs(3);
    let bodies: Arc<Bodies> = Arc::default();
    let all = Arc::clone(&bodies);
    let large = async move || {
        let body = axum::body::Bytes::from_owner(Noted::begin(&all));
        axum::body::Body::from(body)
    };
    let router = Router::new().route("/large", get(large));
    let limits = Limits { at_a_time: 4, time: TIME, body: 1024 };
    let served = Served::start(guarded(router, limits));
    let request = b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut silent = Vec::new();
    for from in 1..=20 {
        let mut stream = connected(from, served.at).await;
        stream.write_all(request).await.unwrap();
        silent.push(stream);
    }
    eventually("as many as may be are sent", async || {
        (bodies.most.load(Ordering::SeqCst) >= 4).then_some(())
    })
    .await;
    // All of them have been given up, or were told to try again.
    eventually("none is left", async || (bodies.now.load(Ordering::SeqCst) == 0).then_some(()))
        .await;
    assert_eq!(bodies.most.load(Ordering::SeqCst), 4);
    // Whoever reads has all of it, on a busy machine not at once.
    let answer = eventually("all of it", async || {
        let answer = web::known(served.at, "/large", None).await;
        (answer.body.len() == 64 << 20).then_some(answer)
    })
    .await;
    let length = format!("content-length: {}", 64 << 20);
    assert!(answer.status == 200 && answer.headers.contains(&length), "{}", answer.headers);
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_is_finished_when_it_stops() {
    let (begin, release) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
    let (begun, released) = (begin.clone(), release.clone());
    let router = Router::new().route(
        "/",
        get(async move || {
            begun.store(true, Ordering::SeqCst);
            released.notified().await;
            "done"
        }),
    );
    let mut served = Served::start(router);
    let at = served.at;
    let asked = tokio::spawn(async move { web::get(at, "/", None).await.body });
    eventually("it is asked", async || begin.load(Ordering::SeqCst).then_some(())).await;
    drop(served.stop.take());
    eventually("nobody new is answered", async || TcpStream::connect(at).await.err()).await;
    release.notify_one();
    assert_eq!(asked.await.unwrap(), "done");
    served.task.await.unwrap().unwrap();
}
