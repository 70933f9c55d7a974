//! A cluster whose pools are rendered and rolled out by hand, as OpenShift's
//! operator does it, and the controller of plans that watches it.

use futures::FutureExt as _;
use futures::future::join3;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tread_cluster::membership;
use tread_cluster::plans::{self, Previewer, Retention, Settings};
use tread_cluster::policies::current::Current;
use tread_cluster::{boot_images, index};
use tread_engine::limits::Limits;
use tread_engine::planner::Shadows;
use tread_engine::policy::{Policy, PolicySet, Wishes};
use tread_engine::sandbox::{Options, Sandbox};
use tread_kube::api::{DisruptionPlan, MachineConfig, MachineConfigPool, NodeUpdate, crds};
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::node_lease;
use tread_kube::watching::Watches;
use tread_model::plan::compare::ShadowPolicy;
use tread_model::read::Input;
use tread_model::verdict::{Failure, FailureKind, Layer};
use tread_test_bed::ControlPlane;

pub const ROLE: &str = "machineconfiguration.openshift.io/role";
const CURRENT: &str = "machineconfiguration.openshift.io/currentConfig";
/// Between two looks at all plans.
const LEAST_BETWEEN: Duration = Duration::from_millis(50);
const MOST_BETWEEN: Duration = Duration::from_secs(3);

pub struct Cluster {
    pub plane: ControlPlane,
    pub client: Client,
    rendered: AtomicU32,
}

/// Asks again while the API server is busy, as it is with new definitions and on a slow machine.
async fn asked<T>(mut ask: impl AsyncFnMut() -> kube::Result<T>) -> T {
    loop {
        match ask().await {
            Err(kube::Error::Api(status)) if matches!(status.code, 429 | 503 | 504) => {
                sleep(Duration::from_millis(50)).await;
            }
            result => return result.unwrap(),
        }
    }
}

impl Cluster {
    pub async fn start(options: tread_test_bed::Options) -> Cluster {
        let definitions = [crds::crds(), crds::openshift()].concat();
        let plane = options.with_definitions(&definitions).maybe_used().start().unwrap();
        let client = plane.client().await.unwrap();
        Cluster { plane, client, rendered: AtomicU32::new(0) }
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>,
    {
        Api::all(self.client.clone())
    }

    pub async fn create<K>(&self, object: Value) -> K
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>
            + DeserializeOwned
            + serde::Serialize
            + Clone
            + Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        let api = self.api::<K>();
        let mut may_be_made = false;
        asked(async || match api.create(&PostParams::default(), &object).await {
            // What was given up after its time may have been done.
            Err(kube::Error::Api(status)) if status.code == 409 && may_be_made => {
                api.get(object.meta().name.as_deref().unwrap()).await
            }
            result => {
                may_be_made = true;
                result
            }
        })
        .await
    }

    pub async fn delete<K>(&self, name: &str)
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>
            + DeserializeOwned
            + Clone
            + Debug,
    {
        asked(async || self.api::<K>().delete(name, &DeleteParams::default()).await).await;
    }

