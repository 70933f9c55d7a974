//! Watches against a real API server: kinds that come and go, and no permission.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails the test")]

use futures::{Stream, StreamExt as _};
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PartialObjectMeta;
use kube::client::Body;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tread_kube::api::machines::CAPI_MACHINE_SET;
use tread_kube::api::{MachineConfiguration, crds};
use tread_kube::metrics::Metrics;
use tread_kube::watching::{Watched, Watches, follow, follow_served};
use tread_test_bed::{ControlPlane, Shared};

static BED: Shared = Shared::new(ControlPlane::options);

/// Nothing here takes so long; it only ends a test that would hang.
const LONG: Duration = Duration::from_secs(600);

/// Waits until this is true of the watch.
async fn until(watches: &Watches, name: &str, holds: impl Fn(&Watched) -> bool) -> Watched {
    let mut all = watches.subscribe();
    let found = all.wait_for(|all| all.get(name).is_some_and(&holds));
    let found = tokio::time::timeout(LONG, found).await;
    found
        .unwrap_or_else(|_| panic!("{name}: {:?}", watches.subscribe().borrow()))
        .unwrap()
        .get(name)
        .unwrap()
        .clone()
}

async fn next<K>(events: &mut (impl Stream<Item = Event<K>> + Unpin)) -> Event<K> {
    tokio::time::timeout(LONG, events.next()).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_kind_may_be_installed_later_and_removed_again() {
    let plane = BED.get().unwrap();
    let client = plane.client().await.unwrap();
    let (watches, metrics) = (Watches::default(), Metrics::new());
    let api: Api<MachineConfiguration> = Api::all(client);
    let config = Config::default();
    let mut events = follow(api, config, "machineconfigurations", &watches, &metrics);
    assert_eq!(watches.waiting(), ["machineconfigurations: not listed yet"]);

    while !matches!(next(&mut events).await, Event::InitDone) {}
    let absent = Watched { synced: true, not_installed: true, error: None };
    assert_eq!(until(&watches, "machineconfigurations", |_| true).await, absent);
    assert!(watches.waiting().is_empty());

    let mut all = crds::openshift().into_iter();
    let crd = all.find(|crd| crd.spec.names.kind == "MachineConfiguration").unwrap();
    plane.define(&[crd]).unwrap();
    let object = "{apiVersion: operator.openshift.io/v1, kind: MachineConfiguration, \
                  metadata: {name: cluster}, spec: {}}";
    plane.apply(object).unwrap();
    loop {
        if let Event::InitApply(object) | Event::Apply(object) = next(&mut events).await {
            assert_eq!(object.name_any(), "cluster");
            break;
        }
    }
    plane
        .kubectl(&["delete", "crd/machineconfigurations.operator.openshift.io"])
        .unwrap()
        .success()
        .unwrap();
    // Polled on, it notices that the kind is gone: everything goes with it.
    let mut gone = false;
    while !gone {
        gone = match next(&mut events).await {
            Event::Delete(object) => object.name_any() == "cluster",
            Event::Init => matches!(next(&mut events).await, Event::InitDone),
            _ => false,
        };
    }
}

#[tokio::test]
async fn what_is_forbidden_is_said_counted_and_looked_for_again() {
    let plane = BED.get().unwrap();
    let namespace = plane.namespace("watching").unwrap();
    let account = plane.service_account(&namespace, "reader").unwrap();
    let client = account.client().await.unwrap();
    let (watches, metrics) = (Watches::default(), Metrics::new());
    let api: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(client, &namespace);
    let mut events = follow(api, Config::default(), "configmaps", &watches, &metrics);
    let watching = tokio::spawn(async move {
        let mut seen = Vec::new();
        loop {
            match next(&mut events).await {
                Event::InitApply(map) => seen.push(map.name_any()),
                Event::InitDone => return seen,
                _ => {}
            }
        }
    });
    let said = until(&watches, "configmaps", |it| it.error.is_some()).await;
    assert!(!said.synced);
    let waiting = watches.waiting().join("\n");
    assert!(waiting.contains("configmaps: configmaps is forbidden"), "{waiting}");
    let text = metrics.text().unwrap();
    let counted = "tread_api_errors_total{verb=\"list\",kind=\"configmaps\",code=\"403\"}";
    assert!(text.contains(counted), "{text}");

    plane.kubectl(&["-n", &namespace, "create", "configmap", "there"]).unwrap().success().unwrap();
    let rules = ["--verb=list,watch", "--resource=configmaps"];
    let user = format!("--serviceaccount={namespace}:reader");
    let create = |args: &[&str]| {
        let args = [&["-n", &namespace, "create"], args].concat();
        plane.kubectl(&args).unwrap().success().unwrap();
    };
    create(&["role", "reader", rules[0], rules[1]]);
    create(&["rolebinding", "reader", "--role=reader", &user]);
    let seen = tokio::time::timeout(LONG, watching).await.unwrap().unwrap();
    assert!(seen.contains(&"there".to_owned()), "{seen:?}");
    assert_eq!(watches.waiting(), Vec::<String>::new());
}

/// An API server that refuses each watch with 410 as an answer of its own, and answers all else by the path.
fn always_too_old(answer: impl Fn(&str) -> (u16, Value) + Send + 'static) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
        let (code, answer) = match is_watch {
            true => refused(410, "Expired"),
            false => answer(request.uri().path()),
        };
        let body = Body::from(answer.to_string().into_bytes());
        let response = Response::builder().status(code).body(body);
        async move { Ok::<_, tower::BoxError>(response?) }
    });
    Client::new(service, "default")
}

