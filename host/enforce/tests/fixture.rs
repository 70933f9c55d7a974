//! A control plane with nodes, and replicas of a controller.

use crate::agent::Agent;
use crate::judge::Judge;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, NodeCondition};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tread_enforce::drain::Asked;
use tread_enforce::{
    Aim, Clock, Ended, Maintained, Room, Settings, Still, Target, Turn, Unread, step,
};
use tread_kube::api::node_update::UpdateStage;
use tread_kube::api::{NodeUpdate, crds};
use tread_kube::metrics::Metrics;
use tread_model::digest::Digest;
use tread_model::protocol::{Disrupts, Limits, Terms};
use tread_test_bed::{ControlPlane, Shared, answered, eventually, unique};

static BED: Shared = Shared::new(|| {
    ControlPlane::options().with_scheduler().with_simulated_nodes().with_quick_kubelets()
});

/// For the test that deletes a node and makes another one of its name. Two workers of kwok may then
/// write the Lease of that node's kubelet at once, and after that kwok renews the Lease of no node.
static ANEW: Shared = Shared::new(|| {
    ControlPlane::options().with_scheduler().with_simulated_nodes().with_quick_kubelets()
});

pub(crate) const NEW: Digest = Digest([2; 32]);
pub(crate) const POOL: &str = "worker";

/// Times that are as those of an installation, but for what a test waits for.
pub(crate) fn terms() -> Terms {
    let seconds = Duration::from_secs;
    Terms {
        lease: seconds(120),
        skew: seconds(5),
        drift: seconds(2),
        step: seconds(10),
        boot: seconds(20),
        pass: seconds(15),
    }
}

/// How nodes are acted on from this namespace.
pub(crate) async fn settings(plane: &ControlPlane, namespace: &str) -> Settings {
    let config = plane.admin().client_config().await.unwrap();
    Settings {
        client: tread_kube::client::client(config).unwrap(),
        metrics: Metrics::new(),
        namespace: namespace.to_owned(),
        leases: namespace.to_owned(),
        holder: format!("tread/{namespace}"),
        terms: terms(),
        at_slots: Turn::default(),
        clock: Clock::default(),
        ready_for: Duration::from_secs(1),
    }
}

/// Nodes of one test.
pub(crate) struct Bed {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    pub(crate) nodes: Vec<String>,
    pub(crate) judge: Judge,
    /// How nodes are drained.
    pub(crate) drain: Arc<Asked>,
    printing: JoinHandle<()>,
}

impl Bed {
    /// So many nodes, of which so many may be down at a time.
    pub(crate) async fn with(nodes: usize, down: usize) -> Bed {
        Bed::on(BED.get().unwrap(), nodes, down).await
    }

    /// The same apart from the nodes of other tests: see `ANEW`.
    pub(crate) async fn alone(nodes: usize, down: usize) -> Bed {
        Bed::on(ANEW.get().unwrap(), nodes, down).await
    }

    async fn on(plane: &'static ControlPlane, nodes: usize, down: usize) -> Bed {
        let client = plane.client().await.unwrap();
        define(&client).await;
        let namespace = plane.namespace("enforce").unwrap();
        let nodes = plane.create_nodes(&unique("node"), nodes).await.unwrap();
        let settings = settings(plane, &namespace).await;
        let judge = Judge::begin(&client, &settings, &nodes, down).await;
        let drain = Arc::default();
        let printing =
            tokio::spawn(print_nodes_if_slow(client.clone(), settings.clone(), nodes.clone()));
        let bed = Bed { plane, client, settings, nodes, judge, drain, printing };
        for node in &bed.nodes {
            bed.make_update(node).await;
        }
        bed
    }

