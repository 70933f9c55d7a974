//! Watches against a real API server: kinds that come and go, and no permission.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails the test")]

use futures::{Stream, StreamExt as _};
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PartialObjectMeta;
use kube::client::Body;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tread_kube::api::{MachineConfiguration, crds};
use tread_kube::metrics::Metrics;
use tread_kube::watching::{Watched, Watches, follow};
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

/// An API server that has no objects, and refuses each watch with 410 as an answer of its own; and how
/// often it was asked for a list.
fn always_too_old() -> (Client, Arc<AtomicUsize>) {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = lists.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
        let (code, answer) = match is_watch {
            true => (
                410,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410,
                    "reason": "Expired", "message": "too old resource version"}),
            ),
            false => {
                counted.fetch_add(1, Ordering::SeqCst);
                (
                    200,
                    json!({"kind": "ConfigMapList", "apiVersion": "v1", "items": [],
                        "metadata": {"resourceVersion": "7"}}),
                )
            }
        };
        let body = Body::from(answer.to_string().into_bytes());
        let response = Response::builder().status(code).body(body);
        async move { Ok::<_, tower::BoxError>(response?) }
    });
    (Client::new(service, "default"), lists)
}

#[tokio::test]
async fn where_a_watch_cannot_begin_at_its_version_the_objects_are_listed_anew() {
    let (client, lists) = always_too_old();
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let (watches, metrics) = (Watches::default(), Metrics::new());
    let mut events = follow(api, Config::default(), "configmaps", &watches, &metrics);
    while lists.load(Ordering::SeqCst) < 3 {
        next(&mut events).await;
    }
}
