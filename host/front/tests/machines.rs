//! A machine that shows its pool's token is served, and nobody else learns anything.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a helper of a test fails the test, and says what it measured"
)]

use crate::support::web::{self, Answer};
use futures::future::{BoxFuture, join_all};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tread_front::http::{
    Fetch, FirstBoot, Machine, Machines, Port, Refused, SentAway, WhySentAway, first_boots,
    machines,
};
use tread_kube::metrics::{MachineAsked, Metrics};
use tread_model::boot_images::{Limits, Reason, Release, Stream};
use tread_model::joining::first_boot::{self, LONGEST, ReportsTo};
use tread_test_bed::eventually;

/// Pools by their tokens, and a config of some size.
struct Knows {
    head: Arc<[u8]>,
    tail: Arc<[u8]>,
    claims: AtomicUsize,
    fetches: Mutex<Vec<Fetch>>,
    heard: Mutex<Vec<FirstBoot>>,
    sent_away: Mutex<Vec<SentAway>>,
    metrics: Metrics,
}

impl Knows {
    fn counted(&self, asks: &'static str, outcome: &'static str) -> u64 {
        self.metrics.machines_asked.get_or_create(&MachineAsked { asks, outcome }).get()
    }
}

impl Machines for Knows {
    fn admit(&self, pool: &str, token: &str) -> Option<bool> {
        let all = [("infra", "i"), ("worker", "w"), ("..", "i"), ("broken", "b")];
        (token != "soon").then(|| all.contains(&(pool, token)))
    }

    fn serve(&self, fetch: Fetch, token: &str) -> BoxFuture<'static, Result<Machine, Refused>> {
        let is_broken = fetch.pool == "broken";
        assert_eq!(self.admit(&fetch.pool, token), Some(true));
        self.fetches.lock().unwrap().push(fetch);
        let claim = format!("claim-{}-", self.claims.fetch_add(1, Ordering::SeqCst));
        let (head, tail) = (Arc::clone(&self.head), Arc::clone(&self.tail));
        Box::pin(async move {
            assert!(!is_broken, "a panic, for a test");
            Ok(Machine { head, claim, tail })
        })
    }

    fn hear(&self, first_boot: FirstBoot) -> Result<(), Refused> {
        let mut heard = self.heard.lock().unwrap();
        if heard.len() >= 5 {
            let sentence = "too much is still to be written; say it again";
            return Err(Refused::new(http::StatusCode::SERVICE_UNAVAILABLE, sentence));
        }
        heard.push(first_boot);
        Ok(())
    }

    fn sent_away(&self, machine: SentAway) {
        self.sent_away.lock().unwrap().push(machine);
    }
}

fn serving(size: usize) -> (Arc<Knows>, SocketAddr) {
    let half: Arc<[u8]> = vec![b'x'; size / 2].into();
    let knows = Arc::new(Knows {
        head: Arc::clone(&half),
        tail: half,
        claims: AtomicUsize::default(),
        fetches: Mutex::default(),
        heard: Mutex::default(),
        sent_away: Mutex::default(),
        metrics: Metrics::new(),
    });
    let port = Port::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let at = port.address();
    let router = routes(&knows);
    tokio::spawn(port.serve_machines_plainly(router, std::future::pending()));
    (knows, at)
}

fn routes(knows: &Arc<Knows>) -> axum::Router {
    let metrics = &knows.metrics;
    machines(knows.clone(), metrics).merge(first_boots(knows.clone(), metrics))
}

async fn ask(at: SocketAddr, method: &str, path: &str, headers: &str) -> Option<Answer> {
    let text = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n");
    web::send(at, text.as_bytes()).await
}

