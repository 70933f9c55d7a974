//! A cluster with one node, and a service whose knowledge is played.

use futures::StreamExt as _;
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tread_agent::Settings;
use tread_front::http::{AgentReviewer, Agents, OfNode, Port, Refused, agents};
use tread_kube::agents::{AUDIENCE, Answer, Ask, Asked, GivenConfig, Instructions, Wait};
use tread_kube::api::node_update::{
    ConfigName, NodeUpdateStatus, UpdateDisrupts, UpdateOrder, UpdateStage,
};
use tread_kube::api::{NodeUpdate, crds};
use tread_kube::metrics::Metrics;
use tread_model::plan::{Step, VerifiablePlan};
use tread_node::documents::{Document, Documents, digest};
use tread_test_bed::{ControlPlane, Shared, eventually, free_port};

static BED: Shared = Shared::new(ControlPlane::options);

/// What agents are instructed to do, and permitted.
pub(crate) struct Knows {
    instructions: watch::Sender<Instructions>,
    /// For how many milliseconds, or why not.
    permits: Mutex<Result<u64, String>>,
    pub(crate) asked: Mutex<Vec<Ask>>,
    /// What an agent said that it heard last.
    seen: watch::Sender<Option<String>>,
}

impl Agents for Knows {
    fn wait(&self, node: &OfNode, wait: Wait) -> BoxFuture<'static, Result<Instructions, Refused>> {
        let (mut instructions, node) = (self.instructions.subscribe(), node.clone());
        self.seen.send_replace(wait.seen.clone());
        Box::pin(async move {
            let is = |it: &Instructions| {
                !it.revision.is_empty() && Some(&it.revision) != wait.seen.as_ref()
            };
            let instructions = instructions.wait_for(is).await.unwrap().clone();
            let uid = instructions.uid.clone().or(node.uid);
            Ok(Instructions { node: node.name, uid, ..instructions })
        })
    }

    fn permit(&self, _: &OfNode, ask: Ask) -> BoxFuture<'static, Answer> {
        let number = ask.number;
        let joins = self.instructions.borrow().joins;
        let order = self.instructions.borrow().order.as_ref().map(|order| order.disrupts);
        let has_boot = ask.what != Asked::Boot || joins || order == Some(UpdateDisrupts::Reboot);
        self.asked.lock().unwrap().push(ask);
        let answer = match self.permits.lock().unwrap().clone() {
            Ok(_) if !has_boot => Answer::Refused { why: "the order has no boot".to_owned() },
            Ok(lasts) => Answer::Permitted { number, lasts },
            Err(why) => Answer::Refused { why },
        };
        Box::pin(async { answer })
    }
}

impl Knows {
    pub(crate) fn instruct(&self, instructions: Instructions) {
        self.instructions.send_modify(|now| {
            let number: u32 = now.revision.parse().unwrap_or_default();
            *now = Instructions { revision: (number + 1).to_string(), ..instructions };
        });
    }

    /// Waits until an agent has heard the instructions of now.
    pub(crate) async fn is_heard(&self) {
        let instructions = self.instructions.borrow().revision.clone();
        self.seen.subscribe().wait_for(|seen| seen.as_ref() == Some(&instructions)).await.unwrap();
    }

    pub(crate) fn permits(&self, answer: Result<u64, &str>) {
        *self.permits.lock().unwrap() = answer.map_err(str::to_owned);
    }
}

