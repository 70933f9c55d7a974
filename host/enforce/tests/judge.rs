//! An independent watcher: it records every version of nodes, Leases, slots and NodeUpdates, puts
//! them in the order in which the API server wrote them, and judges each moment. What a killed
//! API server wrote, and could tell nobody, is read in etcd.

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
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
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::{UpdateDisrupts, UpdatePhase, UpdateStage};
use tread_kube::node_lease::OPERATION_ANNOTATION;
use tread_test_bed::{ControlPlane, eventually};

/// What is known of something from a version on.
#[derive(Debug, Clone)]
enum Fact {
    /// A node.
    Node(String, OfNode),
    /// A node's Lease, if tread holds it.
    Leased(String, Option<Held>),
    /// The operation of each node's slot, and whether it may be unavailable.
    Slots(BTreeMap<String, (String, bool)>, Option<Timestamp>),
    /// A node's order and how far its agent is with it, if it has one.
    Order(String, Option<OfOrder>),
}

#[derive(Debug, Clone)]
struct OfNode {
    uid: String,
    /// Whether it is not there any more.
    is_gone: bool,
    cordon: Cordoned,
    /// When it was written, to the second.
    at: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Cordoned {
    is_unschedulable: bool,
    /// The operation that tread's mark names.
    mark: Option<String>,
}

/// A Lease of tread.
#[derive(Debug, Clone)]
struct Held {
    operation: String,
    ends: Option<Timestamp>,
}

#[derive(Debug, Clone)]
struct OfOrder {
    /// The UID of its node.
    node: Option<String>,
    operation: String,
    disrupts: UpdateDisrupts,
    stage: UpdateStage,
    /// The agent's word of this operation.
    phase: Option<UpdatePhase>,
}

type Facts = Arc<Mutex<BTreeMap<u64, Fact>>>;

/// What an object says, and whether that was deleted.
type Reads = Box<dyn Fn(Value, bool) -> Option<Fact> + Send + Sync>;

/// Objects of one kind, where etcd has them, and from which revision on they are judged.
struct Kept {
    prefix: String,
    since: u64,
    reads: Reads,
    is_up_to_date: IsUpToDate,
}

/// Whether the watch of a kind has told of all that was written so far.
type IsUpToDate = Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// What the watch of a kind has told.
#[derive(Debug, Default)]
struct Told {
    /// The newest version.
    version: u64,
    /// The UIDs of the objects that are there.
    there: BTreeSet<String>,
}

impl Told {
    fn hears<K: Resource>(&mut self, object: &K, gone: bool) {
        self.version = self.version.max(version(object));
        let Some(uid) = object.meta().uid.clone() else { return };
        if gone {
            self.there.remove(&uid)
        } else {
            self.there.insert(uid)
        };
    }

    /// Whether it was told of all these, and of each that is not there any more.
    fn is_like<K: Resource>(&self, listed: &[K]) -> bool {
        let there: BTreeSet<_> = listed.iter().filter_map(|it| it.meta().uid.as_ref()).collect();
        listed.iter().all(|it| version(it) <= self.version)
            && self.there.iter().all(|uid| there.contains(uid))
    }
}

fn version<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_ref().unwrap().parse().unwrap()
}

pub(crate) struct Judge {
    facts: Facts,
    nodes: BTreeSet<String>,
    down: usize,
    tasks: Vec<JoinHandle<()>>,
    kept: Vec<Kept>,
}