    async fn make_update(&self, name: &str) {
        let node = self.node(name).await;
        let owner =
            json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid});
        let update = json!({
            "apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
            "metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"pool": POOL},
        });
        let update: NodeUpdate = serde_json::from_value(update).unwrap();
        self.api::<NodeUpdate>().create(&PostParams::default(), &update).await.unwrap();
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::ClusterResourceScope>,
        K::DynamicType: Default,
    {
        Api::all(self.client.clone())
    }

    pub(crate) async fn update(&self, node: &str) -> NodeUpdate {
        let api = self.api();
        answered(|| api.get(node)).await.unwrap()
    }

    pub(crate) async fn node(&self, name: &str) -> Node {
        let api = self.api();
        answered(|| api.get(name)).await.unwrap()
    }

    pub(crate) async fn patch_node(&self, name: &str, patch: serde_json::Value) {
        let params = PatchParams::default();
        let (api, patch) = (self.api::<Node>(), Patch::Merge(patch));
        answered(|| api.patch(name, &params, &patch)).await.unwrap();
    }

    /// What `kubectl drain` says of a node that it drains, or has drained.
    pub(crate) async fn admin_drains(&self, name: &str, drains: bool) {
        let status = if drains { "True" } else { "False" };
        let condition =
            json!({"type": "DrainInProgress", "status": status, "reason": "AdminRequested"});
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        let params = PatchParams::default();
        let api = self.api::<Node>();
        answered(|| api.patch_status(name, &params, &patch)).await.unwrap();
    }

    /// Waits until nothing of tread's is on a node but its cordon, which is somebody else's now.
    pub(crate) async fn is_handed_over(&self, name: &str) {
        eventually("the node is given back, and stays cordoned", async || {
            let is_marked = self.node(name).await.metadata.annotations.unwrap_or_default();
            let is_marked = is_marked.contains_key(tread_enforce::CORDON_ANNOTATION);
            (!is_marked && self.is_free(name).await).then_some(())
        })
        .await;
        let node = self.node(name).await;
        assert_eq!(node.spec.unwrap().unschedulable, Some(true));
        let own = |it: &NodeCondition| it.reason.as_deref() == Some("TreadUpdate");
        let conditions = node.status.unwrap().conditions.unwrap();
        assert!(!conditions.iter().any(own), "{conditions:?}");
        let order = self.update(name).await.spec.order.unwrap();
        assert_eq!(order.stage, UpdateStage::Closed);
    }

    /// That a node gets the new config, if it has it not.
    pub(crate) async fn aim(&self, node: &str, disrupts: Disrupts) -> Aim {
        let api = self.api::<NodeUpdate>();
        let update = answered(|| api.get_opt(node)).await.unwrap();
        let status = update.and_then(|update| update.status).unwrap_or_default();
        let has = status.current.is_some_and(|it| it.digest == NEW.to_string());
        let drain = Arc::clone(&self.drain);
        Aim { turn: (!has).then_some(disrupts), drain, ..aim(disrupts) }
    }

    /// Looks once at a node.
    pub(crate) async fn step(&self, node: &str, disrupts: Disrupts) -> Result<Ended, Unread> {
        step(&self.settings, node, &self.aim(node, disrupts).await, &room(1)).await
    }

    /// An agent on each node.
    pub(crate) fn agents(&self, disrupts: Disrupts) -> Vec<Agent> {
        let of = |node: &String| Agent::start(self.settings.clone(), node, aim(disrupts));
        self.nodes.iter().map(of).collect()
    }

    /// A replica that looks at all nodes again and again, in an order of its own. The first one
    /// pauses for longer where nothing is to be done until something changes.
    pub(crate) fn replica(
        self: &Arc<Bed>,
        number: usize,
        disrupts: Disrupts,
        down: usize,
    ) -> Replica {
        let bed = self.clone();
        let task = tokio::spawn(async move {
            loop {
                let (looked, mut waits) = (Instant::now(), true);
                for at in 0..bed.nodes.len() {
                    let node = &bed.nodes[(at + number) % bed.nodes.len()];
                    let aim = bed.aim(node, disrupts).await;
                    // Others are faster now and then.
                    let ended = step(&bed.settings, node, &aim, &room(down)).await;
                    waits &= matches!(ended, Ok(Ended::Waits(..)));
                }
                if waits {
                    let took = if number == 0 { looked.elapsed() } else { Duration::ZERO };
                    pause(took).await;
                }
            }
        });
        Replica { task }
    }

    /// Waits until each node has the new config, and nothing is left of its operation: for as
    /// long as there is always another one that gets there.
    pub(crate) async fn all_are_done(&self) {
        for done in 1..=self.nodes.len() {
            eventually(&format!("{done} nodes have the new config"), async || {
                let mut count = 0;
                for node in &self.nodes {
                    count += usize::from(self.is_done(node).await);
                }
                (count >= done).then_some(())
            })
            .await;
        }
        let slots: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let slots = answered(|| slots.get(tread_enforce::SLOTS)).await;
        let slots = slots.unwrap().data.unwrap();
        assert_eq!(slots["slots.json"], "{}");
    }

    async fn is_done(&self, name: &str) -> bool {
        let aim = self.aim(name, Disrupts::Nothing).await;
        let node = self.node(name).await;
        let is_cordoned = node.spec.unwrap_or_default().unschedulable == Some(true);
        aim.turn.is_none() && !is_cordoned && self.is_free(name).await
    }

    /// Whether a node has neither slot nor Lease.
    async fn is_free(&self, name: &str) -> bool {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.settings.leases);
        let of_node = format!("node-{name}");
        let lease = answered(|| leases.get_opt(&of_node)).await.unwrap();
        lease.is_none() && self.slot_is_free(name).await
    }

    async fn slot_is_free(&self, name: &str) -> bool {
        let slots: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let slots = answered(|| slots.get(tread_enforce::SLOTS)).await;
        let data = slots.unwrap().data.unwrap();
        !data["slots.json"].contains(&format!("\"{name}\""))
    }
}