#[tokio::test]
async fn a_machine_with_the_token_of_its_pool_gets_a_claim_of_its_own() {
    let (knows, at) = serving(40_000);
    let accept = "Accept: application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1\r\n";
    let headers = format!("Authorization: Bearer i\r\n{accept}");
    for claim in ["claim-0-", "claim-1-"] {
        let answer = ask(at, "GET", "/config/infra", &headers).await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.body.len(), 40_008);
        assert!(answer.body.contains(&format!("x{claim}x")));
        assert!(answer.headers.contains("content-length: 40008"), "{}", answer.headers);
        assert!(answer.headers.contains("cache-control: no-store"), "{}", answer.headers);
    }
    let answer = ask(at, "HEAD", "/config/infra?a=b", "Authorization: Bearer i\r\n").await.unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    let fetches = knows.fetches.lock().unwrap();
    let said: Vec<_> = fetches.iter().map(|it| (it.pool.as_str(), it.minor, it.whole)).collect();
    assert_eq!(said, [("infra", Some(4), true), ("infra", Some(4), true), ("infra", None, false)]);
    assert!(fetches.iter().all(|it| it.from.is_loopback()));
}

#[tokio::test]
async fn whoever_has_no_token_of_the_pool_learns_not_a_word_of_it() {
    let (knows, at) = serving(100);
    let mut answers = Vec::new();
    for (path, headers) in [
        ("/config/infra", ""),
        ("/config/infra", "Authorization: Bearer w\r\n"),
        ("/config/infra", "Authorization: Bearer \r\n"),
        ("/config/infra", "Authorization: Basic i\r\n"),
        ("/config/infra", "Authorization: Bearer i, Bearer w\r\n"),
        ("/config/none", "Authorization: Bearer i\r\n"),
        ("/config/none", ""),
        ("/config/..", "Authorization: Bearer i\r\n"),
        ("/config/%69nfra", "Authorization: Bearer i\r\n"),
        ("/config/INFRA", "Authorization: Bearer i\r\n"),
        // An older Ignition learns nothing either.
        ("/config/infra", "Accept: application/vnd.coreos.ignition+json;version=2.2.0\r\n"),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = ask(at, method, path, headers).await.unwrap();
            assert_eq!(answer.status, 401, "{method} {path} {headers}: {}", answer.body);
            let headers = answer.headers.lines().filter(|line| !line.starts_with("date:"));
            answers.push((method, headers.collect::<Vec<_>>().join("\n"), answer.body));
        }
    }
    answers.sort();
    answers.dedup();
    assert_eq!(answers.len(), 2, "they are told the same: {answers:?}");
    assert!(knows.fetches.lock().unwrap().is_empty());
}

#[tokio::test]
async fn machines_that_are_sent_away_for_good_are_counted_and_told_of() {
    let (knows, at) = serving(100);
    let token = "Authorization: Bearer i\r\n";
    let old = "Accept: application/vnd.coreos.ignition+json;version=2.2.0\r\n";
    assert_eq!(knows.counted("config", "no-token"), 0);
    for (path, headers) in [
        ("/config/infra", token),
        ("/config/infra", "Authorization: Bearer w\r\n"),
        ("/config/infra", ""),
        ("/config/none", token),
        ("/config/No%20Name", token),
        ("/config/infra", &format!("{token}{old}")),
        ("/config/infra", "Authorization: Bearer soon\r\n"),
    ] {
        ask(at, "GET", path, headers).await.unwrap();
    }
    ask(at, "HEAD", "/config/infra", token).await.unwrap();
    say(at, "/first-boot/infra", "w", SAYS).await;
    let sent_away = knows.sent_away.lock().unwrap().clone();
    let kinds: Vec<_> = sent_away.iter().map(|it| (it.pool.as_str(), &it.why)).collect();
    let [other, none, made_up, no_name, (pool, WhySentAway::Version(why))] = kinds.as_slice()
    else {
        panic!("{kinds:?}")
    };
    assert_eq!(*other, ("infra", &WhySentAway::OtherToken));
    assert_eq!(*none, ("infra", &WhySentAway::NoToken));
    assert_eq!(*made_up, ("none", &WhySentAway::OtherToken));
    assert_eq!(*no_name, ("", &WhySentAway::OtherToken), "what is no name is told nowhere");
    assert!(*pool == "infra" && why.contains("newer image"), "{why}");
    assert!(sent_away.iter().all(|it| it.from.is_loopback()));
    for (outcome, count) in
        [("served", 1), ("seen", 1), ("no-token", 4), ("version", 1), ("later", 1)]
    {
        assert_eq!(knows.counted("config", outcome), count, "{outcome}");
    }
    assert_eq!(knows.counted("first-boot", "no-token"), 1);
}

