//! A cluster with pools, and replicas that roll out.

use super::agent::{Agent, Does, Door};
use super::clocks::is_off;
use crate::fixture::settings;
use crate::judge::Judge;
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tread_cluster::plans::{self, Retention};
use tread_cluster::policies::current::Current;
use tread_cluster::{boot_images, index, pools::WORKER};
use tread_enforce::rollouts::{
    Agents, FirstBoots, Joining, JoiningSettings, Paces, Settings, start,
};
use tread_enforce::{Clock, Settings as Acts, Turn};
use tread_engine::limits::Limits;
use tread_engine::policy::{Policy, PolicySet, Wishes};
use tread_engine::sandbox::{Options as SandboxOptions, Sandbox};
use tread_kube::api::{MachineConfig, MachineConfigPool, NodeUpdate, Rollout, crds};
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::watching::Watches;
use tread_model::read::Input;
use tread_model::verdict::Layer;
use tread_test_bed::{ControlPlane, Options, answered, eventually};

const ROLE: &str = "machineconfiguration.openshift.io/role";

/// Rules by which `/etc/soft` needs a reload, and `/etc/none` nothing.
const RULES: &str = r"
apiVersion: tread.dev/v1alpha1
kind: DisruptionPolicy
metadata: {name: tests}
spec:
  layer: admin
  rules:
    - match: ['file:/etc/soft']
      actions: [{do: reload, unit: soft.service}]
      reason: it reads it again
    - match: ['file:/etc/none']
      actions: []
      reason: nobody reads it
";

/// Sooner than in a real cluster.
pub(super) const PACES: Paces = Paces {
    render_after: Duration::from_millis(200),
    again: Duration::from_millis(200),
    tidy: Duration::from_secs(600),
    lost_after: Duration::from_secs(3600),
};

/// The form of orders that an agent knows which does not say it.
pub(super) const FORM: u32 = 1;

/// In what replicas differ.
struct With {
    joining: JoiningSettings,
    form: u32,
    paces: Paces,
}

impl Default for With {
    fn default() -> With {
        With { joining: JoiningSettings::default(), form: FORM, paces: PACES }
    }
}

pub(super) struct Cluster {
    pub(super) plane: ControlPlane,
    pub(super) client: Client,
    pub(super) acts: Acts,
    pub(super) nodes: Vec<String>,
    pub(super) judge: Judge,
    policies: watch::Sender<Arc<Current>>,
}

impl Cluster {
    /// So many nodes in the pool `worker`, of which so many may be down at a time.
    pub(super) async fn with(nodes: usize, down: usize) -> Cluster {
        Cluster::on(ControlPlane::options().maybe_used(), nodes, down).await
    }

    /// The same on a control plane that is special in some way.
    pub(super) async fn on(options: Options, nodes: usize, down: usize) -> Cluster {
        let options = options.with_scheduler().with_simulated_nodes();
        // Thousands would keep the API server busy with nothing else.
        let options = if nodes > 50 { options } else { options.with_quick_kubelets() };
        let definitions = [crds::crds(), crds::enforcing(), crds::openshift()].concat();
        let plane = options.with_definitions(&definitions).start().unwrap();
        let client = plane.client().await.unwrap();
        let namespace = plane.namespace("tread").unwrap();
        let acts = settings(&plane, &namespace).await;
        let nodes = plane.create_nodes("node", nodes).await.unwrap();
        is_off(&Api::all(client.clone()).get(&nodes[0]).await.unwrap());
        let judge = Judge::begin(&client, &acts, &nodes, down).await;
        let policies = watch::Sender::new(Arc::new(current()));
        let cluster = Cluster { plane, client, acts, nodes, judge, policies };
        cluster.file("50-first", "/etc/first", "1").await;
        cluster.pool(down).await;
        cluster
    }