/// Serves until it is dropped.
pub(crate) struct Served {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Served {
    pub(crate) async fn ends(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap().unwrap();
    }
}

pub(crate) struct Cluster {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) namespace: String,
    pub(crate) node: String,
    pub(crate) knows: Arc<Knows>,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) port: u16,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Cluster {
    pub(crate) async fn with_a_node() -> Cluster {
        let plane = BED.get().unwrap();
        let client = plane.client().await.unwrap();
        define(&client).await;
        let namespace = plane.namespace("agent").unwrap();
        let node = format!("{namespace}-node");
        plane
            .apply(&format!(
                "
apiVersion: v1
kind: Node
metadata: {{name: {node}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: tread-agent, namespace: {namespace}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: agent, namespace: {namespace}}}
spec: {{nodeName: {node}, serviceAccountName: tread-agent, containers: [{{name: agent, image: tread}}]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {namespace}}}
rules: [{{apiGroups: [tread.dev], resources: [nodeupdates/status], verbs: [patch]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {namespace}}}
subjects: [{{kind: ServiceAccount, name: tread-agent, namespace: {namespace}}}]
"
            ))
            .unwrap();
        let knows = Arc::new(Knows {
            instructions: watch::Sender::default(),
            permits: Mutex::new(Err("not yet".to_owned())),
            asked: Mutex::default(),
            seen: watch::Sender::new(None),
        });
        let port = free_port();
        let dir = tempfile::tempdir().unwrap();
        let authority = authority();
        let cluster = Cluster { plane, namespace, node, knows, dir, port, authority };
        cluster.make_update().await;
        cluster.put("token", &cluster.token());
        cluster.put("ca", &cluster.authority.pem());
        cluster
    }

    pub(crate) async fn make_update(&self) {
        let update = json!({
            "apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
            "metadata": {"name": self.node}, "spec": {"pool": "worker"},
        });
        let update: NodeUpdate = serde_json::from_value(update).unwrap();
        let updates: Api<NodeUpdate> = Api::all(self.plane.client().await.unwrap());
        updates.create(&PostParams::default(), &update).await.unwrap();
    }

    /// A token of the agent's pod.
    pub(crate) fn token(&self) -> String {
        let audience = format!("--audience={AUDIENCE}");
        let args = ["create", "token", "tread-agent", "-n", &self.namespace, &audience];
        let bound = ["--bound-object-kind=Pod", "--bound-object-name=agent"];
        self.plane.kubectl(&[&args[..], &bound].concat()).unwrap().success().unwrap()
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        // As the kubelet does: the name has all of it at once.
        std::fs::write(self.path(".next"), text).unwrap();
        std::fs::rename(self.path(".next"), self.path(name)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The authority of the service is another one from now on.
    pub(crate) fn exchanges_its_authority(&mut self) {
        self.authority = authority();
    }

    pub(crate) fn authority(&self) -> String {
        self.authority.pem()
    }

    /// The service, until it is dropped.
    pub(crate) async fn serves(&self) -> Served {
        let client = self.plane.admin().client_config().await.unwrap();
        let client = tread_kube::client::client(client).unwrap();
        let reviewer = AgentReviewer::new(client, &self.namespace, "tread-agent", Metrics::new());
        let key = KeyPair::generate().unwrap();
        let names = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let leaf = names.signed_by(&key, &self.authority).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.der().clone()],
                rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let address = format!("127.0.0.1:{}", self.port).parse().unwrap();
        let port = Port::bind(address).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let router = agents(reviewer, self.knows.clone());
        let task = tokio::spawn(port.serve_agents(Arc::new(config), router, async {
            let _ = stopped.await;
        }));
        Served { stop: Some(stop), task }
    }

    pub(crate) fn settings(&self) -> Settings {
        let url = format!("https://localhost:{}", self.port).parse().unwrap();
        Settings { url, token: self.path("token"), authority: self.path("ca") }
    }

    /// The agent's own client: it may patch status, and nothing else.
    pub(crate) async fn client(&self) -> Client {
        let access = self.plane.service_account(&self.namespace, "tread-agent").unwrap();
        tread_kube::client::client(access.client_config().await.unwrap()).unwrap()
    }

    pub(crate) async fn update(&self) -> NodeUpdate {
        let updates: Api<NodeUpdate> = Api::all(self.plane.client().await.unwrap());
        updates.get(&self.node).await.unwrap()
    }

    /// Counts how often the node's NodeUpdate is written from now on.
    pub(crate) async fn counts_writes(&self) -> Arc<AtomicUsize> {
        let updates: Api<NodeUpdate> = Api::all(self.plane.client().await.unwrap());
        let version = self.update().await.metadata.resource_version.unwrap();
        let params = WatchParams::default().fields(&format!("metadata.name={}", self.node));
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        tokio::spawn(async move {
            let mut events = updates.watch(&params, &version).await.unwrap().boxed();
            while let Some(Ok(event)) = events.next().await {
                if matches!(event, WatchEvent::Modified(_)) {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        count
    }

    /// Waits until the node's NodeUpdate says something.
    pub(crate) async fn says<T>(
        &self,
        what: &str,
        look: impl Fn(&NodeUpdateStatus) -> Option<T>,
    ) -> T {
        eventually(what, async || look(&self.update().await.status?)).await
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

async fn define(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in crds::enforcing() {
        let name = crd.metadata.name.clone().unwrap();
        let params = PatchParams::apply("tests").force();
        api.patch(&name, &params, &Patch::Apply(&crd)).await.unwrap();
    }
    let updates: Api<NodeUpdate> = Api::all(client.clone());
    eventually("NodeUpdates are served", async || {
        updates.get_opt("none").await.ok()?.is_none().then_some(())
    })
    .await;
}

/// A config in which a file says this.
pub(crate) fn config(word: &str) -> GivenConfig {
    let text = format!(
        r#"{{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {{"name": "rendered-worker-{word}",
                          "labels": {{"machineconfiguration.openshift.io/role": "worker"}}}},
            "spec": {{"config": {{"ignition": {{"version": "3.4.0"}}, "storage": {{"files": [
                {{"path": "/etc/a.conf", "contents": {{"source": "data:,{word}"}}}}]}}}}}}}}"#
    );
    let documents = Documents(vec![Document { name: "a".to_owned(), text: text.clone() }]);
    let digest = digest(&documents.config().unwrap()).unwrap().to_string();
    GivenConfig { name: ConfigName { name: format!("rendered-worker-{word}"), digest }, text }
}

/// The same, with an argument for the kernel.
pub(crate) fn config_with_argument(word: &str, argument: &str) -> GivenConfig {
    let text = config(word).text;
    let text =
        text.replace(r#""spec": {"#, &format!(r#""spec": {{"kernelArguments": ["{argument}"], "#));
    let documents = Documents(vec![Document { name: "a".to_owned(), text: text.clone() }]);
    let digest = digest(&documents.config().unwrap()).unwrap().to_string();
    GivenConfig { name: ConfigName { name: format!("rendered-worker-{word}"), digest }, text }
}

/// An order that leads from one config to another by these steps.
pub(crate) fn order(
    number: u32,
    stage: UpdateStage,
    (from, to): (&str, &str),
    steps: &[Step],
    disrupts: UpdateDisrupts,
) -> Instructions {
    let (before, after) = (config(from), config(to));
    let digest =
        |config: &GivenConfig| tread_model::digest::Digest::parse(&config.name.digest).unwrap();
    let mut plan = VerifiablePlan::always_allowed(digest(&before), digest(&after));
    plan.steps = steps.to_vec();
    plan.digest = plan.computed_digest();
    let order = UpdateOrder {
        failed_at: None,
        operation: operation(number),
        config: after.name.clone(),
        disrupts,
        token: number,
        stage,
        given: true,
        unwell: false,
        hands_on: None,
        retries: None,
        tried: 0,
        escalated: None,
        go_since: None,
        withdrawn: false,
        drain_since: None,
        leaves_pods: None,
        plan: Some(serde_json::to_value(plan).unwrap()),
    };
    Instructions {
        form: tread_kube::agents::FORM,
        generation: Some(i64::from(number)),
        order: Some(order),
        config: Some(Arc::new(after)),
        ..Instructions::default()
    }
}

pub(crate) fn operation(number: u32) -> String {
    format!("{number:032x}")
}

pub(crate) fn reload() -> Vec<Step> {
    vec![Step::Write, Step::Reload { unit: "a.service".to_owned() }]
}

/// A node's files, of which the agent sees its own folder and the id of the boot.
pub(crate) fn disk(at: &Path) {
    let boot = at.join("proc/sys/kernel/random");
    std::fs::create_dir_all(&boot).unwrap();
    std::fs::write(boot.join("boot_id"), "0f6bd1a4-8b0a-4e4c-9f4c-2d8f5a1b3c7e\n").unwrap();
}

/// After this a test that waits fails.
pub(crate) const LONG: Duration = Duration::from_secs(600);

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(LONG, future).await;
    ended.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}