    /// A MachineConfig with these files.
    pub async fn config(&self, name: &str, role: &str, spec: Value) {
        self.create::<MachineConfig>(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": {"name": name, "labels": {ROLE: role}},
            "spec": spec,
        }))
        .await;
    }

    /// A pool with so many nodes.
    pub async fn pool(&self, name: &str, nodes: usize) {
        self.create::<MachineConfigPool>(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfigPool",
            "metadata": {"name": name},
            "spec": {
                "machineConfigSelector": {"matchLabels": {ROLE: name}},
                "nodeSelector": {"matchLabels": {format!("node-role.kubernetes.io/{name}"): ""}},
            },
        }))
        .await;
        for number in 0..nodes {
            self.create::<Node>(json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": format!("{name}-{number}"),
                    "labels": {format!("node-role.kubernetes.io/{name}"): ""},
                },
            }))
            .await;
        }
    }

    /// Renders a pool as the operator does: what its MachineConfigs say together.
    pub async fn render(&self, pool: &str) -> String {
        let selector = ListParams::default().labels(&format!("{ROLE}={pool}"));
        let mut sources =
            asked(async || self.api::<MachineConfig>().list(&selector).await).await.items;
        sources.sort_by_key(kube::ResourceExt::name_any);
        let (mut files, mut units, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
        let mut users: Vec<Value> = Vec::new();
        for source in &sources {
            let config = Value::Object(source.spec.config.clone().unwrap_or_default());
            let list = |path: &str| {
                config.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default()
            };
            for file in list("/storage/files") {
                files.retain(|it: &Value| it["path"] != file["path"]);
                files.push(file);
            }
            units.extend(list("/systemd/units"));
            users.extend(list("/passwd/users"));
            arguments.extend(source.spec.kernel_arguments.clone().unwrap_or_default());
        }
        let number = self.rendered.fetch_add(1, Ordering::Relaxed);
        let name = format!("rendered-{pool}-{number:032x}");
        let owner = asked(async || self.api::<MachineConfigPool>().get(pool).await).await;
        self.create::<MachineConfig>(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": {"name": name, "ownerReferences": [{
                "apiVersion": "machineconfiguration.openshift.io/v1",
                "kind": "MachineConfigPool", "name": pool, "uid": owner.uid().unwrap(),
                "controller": true, "blockOwnerDeletion": true}]},
            "spec": {
                "osImageURL": "quay.example/os@sha256:1",
                "kernelArguments": arguments,
                "config": {
                    "ignition": {"version": "3.4.0"},
                    "storage": {"files": files},
                    "systemd": {"units": units},
                    "passwd": {"users": users},
                },
            },
        }))
        .await;
        let sources: Vec<Value> =
            sources.iter().map(|source| json!({"name": source.name_any()})).collect();
        let patch = json!({"spec": {"configuration": {"name": name, "source": sources}}});
        let params = PatchParams::default();
        let patch = Patch::Merge(patch);
        asked(async || self.api::<MachineConfigPool>().patch(pool, &params, &patch).await).await;
        name
    }

    /// Gives some nodes of a pool the config that they are to have.
    pub async fn roll(&self, nodes: &[&str], rendered: &str) {
        for node in nodes {
            let patch = json!({"metadata": {"annotations": {CURRENT: rendered}}});
            let params = PatchParams::default();
            let patch = Patch::Merge(patch);
            asked(async || self.api::<Node>().patch(node, &params, &patch).await).await;
        }
    }

    /// Gives all nodes of a pool the config that they are to have, and says so.
    pub async fn settle(&self, pool: &str) {
        let object = asked(async || self.api::<MachineConfigPool>().get(pool).await).await;
        let target = object.spec.configuration.unwrap();
        let selector = ListParams::default().labels(&format!("node-role.kubernetes.io/{pool}"));
        let nodes = asked(async || self.api::<Node>().list(&selector).await).await;
        for node in nodes {
            self.roll(&[&node.name_any()], target.name.as_deref().unwrap()).await;
        }
        let patch = json!({"status": {"configuration": target}});
        let params = PatchParams::default();
        let pools = self.api::<MachineConfigPool>();
        let patch = Patch::Merge(patch);
        asked(async || pools.patch_status(pool, &params, &patch).await).await;
    }

    pub async fn patch_pool(&self, pool: &str, patch: Value) {
        let params = PatchParams::default();
        let patch = Patch::Merge(patch);
        asked(async || self.api::<MachineConfigPool>().patch(pool, &params, &patch).await).await;
    }

    /// As an agent says what its node has, where tread rolls out.
    pub async fn says(&self, node: &str, has: &str) {
        let object = asked(async || self.api::<Node>().get(node).await).await;
        let update = json!({
            "apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
            "metadata": {"name": node, "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": node, "uid": object.uid().unwrap()}]},
            "spec": {"pool": "worker"},
        });
        self.create::<NodeUpdate>(update).await;
        let patch = json!({"status": {"current": {"name": has, "digest": "0"}}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let updates = self.api::<NodeUpdate>();
        asked(async || updates.patch_status(node, &params, &patch).await).await;
    }

    /// The pool `worker` with three nodes that have what they are to have.
    pub async fn settled(options: tread_test_bed::Options) -> Cluster {
        let cluster = Cluster::start(options).await;
        cluster.pool("worker", 3).await;
        cluster.config("00-worker", "worker", files(&[("/etc/motd", "hello\n")])).await;
        cluster.render("worker").await;
        cluster.settle("worker").await;
        cluster
    }

    /// All plans, by their causes.
    pub async fn plans(&self) -> Vec<DisruptionPlan> {
        asked(async || self.api::<DisruptionPlan>().list(&ListParams::default()).await).await.items
    }

    /// Waits for a plan for this cause of which something is true.
    pub async fn plan(
        &self,
        cause: &str,
        is_it: impl Fn(&DisruptionPlan) -> bool,
    ) -> DisruptionPlan {
        let begun = Instant::now();
        loop {
            let looked = Instant::now();
            let plans = self.plans().await;
            let of_cause = |plan: &&DisruptionPlan| {
                plan.status.as_ref().is_some_and(|it| it.cause.as_deref() == Some(cause))
            };
            if let Some(plan) = plans.iter().filter(of_cause).find(|plan| is_it(plan)) {
                return plan.clone();
            }
            let seen = || {
                let lines =
                    plans.iter().map(|plan| format!("{} {:?}\n", plan.name_any(), plan.status));
                lines.collect::<String>()
            };
            assert!(begun.elapsed() < Duration::from_secs(600), "no plan for {cause}:\n{}", seen());
            // Looking leaves most of the machine to what is waited for.
            let pause = (looked.elapsed() * 3).clamp(LEAST_BETWEEN, MOST_BETWEEN);
            sleep(pause).await;
        }
    }
}

