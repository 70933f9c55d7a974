//! What whoever applies a change reads, and that nobody is ever blocked: with a
//! real API server, which asks tread by TLS.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails the test"
)]

use axum::http::Request;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;
use tread_front::admission::certificates::{Lives, service_names};
use tread_front::admission::{
    Certificates, PATH, Paths, Purpose, SECRET, Settings, WEBHOOK, Warn, webhook,
};
use tread_front::http::Port;
use tread_front::manifests::webhook::{Reached, configuration};
use tread_kube::api::crds;
use tread_kube::leadership::{Election, Leading, Timings};
use tread_kube::metrics::Metrics;
use tread_kube::review::Warned;
use tread_test_bed::{Access, ControlPlane, Part, Ran, answered, eventually};

/// Nobody takes over here, so a leader that stands still for a while goes on.
const TIMINGS: Timings = Timings {
    lease: Duration::from_secs(600),
    deadline: Duration::from_secs(400),
    renew: Duration::from_millis(400),
    retry: Duration::from_millis(150),
    request: Duration::from_secs(60),
    longest: Duration::from_secs(600),
};

/// One replica, until it is dropped.
struct Replica {
    at: SocketAddr,
    certificates: Certificates,
    leading: Leading,
    metrics: Metrics,
    stop: watch::Sender<bool>,
}

impl Replica {
    fn start(client: Client, namespace: &str, lives: Lives, warn: Warn) -> Replica {
        let metrics = Metrics::new();
        let (stop, stopped) = watch::channel(false);
        let until = || {
            let mut stopped = stopped.clone();
            async move {
                let _ = stopped.wait_for(|stop| *stop).await;
            }
        };
        let election = Election {
            client: client.clone(),
            namespace: namespace.to_owned(),
            lease: "tread".to_owned(),
            replica: "replica".to_owned(),
            timings: TIMINGS,
            metrics: metrics.clone(),
            may_lead: watch::channel(true).1,
        };
        let (leading, elected) = election.start(until()).unwrap();
        let mut names = service_names("tread", namespace);
        names.push("127.0.0.1".to_owned());
        let settings = Settings {
            client,
            namespace: namespace.to_owned(),
            names,
            purpose: Purpose::Webhook,
            lives,
            leading: leading.clone(),
            metrics: metrics.clone(),
        };
        let (certificates, kept) = Certificates::start(settings, until()).unwrap();
        let port = Port::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let at = port.address();
        let router = webhook(warn, metrics.clone(), certificates.paths());
        let served = port.serve_tls(certificates.tls(), router, until());
        tokio::spawn(elected);
        tokio::spawn(kept);
        tokio::spawn(served);
        Replica { at, certificates, leading, metrics, stop }
    }

    async fn ready(&self) {
        eventually("a certificate", async || self.certificates.check().ok.then_some(())).await;
    }

    /// Sends something by TLS, with whom the API server is told to trust, and where it is told to
    /// ask: again where a connection ends without an answer. On a busy machine a request is sent too
    /// late for the service.
    async fn send(&self, (bundle, path): &(String, String), body: Vec<u8>) -> (u16, String) {
        let url = format!("https://{}", self.at).parse().unwrap();
        let mut config = kube::Config::new(url);
        let roots = rustls::pki_types::pem::PemObject::pem_slice_iter(bundle.as_bytes())
            .map(|der: Result<rustls::pki_types::CertificateDer<'_>, _>| der.unwrap().to_vec());
        config.root_cert = Some(roots.collect());
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let ask = || {
            let body = kube::client::Body::from(body.clone());
            client.send(Request::post(path).body(body).unwrap())
        };
        let response = answered(ask).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect_bytes().await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

fn says(text: &'static str) -> Warn {
    Arc::new(move |request| {
        let operation = format!("{:?}", request.operation).to_uppercase();
        let line = format!("{text} {operation} {} {}", request.kind, request.name);
        Box::pin(async move { vec![line].into() })
    })
}

/// Tests use it one after the other. It has the Lease as `tread manifests` brings it: held by nobody.
fn plane() -> ControlPlane {
    let definitions = [crds::crds(), crds::openshift()].concat();
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "tread", "namespace": "default"}});
    let options = ControlPlane::options().with_definitions(&definitions);
    options.with_objects(&lease.to_string()).maybe_used().start().unwrap()
}