fn refused(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": "not now"});
    (code, status)
}

fn list(kind: &str, version: &str, names: &[&str]) -> (u16, Value) {
    let items = names.iter().map(|name| {
        json!({"kind": kind, "apiVersion": version,
            "metadata": {"name": name, "namespace": "default"}})
    });
    let list = json!({"kind": format!("{kind}List"), "apiVersion": version,
        "items": items.collect::<Vec<_>>(), "metadata": {"resourceVersion": "7"}});
    (200, list)
}

#[tokio::test]
async fn where_a_watch_cannot_begin_at_its_version_the_objects_are_listed_anew() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = lists.clone();
    let client = always_too_old(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        list("ConfigMap", "v1", &[])
    });
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let (watches, metrics) = (Watches::default(), Metrics::new());
    let mut events = follow(api, Config::default(), "configmaps", &watches, &metrics);
    while lists.load(Ordering::SeqCst) < 3 {
        next(&mut events).await;
    }
}

/// Follows until so much was asked; the codes of what was said to be wrong where a list began. No list
/// ends without the object that is always there.
async fn never_empty<K>(
    events: &mut (impl Stream<Item = Event<K>> + Unpin),
    (watches, name): (&Watches, &str),
    asked: &AtomicUsize,
) -> Vec<u16> {
    let (mut is_there, mut codes) = (false, Vec::new());
    while asked.load(Ordering::SeqCst) < 5 {
        match next(events).await {
            Event::Init => {
                is_there = false;
                let all = watches.subscribe();
                let all = all.borrow();
                codes.extend(all.get(name).and_then(|it| it.error.as_ref()).map(|it| it.code));
            }
            Event::InitApply(_) => is_there = true,
            Event::InitDone => assert!(is_there, "it was taken for gone"),
            Event::Apply(_) | Event::Delete(_) => {}
        }
        assert_eq!(watches.not_installed(), [""; 0]);
    }
    codes
}

#[tokio::test]
async fn a_kind_of_kubernetes_itself_is_never_taken_for_not_installed() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = lists.clone();
    let client = always_too_old(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
        1 => refused(404, "NotFound"),
        _ => list("ConfigMap", "v1", &["there"]),
    });
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let (watches, metrics) = (Watches::default(), Metrics::new());
    let mut events = follow(api, Config::default(), "configmaps", &watches, &metrics);
    let codes = never_empty(&mut events, (&watches, "configmaps"), &lists).await;
    assert!(codes.contains(&404), "{codes:?}");
}

#[tokio::test]
async fn a_kind_of_which_nobody_says_which_version_is_served_keeps_its_objects() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let client = always_too_old(move |path| match path {
        "/apis/cluster.x-k8s.io/v1beta2" => match counted.fetch_add(1, Ordering::SeqCst) {
            1 => refused(503, "ServiceUnavailable"),
            _ => (
                200,
                json!({"kind": "APIResourceList", "apiVersion": "v1",
                    "groupVersion": "cluster.x-k8s.io/v1beta2",
                    "resources": [{"name": "machinesets", "singularName": "machineset",
                        "namespaced": true, "kind": "MachineSet", "verbs": ["list", "watch"]}]}),
            ),
        },
        "/apis/cluster.x-k8s.io/v1beta2/machinesets" => {
            list("MachineSet", "cluster.x-k8s.io/v1beta2", &["there"])
        }
        // That version is not served any more.
        _ => refused(404, "NotFound"),
    });
    let (watches, metrics) = (Watches::default(), Metrics::new());
    let (kind, config) = (CAPI_MACHINE_SET, Config::default());
    let mut events = follow_served(&client, kind, config, &watches, &metrics);
    let codes = never_empty(&mut events, (&watches, kind.name), &asked).await;
    assert!(codes.contains(&503), "{codes:?}");
}
