//! A control plane with a registry that leads, and what tests ask of it.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::ObjectMeta;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde::Deserialize as _;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tread_cluster::index;
use tread_cluster::policies::current::{Current, Published};
use tread_cluster::policies::load::{AllShipped, Shipped};
use tread_cluster::policies::registry::{Settings, start};
use tread_cluster::policies::snapshot::Room;
use tread_engine::planner;
use tread_engine::sandbox::{Options, Sandbox};
use tread_kube::api::disruption_policy::State;
use tread_kube::api::words::{POLICIES_LABEL, POLICY_LABEL};
use tread_kube::api::{DisruptionPolicy, DisruptionPolicyStatus, crds};
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::watching::Watches;
use tread_model::digest::Sha256;
use tread_model::plan::Step;
use tread_model::read::{Input, sides};
use tread_test_bed::{ControlPlane, unique};

/// Nothing here takes so long; it only ends a test that would hang.
pub const LONG: Duration = Duration::from_secs(600);

/// tread's own namespace.
pub const OWN: &str = "tread-system";

/// A registry that runs.
#[derive(Debug)]
pub struct Replica {
    pub published: Published,
    pub watches: Watches,
    pub metrics: Metrics,
    pub leads: watch::Sender<bool>,
    /// Its threads.
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        // At once, and from a test too that runs on threads of another.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A control plane with tread's definitions and its own namespace.
pub fn ready(options: tread_test_bed::Options) -> ControlPlane {
    let definitions = [crds::crds(), crds::openshift()].concat();
    let plane = options.with_definitions(&definitions).start().unwrap();
    plane.kubectl(&["create", "namespace", OWN]).unwrap().success().unwrap();
    plane
}

/// The control plane that most tests share, and the registry that leads on it.
pub fn shared() -> (&'static ControlPlane, &'static Replica) {
    static SHARED: OnceLock<(&'static ControlPlane, Replica)> = OnceLock::new();
    let (plane, replica) = SHARED.get_or_init(|| {
        let plane = Box::leak(Box::new(ready(ControlPlane::options().with_controllers())));
        (&*plane, replica(plane, true, Room::default()))
    });
    (plane, replica)
}

/// Starts a registry, on threads of its own.
pub fn replica(plane: &ControlPlane, leads: bool, room: Room) -> Replica {
    replica_with(plane, leads, room, sandbox())
}

/// The same with another sandbox.
pub fn replica_with(plane: &ControlPlane, leads: bool, room: Room, sandbox: Sandbox) -> Replica {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    // A client belongs to the threads that it was made on.
    let made = runtime.handle().clone();
    let made = std::thread::scope(|it| it.spawn(|| made.block_on(plane.client())).join());
    let client = made.unwrap().unwrap();
    let (leads, following) = watch::channel(leads);
    let (watches, metrics) = (Watches::default(), Metrics::new());
    let name = unique("replica");
    let (index, indexing) = index::start(&client, "default", &watches, &metrics);
    let (published, registry) = start(Settings {
        events: Events::new(client.clone(), &name, "Load", &metrics),
        client,
        index,
        namespace: OWN.to_owned(),
        replica: name,
        sandbox,
        shipped: shipped(),
        room,
        leads: Leading::without_election(following, None),
        watches: watches.clone(),
        metrics: metrics.clone(),
    });
    runtime.spawn(indexing);
    runtime.spawn(registry);
    Replica { published, watches, metrics, leads, runtime: Some(runtime) }
}

/// Compiled policies are kept for all tests: most of them ask for the same.
pub fn sandbox() -> Sandbox {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("registry-cache");
    Sandbox::new(Options { cache_dir: Some(dir), ..Options::default() }).unwrap()
}

fn file(path: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

fn shipped() -> AllShipped {
    static SHIPPED: OnceLock<AllShipped> = OnceLock::new();
    let one = |name: &'static str| {
        let component: &'static [u8] = file(&format!("policies/prebuilt/{name}.wasm")).leak();
        Shipped { name, component, digest: Sha256::of(component) }
    };
    let all =
        || AllShipped { builtins: vec![one("registries"), one("ssh-keys")], rules: one("rules") };
    SHIPPED.get_or_init(all).clone()
}

/// A policy of this name, of four letters: it claims /etc/NAME/*, and a file in
/// there that is called `restart` or `reload` holds the unit's name. Each
/// version has other bytes.
pub fn policy(name: &str, version: u8) -> Vec<u8> {
    versioned(replaced(file("tests/contract/1.0.0/acts.wasm"), b"acts", name.as_bytes()), version)
}

/// One that claims everything there is.
pub fn wide(version: u8) -> Vec<u8> {
    versioned(file("tests/contract/1.0.0/abstains.wasm"), version)
}

/// One that claims what no change can be.
pub fn claims_nonsense(name: &str) -> Vec<u8> {
    replaced(policy(name, 1), b"file:/etc", b"file:.etc")
}

/// One with the settings `at_most` and `unit`, that claims /etc/settings.d/*.
pub fn with_settings() -> Vec<u8> {
    file("tests/contract/1.0.0/settings.wasm")
}

fn replaced(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

/// The same with a section that nobody reads.
fn versioned(mut bytes: Vec<u8>, version: u8) -> Vec<u8> {
    bytes.extend([0, 3, 1, b'v', version]);
    bytes
}

/// Bytes that were cut off.
pub fn spoiled(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() / 2);
    bytes
}

pub fn digest(bytes: &[u8]) -> String {
    Sha256::of(bytes).to_string()
}

/// A name that no other test gives a policy, of four letters.
pub fn four_letters() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(100);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("p{number}")
}

/// A namespace whose ConfigMaps may be policies.
pub fn allowed(plane: &ControlPlane) -> String {
    let namespace = plane.namespace("apps").unwrap();
    let label = format!("{POLICIES_LABEL}=allowed");
    plane.kubectl(&["label", "namespace", &namespace, &label]).unwrap().success().unwrap();
    namespace
}

/// A ConfigMap that holds a policy.
#[derive(Debug, Clone, Default)]
pub struct Map<'m> {
    pub namespace: &'m str,
    pub name: &'m str,
    pub modules: Vec<(&'m str, Vec<u8>)>,
    pub settings: Option<&'m str>,
    pub annotations: Vec<(&'m str, &'m str)>,
}

impl Map<'_> {
    /// Makes it like this, whatever it was.
    pub async fn put(&self, client: &Client) {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), self.namespace);
        let params = PatchParams::apply("test").force();
        maps.patch(self.name, &params, &Patch::Apply(&self.object())).await.unwrap();
    }

    /// The object.
    pub fn object(&self) -> ConfigMap {
        let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(self.name.to_owned()),
                labels: Some([(POLICY_LABEL.to_owned(), "true".to_owned())].into()),
                annotations: Some(self.annotations.iter().map(pair).collect()),
                ..ObjectMeta::default()
            },
            binary_data: Some(
                self.modules
                    .iter()
                    .map(|(key, bytes)| ((*key).to_owned(), ByteString(bytes.clone())))
                    .collect(),
            ),
            data: self.settings.map(|text| [("settings".to_owned(), text.to_owned())].into()),
            ..ConfigMap::default()
        }
    }
}