    async fn pool(&self, down: usize) {
        self.apply::<MachineConfigPool>(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
            "metadata": {"name": WORKER},
            "spec": {
                "maxUnavailable": down,
                "machineConfigSelector": {"matchLabels": {ROLE: WORKER}},
                "nodeSelector": {"matchLabels": {"node-role.kubernetes.io/worker": ""}},
            },
        }))
        .await;
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::ClusterResourceScope>,
        K::DynamicType: Default,
    {
        Api::all(self.client.clone())
    }

    pub(super) async fn apply<K>(&self, object: Value)
    where
        K: kube::Resource<Scope = k8s_openapi::ClusterResourceScope>
            + serde::de::DeserializeOwned
            + Clone
            + std::fmt::Debug,
        K::DynamicType: Default,
    {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let params = PatchParams::apply("tests").force();
        let api = self.api::<K>();
        eventually("it is applied", async || {
            api.patch(&name, &params, &Patch::Apply(&object)).await.ok()
        })
        .await;
    }

    /// A MachineConfig of the pool with one file.
    pub(super) async fn file(&self, name: &str, path: &str, text: &str) {
        self.apply::<MachineConfig>(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": name, "labels": {ROLE: WORKER}},
            "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [
                {"path": path, "mode": 420, "contents": {"source": format!("data:,{text}")}}]}}},
        }))
        .await;
    }

    /// What an admin says of the pool's rollout.
    pub(super) async fn rollout_says(&self, spec: Value) {
        let params = PatchParams::default();
        let patch = Patch::Merge(json!({"spec": spec}));
        let api = self.api::<Rollout>();
        eventually("the Rollout is there", async || api.patch(WORKER, &params, &patch).await.ok())
            .await;
    }

    pub(super) async fn rollout(&self) -> Rollout {
        let api = self.api();
        answered(|| api.get(WORKER)).await.unwrap()
    }

    pub(super) async fn update(&self, node: &str) -> NodeUpdate {
        let api = self.api();
        answered(|| api.get(node)).await.unwrap()
    }

    /// A replica that acts, whoever else does.
    pub(super) fn replica(&self) -> Replica {
        self.replica_with(self.acts.clone(), JoiningSettings::default(), &Handle::current())
    }

    /// One that misses machines which register no node within this.
    pub(super) fn impatient(&self, registers_within: Duration) -> Replica {
        let joining = JoiningSettings { registers_within, ..JoiningSettings::default() };
        self.replica_with(self.acts.clone(), joining, &Handle::current())
    }

    /// One whose machines get the kubeconfig of this Secret.
    pub(super) fn bootstraps_by(&self, secret: &str) -> Replica {
        let joining =
            JoiningSettings { bootstrap: secret.to_owned(), ..JoiningSettings::default() };
        self.replica_with(self.acts.clone(), joining, &Handle::current())
    }

    /// One on a runtime of its own, with connections of its own.
    pub(super) async fn replica_on(&self, runtime: &Handle, paces: Paces) -> Replica {
        let config = self.plane.admin().client_config().await.unwrap();
        let client = {
            let _inside = runtime.enter();
            tread_kube::client::client(config).unwrap()
        };
        // Replicas know nothing of one another, so that each has a turn of its own.
        let (at_slots, clock) = (Turn::default(), Clock::default());
        let acts = Acts { client, at_slots, clock, ..self.acts.clone() };
        self.replica_so(acts, With { paces, ..With::default() }, runtime)
    }

    /// One that looks this often for rendered configs that nobody names.
    pub(super) fn replica_that_tidies(&self, tidy: Duration) -> Replica {
        let with = With { paces: Paces { tidy, ..PACES }, ..With::default() };
        self.replica_so(self.acts.clone(), with, &Handle::current())
    }

    /// One that takes agents for lost which have not ended their order after that.
    pub(super) fn replica_that_waits_for(&self, lost_after: Duration) -> Replica {
        let with = With { paces: Paces { lost_after, ..PACES }, ..With::default() };
        self.replica_so(self.acts.clone(), with, &Handle::current())
    }

    /// One that gives orders of this form.
    pub(super) fn replica_of_form(&self, form: u32) -> Replica {
        let with = With { form, ..With::default() };
        self.replica_so(self.acts.clone(), with, &Handle::current())
    }

    fn replica_with(&self, acts: Acts, joining: JoiningSettings, runtime: &Handle) -> Replica {
        self.replica_so(acts, With { joining, ..With::default() }, runtime)
    }

    fn replica_so(
        &self,
        acts: Acts,
        With { joining, form, paces }: With,
        runtime: &Handle,
    ) -> Replica {
        let _inside = runtime.enter();
        let (leads, leading) = watch::channel(true);
        let leading = Leading::without_election(leading, None);
        let (metrics, watches) = (Metrics::new(), Watches::default());
        let client = acts.client.clone();
        let (index, indexing) = index::start_where(&client, &acts.leases, &watches, &metrics, true);
        let (previewer, planning) = plans::start(plans::Settings {
            client: client.clone(),
            index: index.clone(),
            sandbox: sandbox(),
            policies: self.policies.subscribe(),
            leads: leading.clone(),
            watches: watches.clone(),
            metrics: metrics.clone(),
            events: Events::new(client.clone(), "tests", "Plan", &metrics),
            keep: Retention::default(),
            by_tread: true,
        });
        let (images, judging) = boot_images::start(boot_images::Settings {
            client: client.clone(),
            index: index.clone(),
            namespace: acts.namespace.clone(),
            leads: leading.clone(),
            block_upgrades: false,
            watches: watches.clone(),
            metrics: metrics.clone(),
            events: Events::new(client.clone(), "tests", "Judge", &metrics),
        });
        let (_, authority) = watch::channel("-----BEGIN CERTIFICATE-----\n".to_owned());
        let first_boots = FirstBoots {
            images: images.clone(),
            address: "tread.example:22623".to_owned(),
            authority,
        };
        let (agents, joining, rolling) = start(Settings {
            acts,
            index,
            previewer,
            policies: self.policies.subscribe(),
            leads: leading,
            own_node: None,
            watches: watches.clone(),
            events: Events::new(client, "tests", "Roll", &metrics),
            paces,
            joining: JoiningSettings { first_boots: Some(first_boots), ..joining },
            form,
        });
        let booted = agents.publish_booted(images);
        let task = runtime.spawn(async move {
            futures::future::join_all([
                indexing.boxed(),
                planning.boxed(),
                rolling.boxed(),
                judging.boxed(),
                booted.boxed(),
            ])
            .await;
        });
        Replica { agents, joining, leads, watches, task }
    }

    /// An agent on each node, which asks this replica.
    pub(super) fn agents(&self, replica: &Replica, does: Does) -> Vec<Agent> {
        let (_, door) = watch::channel(replica.agents.clone());
        self.agents_at(&door, does)
    }

    /// The same where another replica may answer later.
    pub(super) fn agents_at(&self, door: &Door, does: Does) -> Vec<Agent> {
        let of =
            |node: &String| Agent::start(self.client.clone(), door.clone(), node, does.clone());
        self.nodes.iter().map(of).collect()
    }

    /// Waits until all nodes have what the pool is made of now, with this in it, and nothing is
    /// left of what was done for it: for as long as there is always another one that gets there.
    pub(super) async fn all_have(&self, path: &str, text: &str) {
        let wanted = format!("data:,{text}");
        let mut have = 0;
        while have < self.nodes.len() {
            let what = format!("more than {have} nodes have {path} {text}");
            have = eventually(&what, async || {
                let status = self.api::<Rollout>().get_opt(WORKER).await.ok()??.status?;
                let target = status.target?;
                let config = self.api::<MachineConfig>().get_opt(&target.name).await.ok()??;
                let config = Value::Object(config.spec.config?);
                let files = config.pointer("/storage/files")?.as_array()?;
                let is_it = |file: &Value| {
                    file["path"] == path && file["contents"]["source"] == wanted.as_str()
                };
                files.iter().find(|file| is_it(file))?;
                usize::try_from(status.updated).ok().filter(|updated| *updated > have)
            })
            .await;
        }
        self.nothing_is_left().await;
    }

    /// A pod on each node that goes on terminating once it is evicted.
    pub(super) async fn pods_that_stay(&self) {
        for (at, node) in self.nodes.iter().enumerate() {
            let pod = json!({
                "metadata": {"name": format!("stays-{at}"), "finalizers": ["tread.dev/stays"]},
                "spec": {"nodeName": node, "containers": [{"name": "one", "image": "one"}]}});
            let pod = serde_json::from_value(pod).unwrap();
            self.pods().create(&PostParams::default(), &pod).await.unwrap();
        }
    }

    pub(super) async fn pods_may_go(&self) {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        for at in 0..self.nodes.len() {
            let name = format!("stays-{at}");
            self.pods().patch(&name, &PatchParams::default(), &patch).await.unwrap();
        }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(super) async fn nothing_is_left(&self) {
        let slots: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.acts.namespace);
        eventually("no slot, cordon or Lease is left", async || {
            if let Some(slots) = slots.get_opt(tread_enforce::SLOTS).await.ok()? {
                (slots.data?["slots.json"] == "{}").then_some(())?;
            }
            for node in &self.nodes {
                let node: Node = self.api().get(node).await.ok()?;
                let spec = node.spec.unwrap_or_default();
                (spec.unschedulable != Some(true)).then_some(())?;
            }
            Some(())
        })
        .await;
    }
}

