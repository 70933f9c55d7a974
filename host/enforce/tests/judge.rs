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
use std::time::Duration;
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
        self.ended().await;
        assert_eq!(self.verdict(), Ok(()));
    }

    /// The same where nodes failed: such a node keeps its cordon and a slot, and no Lease.
    pub(crate) async fn holds_for_failed_nodes(&self) {
        self.ended().await;
        assert_eq!(self.judged(Now::judge_failed), Ok(()));
    }

    async fn ended(&self) {
        eventually("the judge saw the end", async || {
            let facts = self.facts.lock().unwrap();
            let slots = facts.values().rev().find_map(|fact| match fact {
                Fact::Slots(slots) => Some(slots.is_empty()),
                _ => None,
            });
            slots.filter(|are_free| *are_free)
        })
        .await;
    }

    /// Waits until tread has cordoned a node, now or before; says which.
    pub(crate) async fn cordoned(&self) -> String {
        eventually("tread cordons a node", async || {
            let facts = self.facts.lock().unwrap();
            facts.values().find_map(|fact| match fact {
                Fact::Cordoned(node, Some(_)) => Some(node.clone()),
                _ => None,
            })
        })
        .await
    }

    /// How often a cordon, a Lease or the slots were seen to change so far.
    pub(crate) fn changes(&self) -> usize {
        let facts = self.facts.lock().unwrap().clone();
        let (mut now, mut changes) = (Now::default(), 0);
        for fact in facts.into_values() {
            let before = now.clone();
            now.becomes(fact, &self.nodes);
            changes += usize::from(now != before);
        }
        changes
    }

    /// What was broken first, of all that was seen.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        self.judged(Now::judge)
    }

    fn judged(&self, judge: fn(&Now, usize) -> Result<(), String>) -> Result<(), String> {
        let mut now = Now::default();
        let facts = self.facts.lock().unwrap().clone();
        facts.into_iter().try_for_each(|(version, fact)| {
            now.becomes(fact, &self.nodes);
            judge(&now, self.down).map_err(|why| format!("at {version}: {why}: {now:?}"))
        })
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
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
        self.counts(down)
    }

    fn judge_failed(&self, down: usize) -> Result<(), String> {
        let has_slot = |node: &String| self.slots.get(node).is_some_and(|(_, down)| *down);
        match self.cordoned.keys().find(|node| !has_slot(node)) {
            Some(node) => Err(format!("{node} is cordoned without a slot")),
            None => self.counts(down),
        }
    }

    fn counts(&self, down: usize) -> Result<(), String> {
        match self.cordoned.len() > down {
            true => Err(format!("{} nodes are cordoned", self.cordoned.len())),
            false => Ok(()),
        }
    }
}

fn cordon(node: &Node, gone: bool) -> Option<Fact> {
    let annotations = node.metadata.annotations.clone().unwrap_or_default();
    let of = annotations.get(CORDON_ANNOTATION).filter(|_| !gone).cloned();
    Some(Fact::Cordoned(node.metadata.name.clone()?, of))
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
    let mut from =
        api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    tokio::spawn(async move {
        loop {
            // The API server may be gone for a while: what it wrote before is told later.
            let params = WatchParams::default().timeout(290);
            let Ok(events) = api.watch(&params, &from).await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let mut events = events.boxed();
            while let Some(Ok(event)) = events.next().await {
                let (object, gone) = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                    WatchEvent::Deleted(object) => (object, true),
                    WatchEvent::Bookmark(bookmark) => {
                        from = bookmark.metadata.resource_version;
                        continue;
                    }
                    // What comes now may be without what came before.
                    WatchEvent::Error(status) if status.code == 410 => {
                        panic!("the judge missed something: {status:?}")
                    }
                    WatchEvent::Error(_) => break,
                };
                from = object.meta().resource_version.clone().unwrap();
                if let Some(fact) = fact(&object, gone) {
                    facts.lock().unwrap().insert(from.parse().unwrap(), fact);
                }
            }
        }
    })
}