/// Puts one module into a ConfigMap.
pub async fn put(client: &Client, namespace: &str, name: &str, module: Vec<u8>) {
    Map { namespace, name, modules: vec![("policy.wasm", module)], ..Map::default() }
        .put(client)
        .await;
}

/// Merges this into the spec of a DisruptionPolicy.
pub async fn patch(client: &Client, name: &str, spec: Value) {
    let policies: Api<DisruptionPolicy> = Api::all(client.clone());
    let patch = serde_json::json!({ "spec": spec });
    policies.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

/// Waits until a DisruptionPolicy has such a status.
pub async fn until(
    client: &Client,
    name: &str,
    holds: impl Fn(&DisruptionPolicyStatus) -> bool,
) -> DisruptionPolicyStatus {
    // Also of an object whose spec cannot be read.
    let kind = ApiResource::erase::<DisruptionPolicy>(&());
    let policies: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let status = |object: &DynamicObject| {
        let status = object.data.get("status")?;
        DisruptionPolicyStatus::deserialize(status).ok()
    };
    let such =
        |object: Option<&DynamicObject>| object.and_then(status).is_some_and(|it| holds(&it));
    let search = async {
        loop {
            match await_condition(policies.clone(), name, &such).await {
                Ok(found) => return found,
                // The API server is on its way.
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    };
    let Ok(found) = tokio::time::timeout(LONG, search).await else {
        panic!("{name} stays {:#?}", policies.get_opt(name).await);
    };
    status(&found.unwrap()).unwrap()
}

/// Waits until a DisruptionPolicy is in this state.
pub async fn until_state(client: &Client, name: &str, state: State) -> DisruptionPolicyStatus {
    until(client, name, |status| status.state == Some(state)).await
}

/// Waits until there is no such DisruptionPolicy.
pub async fn until_gone(client: &Client, name: &str) {
    let policies: Api<DisruptionPolicy> = Api::all(client.clone());
    let gone = await_condition(policies, name, |it: Option<&DisruptionPolicy>| it.is_none());
    tokio::time::timeout(LONG, gone).await.expect(name).unwrap();
}

/// Waits until the policies are such.
#[track_caller]
pub fn until_current(
    replica: &Replica,
    holds: impl Fn(&Current) -> bool,
) -> impl Future<Output = Arc<Current>> {
    until_current_at(replica, holds, std::panic::Location::caller())
}

async fn until_current_at(
    replica: &Replica,
    holds: impl Fn(&Current) -> bool,
    place: &'static std::panic::Location<'static>,
) -> Arc<Current> {
    let mut published = replica.published.clone();
    let found = tokio::time::timeout(LONG, published.wait_for(|it| holds(it))).await;
    match found {
        Ok(found) => Arc::clone(&found.unwrap()),
        Err(_) => {
            let current = replica.published.borrow();
            let all = current.policies.policies().iter().map(|it| &it.identity);
            let (waiting, all) = (replica.watches.waiting(), all.collect::<Vec<_>>());
            panic!("{place}: {waiting:?}, settled {}: {all:#?}", current.settled);
        }
    }
}

/// Whether a policy of this name decides, with a module of this digest.
pub fn decides(current: &Current, name: &str, digest: &str) -> bool {
    let all = current.policies.policies();
    all.iter().any(|it| it.identity.policy == name && it.identity.digest.to_string() == digest)
}

/// Whether a policy of this name takes part.
pub fn has(current: &Current, name: &str) -> bool {
    current.policies.policies().iter().any(|it| it.identity.policy == name)
}

/// What a new file with this text costs, beside writing it.
pub fn cost(current: &Current, path: &str, text: &str) -> String {
    let empty = r#"{"ignition": {"version": "3.4.0"}}"#.to_owned();
    let contents = serde_json::json!({"source": format!("data:,{text}")});
    let file = serde_json::json!({
        "ignition": {"version": "3.4.0"},
        "storage": {"files": [{"path": path, "contents": contents}]},
    })
    .to_string();
    let input = |bytes| [Input { name: "test", bytes }];
    let (old, new) = (input(empty.as_bytes()), input(file.as_bytes()));
    let (old, new) = sides(&old, &new).unwrap();
    let sandbox = sandbox();
    let planned =
        planner::plan(&sandbox, &current.policies, &old.config, &new.config, Vec::new()).unwrap();
    let steps = planned.plan.steps.iter();
    let steps = steps.filter(|step| !matches!(step, Step::Write | Step::Uncordon));
    steps.map(Step::to_string).collect::<Vec<_>>().join(", ")
}

/// Waits for an Event about an object, NAME or NAMESPACE/NAME; gives its text.
pub async fn event_text(client: &Client, object: &str, reason: &str) -> String {
    let (namespace, name) = match object.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, object),
    };
    let events: Api<Event> = Api::all(client.clone());
    let of = format!("reason={reason}");
    let search = async {
        loop {
            let all = events.list(&ListParams::default().fields(&of)).await.unwrap();
            let mut about = all.items.into_iter().filter(|event| {
                event.regarding.as_ref().is_some_and(|it| {
                    it.name.as_deref() == Some(name) && it.namespace.as_deref() == namespace
                })
            });
            if let Some(event) = about.next() {
                return event.note.unwrap_or_default();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(LONG, search).await.unwrap_or_else(|_| panic!("no {reason} of {object}"))
}

/// A condition of a policy: status, reason and message.
pub fn condition(status: &DisruptionPolicyStatus, type_: &str) -> (String, String, String) {
    let found = status.conditions.iter().find(|it| it.type_ == type_).unwrap().clone();
    (found.status, found.reason, found.message)
}