fn install(plane: &ControlPlane, at: SocketAddr) {
    let configuration =
        configuration("default", "medik8s-leases", &Reached::At(format!("https://{at}")), false);
    plane.apply(&serde_saphyr::to_string(&configuration).unwrap()).unwrap();
}

/// Whom the API server is told to trust, and where to ask.
async fn registered(client: &Client) -> Option<(String, String)> {
    let api = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let webhooks = api.get("tread.default").await.unwrap().webhooks.unwrap();
    let url: axum::http::Uri = webhooks[0].client_config.url.clone()?.parse().unwrap();
    Some((bundle(client).await?, url.path().to_owned())).filter(|(_, path)| path != PATH)
}

async fn bundle(client: &Client) -> Option<String> {
    let api = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let configuration = api.get("tread.default").await.unwrap();
    let webhooks = configuration.webhooks.unwrap();
    let bundle = webhooks[0].client_config.ca_bundle.clone()?;
    Some(String::from_utf8(bundle.0).unwrap()).filter(|bundle| !bundle.is_empty())
}

fn machine_config(name: &str, argument: &str) -> String {
    format!(
        "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n\
         metadata: {{name: {name}, labels: {{machineconfiguration.openshift.io/role: worker}}}}\n\
         spec: {{kernelArguments: [{argument}]}}\n"
    )
}

/// `kubectl apply --dry-run=server`, which has to end well.
fn dry_run(plane: &ControlPlane, object: &str) -> Ran {
    let ran = tried(plane.admin(), object);
    assert_eq!(ran.code, 0, "it was blocked: {}{}", ran.stdout, ran.stderr);
    ran
}

/// The same, however it ends. The API server takes it or not: kubectl would take five times as long
/// to find out by itself.
fn tried(access: &Access, object: &str) -> Ran {
    let apply = ["apply", "--server-side", "--force-conflicts", "--validate=false"];
    let apply = [&apply[..], &["--dry-run=server", "-f", "-"]].concat();
    access.kubectl_with_input(&apply, object).unwrap()
}

