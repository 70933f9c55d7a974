//! What is read of one node before the next act is decided: from the API server, in the order
//! that the protocol asks for.

use crate::balancers;
use crate::drain::{self, Asked, Course, Left};
use crate::order::{self, Target};
use crate::proof::{is_proved, set_back};
use crate::remediation::Machine;
use crate::settings::Settings;
use crate::slots::{self, SlotsObject};
use crate::still::Still;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::UpdateOrder;
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::dated;
use tread_kube::held::{Maintained, cordon, held};
use tread_kube::node_lease::{self, OfNode};
use tread_model::digest::Digest;
use tread_model::protocol::{
    Config, Cordon, Disrupts, Limits, Operation, Order, Phase, Report, Seen, Stage, Time, Version,
    Versions, wanted,
};

/// Where the kubelets' own Leases are.
const KUBELETS: &str = "kube-node-lease";

/// What is wanted of a node.
#[derive(Debug, Clone)]
pub struct Aim {
    /// The pool that it counts in.
    pub pool: String,
    /// The newest config of the pool, with the node's plan.
    pub target: Target,
    /// Whether the node turns back if it has written nothing yet.
    pub turns_back: bool,
    /// How much the plan disrupts the node, if it is its turn.
    pub turn: Option<Disrupts>,
    /// Whether it still is: a look takes a while, and an admin may pause the pool meanwhile.
    pub still: Still,
    /// What other objects say of the node.
    pub maintained: Maintained,
    /// Whether its agent is taken for lost: its Lease is left to end, so that others can mend it.
    pub is_lost: bool,
    /// Whether no other node takes its pods: then it is not drained.
    pub is_alone: bool,
    /// Nodes that take its pods once they have joined, where no other one does.
    pub joining: Vec<String>,
    /// The operation that left it unwell, where an admin asked to try again.
    pub retries: Option<String>,
    /// How it is drained.
    pub drain: Arc<Asked>,
    /// Its Machine, if Cluster API made it.
    pub machine: Option<Machine>,
}

impl Aim {
    /// Whether no pod is moved, if the node's drain begins now.
    pub(crate) fn leaves_pods(&self) -> bool {
        self.is_alone || self.drain.skip
    }

    /// Whether no pod is moved for the order that this says.
    pub(crate) fn leaves_pods_for(&self, update: &NodeUpdate) -> bool {
        self.is_alone_for(update) || self.drain.skip
    }

    /// Whether no other node takes its pods, and none did when the drain of its order began.
    pub(crate) fn is_alone_for(&self, update: &NodeUpdate) -> bool {
        // Where that is not known, as by an older definition of NodeUpdates, its pods are moved.
        let left_then =
            |order: &UpdateOrder| order.leaves_pods.unwrap_or(order.drain_since.is_none());
        self.is_alone && update.spec.order.as_ref().is_none_or(left_then)
    }
}

/// What room there is for one more node.
#[derive(Debug, Clone)]
pub struct Room {
    /// How many may have a slot.
    pub limits: Limits,
    /// Nodes that are unavailable for any other reason than a slot, with their pools.
    pub unavailable: Arc<BTreeMap<String, String>>,
}

/// What was read of a node.
#[derive(Debug)]
pub struct Read {
    /// For the protocol.
    pub seen: Seen,
    /// When the reading began, by a clock that only counts.
    pub began: Instant,
    /// The node.
    pub node: Node,
    /// Pods that have to move first, where the node is being drained.
    pub left: Option<Left>,
    /// Whether load balancers know by now that it is cordoned.
    pub(crate) has_left: bool,
    /// Why its own clock keeps it from being proved, if that does.
    pub(crate) clock: Option<String>,
    pub(crate) update: NodeUpdate,
    pub(crate) lease: Option<Lease>,
    pub(crate) slots: SlotsObject,
    /// How much room there may be among the slots.
    pub(crate) room: Room,
}

impl Read {
    /// Whether its NodeUpdate tells of a drain.
    pub(crate) fn says_drain(&self) -> bool {
        self.update.status.as_ref().is_some_and(|status| status.drain.is_some())
    }

