//! An independent watcher: it records every version of nodes, Leases, slots and NodeUpdates, puts
//! them in the order in which the API server wrote them, and judges each moment.

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;
use tread_enforce::{CORDON_ANNOTATION, SLOTS, Settings};
use tread_kube::node_lease::OPERATION_ANNOTATION;
use tread_test_bed::eventually;

/// What is known of something from a version on.
#[derive(Debug, Clone)]
enum Fact {
    /// A node, and the operation that tread cordoned it for.
    Cordoned(String, Option<String>),
    /// A node's Lease, and the operation that tread holds it for.
    Leased(String, Option<String>),
    /// The operation of each node's slot, and whether it may be unavailable.
    Slots(BTreeMap<String, (String, bool)>),
}

type Facts = Arc<Mutex<BTreeMap<u64, Fact>>>;

pub(crate) struct Judge {
    facts: Facts,
    nodes: BTreeSet<String>,
    down: usize,
    tasks: Vec<JoinHandle<()>>,
}

impl Judge {
    pub(crate) async fn begin(
        client: &Client,
        settings: &Settings,
        nodes: &[String],
        down: usize,
    ) -> Judge {
        let facts = Facts::default();
        let holder = settings.holder.clone();
        let lease = move |lease: &Lease, gone: bool| {
            let holds = lease.spec.as_ref()?.holder_identity.as_ref() == Some(&holder) && !gone;
            let annotations = lease.metadata.annotations.clone().unwrap_or_default();
            let of = annotations.get(OPERATION_ANNOTATION).filter(|_| holds).cloned();
            let node = lease.metadata.name.as_ref()?.strip_prefix("node-")?.to_owned();
            Some(Fact::Leased(node, of))
        };
        let namespaced = |namespace: &str| Api::namespaced(client.clone(), namespace);
        let tasks = vec![
            watch(Api::all(client.clone()), facts.clone(), cordon).await,
            watch(namespaced(&settings.leases), facts.clone(), lease).await,
            watch(Api::namespaced(client.clone(), &settings.namespace), facts.clone(), slots).await,
        ];
        Judge { facts, nodes: nodes.iter().cloned().collect(), down, tasks }
    }

    /// That the laws held at each moment until all slots were seen to be free again.
    pub(crate) async fn holds(&self) {
        eventually("the judge saw the end", async || {
            let facts = self.facts.lock().unwrap();
            let slots = facts.values().rev().find_map(|fact| match fact {
                Fact::Slots(slots) => Some(slots.is_empty()),
                _ => None,
            });
            slots.filter(|are_free| *are_free)
        })
        .await;
        assert_eq!(self.verdict(), Ok(()));
    }

    /// What was broken first, of all that was seen.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        let mut now = Now::default();
        let facts = self.facts.lock().unwrap().clone();
        facts.into_iter().try_for_each(|(version, fact)| {
            now.becomes(fact, &self.nodes);
            now.judge(self.down).map_err(|why| format!("at {version}: {why}: {now:?}"))
        })
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

#[derive(Debug, Default)]
struct Now {
    cordoned: BTreeMap<String, String>,
    leased: BTreeMap<String, String>,
    slots: BTreeMap<String, (String, bool)>,
}

impl Now {
    fn becomes(&mut self, fact: Fact, nodes: &BTreeSet<String>) {
        let note = |all: &mut BTreeMap<String, String>, node: String, of: Option<String>| {
            match of.filter(|_| nodes.contains(&node)) {
                Some(of) => all.insert(node, of),
                None => all.remove(&node),
            };
        };
        match fact {
            Fact::Cordoned(node, of) => note(&mut self.cordoned, node, of),
            Fact::Leased(node, of) => note(&mut self.leased, node, of),
            Fact::Slots(slots) => self.slots = slots,
        }
    }

    fn judge(&self, down: usize) -> Result<(), String> {
        for (node, of) in &self.cordoned {
            if self.leased.get(node) != Some(of) {
                return Err(format!("{node} is cordoned without its Lease"));
            }
            if self.slots.get(node) != Some(&(of.clone(), true)) {
                return Err(format!("{node} is cordoned without its slot"));
            }
        }
        match self.cordoned.len() > down {
            true => Err(format!("{} nodes are cordoned", self.cordoned.len())),
            false => Ok(()),
        }
    }
}

fn cordon(node: &Node, _: bool) -> Option<Fact> {
    let annotations = node.metadata.annotations.clone().unwrap_or_default();
    Some(Fact::Cordoned(node.metadata.name.clone()?, annotations.get(CORDON_ANNOTATION).cloned()))
}

fn slots(object: &ConfigMap, _: bool) -> Option<Fact> {
    let is_it = object.metadata.name.as_deref() == Some(SLOTS);
    let text = object.data.as_ref()?.get("slots.json").filter(|_| is_it)?;
    let slots: BTreeMap<String, Value> = serde_json::from_str(text).unwrap();
    let slot = |it: &Value| {
        (it["operation"].as_str().unwrap().to_owned(), it["unavailable"].as_bool().unwrap())
    };
    Some(Fact::Slots(slots.iter().map(|(node, it)| (node.clone(), slot(it))).collect()))
}

async fn watch<K>(
    api: Api<K>,
    facts: Facts,
    fact: impl Fn(&K, bool) -> Option<Fact> + Send + 'static,
) -> JoinHandle<()>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let from = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let params = WatchParams::default().timeout(290);
    let mut events = api.watch(&params, &from).await.unwrap().boxed();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            let (object, gone) = match event.unwrap() {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
            };
            let version = object.meta().resource_version.as_ref().unwrap().parse().unwrap();
            if let Some(fact) = fact(&object, gone) {
                facts.lock().unwrap().insert(version, fact);
            }
        }
    })
}