/// Waits until the API server has learned to ask.
async fn warned(plane: &ControlPlane, words: &str) {
    eventually(words, async || {
        dry_run(plane, &machine_config("99-probe", "a")).stderr.contains(words).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_applies_or_deletes_a_change_is_warned() {
    let plane = plane();
    let client = plane.client().await.unwrap();
    let replica = Replica::start(client.clone(), "default", Lives::default(), says("größer →"));
    replica.ready().await;
    install(&plane, replica.at);
    warned(&plane, "Warning: größer → CREATE MachineConfig 99-probe").await;
    // On a machine that is too busy the API server gives up: then it is asked again.
    let mut number = 0;
    eventually("a real one", async || {
        number += 1;
        let name = format!("99-a{number}");
        let object = machine_config(&name, "a");
        let ran = plane.admin().kubectl_with_input(&["create", "-f", "-"], &object).unwrap();
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr.contains(&format!("CREATE MachineConfig {name}")).then_some(())
    })
    .await;
    eventually("a change", async || {
        let changed = dry_run(&plane, &machine_config("99-a1", "b")).stderr;
        changed.contains("UPDATE MachineConfig 99-a1").then_some(())
    })
    .await;
    for (object, words) in [
        (
            "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: {name: a}\n\
             spec: {imageDigestMirrors: [{source: a.example.com, mirrors: [b.example.com]}]}",
            "CREATE ImageDigestMirrorSet a",
        ),
        (
            "apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: a}\n\
             spec: {imageTagMirrors: [{source: a.example.com, mirrors: [b.example.com]}]}",
            "CREATE ImageTagMirrorSet a",
        ),
        (
            "apiVersion: operator.openshift.io/v1alpha1\nkind: ImageContentSourcePolicy\nmetadata: {name: a}\n\
             spec: {repositoryDigestMirrors: [{source: a.example.com, mirrors: [b.example.com]}]}",
            "CREATE ImageContentSourcePolicy a",
        ),
    ] {
        eventually(words, async || dry_run(&plane, object).stderr.contains(words).then_some(()))
            .await;
    }
    eventually("a deletion", async || {
        plane.apply(&machine_config("99-a1", "a")).unwrap();
        let gone = plane.kubectl(&["delete", "mc", "99-a1"]).unwrap();
        assert_eq!(gone.code, 0, "{}", gone.stderr);
        gone.stderr.contains("DELETE MachineConfig 99-a1").then_some(())
    })
    .await;
    // Those are OpenShift's own, and follow from others.
    let rendered = dry_run(&plane, &machine_config("rendered-worker-1", "a"));
    assert!(!rendered.stderr.contains("Warning"), "{}", rendered.stderr);
    let pool = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\n\
                metadata: {name: worker}\nspec: {}\n";
    assert!(!dry_run(&plane, pool).stderr.contains("Warning"));
    let counted = replica.metrics.text().unwrap();
    assert!(counted.contains("tread_warning_time_seconds_count"), "{counted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_blocked_by_a_panic_by_silence_by_floods_or_by_nobody() {
    let plane = plane();
    let client = plane.client().await.unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let mood = Arc::new(Mutex::new("fine"));
    let (counted, now) = (asked.clone(), mood.clone());
    let warn: Warn = Arc::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        let mood = *now.lock().unwrap();
        assert!(mood != "panics at once", "on purpose");
        Box::pin(async move {
            let lines = match mood {
                "panics" => panic!("on purpose"),
                "hangs" => std::future::pending().await,
                "blocks" => {
                    std::thread::sleep(Duration::from_secs(4));
                    vec!["too late".to_owned()]
                }
                "floods" => vec!["x\u{1b}[2J".repeat(5000); 5000],
                _ => vec!["fine".to_owned()],
            };
            lines.into()
        })
    });
    let replica = Replica::start(client.clone(), "default", Lives::default(), warn);
    replica.ready().await;
    install(&plane, replica.at);
    warned(&plane, "Warning: fine").await;
    for bad in ["panics", "panics at once", "hangs", "blocks"] {
        *mood.lock().unwrap() = bad;
        let before = asked.load(Ordering::SeqCst);
        eventually("it is asked", async || {
            let ran = dry_run(&plane, &machine_config("99-a", "a"));
            assert!(!ran.stderr.contains("Warning"), "{bad}: {}", ran.stderr);
            (asked.load(Ordering::SeqCst) > before).then_some(())
        })
        .await;
    }
    *mood.lock().unwrap() = "floods";
    eventually("some of it", async || {
        let ran = dry_run(&plane, &machine_config("99-a", "a"));
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert!(!ran.stderr.contains('\u{1b}'));
        lines.last().filter(|last| last.contains("more warnings")).map(|_| ())
    })
    .await;
    *mood.lock().unwrap() = "fine";
    warned(&plane, "Warning: fine").await;
    // Nobody at all.
    let at = replica.at;
    drop(replica);
    eventually("it has stopped", async || tokio::net::TcpStream::connect(at).await.err()).await;
    let ran = dry_run(&plane, &machine_config("99-a", "a"));
    assert!(!ran.stderr.contains("fine"), "{}", ran.stderr);
    // One that takes connections and says nothing: the API server gives up.
    let silent = tokio::net::TcpListener::bind(at).await.unwrap();
    dry_run(&plane, &machine_config("99-a", "a"));
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_review_is_refused_with_a_sentence() {
    let plane = plane();
    let client = plane.client().await.unwrap();
    let replica = Replica::start(client.clone(), "default", Lives::default(), says("asked"));
    replica.ready().await;
    install(&plane, replica.at);
    let to = eventually("whom to trust", async || registered(&client).await).await;
    let review = |object: serde_json::Value| {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "1", "operation": "CREATE", "name": "a", "userInfo": {}, "dryRun": true,
                "kind": {"group": "g", "version": "v1", "kind": "K"},
                "resource": {"group": "g", "version": "v1", "resource": "ks"},
                "object": object,
            },
        })
    };
    // Nested deeper than JSON is read elsewhere: that is for whoever compares it.
    let mut nested = json!(0);
    for _ in 0..900 {
        nested = json!([nested]);
    }
    let deep = review(json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"},
        "spec": nested}));
    let (status, body) = replica.send(&to, deep.to_string().into()).await;
    assert!(status == 200 && body.contains("asked CREATE K a"), "{status} {body}");
    let good = review(json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}}));
    let (status, body) = replica.send(&to, good.to_string().into()).await;
    assert_eq!(status, 200, "{body}");
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(answer["response"]["uid"], "1");
    assert_eq!(answer["response"]["warnings"], json!(["asked CREATE K a"]));
    let mut deep = "[".repeat(100_000);
    deep.push_str(&"]".repeat(100_000));
    for (bad, expected) in [
        (Vec::new(), 400),
        (b"null".to_vec(), 400),
        (b"{}".to_vec(), 400),
        (b"\xff\xfe".to_vec(), 400),
        (deep.into_bytes(), 400),
        (review(json!(5)).to_string().into_bytes(), 400),
        (
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})
                .to_string()
                .into(),
            400,
        ),
        // One byte more than it takes: whatever is longer is refused before it
        // has been sent whole, and who still sends may not get to read why.
        (vec![b' '; 4 * 1024 * 1024 + 1], 413),
    ] {
        let (status, body) = replica.send(&to, bad).await;
        assert_eq!(status, expected, "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_the_api_server_is_answered_and_nothing_is_done_for_others() {
    let plane = plane();
    let client = plane.client().await.unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let warn: Warn = Arc::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { vec!["asked".to_owned()].into() })
    });
    let replica = Replica::start(client.clone(), "default", Lives::default(), warn);
    replica.ready().await;
    install(&plane, replica.at);
    warned(&plane, "Warning: asked").await;
    let (bundle, path) = registered(&client).await.unwrap();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "1", "operation": "DELETE", "name": "a", "kind": {"kind": "K"}},
    });
    let before = asked.load(Ordering::SeqCst);
    let guesses = [
        "/warn".to_owned(),
        "/warn/".to_owned(),
        "/warn/guessed".to_owned(),
        format!("/warn/{}", "0".repeat(40)),
        format!("{path}0"),
        format!("{path}/"),
        path.to_uppercase(),
        path.replace("/warn/", "/warn//"),
    ];
    for guess in guesses {
        let to = (bundle.clone(), guess.clone());
        // Whether it is a review is not looked at.
        for body in [review.to_string(), "no review".to_owned()] {
            let (status, said) = replica.send(&to, body.into_bytes()).await;
            assert_eq!((status, said.contains("nothing at this path")), (404, true), "{guess}");
        }
    }
    assert_eq!(asked.load(Ordering::SeqCst), before);
    let (status, _) = replica.send(&(bundle, path), review.to_string().into_bytes()).await;
    assert_eq!((status, asked.load(Ordering::SeqCst)), (200, before + 1));
}