impl Judge {
    pub(crate) async fn begin(
        client: &Client,
        settings: &Settings,
        nodes: &[String],
        down: usize,
    ) -> Judge {
        let holder = settings.holder.clone();
        let lease = move |lease: &Lease, gone: bool| {
            let spec = lease.spec.as_ref()?;
            let holds = spec.holder_identity.as_ref() == Some(&holder) && !gone;
            let annotations = lease.metadata.annotations.clone().unwrap_or_default();
            let of = annotations.get(OPERATION_ANNOTATION).filter(|_| holds).cloned();
            let lasts = spec.lease_duration_seconds.and_then(|it| u64::try_from(it).ok());
            let renewed = spec.renew_time.as_ref().map(|at| at.0);
            let ends = renewed.zip(lasts).map(|(at, lasts)| at + Duration::from_secs(lasts));
            let node = lease.metadata.name.as_ref()?.strip_prefix("node-")?.to_owned();
            Some(Fact::Leased(node, of.map(|operation| Held { operation, ends })))
        };
        let in_leases = format!("leases/{}/", settings.leases);
        let in_maps = format!("configmaps/{}/", settings.namespace);
        let mut judge = Judge {
            facts: Facts::default(),
            nodes: nodes.iter().cloned().collect(),
            down,
            tasks: Vec::new(),
            kept: Vec::new(),
        };
        judge.records(Api::all(client.clone()), "minions/", of_node).await;
        judge.records(Api::all(client.clone()), "tread.dev/nodeupdates/", order).await;
        judge.records(Api::namespaced(client.clone(), &settings.leases), &in_leases, lease).await;
        judge.records(Api::namespaced(client.clone(), &settings.namespace), &in_maps, slots).await;
        judge
    }

    /// Records all objects of a kind from now on.
    async fn records<K>(
        &mut self,
        api: Api<K>,
        below: &str,
        fact: impl Fn(&K, bool) -> Option<Fact> + Clone + Send + Sync + 'static,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let told = Arc::new(Mutex::new(Told::default()));
        let watch = watch(api.clone(), Arc::clone(&told), Arc::clone(&self.facts), fact.clone());
        let (since, task) = Box::pin(watch).await;
        self.tasks.push(task);
        let is_up_to_date = move || {
            let (api, told) = (api.clone(), Arc::clone(&told));
            async move {
                let listed = api.list(&ListParams::default()).await;
                listed.is_ok_and(|listed| told.lock().unwrap().is_like(&listed.items))
            }
            .boxed()
        };
        let reads =
            move |value: Value, gone: bool| fact(&serde_json::from_value(value).unwrap(), gone);
        let prefix = format!("/registry/{below}");
        let is_up_to_date = Box::new(is_up_to_date);
        self.kept.push(Kept { prefix, since, reads: Box::new(reads), is_up_to_date });
    }

    /// That the laws held at each moment until all slots were seen to be free again.
    pub(crate) async fn holds(&self) {
        self.saw_all().await;
        assert_eq!(self.verdict(), Ok(()));
    }

    /// The same where nodes failed: such a node keeps its cordon and a slot, and no Lease.
    pub(crate) async fn holds_for_failed_nodes(&self) {
        self.saw_all().await;
        assert_eq!(self.judged(Now::judge_failed), Ok(()));
    }

    /// The same where somebody removed the slots for a while.
    pub(crate) async fn holds_but_for_slots(&self) {
        self.saw_all().await;
        assert_eq!(self.judged(Now::judge_leases), Ok(()));
    }

    /// The same where an API server was killed: what it told nobody is taken from etcd.
    pub(crate) async fn holds_by_the_store_of(&self, plane: &ControlPlane) {
        for Kept { prefix, since, reads, .. } in &self.kept {
            for write in plane.history(prefix, since + 1).unwrap() {
                let mut value = write.value;
                // It is not stored.
                value["metadata"]["resourceVersion"] = write.revision.to_string().into();
                if let Some(fact) = reads(value, write.deleted) {
                    self.facts.lock().unwrap().insert(write.revision, fact);
                }
            }
        }
        self.ended().await;
        assert_eq!(self.judged_by_facts(Now::judge), Ok(()));
    }

    /// Waits for the end, and until each watch told all of it: one of them may be late, and a node
    /// that is uncordoned before its Lease is given back would look as if it had none.
    async fn saw_all(&self) {
        self.ended().await;
        for kept in &self.kept {
            eventually("the judge saw all that was written", async || {
                // One that ended tells nothing more: see `judged`.
                let has_ended = self.tasks.iter().any(JoinHandle::is_finished);
                (has_ended || (kept.is_up_to_date)().await).then_some(())
            })
            .await;
        }
    }