#[tokio::test]
async fn odd_requests_come_to_nothing_and_stop_nothing() {
    let (knows, at) = serving(100);
    let token = "Authorization: Bearer i\r\n";
    for (method, path, status) in [
        ("GET", "/", 404),
        ("GET", "/config", 404),
        ("GET", "/config/", 404),
        ("GET", "/config/infra/", 404),
        ("GET", "/config/infra/more", 404),
        ("GET", "//config/infra", 404),
        ("GET", "/config/../config/infra", 404),
        ("GET", "/CONFIG/infra", 404),
        ("POST", "/config/infra", 405),
        ("PUT", "/config/infra", 405),
        ("DELETE", "/config/infra", 405),
        ("OPTIONS", "/config/infra", 405),
    ] {
        let answer = ask(at, method, path, token).await.unwrap();
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        assert!(!answer.body.contains("infra"), "{}", answer.body);
    }
    let long = format!("/config/{}", "a".repeat(30_000));
    let answer = ask(at, "GET", &long, token).await;
    assert!(answer.is_none_or(|answer| answer.status >= 400));
    let answer = ask(at, "GET", "/config/broken", "Authorization: Bearer b\r\n").await.unwrap();
    assert_eq!(answer.status, 500, "a panic is one answer");
    let two = format!("{token}Accept: application/vnd.coreos.ignition+json;version=2.2.0\r\n");
    let answer = ask(at, "GET", "/config/infra", &two).await.unwrap();
    assert_eq!(answer.status, 406, "{}", answer.body);
    assert!(answer.error().contains("newer image"), "{}", answer.body);
    assert_eq!(ask(at, "GET", "/config/infra", token).await.unwrap().status, 200);
    assert_eq!(knows.fetches.lock().unwrap().len(), 2);
    // A machine asks again, and is not sent away for good.
    let answer = ask(at, "GET", "/config/infra", "Authorization: Bearer soon\r\n").await.unwrap();
    assert_eq!(answer.status, 503, "{}", answer.body);
}

/// How much of this process is resident, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_machines_at_once_take_the_memory_of_one_config() {
    const MACHINES: usize = 200;
    const SIZE: usize = 1 << 20;
    let (knows, at) = serving(SIZE);
    let request = "GET /config/infra HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer i\r\n\r\n";
    let before = resident();
    // None of them reads: all are on their way.
    let asking = (0..MACHINES).map(|_| async {
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    });
    let streams = join_all(asking).await;
    eventually("all are being answered", async || {
        (knows.fetches.lock().unwrap().len() == MACHINES).then_some(())
    })
    .await;
    let more = resident().saturating_sub(before);
    let begun = Instant::now();
    let reading = streams.into_iter().map(|mut stream| async move {
        let (mut piece, mut read) = (vec![0; 8 << 10], 0);
        loop {
            match stream.read(&mut piece).await.unwrap() {
                0 => break,
                some => read += some,
            }
        }
        assert!(read > SIZE, "{read}");
        begun.elapsed()
    });
    let mut times = join_all(reading).await;
    times.sort();
    let p99 = times.get(MACHINES * 99 / 100).unwrap();
    println!("{MACHINES} machines, {SIZE} bytes each: p99 {p99:?}, {more} bytes more");
    assert!(more <= 64 << 20, "{more} bytes more");
}

#[tokio::test]
async fn slow_and_silent_ones_keep_nobody_out() {
    let (_, at) = serving(1 << 20);
    // More than there is room for, from one address, as through a load balancer.
    let mut silent = Vec::new();
    for _ in 0..600 {
        silent.push(TcpStream::connect(at).await.unwrap());
    }
    // Some of them ask, and do not read.
    let request = "GET /config/infra HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer i\r\n\r\n";
    for stream in silent.iter_mut().rev().take(100) {
        let _ = stream.write_all(request.as_bytes()).await;
    }
    let token = "Authorization: Bearer i\r\n";
    // Those that do not read are given up after 120 seconds.
    let answer =
        tokio::time::timeout(Duration::from_secs(100), ask(at, "GET", "/config/infra", token));
    assert_eq!(answer.await.unwrap().unwrap().status, 200);
}