    /// After when its drain takes too long.
    pub(crate) fn deadline(&self, asked: &Asked) -> Option<Time> {
        Some(drain_since(&self.update)?.after(asked.timeout?))
    }

    /// Since when its drain takes too long.
    pub(crate) fn late_since(&self, asked: &Asked) -> Option<Time> {
        self.deadline(asked).filter(|deadline| *deadline <= self.seen.now)
    }

    /// Which node it is.
    pub(crate) fn of_node(&self) -> OfNode {
        let metadata = &self.node.metadata;
        OfNode {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
        }
    }
}

/// Why a node cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// The API server's answer.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// It is not there, or was made anew under its name.
    #[error("the node, or its NodeUpdate, is not there any more")]
    Gone,
    /// Its NodeUpdate says nothing that can be followed.
    #[error("the NodeUpdate cannot be followed: {0}; remove it, and tread makes it anew")]
    Unreadable(String),
    /// Its Lease would have too long a name.
    #[error("its name is too long for a Lease: rename it to one of 248 characters at most")]
    TooLong,
    /// No operation can be given an id.
    #[error("the system gives no random numbers: {0}")]
    NoRandom(getrandom::Error),
}

impl Unread {
    /// Whether it is the same when it is tried again, until somebody changes something.
    pub(crate) fn stays(&self) -> bool {
        match self {
            Unread::Failed(failed) => matches!(
                failed.outcome,
                CallOutcome::Forbidden | CallOutcome::Refused | CallOutcome::Unreadable
            ),
            Unread::Unreadable(_) | Unread::TooLong => true,
            Unread::Gone | Unread::NoRandom(_) => false,
        }
    }
}

/// Reads all of it, for this question.
pub(crate) async fn read(
    settings: &Settings,
    name: &str,
    aim: &Aim,
    room: &Room,
) -> Result<Box<Read>, Unread> {
    let began = Instant::now();
    let path = format!("/apis/tread.dev/v1alpha1/nodeupdates/{name}");
    let call = Call::new("get", "nodeupdates");
    let update = dated::read(&settings.client, &settings.metrics, call, &path).await?;
    let (now, update) = (update.at, update.object);
    settings.clock.hears(now, began);
    let update: NodeUpdate = update.ok_or(Unread::Gone)?;
    let lease_name = node_lease::name(name).ok_or(Unread::TooLong)?;
    let lease = lease(settings, &settings.leases, &lease_name).await?;
    let slots = slots::read(settings).await?;
    let node = node(settings, name).await?;
    if !is_of(&update, &node) {
        // The node was made anew under its name: what was ordered of the one before goes with it.
        return Err(Unread::Gone);
    }
    let order = order::of(&update).map_err(Unread::Unreadable)?;
    let report = update.status.as_ref().and_then(order::report);
    let drains = order.filter(drains_next);
    let leaves_pods = aim.leaves_pods_for(&update);
    let left = match drains.is_some() && !leaves_pods {
        true => {
            let course = Course::of(&node, drain_since(&update), &aim.drain, now);
            Some(drain::look(settings, name, &aim.drain, now, course).await?)
        }
        false => None,
    };
    let has_left = drains.zip(aim.drain.leaves_balancers);
    let has_left =
        has_left.is_none_or(|(order, wait)| balancers::has_left(&node, order.operation, now, wait));
    let mut clock = None;
    let proved = match proof_is_due(order, report) {
        Some(Disrupts::Nothing) => true,
        Some(_) => {
            let kubelet = self::lease(settings, KUBELETS, name).await?;
            let since = update.status.as_ref().and_then(|status| status.since.as_ref());
            let (kubelet, ready_for) = (kubelet.as_ref(), settings.ready_for);
            let proved = since.is_some_and(|at| is_proved(&node, kubelet, at.0, ready_for));
            if let Some(ended) = since.filter(|_| !proved) {
                clock = set_back(&node, kubelet, ended.0, ready_for, now);
            }
            proved
        }
        None => false,
    };
    let pool = aim.pool.clone();
    let has_room = |softly| {
        slots.slots.has_room(&node_name(&node), &pool, softly, room.limits, &room.unavailable)
    };
    let version = |text: Option<&String>| Version(text.map_or("", String::as_str).into());
    let newest = Config(aim.target.digest);
    let seen = Seen {
        now,
        fresh: true,
        versions: Versions {
            slots: slots.version.clone(),
            lease: lease.as_ref().map(|it| version(it.metadata.resource_version.as_ref())),
            update: version(update.metadata.resource_version.as_ref()),
        },
        slot: slots.slots.of(&node_name(&node)),
        soft_room: has_room(true),
        room: has_room(false),
        lease: lease.as_ref().map(|it| node_lease::read(it, &settings.holder)),
        order,
        report,
        cordon: cordon(&node),
        drained: has_left && (leaves_pods || left.as_ref().is_some_and(Left::is_none)),
        proved,
        held: held(&node, aim.maintained),
        wanted: wanted(aim.turn, newest, has(&update, newest), (order.as_ref(), report)),
        newest,
        turns_back: aim.turns_back,
        id: Operation(random().map_err(Unread::NoRandom)?),
    };
    let room = room.clone();
    Ok(Box::new(Read { seen, began, node, left, has_left, clock, update, lease, slots, room }))
}