pub(super) struct Replica {
    pub(super) agents: Agents,
    pub(super) joining: Joining,
    pub(super) leads: watch::Sender<bool>,
    pub(super) watches: Watches,
    task: JoinHandle<()>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn sandbox() -> Sandbox {
    let cache_dir = Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compiled"));
    Sandbox::new(SandboxOptions { cache_dir, ..SandboxOptions::default() }).unwrap()
}

/// The policies that come with tread, and the rules above.
fn current() -> Current {
    let prebuilt = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../policies/prebuilt");
    let load = |name: &str, layer, wishes| {
        let bytes = std::fs::read(prebuilt.join(name).with_extension("wasm")).unwrap();
        Policy::new(Cow::Owned(bytes), None, layer, wishes, &Limits::default()).unwrap()
    };
    let manifest = std::fs::read(prebuilt.join("manifest.json")).unwrap();
    let shipped: BTreeMap<String, Value> = serde_json::from_slice(&manifest).unwrap();
    let builtins = shipped.keys().filter(|name| *name != "rules");
    let builtins = builtins.map(|name| load(name, Layer::Builtin, Wishes::default()));
    let input = Input { name: "rules", bytes: RULES.as_bytes() };
    let rules = tread_model::rules::read(&input).unwrap().into_iter().map(|read| {
        let Value::Object(settings) = read.settings else { panic!("settings are an object") };
        let wishes = Wishes { settings, may_relax: read.may_relax, ..Wishes::default() };
        load("rules", read.layer, wishes)
            .named(read.name, "Rules".to_owned(), read.claims)
            .by_rules()
    });
    Current::new(PolicySet::new(builtins.chain(rules).collect()).unwrap(), None, true)
}
