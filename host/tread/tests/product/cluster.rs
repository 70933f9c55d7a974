//! A cluster of machines, and what an admin does with it.

use crate::container::Container;
use crate::machines::{self, AGENT, FIRST, user_of};
use crate::recorded::Recorded;
use crate::service::Service;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tread_kube::api::{DisruptionPlan, DisruptionPolicy, NodeUpdate, Rollout};
use tread_test_bed::{ControlPlane, Shared, eventually};
use tread_test_machine::Machine;

pub const GROUP: &str = "machineconfiguration.openshift.io";
pub const POOL: &str = "worker";
/// Longer than a rollout takes, however busy the machine is: a node that was drained is uncordoned
/// two minutes later at the earliest, when no replica may have its hands on it any more.
const LONG: Duration = Duration::from_secs(900);

pub struct OfNode {
    pub name: String,
    pub machine: Arc<Machine>,
    _agent: Container,
}

// What is dropped first stands first.
pub struct Cluster {
    pub nodes: Vec<OfNode>,
    pub recorded: Recorded,
    pub client: Client,
    pub service: Service<'static>,
    pub plane: &'static ControlPlane,
}

/// As many machines as a test has at most.
const MOST: usize = 3;

static BED: Shared = Shared::new(|| {
    let options = ControlPlane::options().with_scheduler();
    (0..MOST)
        .map(name_of)
        .fold(options, |options, node| options.with_user(&user_of(&node), &["system:nodes"]))
});

fn name_of(number: usize) -> String {
    format!("node-{number}")
}

impl Cluster {
    /// Without nodes.
    pub async fn of(plane: &'static ControlPlane, service: Service<'static>) -> Cluster {
        let client = plane.client().await.unwrap();
        let recorded = Recorded::begin(&client);
        Cluster { nodes: Vec::new(), recorded, client, service, plane }
    }