fn node_name(node: &Node) -> String {
    node.metadata.name.clone().unwrap_or_default()
}

/// Whether a NodeUpdate is this node's, and not that of an earlier one of its name.
fn is_of(update: &NodeUpdate, node: &Node) -> bool {
    let owners = update.metadata.owner_references.as_deref().unwrap_or_default();
    let mut nodes = owners.iter().filter(|owner| owner.kind == "Node");
    nodes.any(|owner| Some(&owner.uid) == node.metadata.uid.as_ref())
}

/// Whether a node has this config, by its agent's word.
pub(crate) fn has(update: &NodeUpdate, config: Config) -> bool {
    let current = update.status.as_ref().and_then(|status| status.current.as_ref());
    current.is_some_and(|current| Digest::parse(&current.digest) == Some(config.0))
}

/// Since when the node is drained for its order.
fn drain_since(update: &NodeUpdate) -> Option<Time> {
    let since = update.spec.order.as_ref()?.drain_since.as_ref()?;
    dated::time(since.0)
}

/// Whether a drain is what comes next.
pub(crate) fn drains_next(order: &Order) -> bool {
    order.stage == Stage::Prepare && order.disrupts.drains()
}

/// How much the node was disrupted, where only the proof is left.
pub(crate) fn proof_is_due(order: Option<Order>, report: Option<Report>) -> Option<Disrupts> {
    let (order, report) = (order?, report?);
    let ended = matches!(report.phase, Phase::Done | Phase::WentBack);
    (ended && report.operation == order.operation).then_some(order.disrupts)
}

pub(crate) async fn node(settings: &Settings, name: &str) -> Result<Node, Unread> {
    let nodes: Api<Node> = Api::all(settings.client.clone());
    match ask(&settings.metrics, Call::new("get", "nodes"), nodes.get(name)).await {
        Err(failed) if failed.outcome == CallOutcome::Gone => Err(Unread::Gone),
        read => Ok(read?),
    }
}

pub(crate) async fn lease(
    settings: &Settings,
    namespace: &str,
    name: &str,
) -> Result<Option<Lease>, Failed> {
    let leases: Api<Lease> = Api::namespaced(settings.client.clone(), namespace);
    let call = Call::new("get", "leases").within(namespace);
    match ask(&settings.metrics, call, leases.get(name)).await {
        Err(failed) if failed.outcome == CallOutcome::Gone => Ok(None),
        read => read.map(Some),
    }
}

fn random() -> Result<u128, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_be_bytes(bytes))
}

/// Whether a node is cordoned for this operation.
pub(crate) fn is_cordoned_for(node: &Node, operation: Operation) -> bool {
    matches!(cordon(node), Cordon::Ours(of, _) if of == operation)
}