    async fn ended(&self) {
        eventually("the judge saw the end", async || {
            let facts = self.facts.lock().unwrap();
            let slots = facts.values().rev().find_map(|fact| match fact {
                Fact::Slots(slots, _) => Some(slots.is_empty()),
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
                Fact::Node(node, it) if it.cordon.mark.is_some() => Some(node.clone()),
                _ => None,
            })
        })
        .await
    }

    /// How often a cordon, the holder of a Lease, the slots, the stage of an order or the phase of
    /// an agent were seen to change so far.
    pub(crate) fn changes(&self) -> usize {
        let facts = self.facts.lock().unwrap().clone();
        let (mut now, mut changes) = (Now::default(), 0);
        for fact in facts.into_values() {
            let before = now.stands();
            // What is wrong is judged at the end.
            let _ = now.becomes(fact, &self.nodes);
            changes += usize::from(now.stands() != before);
        }
        changes
    }

    /// How many slots of nodes that may be unavailable were taken, from the first one until the
    /// last of the nodes had its own: at most, and on average over that time.
    pub(crate) fn taken(&self) -> (usize, f64) {
        let facts = self.facts.lock().unwrap();
        let (mut most, mut sum, mut time) = (0, 0.0, 0.0);
        let mut had = BTreeSet::new();
        let mut before: Option<(usize, Timestamp)> = None;
        for fact in facts.values() {
            let Fact::Slots(slots, Some(at)) = fact else { continue };
            let down = slots.iter().filter(|(_, (_, may_be_down))| *may_be_down);
            let (nodes, count) = (down.clone().map(|(node, _)| node.clone()), down.count());
            if let Some((count, since)) = before {
                let lasted = at.duration_since(since).as_secs_f64();
                sum += lasted * as_number(count);
                time += lasted;
            }
            most = most.max(count);
            had.extend(nodes);
            if had.len() == self.nodes.len() {
                break;
            }
            before = (!had.is_empty()).then_some((count, *at));
        }
        (most, if time > 0.0 { sum / time } else { as_number(most) })
    }