/// Prints the nodes of a test that takes longer than five minutes, and what tread wrote of them: once
/// the test has failed they are gone.
#[allow(clippy::print_stderr, reason = "a test that fails has it in its output")]
async fn print_nodes_if_slow(client: Client, settings: Settings, nodes: Vec<String>) {
    tokio::time::sleep(Duration::from_secs(300)).await;
    let slots: Api<ConfigMap> = Api::namespaced(client.clone(), &settings.namespace);
    let slots = slots.get(tread_enforce::SLOTS).await.map(|slots| slots.data);
    eprintln!("it takes long: {slots:?}");
    for name in &nodes {
        let node = Api::<Node>::all(client.clone()).get(name).await;
        let update = Api::<NodeUpdate>::all(client.clone()).get(name).await;
        let leases: Api<Lease> = Api::namespaced(client.clone(), &settings.leases);
        let lease = leases.get_opt(&format!("node-{name}")).await;
        eprintln!("{node:?}\n{update:?}\n{lease:?}");
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.printing.abort();
        // Other tests count nodes that may be down by themselves.
        let args: Vec<&str> = ["delete", "node", "--wait=false"]
            .into_iter()
            .chain(self.nodes.iter().map(String::as_str))
            .collect();
        let _ = self.plane.kubectl(&args);
    }
}

/// Between two looks at the same, of which the last one took so long: so that looking leaves most of
/// the machine to what is looked for.
pub(crate) async fn pause(took: Duration) {
    tokio::time::sleep((took * 3).clamp(Duration::from_millis(20), Duration::from_millis(200)))
        .await;
}

pub(crate) struct Replica {
    task: JoinHandle<()>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn aim(disrupts: Disrupts) -> Aim {
    let target = Target { name: "rendered-worker-2".to_owned(), digest: NEW, plan: None };
    Aim {
        turns_back: false,
        is_lost: false,
        pool: POOL.to_owned(),
        target,
        turn: Some(disrupts),
        still: Still::default(),
        maintained: Maintained::default(),
        is_alone: false,
        joining: Vec::new(),
        retries: None,
        drain: Arc::default(),
        machine: None,
    }
}

pub(crate) fn room(down: usize) -> Room {
    let limits = Limits { pool: down, all: down, soft: down, one_by_one: false };
    Room { limits, unavailable: Arc::default() }
}

async fn define(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in crds::enforcing() {
        let name = crd.metadata.name.clone().unwrap();
        let params = PatchParams::apply("tests").force();
        api.patch(&name, &params, &Patch::Apply(&crd)).await.unwrap();
        eventually("the definition is served", async || {
            let crd = api.get(&name).await.unwrap();
            let conditions = crd.status?.conditions?;
            let is_served =
                conditions.iter().any(|it| it.type_ == "Established" && it.status == "True");
            is_served.then_some(())
        })
        .await;
    }
    // The API server knows the path a moment later.
    let updates: Api<NodeUpdate> = Api::all(client.clone());
    eventually("NodeUpdates are served", async || updates.get_opt("none").await.ok()).await;
}
