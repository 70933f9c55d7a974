//! One leader at a time, whatever happens to the candidates, the network and the
//! API server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a helper of a test fails the test"
)]

use crate::support::proxy::{Proxy, Way};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tread_kube::leadership::{Election, Leading, Timings};
use tread_kube::metrics::Metrics;
use tread_test_bed::{ControlPlane, Part, Shared, eventually};

static BED: Shared = Shared::new(ControlPlane::options);

/// Fast enough for tests, slow enough for a busy machine.
const TIMINGS: Timings = Timings {
    lease: Duration::from_secs(4),
    deadline: Duration::from_secs(2),
    renew: Duration::from_millis(400),
    retry: Duration::from_millis(150),
    request: Duration::from_millis(1500),
    longest: Duration::from_secs(8),
};

/// So slow that a leader which stands still for a while goes on.
const SLOW: Timings = Timings {
    lease: Duration::from_secs(600),
    deadline: Duration::from_secs(400),
    request: Duration::from_secs(60),
    ..TIMINGS
};

struct Candidate {
    leading: Leading,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    metrics: Metrics,
    may_lead: watch::Sender<bool>,
}

impl Candidate {
    fn start(client: Client, namespace: &str, replica: &str, timings: Timings) -> Candidate {
        let metrics = Metrics::new();
        let may_lead = watch::Sender::new(true);
        let election = Election {
            client,
            namespace: namespace.to_owned(),
            lease: "tread".to_owned(),
            replica: replica.to_owned(),
            timings,
            metrics: metrics.clone(),
            may_lead: may_lead.subscribe(),
        };
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            // Whoever drops the sender stops it too.
            let _ = stopped.await;
        };
        let (leading, run) = election.start(stopped).unwrap();
        Candidate { leading, stop: Some(stop), task: tokio::spawn(run), metrics, may_lead }
    }

    async fn leads(&self, what: &str) {
        eventually(what, async || self.leading.now().then_some(())).await;
        assert!(*self.leading.watch().borrow());
        assert_eq!(self.metrics.leads.get(), 1);
    }

    async fn follows(&self, what: &str) {
        eventually(what, async || (!*self.leading.watch().borrow()).then_some(())).await;
        assert!(!self.leading.now());
    }

    async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
        assert_eq!(self.metrics.leads.get(), 0);
    }
}