/// A connection from this address of the machine itself, on which this was sent.
async fn from(last: u8, at: SocketAddr, text: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
    let mut stream = socket.connect(at).await.ok()?;
    stream.write_all(text.as_bytes()).await.ok()?;
    Some(stream)
}

/// The status of its answer, once all of it is read.
async fn status(stream: Option<TcpStream>) -> u16 {
    let mut text = Vec::new();
    stream.unwrap().read_to_end(&mut text).await.unwrap();
    String::from_utf8_lossy(text.get(..12).unwrap()).split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn whoever_has_the_token_of_one_pool_keeps_no_other_pool_and_no_other_address_out() {
    const SHARE: usize = 208;
    // More than the kernel takes of an answer that nobody reads.
    let (knows, at) = serving(16 << 20);
    let asks = |pool: &str, token: &str| {
        format!(
            "GET /config/{pool} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
    };
    // Many of one pool ask, and read nothing: from two addresses, of which one has its share.
    let mut slow = Vec::new();
    for number in 0..400 {
        slow.push(from(if number < 300 { 1 } else { 2 }, at, &asks("infra", "i")).await);
    }
    eventually("those of a share are being answered", async || {
        (knows.fetches.lock().unwrap().len() == SHARE).then_some(())
    })
    .await;
    assert_eq!(status(from(3, at, &asks("infra", "i")).await).await, 503, "it asks again");
    let long = Duration::from_secs(60);
    let other =
        tokio::time::timeout(long, async { status(from(3, at, &asks("worker", "w")).await).await });
    assert_eq!(other.await.unwrap(), 200);
    assert_eq!(knows.fetches.lock().unwrap().len(), SHARE + 1);
    assert!(knows.counted("config", "later") > 0);
    // Also those of the same address.
    assert_eq!(status(from(2, at, &asks("worker", "w")).await).await, 200);
    drop(slow);
    eventually("the pool has its share again", async || {
        (status(from(3, at, &asks("infra", "i")).await).await == 200).then_some(())
    })
    .await;
}

const SAYS: &str = r#"{"machine":"Worker-1","image":"412.86.202308081056-0","reason":"BelowLimit","stopped":true}"#;

async fn say(at: SocketAddr, path: &str, token: &str, body: &str) -> Answer {
    let length = body.len();
    let text = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    web::send(at, text.as_bytes()).await.unwrap()
}

#[tokio::test]
async fn what_a_machine_says_of_its_first_boot_is_heard_by_its_pools_token_alone() {
    let (knows, at) = serving(100);
    let answer = say(at, "/first-boot/infra", "i", SAYS).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let mut refused = Vec::new();
    for (path, token) in [
        ("/first-boot/infra", "w"),
        ("/first-boot/infra", "x"),
        ("/first-boot/none", "i"),
        ("/first-boot/..", "i"),
        ("/first-boot/INFRA", "i"),
    ] {
        let answer = say(at, path, token, SAYS).await;
        assert_eq!(answer.status, 401, "{path} {token}: {}", answer.body);
        refused.push(answer.body);
    }
    refused.dedup();
    assert_eq!(refused.len(), 1, "they are told the same: {refused:?}");
    let long = SAYS.replace("412", &"4".repeat(LONGEST));
    for (body, status) in [("", 400), ("{}", 400), ("[1]", 400), (long.as_str(), 413)] {
        let answer = say(at, "/first-boot/infra", "i", body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
    }
    assert_eq!(ask(at, "GET", "/first-boot/infra", "").await.unwrap().status, 405);
    assert_eq!(say(at, "/first-boot/", "i", SAYS).await.status, 404);
    assert_eq!(say(at, "/first-boot/soon", "soon", SAYS).await.status, 503);
    let heard = knows.heard.lock().unwrap();
    let [one] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!((one.pool.as_str(), one.report.machine.as_str()), ("infra", "worker-1"));
    assert!(one.from.is_loopback() && one.report.stopped);
}

#[tokio::test]
async fn machines_of_a_pool_that_say_much_are_bounded_and_keep_no_other_pool_out() {
    let (knows, at) = serving(100);
    let mut answers = Vec::new();
    for _ in 0..30 {
        answers.push(say(at, "/first-boot/infra", "i", SAYS).await.status);
    }
    let count = |status: u16| answers.iter().filter(|it| **it == status).count();
    assert_eq!(count(202), 5, "{answers:?}");
    // Ten at once, and one for each second that the test itself took.
    assert!(count(429) > 0 && count(202) + count(503) >= 10, "{answers:?}");
    assert_eq!(count(202) + count(503) + count(429), 30, "{answers:?}");
    knows.heard.lock().unwrap().clear();
    assert_eq!(say(at, "/first-boot/worker", "w", SAYS).await.status, 202);
    // Nor does it keep any machine from its config.
    let token = "Authorization: Bearer i\r\n";
    assert_eq!(ask(at, "GET", "/config/infra", token).await.unwrap().status, 200);
}

/// The script of a machine, on a disk of its own, which trusts this authority and tells there.
fn first_boot(disk: &std::path::Path, address: &str, authority: &str) -> std::process::Output {
    let stream = Stream { name: "rhel-9".to_owned(), own: true };
    let limits = Limits::of(Release::parse("4.22.0"), &stream, &[]);
    let reports_to = ReportsTo {
        address: address.to_owned(),
        authority: authority.to_owned(),
        token: "i".to_owned(),
    };
    let boots = first_boot::FirstBoot {
        limits,
        passing: None,
        pool: "infra".to_owned(),
        reports_to: Some(reports_to),
    };
    let mut spec = serde_json::json!({});
    first_boot::add(&mut spec, &boots).unwrap();
    let put = |path: &str, bytes: &[u8]| {
        let at = disk.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, bytes).unwrap();
    };
    for file in spec.pointer("/config/storage/files").unwrap().as_array().unwrap() {
        let text = |path: &str| file.pointer(path).unwrap().as_str().unwrap().to_owned();
        let url = Some(text("/contents/source").into());
        let source = tread_model::config::Source { url, gzip: false };
        put(&text("/path"), &tread_model::contents::decode(&source).unwrap().unwrap());
    }
    put("/etc/os-release", b"OSTREE_VERSION='412.86.202308081056-0'\n");
    let script = disk.join(first_boot::SCRIPT.trim_start_matches('/'));
    std::process::Command::new("/bin/sh").arg(script).arg(disk).output().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_script_of_a_first_boot_tells_by_tls_whom_it_was_told_to_trust() {
    let (knows, _) = serving(100);
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let port = Port::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("localhost:{}", port.address().port());
    let router = routes(&knows);
    let serves = port.serve_machines(Arc::new(config), router, std::future::pending());
    tokio::spawn(serves);
    let disk = std::env::temp_dir().join(format!("tread-first-boot-{}", std::process::id()));
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    for (authority, heard) in [(other.cert.pem(), 0), (made.cert.pem(), 1)] {
        let _ = std::fs::remove_dir_all(&disk);
        let (disk, address) = (disk.clone(), address.clone());
        let run = tokio::task::spawn_blocking(move || first_boot(&disk, &address, &authority));
        let run = run.await.unwrap();
        assert_eq!(run.status.code(), Some(1), "{run:?}");
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert_eq!(said.contains("could not be told"), heard == 0, "{said}");
        assert_eq!(knows.heard.lock().unwrap().len(), heard, "{said}");
    }
    let heard = knows.heard.lock().unwrap();
    let report = &heard.first().unwrap().report;
    assert_eq!(
        (report.image.as_str(), report.reason),
        ("412.86.202308081056-0", Reason::BelowLimit)
    );
    let _ = std::fs::remove_dir_all(disk);
}