/// How long warnings took that were timed, and how many were not.
fn timed(metrics: &Metrics) -> (String, String) {
    let text = metrics.text().unwrap();
    let value = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
    };
    (value("tread_warning_time_seconds_count"), value("tread_untimed_warnings_total"))
}

#[tokio::test]
async fn nobody_is_told_how_long_a_warning_took_for_which_a_policy_was_offered_a_secret() {
    let warn: Warn = Arc::new(move |asked| {
        let offered_secrets = asked.name == "secret";
        Box::pin(async move { Warned { lines: vec!["asked".to_owned()], offered_secrets } })
    });
    let metrics = Metrics::new();
    let router = webhook(warn, metrics.clone(), Paths::of(&["/warn/known"]));
    let port = Port::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let at = port.address();
    tokio::spawn(port.serve(router, std::future::pending()));
    let client = Client::try_from(kube::Config::new(format!("http://{at}").parse().unwrap()));
    let client = client.unwrap();
    for name in ["secret", "open", "secret"] {
        let review = json!({"request": {
            "uid": "1", "operation": "CREATE", "name": name, "kind": {"kind": "K"},
        }});
        let request = Request::post("/warn/known").body(review.to_string().into_bytes()).unwrap();
        let answer: serde_json::Value = client.request(request).await.unwrap();
        assert_eq!(answer["response"]["warnings"], json!(["asked"]));
    }
    assert_eq!(timed(&metrics), ("1".to_owned(), "2".to_owned()));
}