/// Looks all the time whether two lead at once.
struct Referee {
    two: Arc<AtomicBool>,
    looks: Arc<AtomicUsize>,
    end: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Referee {
    fn watch(candidates: &[&Candidate]) -> Referee {
        let all: Vec<Leading> = candidates.iter().map(|one| one.leading.clone()).collect();
        let two = Arc::new(AtomicBool::new(false));
        let looks = Arc::new(AtomicUsize::new(0));
        let end = Arc::new(AtomicBool::new(false));
        let (found, counted, ended) = (two.clone(), looks.clone(), end.clone());
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::SeqCst) {
                for (at, one) in all.iter().enumerate() {
                    for other in all.iter().skip(at + 1) {
                        // The first one once more: this thread may be slow itself.
                        if one.now() && other.now() && one.now() && other.now() {
                            found.store(true, Ordering::SeqCst);
                        }
                    }
                }
                counted.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Referee { two, looks, end, thread: Some(thread) }
    }
}

impl Drop for Referee {
    fn drop(&mut self) {
        self.end.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
        if !std::thread::panicking() {
            assert!(self.looks.load(Ordering::SeqCst) > 0, "the referee slept");
            assert!(!self.two.load(Ordering::SeqCst), "two led at the same time");
        }
    }
}

/// The Lease as `tread manifests` brings it: held by nobody.
async fn bring_lease(client: &Client, namespace: &str) {
    let api = Api::<Lease>::namespaced(client.clone(), namespace);
    let mut lease = Lease::default();
    lease.metadata.name = Some("tread".to_owned());
    api.create(&PostParams::default(), &lease).await.unwrap();
}

async fn lease(client: &Client, namespace: &str) -> Lease {
    Api::<Lease>::namespaced(client.clone(), namespace).get("tread").await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_one_leads_at_once_when_the_leader_stops() {
    let plane = BED.get().unwrap();
    let client = plane.client().await.unwrap();
    let namespace = plane.namespace("lease").unwrap();
    bring_lease(&client, &namespace).await;
    let a = Candidate::start(client.clone(), &namespace, "a", SLOW);
    a.leads("the only candidate").await;
    let b = Candidate::start(client.clone(), &namespace, "b", SLOW);
    eventually("b sees who leads", async || {
        b.leading.holder().filter(|holder| *holder == a.leading.identity())
    })
    .await;
    assert!(!b.leading.now());
    let referee = Referee::watch(&[&a, &b]);
    let before = lease(&client, &namespace).await.spec.unwrap();
    assert_eq!(before.lease_duration_seconds, Some(600));
    let begun = Instant::now();
    a.stop().await;
    b.leads("after the release").await;
    assert!(begun.elapsed() < SLOW.lease / 2, "b waited for the end of the Lease");
    let after = lease(&client, &namespace).await.spec.unwrap();
    assert_eq!(after.holder_identity.as_deref(), Some(b.leading.identity()));
    assert_eq!(after.lease_transitions, before.lease_transitions.map(|n| n + 1));
    drop(referee);
    b.stop().await;
    let free = lease(&client, &namespace).await.spec.unwrap();
    assert_eq!(free.holder_identity, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_requests_are_cut_has_stopped_before_another_one_starts() {
    let plane = BED.get().unwrap();
    let client = plane.client().await.unwrap();
    let namespace = plane.namespace("lease").unwrap();
    let proxy = Proxy::start(plane.url()).await;
    for (round, way) in [Way::Silent, Way::Deaf].into_iter().enumerate() {
        let through = proxy.client(plane.admin()).await;
        let a = Candidate::start(through, &namespace, "a", TIMINGS);
        a.leads("the only candidate").await;
        let b = Candidate::start(client.clone(), &namespace, "b", TIMINGS);
        let referee = Referee::watch(&[&a, &b]);
        proxy.set(way);
        a.follows(&format!("cut, round {round}")).await;
        assert!(a.leading.problem().is_some(), "nobody is told why");
        b.leads("after the Lease's end").await;
        proxy.set(Way::Open);
        // It comes back as a follower, and sees who leads.
        eventually("a sees b", async || {
            a.leading.holder().filter(|holder| *holder == b.leading.identity())
        })
        .await;
        b.leads("still").await;
        assert!(!a.leading.now());
        drop(referee);
        a.stop().await;
        b.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_dies_is_followed_by_another() {
    let plane = BED.get().unwrap();
    let client = plane.client().await.unwrap();
    let namespace = plane.namespace("lease").unwrap();
    let a = Candidate::start(client.clone(), &namespace, "a", TIMINGS);
    a.leads("the only candidate").await;
    let b = Candidate::start(client.clone(), &namespace, "b", TIMINGS);
    let c = Candidate::start(client.clone(), &namespace, "c", TIMINGS);
    let referee = Referee::watch(&[&b, &c]);
    a.task.abort();
    eventually("one of the others", async || (b.leading.now() || c.leading.now()).then_some(()))
        .await;
    drop(referee);
    // The dead one does not claim to lead, though nobody told it.
    assert!(!a.leading.now());
    b.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_loses_the_lease_to_another_stops_and_waits_for_its_turn() {
    let plane = BED.get().unwrap();
    let client = plane.client().await.unwrap();
    let namespace = plane.namespace("lease").unwrap();
    let a = Candidate::start(client.clone(), &namespace, "a", TIMINGS);
    a.leads("the only candidate").await;
    let api = Api::<Lease>::namespaced(client.clone(), &namespace);
    let taken = json!({"spec": {"holderIdentity": "an admin"}});
    api.patch("tread", &PatchParams::default(), &Patch::Merge(&taken)).await.unwrap();
    a.follows("taken away").await;
    a.leads("nobody renews for the admin").await;
    api.delete("tread", &DeleteParams::default()).await.unwrap();
    eventually("a new Lease", async || {
        let lease = api.get_opt("tread").await.unwrap()?;
        (lease.spec?.holder_identity? == a.leading.identity()).then_some(())
    })
    .await;
    a.leads("a new Lease").await;
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_deleted_from_under_a_leader_never_gives_two() {
    let plane = BED.get().unwrap();
    let client = plane.client().await.unwrap();
    let namespace = plane.namespace("lease").unwrap();
    bring_lease(&client, &namespace).await;
    // It renews late, and so learns late that its Lease is gone.
    let slow = Timings { renew: Duration::from_secs(1), ..TIMINGS };
    let a = Candidate::start(client.clone(), &namespace, "a", slow);
    a.leads("the only candidate").await;
    let b = Candidate::start(client.clone(), &namespace, "b", slow);
    eventually("b sees who leads", async || b.leading.holder()).await;
    let api = Api::<Lease>::namespaced(client.clone(), &namespace);
    for _ in 0..3 {
        api.delete("tread", &DeleteParams::default()).await.unwrap();
        // One that starts now does not know what there was.
        let c = Candidate::start(client.clone(), &namespace, "c", slow);
        let referee = Referee::watch(&[&a, &b, &c]);
        let all = [&a, &b, &c];
        eventually("a new Lease", async || api.get_opt("tread").await.unwrap()).await;
        eventually("one leads", async || all.iter().any(|it| it.leading.now()).then_some(())).await;
        drop(referee);
        c.stop().await;
    }
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_made_anew_under_a_leader_never_gives_two() {
    let plane = BED.get().unwrap();
    let client = plane.client().await.unwrap();
    let namespace = plane.namespace("lease").unwrap();
    bring_lease(&client, &namespace).await;
    // It renews late, and so learns late that its Lease is another one.
    let slow = Timings { renew: Duration::from_secs(1), ..TIMINGS };
    let a = Candidate::start(client.clone(), &namespace, "a", slow);
    a.leads("the only candidate").await;
    let b = Candidate::start(client.clone(), &namespace, "b", slow);
    eventually("b sees who leads", async || b.leading.holder()).await;
    let api = Api::<Lease>::namespaced(client.clone(), &namespace);
    for _ in 0..3 {
        let referee = Referee::watch(&[&a, &b]);
        api.delete("tread", &DeleteParams::default()).await.unwrap();
        bring_lease(&client, &namespace).await;
        eventually("somebody takes the new Lease", async || {
            lease(&client, &namespace).await.spec?.holder_identity
        })
        .await;
        let all = [&a, &b];
        eventually("one leads", async || all.iter().any(|it| it.leading.now()).then_some(())).await;
        eventually("both see who leads", async || {
            all.iter().all(|it| it.leading.holder().is_some()).then_some(())
        })
        .await;
        drop(referee);
    }
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_strangers_lease_longer_than_there_is_to_wait() {
    let plane = BED.get().unwrap();
    let client = plane.client().await.unwrap();
    let namespace = plane.namespace("lease").unwrap();
    let api = Api::<Lease>::namespaced(client.clone(), &namespace);
    let strangers: Lease = serde_json::from_value(json!({"metadata": {"name": "tread"}, "spec": {
        "holderIdentity": "a stranger", "leaseDurationSeconds": i32::MAX, "leaseTransitions": i32::MAX,
    }}))
    .unwrap();
    // The API server itself takes no longer one.
    let kind = ApiResource::erase::<Lease>(&());
    let any: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &kind);
    let mut longer = serde_json::to_value(&strangers).unwrap();
    longer["spec"]["leaseDurationSeconds"] = json!(1_u64 << 31);
    let longer: DynamicObject = serde_json::from_value(longer).unwrap();
    any.create(&PostParams::default(), &longer).await.unwrap_err();
    api.create(&PostParams::default(), &strangers).await.unwrap();
    let begun = Instant::now();
    let a = Candidate::start(client.clone(), &namespace, "a", TIMINGS);
    a.leads("the stranger is gone").await;
    assert!(begun.elapsed() >= TIMINGS.longest - TIMINGS.request, "{:?}", begun.elapsed());
    // The next one counts by what stands there now.
    let spec = lease(&client, &namespace).await.spec.unwrap();
    assert_eq!(spec.lease_duration_seconds, Some(4));
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_leads_while_the_api_server_is_silent_and_one_does_when_it_is_back() {
    let plane = ControlPlane::start().unwrap();
    let namespace = plane.namespace("lease").unwrap();
    let client = plane.client().await.unwrap();
    let a = Candidate::start(client.clone(), &namespace, "a", TIMINGS);
    a.leads("the only candidate").await;
    let b = Candidate::start(client.clone(), &namespace, "b", TIMINGS);
    let referee = Referee::watch(&[&a, &b]);
    let pause = plane.pause(Part::ApiServer).unwrap();
    a.follows("a silent API server").await;
    // For longer than the Lease: both may try when it is back.
    tokio::time::sleep_until(Instant::now() + TIMINGS.lease).await;
    assert!(!a.leading.now() && !b.leading.now());
    pause.resume().unwrap();
    eventually("one leads again", async || (a.leading.now() || b.leading.now()).then_some(()))
        .await;
    plane.kill(Part::ApiServer).unwrap();
    eventually("none leads", async || (!a.leading.now() && !b.leading.now()).then_some(())).await;
    plane.restart(Part::ApiServer).unwrap();
    eventually("one leads again", async || (a.leading.now() || b.leading.now()).then_some(()))
        .await;
    drop(referee);
    let first = if a.leading.now() { &a } else { &b };
    assert_eq!(first.leading.problem(), None);
    // Whoever led could not renew; the other may have asked for nothing.
    let counted = |one: &Candidate| one.metrics.text().unwrap().contains("kind=\"leases\"");
    assert!(counted(&a) || counted(&b), "nothing was counted");
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_rest_the_leader_renews_and_the_others_ask_nothing() {
    let plane =
        ControlPlane::options().with_audit_log().with_user("follower", &[]).start().unwrap();
    let namespace = plane.namespace("lease").unwrap();
    plane
        .kubectl(&[
            "create",
            "clusterrolebinding",
            "follower",
            "--clusterrole=cluster-admin",
            "--user=follower",
        ])
        .unwrap()
        .success()
        .unwrap();
    let client = plane.client().await.unwrap();
    bring_lease(&client, &namespace).await;
    let a = Candidate::start(client.clone(), &namespace, "a", SLOW);
    a.leads("the only candidate").await;
    let follower = plane.user("follower").unwrap().client().await.unwrap();
    let b = Candidate::start(follower, &namespace, "b", SLOW);
    eventually("b sees who leads", async || b.leading.holder()).await;
    let renewals = async || lease(&client, &namespace).await.spec.unwrap().renew_time;
    let before = renewals().await;
    // Many renewals later …
    let mut seen = 0;
    let mut last = before;
    eventually("ten renewals", async || {
        let now = renewals().await;
        if now != last {
            (seen, last) = (seen + 1, now);
        }
        (seen >= 10).then_some(())
    })
    .await;
    let log = std::fs::read_to_string(plane.audit_log()).unwrap();
    let asked: Vec<String> = log
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|entry| {
            entry["user"]["username"] == "follower" && entry["objectRef"]["resource"] == "leases"
        })
        .map(|entry| entry["verb"].to_string())
        .collect();
    // … the follower has listed and watched, once.
    assert!((1..=4).contains(&asked.len()), "{asked:?}");
    assert!(
        asked.iter().all(|verb| ["\"list\"", "\"watch\""].contains(&verb.as_str())),
        "{asked:?}"
    );
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_lead_any_more_stops_and_leads_again_when_it_may() {
    let plane = BED.get().unwrap();
    let client = plane.client().await.unwrap();
    let namespace = plane.namespace("lease").unwrap();
    bring_lease(&client, &namespace).await;
    let one = Candidate::start(client.clone(), &namespace, "one", TIMINGS);
    one.leads("it is alone").await;
    one.may_lead.send_replace(false);
    one.follows("another tread was there first").await;
    // Not given up: what it wrote at that moment has ended before another one leads.
    assert!(lease(&client, &namespace).await.spec.unwrap().holder_identity.is_some());
    let two = Candidate::start(client, &namespace, "two", TIMINGS);
    two.leads("the Lease has ended").await;
    two.stop().await;
    one.follows("it still may not").await;
    one.may_lead.send_replace(true);
    one.leads("it may again").await;
    one.stop().await;
}