/// The controller, and what it is given.
pub struct Tread {
    pub previewer: Previewer,
    pub policies: watch::Sender<Arc<Current>>,
    pub leads: watch::Sender<bool>,
    pub metrics: Metrics,
    pub watches: Watches,
    task: JoinHandle<()>,
}

impl Tread {
    pub fn start(client: &Client) -> Tread {
        Tread::keeping(client, Retention::default())
    }

    pub fn keeping(client: &Client, keep: Retention) -> Tread {
        Tread::leading(client, keep, None)
    }

    /// One that leads for so long at most.
    pub fn leading(client: &Client, keep: Retention, at_most: Option<Duration>) -> Tread {
        Tread::knowing(client, boot_images::Known::default(), (keep, at_most))
    }

    /// One that knows what machine resources there are.
    pub fn knowing(
        client: &Client,
        boot_images: boot_images::Known,
        keeping: (Retention, Option<Duration>),
    ) -> Tread {
        Tread::started(client, boot_images, keeping, false)
    }

    /// One where tread rolls out.
    pub fn rolling_out(client: &Client) -> Tread {
        let boot_images = boot_images::Known::default();
        Tread::started(client, boot_images, (Retention::default(), None), true)
    }

    fn started(
        client: &Client,
        boot_images: boot_images::Known,
        (keep, at_most): (Retention, Option<Duration>),
        by_tread: bool,
    ) -> Tread {
        let (policies, published) = watch::channel(Arc::new(current(&[])));
        let (leads, leading) = watch::channel(true);
        let leads_members = leading.clone();
        let (metrics, watches) = (Metrics::new(), Watches::default());
        let leases = node_lease::NAMESPACE;
        let (index, indexing) = index::start_where(client, leases, &watches, &metrics, by_tread);
        let (previewer, controller) = plans::start(Settings {
            client: client.clone(),
            index,
            sandbox: sandbox(),
            policies: published,
            leads: Leading::without_election(leading, at_most),
            watches: watches.clone(),
            metrics: metrics.clone(),
            events: Events::new(client.clone(), "test", "Plan", &metrics),
            keep,
            by_tread,
        });
        let membership = membership::start(membership::Settings {
            previewer: previewer.clone(),
            boot_images,
            leads: Leading::without_election(leads_members, at_most),
            metrics: metrics.clone(),
            events: Events::new(client.clone(), "test", "Judge", &metrics),
        });
        Tread {
            previewer,
            policies,
            leads,
            metrics,
            watches,
            task: tokio::spawn(join3(indexing, controller, membership).map(drop)),
        }
    }
}

