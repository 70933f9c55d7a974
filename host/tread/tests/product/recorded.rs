//! Each version of what is written about nodes, in the order in which it was written.

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;
use tread_kube::api::NodeUpdate;
use tread_kube::node_lease;

/// One version of an object.
#[derive(Debug, Clone)]
pub struct Version {
    pub kind: &'static str,
    pub name: String,
    pub number: u64,
    pub is_gone: bool,
    pub object: Value,
}

pub struct Recorded {
    versions: Arc<Mutex<Vec<Version>>>,
    /// How often each of them was listed, from which a watch goes on.
    lists: Arc<AtomicUsize>,
    tasks: Vec<JoinHandle<()>>,
}

impl Recorded {
    pub fn begin(client: &Client) -> Recorded {
        let (versions, lists) = (Arc::default(), Arc::<AtomicUsize>::default());
        let leases: Api<Lease> = Api::namespaced(client.clone(), node_lease::NAMESPACE);
        let tasks = vec![
            record("Node", Api::<Node>::all(client.clone()), &versions, &lists),
            record("NodeUpdate", Api::<NodeUpdate>::all(client.clone()), &versions, &lists),
            record("Pod", Api::<Pod>::namespaced(client.clone(), "default"), &versions, &lists),
            record("Lease", leases, &versions, &lists),
        ];
        Recorded { versions, lists, tasks }
    }

    /// All that was written after this version.
    pub fn since(&self, number: u64) -> Vec<Version> {
        let mut all = self.versions.lock().unwrap().clone();
        all.retain(|version| version.number > number);
        all.sort_by_key(|version| version.number);
        all
    }

    /// No watch had to begin anew: what is recorded is each version that was written.
    pub fn missed_nothing(&self) {
        assert_eq!(self.lists.load(Ordering::Relaxed), self.tasks.len());
    }

    /// The newest version that is known.
    pub fn now(&self) -> u64 {
        let all = self.versions.lock().unwrap();
        all.iter().map(|version| version.number).max().unwrap_or_default()
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn record<K>(
    kind: &'static str,
    api: Api<K>,
    versions: &Arc<Mutex<Vec<Version>>>,
    lists: &Arc<AtomicUsize>,
) -> JoinHandle<()>
where
    K: kube::Resource + Clone + Debug + DeserializeOwned + Serialize + Send + 'static,
    K::DynamicType: Default + Clone + Debug + Eq + std::hash::Hash + Send,
{
    let (versions, lists) = (versions.clone(), lists.clone());
    tokio::spawn(async move {
        let mut events = watcher(api, watcher::Config::default()).boxed();
        while let Some(event) = events.next().await {
            let (object, is_gone) = match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => (object, false),
                Ok(Event::Delete(object)) => (object, true),
                Ok(Event::Init) => {
                    lists.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                // It begins anew by itself.
                Ok(Event::InitDone) | Err(_) => continue,
            };
            let number = object.meta().resource_version.as_ref().unwrap().parse().unwrap();
            let name = object.meta().name.clone().unwrap();
            let object = serde_json::to_value(&object).unwrap();
            versions.lock().unwrap().push(Version { kind, name, number, is_gone, object });
        }
    })
}