    /// What was broken first, of all that was seen.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        self.judged(Now::judge)
    }

    fn judged(&self, judge: fn(&Now, usize) -> Result<(), String>) -> Result<(), String> {
        if self.tasks.iter().any(JoinHandle::is_finished) {
            return Err("the judge missed something that was written".to_owned());
        }
        self.judged_by_facts(judge)
    }

    fn judged_by_facts(&self, judge: fn(&Now, usize) -> Result<(), String>) -> Result<(), String> {
        let mut now = Now::default();
        let facts = self.facts.lock().unwrap().clone();
        facts.into_iter().try_for_each(|(version, fact)| {
            let written = now.becomes(fact, &self.nodes);
            let judged = written.and_then(|()| judge(&now, self.down));
            judged.map_err(|why| format!("at {version}: {why}: {now:?}"))
        })
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

#[derive(Debug, Clone, Default)]
struct Now {
    cordons: BTreeMap<String, Cordoned>,
    leased: BTreeMap<String, Held>,
    slots: BTreeMap<String, (String, bool)>,
    orders: BTreeMap<String, OfOrder>,
    /// UIDs of nodes that are not there any more.
    gone: BTreeSet<String>,
}

/// What was done so far, without the times.
type Stands = (
    BTreeMap<String, String>,
    BTreeMap<String, String>,
    BTreeMap<String, (String, bool)>,
    BTreeMap<String, (UpdateStage, Option<UpdatePhase>)>,
);

impl Now {
    /// Takes a fact in; an error where it should not have been written.
    fn becomes(&mut self, fact: Fact, nodes: &BTreeSet<String>) -> Result<(), String> {
        match fact {
            Fact::Slots(slots, _) => self.slots = slots,
            Fact::Leased(node, held) => match held.filter(|_| nodes.contains(&node)) {
                Some(held) => drop(self.leased.insert(node, held)),
                None => drop(self.leased.remove(&node)),
            },
            Fact::Node(node, of) if nodes.contains(&node) => return self.node_becomes(&node, of),
            Fact::Order(node, of) if nodes.contains(&node) => return self.ordered(&node, of),
            Fact::Node(..) | Fact::Order(..) => {}
        }
        Ok(())
    }

    /// tread cordons a node and undoes that while it holds its Lease, which has not ended.
    fn node_becomes(&mut self, node: &str, of: OfNode) -> Result<(), String> {
        if of.is_gone {
            self.gone.insert(of.uid);
            self.cordons.remove(node);
            self.orders.remove(node);
            return Ok(());
        }
        let before = self.cordons.insert(node.to_owned(), of.cordon.clone()).unwrap_or_default();
        let now = of.cordon;
        let judge = |does: &str, operation: &str| {
            let why = match self.leased.get(node) {
                Some(held) if held.operation != operation => "without its Lease",
                Some(held) if has_ended(held, of.at) => "although its Lease has ended",
                Some(_) => return Ok(()),
                None => "without its Lease",
            };
            Err(format!("{node} is {does} {why}"))
        };
        match (before.mark, now.mark) {
            (before, Some(mark)) if before.as_ref() != Some(&mark) => judge("cordoned", &mark),
            // Where somebody else uncordons it, the mark goes later. Where it is left to somebody
            // else, the cordon stays.
            (Some(mark), None) if before.is_unschedulable && !now.is_unschedulable => {
                judge("uncordoned", &mark)
            }
            _ => Ok(()),
        }
    }

    /// An agent that has begun has the slot and the Lease of its operation.
    fn ordered(&mut self, node: &str, of: Option<OfOrder>) -> Result<(), String> {
        let of = of.filter(|of| of.node.as_ref().is_none_or(|node| !self.gone.contains(node)));
        let Some(of) = of else {
            self.orders.remove(node);
            return Ok(());
        };
        self.orders.insert(node.to_owned(), of.clone());
        let has_begun = matches!(of.phase, Some(UpdatePhase::Begun | UpdatePhase::NeedsBoot));
        if of.stage != UpdateStage::Go || of.disrupts == UpdateDisrupts::Nothing || !has_begun {
            return Ok(());
        }
        let drains = matches!(of.disrupts, UpdateDisrupts::Drain | UpdateDisrupts::Reboot);
        let has_slot = |(by, down): &(String, bool)| *by == of.operation && (*down || !drains);
        if !self.slots.get(node).is_some_and(has_slot) {
            return Err(format!("the agent of {node} is at it without its slot"));
        }
        match self.leased.get(node) {
            Some(held) if held.operation == of.operation => Ok(()),
            _ => Err(format!("the agent of {node} is at it without its Lease")),
        }
    }

    /// What tread has cordoned, and for which operation.
    fn cordoned(&self) -> impl Iterator<Item = (&String, &String)> {
        self.cordons.iter().filter_map(|(node, of)| Some((node, of.mark.as_ref()?)))
    }

    fn stands(&self) -> Stands {
        let cordoned = self.cordoned().map(|(node, of)| (node.clone(), of.clone()));
        let leased = self.leased.iter().map(|(node, it)| (node.clone(), it.operation.clone()));
        let orders = self.orders.iter().map(|(node, it)| (node.clone(), (it.stage, it.phase)));
        (cordoned.collect(), leased.collect(), self.slots.clone(), orders.collect())
    }

    fn judge(&self, down: usize) -> Result<(), String> {
        self.judge_leases(down)?;
        for (node, of) in self.cordoned() {
            if self.slots.get(node) != Some(&(of.clone(), true)) {
                return Err(format!("{node} is cordoned without its slot"));
            }
        }
        Ok(())
    }

    fn judge_leases(&self, down: usize) -> Result<(), String> {
        for (node, of) in self.cordoned() {
            if self.leased.get(node).map(|held| &held.operation) != Some(of) {
                return Err(format!("{node} is cordoned without its Lease"));
            }
        }
        self.counts(down)
    }

    fn judge_failed(&self, down: usize) -> Result<(), String> {
        let has_slot = |node: &String| self.slots.get(node).is_some_and(|(_, down)| *down);
        match self.cordoned().find(|(node, _)| !has_slot(node)) {
            Some((node, _)) => Err(format!("{node} is cordoned without a slot")),
            None => self.counts(down),
        }
    }

    fn counts(&self, down: usize) -> Result<(), String> {
        match self.cordoned().count() {
            count if count > down => Err(format!("{count} nodes are cordoned")),
            _ => Ok(()),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(crate) fn as_number(count: usize) -> f64 {
    count as f64
}

/// Whether a Lease has ended by the time of a write, which is known to the second.
fn has_ended(held: &Held, at: Option<Timestamp>) -> bool {
    held.ends.zip(at).is_some_and(|(ends, at)| at.as_second() > ends.as_second() + 1)
}

fn of_node(node: &Node, is_gone: bool) -> Option<Fact> {
    let annotations = node.metadata.annotations.clone().unwrap_or_default();
    let spec = node.spec.as_ref();
    let cordon = Cordoned {
        is_unschedulable: spec.is_some_and(|spec| spec.unschedulable == Some(true)),
        mark: annotations.get(CORDON_ANNOTATION).cloned(),
    };
    let uid = node.metadata.uid.clone()?;
    let of = OfNode { uid, is_gone, cordon, at: written_at(&node.metadata) };
    Some(Fact::Node(node.metadata.name.clone()?, of))
}

/// When an object was written last.
fn written_at(metadata: &ObjectMeta) -> Option<Timestamp> {
    let fields = metadata.managed_fields.as_deref().unwrap_or_default();
    fields.iter().filter_map(|it| it.time.as_ref()).map(|at| at.0).max()
}

fn order(update: &NodeUpdate, is_gone: bool) -> Option<Fact> {
    let owners = update.metadata.owner_references.as_deref().unwrap_or_default();
    let node = owners.iter().find(|owner| owner.kind == "Node").map(|owner| owner.uid.clone());
    let status = update.status.clone().unwrap_or_default();
    let order = update.spec.order.as_ref().filter(|_| !is_gone).map(|order| OfOrder {
        node,
        operation: order.operation.clone(),
        disrupts: order.disrupts,
        stage: order.stage,
        phase: status.phase.filter(|_| status.operation.as_ref() == Some(&order.operation)),
    });
    Some(Fact::Order(update.metadata.name.clone()?, order))
}

fn slots(object: &ConfigMap, _: bool) -> Option<Fact> {
    let is_it = object.metadata.name.as_deref() == Some(SLOTS);
    let text = object.data.as_ref()?.get("slots.json").filter(|_| is_it)?;
    let slots: BTreeMap<String, Value> = serde_json::from_str(text).unwrap();
    let slot = |it: &Value| {
        (it["operation"].as_str().unwrap().to_owned(), it["unavailable"].as_bool().unwrap())
    };
    let slots = slots.iter().map(|(node, it)| (node.clone(), slot(it))).collect();
    Some(Fact::Slots(slots, written_at(&object.metadata)))
}

async fn watch<K>(
    api: Api<K>,
    told: Arc<Mutex<Told>>,
    facts: Facts,
    fact: impl Fn(&K, bool) -> Option<Fact> + Send + Sync + 'static,
) -> (u64, JoinHandle<()>)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    // A kind that was defined a moment ago is not served at once.
    let listed =
        eventually("they are listed", async || api.list(&ListParams::default()).await.ok());
    let listed = listed.await;
    listed.items.iter().for_each(|it| told.lock().unwrap().hears(it, false));
    let mut from = listed.metadata.resource_version.unwrap();
    let since = from.parse().unwrap();
    let task = tokio::spawn(async move {
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
                    // What comes now may be without what came before: nothing can be judged by it.
                    WatchEvent::Error(status) if status.code == 410 => return,
                    WatchEvent::Error(_) => break,
                };
                from = object.meta().resource_version.clone().unwrap();
                if let Some(fact) = fact(&object, gone) {
                    facts.lock().unwrap().insert(from.parse().unwrap(), fact);
                }
                told.lock().unwrap().hears(&object, gone);
            }
        }
    });
    (since, task)
}