impl Drop for Tread {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn sandbox() -> Sandbox {
    let cache_dir = Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compiled"));
    Sandbox::new(Options { cache_dir, ..Options::default() }).unwrap()
}

/// The policies that come with tread, and these rules of an admin.
pub fn current(rules: &[&str]) -> Current {
    let prebuilt = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../policies/prebuilt");
    let load = |name: &str, layer, wishes| {
        let bytes = std::fs::read(prebuilt.join(name).with_extension("wasm")).unwrap();
        Policy::new(Cow::Owned(bytes), None, layer, wishes, &Limits::default()).unwrap()
    };
    let manifest = std::fs::read(prebuilt.join("manifest.json")).unwrap();
    let shipped: BTreeMap<String, Value> = serde_json::from_slice(&manifest).unwrap();
    let builtins = shipped.keys().filter(|name| *name != "rules");
    let builtins = builtins.map(|name| load(name, Layer::Builtin, Wishes::default()));
    let rules = rules.iter().flat_map(|text| {
        let input = Input { name: "rules", bytes: text.as_bytes() };
        tread_model::rules::read(&input).unwrap()
    });
    let rules = rules.map(|read| {
        let Value::Object(settings) = read.settings else { panic!("settings are an object") };
        let wishes = Wishes { settings, may_relax: read.may_relax, ..Wishes::default() };
        load("rules", read.layer, wishes)
            .named(read.name, "Rules".to_owned(), read.claims)
            .by_rules()
    });
    Current::new(PolicySet::new(builtins.chain(rules).collect()).unwrap(), None, true)
}

/// The policies that come with tread, and these rules in the shadow.
pub fn shadowed(rules: &[&str]) -> Current {
    let (today, would) = (current(&[]), current(rules));
    let is_new =
        |it: &&Arc<Policy>| !today.policies.policies().iter().any(|of| of.identity == it.identity);
    let tried = would.policies.policies().iter().filter(is_new);
    let shadows = Shadows {
        policies: tried.map(|it| ShadowPolicy::new(&it.identity, false, None)).collect(),
        with: would.policies,
        warnings: Vec::new(),
    };
    Current::new(today.policies, Some(shadows), true)
}

/// The same policies, of which one cannot decide any more.
pub fn broken(policies: &Current, name: &str) -> Current {
    let failure =
        || Failure { kind: FailureKind::CompileTimeout, message: "it took too long".to_owned() };
    let all = policies.policies.policies().iter().map(|it| {
        let (identity, claims) = (it.identity.clone(), it.claims.clone());
        match identity.policy == name {
            true => Arc::new(Policy::broken(identity, claims, failure()).unwrap()),
            false => Arc::clone(it),
        }
    });
    Current::new(PolicySet::of(all.collect()).unwrap(), None, true)
}

/// The spec of a MachineConfig with these files.
pub fn files(files: &[(&str, &str)]) -> Value {
    let files: Vec<Value> = files
        .iter()
        .map(|(path, text)| {
            let escaped: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let source = format!("data:,{escaped}");
            json!({"path": path, "mode": 0o644, "overwrite": true, "contents": {"source": source}})
        })
        .collect();
    json!({"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}})
}

/// A condition's status and reason.
pub fn condition<'p>(plan: &'p DisruptionPlan, type_: &str) -> (&'p str, &'p str) {
    let conditions = &plan.status.as_ref().unwrap().conditions;
    let found = conditions.iter().find(|condition| condition.type_ == type_).unwrap();
    (&found.status, &found.reason)
}