/// Says when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_waits_for_any_more_is_not_worked_on() {
    let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (began, ends) = (begun.clone(), ended.clone());
    let warn: Warn = Arc::new(move |_| {
        let dropped = Dropped(ends.clone());
        began.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            std::future::pending::<()>().await;
            drop(dropped);
            Vec::new().into()
        })
    });
    let router = webhook(warn, Metrics::new(), Paths::of(&["/warn/known"]));
    let port = Port::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let at = port.address();
    tokio::spawn(port.serve(router, std::future::pending()));
    let review = json!({"request": {"uid": "1", "operation": "CREATE", "kind": {"kind": "K"}}});
    let request = format!(
        "POST /warn/known HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{review}",
        review.to_string().len()
    );
    // Whoever asked goes away; then it takes too long for whoever waits.
    for goes_away in [true, false] {
        ended.store(false, Ordering::SeqCst);
        let before = begun.load(Ordering::SeqCst);
        let mut stream = tokio::net::TcpStream::connect(at).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        eventually("it is asked", async || (begun.load(Ordering::SeqCst) > before).then_some(()))
            .await;
        let kept = (!goes_away).then_some(stream);
        eventually("it ended", async || ended.load(Ordering::SeqCst).then_some(())).await;
        drop(kept);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_exchanged_while_both_replicas_serve() {
    let plane = plane();
    let client = plane.client().await.unwrap();
    // Each is made 20 seconds before it is relied on, and that long before what is older ends.
    let lives = Lives {
        authority: Duration::from_secs(120),
        server: Duration::from_secs(60),
        overlap: Duration::from_secs(20),
    };
    let leader = Replica::start(client.clone(), "default", lives, says("leader"));
    leader.ready().await;
    let follower = Replica::start(client.clone(), "default", lives, says("follower"));
    follower.ready().await;
    assert!(leader.leading.now() && !follower.leading.now());
    // The API server asks the one that makes nothing.
    install(&plane, follower.at);
    warned(&plane, "Warning: follower").await;
    let ended = Arc::new(AtomicBool::new(false));
    let end = ended.clone();
    // On a machine that is too busy the API server may give up, and says so.
    let log = plane.log(Part::ApiServer.name());
    let gave_up = move || {
        let log = std::fs::read_to_string(&log).unwrap();
        let failed =
            log.lines().filter(|line| line.contains(WEBHOOK) && line.contains("failing open"));
        failed.filter(|line| line.contains("deadline exceeded") || line.contains("Timeout")).count()
    };
    let earlier = gave_up();
    let missed = Arc::new(AtomicUsize::new(0));
    let (access, counted) = (plane.admin().clone(), missed.clone());
    let asking = std::thread::spawn(move || {
        let mut times = 0;
        while !end.load(Ordering::SeqCst) {
            let ran = tried(&access, &machine_config("99-a", "a"));
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            counted.fetch_add(
                usize::from(!ran.stderr.contains("Warning: follower")),
                Ordering::SeqCst,
            );
            times += 1;
            // Not to take the machine from the others.
            std::thread::sleep(Duration::from_secs(1));
        }
        times
    });
    let first = eventually("whom to trust", async || bundle(&client).await).await;
    let mut paths = std::collections::BTreeSet::new();
    let count = |bundle: &str| bundle.matches("BEGIN CERTIFICATE").count();
    let mut seen = vec![first.clone()];
    eventually("two authorities after the first", async || {
        let now = bundle(&client).await.unwrap();
        assert!(count(&now) <= 2);
        if seen.last() != Some(&now) {
            seen.push(now.clone());
        }
        paths.extend(registered(&client).await.map(|(_, path)| path));
        // one, old and new, new, …
        let exchanged = seen.iter().filter(|bundle| count(bundle) == 1).count() >= 2;
        (exchanged && paths.len() >= 2).then_some(())
    })
    .await;
    assert!(seen.iter().any(|bundle| count(bundle) == 2), "the old one went at once");
    ended.store(true, Ordering::SeqCst);
    let times = asking.join().unwrap();
    let missed = missed.load(Ordering::SeqCst);
    assert!(missed <= gave_up() - earlier, "{missed} of {times} requests were not warned of");
    // Both serve what the newest bundle trusts, and not what the first one did.
    let last = registered(&client).await.unwrap();
    for replica in [&leader, &follower] {
        assert_eq!(replica.send(&last, Vec::new()).await.0, 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_takes_away_is_put_back() {
    let plane = plane();
    let client = plane.client().await.unwrap();
    let leader = Replica::start(client.clone(), "default", Lives::default(), says("leader"));
    leader.ready().await;
    assert!(leader.certificates.check().message.contains("`tread manifests` of this version"));
    install(&plane, leader.at);
    let first = eventually("whom to trust", async || bundle(&client).await).await;
    warned(&plane, "leader").await;
    eventually("it is known", async || {
        leader.certificates.check().message.contains("warnings are asked for").then_some(())
    })
    .await;
    // Whom to trust, emptied by hand, and by installing anew.
    let configurations = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let params = PatchParams::default();
    let path = "/webhooks/0/clientConfig/caBundle";
    let emptied = serde_json::from_value(json!([{"op": "remove", "path": path}])).unwrap();
    configurations.patch("tread.default", &params, &Patch::Json::<()>(emptied)).await.unwrap();
    eventually("put back", async || bundle(&client).await.filter(|b| *b == first)).await;
    configurations.delete("tread.default", &DeleteParams::default()).await.unwrap();
    install(&plane, leader.at);
    eventually("put back", async || bundle(&client).await.filter(|b| *b == first)).await;
    // Nothing else in it was written.
    let configuration = configurations.get("tread.default").await.unwrap();
    let managers = configuration.metadata.managed_fields.unwrap();
    let ours = managers.iter().find(|entry| entry.manager.as_deref() == Some("tread")).unwrap();
    let fields = serde_json::to_string(ours.fields_v1.as_ref().unwrap()).unwrap();
    assert!(fields.contains("f:caBundle") && fields.matches("\"f:").count() <= 8, "{fields}");
    // The Secret: spoilt, then deleted.
    let secrets = Api::<Secret>::namespaced(client.clone(), "default");
    let spoilt = json!({"stringData": {"certificates.json": "PRIVATE"}});
    secrets.patch(SECRET, &params, &Patch::Merge(&spoilt)).await.unwrap();
    let second =
        eventually("a new one", async || bundle(&client).await.filter(|b| *b != first)).await;
    warned(&plane, "leader").await;
    secrets.delete(SECRET, &DeleteParams::default()).await.unwrap();
    eventually("a new one", async || bundle(&client).await.filter(|b| *b != second)).await;
    warned(&plane, "leader").await;
    assert!(!leader.certificates.check().message.contains("PRIVATE"));
}
