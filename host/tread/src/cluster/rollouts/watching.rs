//! The same as it changes: by watches, so that nothing is asked again and again.

use super::{Clock, Known, clock, readable, unknown_holders, updates, without_plan};
use crate::cluster::connect::Cluster;
use anyhow::{Result, anyhow};
use futures::future::FutureExt as _;
use futures::stream::{BoxStream, SelectAll, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use tread_console::print::warn;
use tread_enforce::{CORDON_ANNOTATION, SLOTS, pools_of_slots};
use tread_kube::api::{NodeUpdate, Rollout};
use tread_kube::asking::{CallOutcome, Failed};
use tread_kube::watching::fold::{Fold, Folded};
use tread_kube::watching::parsed::{Parsed, each_by_itself};

/// What a watch says.
enum Heard {
    Update(Event<Parsed<NodeUpdate>>),
    Rollout(Event<Parsed<Rollout>>),
    Lease(Event<Lease>),
    Node(Event<PartialObjectMeta<Node>>),
    Slots(Event<ConfigMap>),
    Failed(Failed, Kind),
}

impl Heard {
    fn kind(&self) -> Kind {
        match self {
            Heard::Update(_) => Kind::Updates,
            Heard::Rollout(_) => Kind::Rollouts,
            Heard::Lease(_) => Kind::Leases,
            Heard::Node(_) => Kind::Nodes,
            Heard::Slots(_) => Kind::Slots,
            Heard::Failed(_, kind) => *kind,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Updates,
    Rollouts,
    Leases,
    Nodes,
    Slots,
}

impl Kind {
    fn plural(self) -> &'static str {
        match self {
            Kind::Updates => "nodeupdates",
            Kind::Rollouts => "rollouts",
            Kind::Leases => "leases",
            Kind::Nodes => "nodes",
            Kind::Slots => "configmaps",
        }
    }
}

/// Which objects each watch has told of.
#[derive(Default)]
struct Folds {
    updates: Fold<String>,
    rollouts: Fold<String>,
    leases: Fold<String>,
    nodes: Fold<String>,
    slots: Fold<String>,
}

/// What is known, and what keeps it so.
pub(crate) struct Watching {
    pub(crate) known: Known,
    pub(crate) clock: Clock,
    pub(crate) cluster: Cluster,
    streams: SelectAll<BoxStream<'static, Heard>>,
    folds: Folds,
    /// What is waited for before anything is said.
    awaited: Vec<Kind>,
    /// Those whose watch failed, and has not begun again.
    troubled: Vec<Kind>,
}

impl Watching {
    /// Begins, and waits until all of it is listed. Where tread's namespace is given, also which
    /// nodes tread cordoned, and which have a slot.
    pub(crate) async fn begin(
        cluster: Cluster,
        leases: &str,
        namespace: Option<&str>,
    ) -> Result<Watching> {
        let clock = clock(&cluster).await?;
        let client = &cluster.client;
        let mut streams = SelectAll::new();
        let updates = each_by_itself(Api::<NodeUpdate>::all(client.clone()));
        streams.push(heard(updates, Kind::Updates, Heard::Update));
        let rollouts = each_by_itself(Api::<Rollout>::all(client.clone()));
        streams.push(heard(rollouts, Kind::Rollouts, Heard::Rollout));
        let leases: Api<Lease> = Api::namespaced(client.clone(), leases);
        streams.push(heard(leases, Kind::Leases, Heard::Lease));
        let mut awaited = vec![Kind::Updates, Kind::Rollouts, Kind::Leases];
        if let Some(namespace) = namespace {
            let nodes: Api<PartialObjectMeta<Node>> = Api::all(client.clone());
            streams.push(heard(nodes, Kind::Nodes, Heard::Node));
            awaited.push(Kind::Nodes);
            let slots: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
            let only = Config::default().fields(&format!("metadata.name={SLOTS}"));
            streams.push(heard_of(slots, only, Kind::Slots, Heard::Slots));
            awaited.push(Kind::Slots);
        }
        let mut watching = Watching {
            known: Known::default(),
            clock,
            cluster,
            streams,
            folds: Folds::default(),
            awaited,
            troubled: Vec::new(),
        };
        watching.next().await?;
        Ok(watching)
    }

    /// Waits until something has changed.
    pub(crate) async fn next(&mut self) -> Result<()> {
        loop {
            let heard = self.streams.next().await;
            self.take(heard.ok_or_else(|| anyhow!("the watches ended; please report it"))?)?;
            // What came together is looked at together.
            while let Some(Some(heard)) = self.streams.next().now_or_never() {
                self.take(heard)?;
            }
            if self.awaited.iter().all(|kind| self.is_settled(*kind)) {
                return Ok(());
            }
        }
    }

    /// All NodeUpdates as they are right now: one watch may be behind another.
    pub(crate) async fn afresh(&self) -> Result<Known> {
        Ok(Known { updates: updates(&self.cluster).await?, ..self.known.clone() })
    }

    fn is_settled(&self, kind: Kind) -> bool {
        let Folds { updates, rollouts, leases, nodes, slots } = &self.folds;
        match kind {
            Kind::Updates => updates.is_settled(),
            Kind::Rollouts => rollouts.is_settled(),
            Kind::Leases => leases.is_settled(),
            Kind::Nodes => nodes.is_settled(),
            Kind::Slots => slots.is_settled(),
        }
    }

    fn take(&mut self, heard: Heard) -> Result<()> {
        let kind = heard.kind();
        let (known, folds) = (&mut self.known, &mut self.folds);
        match heard {
            Heard::Failed(failed, kind) => return self.failed(&failed, kind),
            Heard::Update(event) => {
                let change = folds.updates.take(event, |it| it.name_any());
                if let Folded::There(name, Parsed::Unreadable(..)) = &change {
                    known.unreadable.insert(name.clone());
                } else if let Folded::There(name, _) | Folded::Gone(name) = &change {
                    known.unreadable.remove(name);
                }
                if let Folded::Listed(gone) = &change {
                    known.unreadable.retain(|name| !gone.contains(name));
                }
                parsed(change, Kind::Updates).apply(&mut known.updates, without_plan);
            }
            Heard::Rollout(event) => {
                let change = parsed(folds.rollouts.take(event, |it| it.name_any()), Kind::Rollouts);
                change.apply(&mut known.rollouts, |it| it);
            }
            Heard::Lease(event) => {
                let change = folds.leases.take(event, |it| it.name_any());
                change.apply(&mut known.leases, |it| it);
            }
            Heard::Node(event) => {
                let change = match folds.nodes.take(event, |it| it.name_any()) {
                    Folded::There(name, node) => match node.annotations().get(CORDON_ANNOTATION) {
                        Some(operation) => Folded::There(name, operation.clone()),
                        None => Folded::Gone(name),
                    },
                    Folded::Gone(name) => Folded::Gone(name),
                    Folded::Listed(gone) => Folded::Listed(gone),
                    Folded::Nothing => Folded::Nothing,
                };
                change.apply(&mut known.cordons, |it| it);
            }
            Heard::Slots(event) => {
                let read = match folds.slots.take(event, |it| it.name_any()) {
                    Folded::There(_, object) => Some(pools_of_slots(&object)),
                    Folded::Gone(_) => Some(Ok(BTreeMap::new())),
                    Folded::Listed(gone) => (!gone.is_empty()).then(|| Ok(BTreeMap::new())),
                    Folded::Nothing => None,
                };
                if let Some(read) = read {
                    known.slots_unread = read.as_ref().err().cloned();
                    known.slots = read.unwrap_or_default();
                }
            }
        }
        self.troubled.retain(|it| *it != kind);
        Ok(())
    }

    /// What is forbidden or not there stays so; otherwise the watch begins again by itself.
    fn failed(&mut self, failed: &Failed, kind: Kind) -> Result<()> {
        let is_own = matches!(kind, Kind::Updates | Kind::Rollouts);
        match failed.outcome {
            CallOutcome::Gone if is_own => return Err(self.cluster.rolls_out_nothing()),
            CallOutcome::Forbidden if is_own => {
                return Err(self.cluster.failed(kind.plural(), failed));
            }
            CallOutcome::Forbidden => {
                if self.awaited.contains(&kind) {
                    let why = match kind {
                        Kind::Nodes => format!("which nodes tread cordoned is not known: {failed}"),
                        Kind::Slots => format!("which nodes have a slot is not known: {failed}"),
                        _ => unknown_holders(failed),
                    };
                    warn(&why);
                    self.known.unknown.push(why);
                }
                self.awaited.retain(|awaited| *awaited != kind);
            }
            _ => {
                if self.troubled.is_empty() {
                    warn(&format!(
                        "the cluster is asked again, and what is known may be old: {failed}"
                    ));
                }
                if !self.troubled.contains(&kind) {
                    self.troubled.push(kind);
                }
            }
        }
        Ok(())
    }
}

/// What can be read; of another one, what stood there before goes.
fn parsed<K: Resource + Clone>(change: Folded<String, Parsed<K>>, kind: Kind) -> Folded<String, K> {
    match change {
        Folded::There(name, seen) => match readable(seen, kind.plural()) {
            Some(object) => Folded::There(name, object),
            None => Folded::Gone(name),
        },
        Folded::Gone(name) => Folded::Gone(name),
        Folded::Listed(gone) => Folded::Listed(gone),
        Folded::Nothing => Folded::Nothing,
    }
}

fn heard<K>(
    api: Api<K>,
    kind: Kind,
    heard: impl Fn(Event<K>) -> Heard + Send + 'static,
) -> BoxStream<'static, Heard>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    K::DynamicType: Clone,
{
    heard_of(api, Config::default(), kind, heard)
}

/// The same of some of them.
fn heard_of<K>(
    api: Api<K>,
    config: Config,
    kind: Kind,
    heard: impl Fn(Event<K>) -> Heard + Send + 'static,
) -> BoxStream<'static, Heard>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    K::DynamicType: Clone,
{
    let events = watcher(api, config).default_backoff();
    let events = events.map(move |event| match event {
        Ok(event) => heard(event),
        Err(error) => Heard::Failed(Failed::watch(&error, kind.plural()), kind),
    });
    events.boxed()
}