    /// With so many nodes in the pool, all of which have said what they have.
    pub async fn with(count: usize) -> Cluster {
        let plane = BED.get().unwrap();
        let mut cluster = Cluster::of(plane, Service::start(plane).await).await;
        for number in 0..count {
            cluster.joins(&name_of(number));
        }
        cluster.apply(&mc("00-first", FIRST.0, FIRST.1));
        cluster.apply(&json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfigPool",
            "metadata": {"name": POOL},
            "spec": {
                "machineConfigSelector": {"matchLabels": {format!("{GROUP}/role"): POOL}},
                "nodeSelector": {"matchLabels": {"node-role.kubernetes.io/worker": ""}},
            },
        }));
        cluster.is_updated("00-first", count).await;
        cluster
    }

    fn joins(&mut self, name: &str) {
        let labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
            "node-role.kubernetes.io/worker": ""});
        self.apply(&json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels}}));
        self.has(name, machines::boot(self.plane, self.service.agents, name));
    }

    /// The machine of a node, on which its agent's container is played from now on.
    pub fn has(&mut self, name: &str, machine: Machine) {
        let machine = Arc::new(machine);
        let agent =
            Container::start(self.plane, self.client.clone(), name.to_owned(), machine.clone());
        self.nodes.push(OfNode { name: name.to_owned(), machine, _agent: agent });
    }

    pub fn apply(&self, object: &Value) {
        self.plane.apply(&object.to_string()).unwrap();
    }

    pub fn kubectl(&self, args: &[&str]) -> String {
        self.plane.kubectl(args).unwrap().success().unwrap()
    }

    /// The policy of a ConfigMap, which claims `/etc/acts/*`: the file `none` needs nothing, and
    /// `reload` has the unit that is to be reloaded.
    pub async fn ship(&self) {
        self.kubectl(&["create", "namespace", "apps"]);
        self.kubectl(&["label", "namespace", "apps", "tread.dev/policies=allowed"]);
        let component =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/contract/1.0.0");
        let component = std::fs::read(component.join("acts.wasm")).unwrap();
        let map: ConfigMap = serde_json::from_value(json!({
            "metadata": {"name": "ours", "labels": {"tread.dev/policy": "true"}}}))
        .unwrap();
        let bytes = [("policy.wasm".to_owned(), ByteString(component))];
        let map = ConfigMap { binary_data: Some(bytes.into()), ..map };
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), "apps");
        maps.create(&PostParams::default(), &map).await.unwrap();
        let policies: Api<DisruptionPolicy> = Api::all(self.client.clone());
        eventually("the policy is loaded", async || {
            let state = policies.get_opt("apps.ours").await.ok()??.status?.state?;
            (format!("{state:?}") == "Loaded").then_some(())
        })
        .await;
    }

    /// What somebody is told who applies this for a try. On a busy machine the API server may
    /// give the webhook up, and is asked again.
    pub async fn warned(&self, change: &Value, expected: &str) -> String {
        let args = ["apply", "--dry-run=server", "-f", "-"];
        self.within(expected, async || {
            let ran = self.plane.admin().kubectl_with_input(&args, &change.to_string()).unwrap();
            ran.stderr.contains(expected).then_some(ran.stderr)
        })
        .await
    }

    /// The plan with this cause, once it says how the nodes get there.
    pub async fn plan(&self, cause: &str) -> DisruptionPlan {
        let api: Api<DisruptionPlan> = Api::all(self.client.clone());
        eventually(cause, async || {
            let plans = api.list(&Default::default()).await.ok()?.items;
            plans.into_iter().find(|plan| {
                let status = plan.status.as_ref();
                plan.spec.cause.to_string() == cause
                    && status.is_some_and(|it| !it.transitions.is_empty())
            })
        })
        .await
    }

    pub fn node(&self, name: &str) -> &OfNode {
        self.nodes.iter().find(|node| node.name == name).unwrap()
    }

    pub async fn rollout(&self) -> Option<Rollout> {
        Api::<Rollout>::all(self.client.clone()).get_opt(POOL).await.ok()?
    }

    pub async fn update(&self, node: &str) -> NodeUpdate {
        Api::<NodeUpdate>::all(self.client.clone()).get(node).await.unwrap()
    }

    /// Waits until all nodes have what the pool is made of, with this MachineConfig in it, and
    /// the Rollout says so.
    pub async fn is_updated(&self, source: &str, count: usize) {
        self.within(&format!("all nodes have {source}"), async || {
            let status = self.rollout().await?.status?;
            let is = |type_: &str, word: &str| {
                status.conditions.iter().any(|it| it.type_ == type_ && it.status == word)
            };
            let is_all = usize::try_from(status.updated).ok()? == count && status.under_way == 0;
            (is_all && is("Updated", "True")).then_some(())?;
            let made = self.made_of(&status.target.as_ref()?.name).await?;
            made.iter().any(|it| it == source).then_some(())
        })
        .await
    }

    /// What the pool's target was made of, where that is what the pool names.
    async fn made_of(&self, target: &str) -> Option<Vec<String>> {
        let path = format!("/apis/{GROUP}/v1/machineconfigpools/{POOL}");
        let get = http::Request::get(path).body(Vec::new()).unwrap();
        let pool: Value = self.client.request(get).await.ok()?;
        let configuration = &pool["spec"]["configuration"];
        (configuration["name"] == target).then_some(())?;
        let sources = configuration["source"].as_array()?.iter();
        Some(sources.filter_map(|it| Some(it["name"].as_str()?.to_owned())).collect())
    }

    /// Waits long enough for nodes to boot, and says what is known where it does not come.
    pub async fn within<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(begun.elapsed() < LONG, "waited in vain: {what}\n{}", self.known());
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// For whoever reads why a test failed.
    pub fn known(&self) -> String {
        let mut known = self.kubectl(&["get", "rollouts,nup,nodes,pods", "-A", "-o", "wide"]);
        known += &self.kubectl(&["get", "rollouts,nup", "-o", "json"]);
        for node in &self.nodes {
            let journal = ["journalctl", "--no-pager", "--lines=40"];
            let said = node.machine.run(journal).map(|said| said.out).unwrap_or_default();
            known += &format!("{}:\n{said}", node.name);
        }
        let log = self.service.log();
        let lines: Vec<&str> = log.lines().collect();
        known + &lines[lines.len().saturating_sub(60)..].join("\n")
    }

    pub fn uid_of_installation(&self) -> String {
        let space = ["get", "namespace", crate::service::NAMESPACE];
        self.kubectl(&[&space[..], &["-o", "jsonpath={.metadata.uid}"]].concat())
    }
}

/// A MachineConfig of the pool with one file.
pub fn mc(name: &str, path: &str, text: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {format!("{GROUP}/role"): POOL}},
        "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [
            {"path": path, "mode": 420, "contents": {"source": format!("data:,{text}")}}]}}},
    })
}

/// The rights and admission policies of the manifests let everybody do all of it.
pub fn nobody_is_forbidden_anything(cluster: &Cluster) {
    let journal = |node: &OfNode| {
        node.machine.run_well(["journalctl", "--no-pager", "--unit", AGENT]).unwrap()
    };
    let said = cluster.nodes.iter().map(journal).chain([cluster.service.log()]);
    for line in said.collect::<Vec<String>>().iter().flat_map(|said| said.lines()) {
        assert!(!line.contains("forbidden") && !line.contains("denied request"), "{line}");
    }
}
