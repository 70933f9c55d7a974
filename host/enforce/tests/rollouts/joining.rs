//! Machines that boot become nodes of the pool whose config they asked for, and nothing else,
//! on a real API server with NodeRestriction, by credentials of nodes.

mod again;
mod claims;
mod moved;
mod served;
mod two_writes;

use super::fixture::{Cluster, Replica};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::core::WatchEvent;
use kube::{Api, Client};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tread_kube::api::{MachineConfig, MachineConfigPool, NodeUpdate};
use tread_model::joining::TAINT;
use tread_test_bed::eventually;

const INFRA: &str = "node-role.kubernetes.io/infra";
/// By which nodes are workers here. OpenShift's API server lets kubelets say
/// `node-role.kubernetes.io/worker`; the NodeRestriction of others does not.
const WORKER: &str = "kubernetes.io/os";
const KUBELET: &str = "kind:%20KubeletConfiguration%0AmaxPods:%20250%0A";

/// A cluster whose pools machines can boot into: `worker` with one node, and `infra`.
pub(super) async fn with_pools() -> Cluster {
    let cluster = Cluster::with(1, 50).await;
    let is_worker = Patch::Merge(json!({"metadata": {"labels": {WORKER: "linux"}}}));
    let selects = json!({"spec": {"nodeSelector": {"matchLabels": {
        WORKER: "linux", "node-role.kubernetes.io/worker": null}}}});
    let params = PatchParams::default();
    let nodes: Api<Node> = cluster.api();
    nodes.patch(&cluster.nodes[0], &params, &is_worker).await.unwrap();
    let pools: Api<MachineConfigPool> = cluster.api();
    pools.patch("worker", &params, &Patch::Merge(&selects)).await.unwrap();
    cluster.file("40-kubelet", "/etc/kubernetes/kubelet.conf", KUBELET).await;
    cluster
        .apply::<MachineConfigPool>(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
            "metadata": {"name": "infra"},
            "spec": {
                "machineConfigSelector": {"matchExpressions": [{
                    "key": "machineconfiguration.openshift.io/role", "operator": "In",
                    "values": ["worker", "infra"]}]},
                "nodeSelector": {"matchLabels": {INFRA: ""}},
            },
        }))
        .await;
    cluster
}

/// What a machine of a pool is served: its claim, once there is a config.
async fn claim(replica: &Replica, pool: &str) -> String {
    eventually("a machine is served", async || {
        let boots = replica.joining.serve(pool, Some(4)).await.ok()?;
        let text = format!(
            "{}{}{}",
            String::from_utf8_lossy(&boots.head),
            boots.claim,
            String::from_utf8_lossy(&boots.tail)
        );
        let config: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(config["ignition"]["version"], "3.4.0");
        Some(boots.claim)
    })
    .await
}

/// The same, once the config of `infra` has what its agent alone brings, by a boot.
async fn claim_with_an_argument(cluster: &Cluster, replica: &Replica) -> String {
    claim(replica, "infra").await;
    cluster
        .apply::<MachineConfig>(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": "60-argument",
                "labels": {"machineconfiguration.openshift.io/role": "infra"}},
            "spec": {"kernelArguments": ["nosmt"]},
        }))
        .await;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    eventually("it is served with the argument", async || {
        let claim = claim(replica, "infra").await;
        let data = maps.get_opt("tread-joining").await.ok()??.data?;
        data.values().any(|it| it.ends_with(" agent")).then_some(claim)
    })
    .await
}

/// Whoever has the credentials of a node.
async fn kubelet(cluster: &Cluster, name: &str) -> Client {
    let access = cluster.plane.impersonate(&format!("system:node:{name}"), &["system:nodes"]);
    access.unwrap().client().await.unwrap()
}

/// Registers a node as the kubelet does that OpenShift's template starts: as a worker.
async fn register(client: &Client, name: &str, claim: &str) -> kube::Result<Node> {
    let node = json!({
        "metadata": {"name": name, "labels": {WORKER: "linux"}},
        "spec": {"taints": [{"key": TAINT, "value": claim, "effect": "NoSchedule"}]},
    });
    let api: Api<Node> = Api::all(client.clone());
    api.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await
}

/// What one version of a node is.
#[derive(Debug, Clone, PartialEq)]
struct Version {
    is_held: bool,
    pools: Vec<&'static str>,
    at: Instant,
}

impl Version {
    fn of(node: Node) -> Version {
        let labels = node.metadata.labels.unwrap_or_default();
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let pools = match (labels.contains_key(INFRA), labels.contains_key(WORKER)) {
            (true, _) => vec!["infra"],
            (false, true) => vec!["worker"],
            (false, false) => vec![],
        };
        let is_held = taints.iter().any(|taint| taint.key == TAINT);
        Version { is_held, pools, at: Instant::now() }
    }
}

/// An independent watch: every version of every node.
struct Witness {
    seen: Arc<Mutex<BTreeMap<String, Vec<Version>>>>,
    task: JoinHandle<()>,
}

impl Witness {
    async fn begin(client: &Client) -> Witness {
        let seen: Arc<Mutex<BTreeMap<String, Vec<Version>>>> = Arc::default();
        let api: Api<Node> = Api::all(client.clone());
        let listed =
            eventually("nodes are listed", async || api.list(&ListParams::default()).await.ok())
                .await;
        let mut from = listed.metadata.resource_version.unwrap();
        let sees = Arc::clone(&seen);
        let see = move |node: Node| {
            let name = node.metadata.name.clone().unwrap();
            sees.lock().unwrap().entry(name).or_default().push(Version::of(node));
        };
        listed.items.into_iter().for_each(&see);
        let task = tokio::spawn(async move {
            loop {
                // A watch ends when it has lasted long, or the API server is busy: the next one
                // goes on behind the last version that was seen.
                let params = WatchParams::default().timeout(290);
                let Ok(events) = api.watch(&params, &from).await else {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let mut events = events.boxed();
                while let Some(Ok(event)) = events.next().await {
                    match event {
                        WatchEvent::Added(node) | WatchEvent::Modified(node) => {
                            from = node.metadata.resource_version.clone().unwrap();
                            see(node);
                        }
                        WatchEvent::Deleted(node) => {
                            from = node.metadata.resource_version.unwrap();
                        }
                        WatchEvent::Bookmark(it) => from = it.metadata.resource_version,
                        WatchEvent::Error(status) if status.code == 410 => {
                            panic!("versions of nodes were missed: {status:?}")
                        }
                        WatchEvent::Error(_) => break,
                    }
                }
            }
        });
        Witness { seen, task }
    }

    fn of(&self, name: &str) -> Vec<Version> {
        self.seen.lock().unwrap().get(name).cloned().unwrap_or_default()
    }

    /// Each of them was held at each version, and then in the pool: others write nodes too.
    async fn joined(&self, names: &[String]) {
        for name in names {
            let versions = eventually(&format!("{name} joins"), async || {
                let versions = self.of(name);
                versions.iter().any(|it| !it.is_held).then_some(versions)
            })
            .await;
            let held = versions.iter().take_while(|it| it.is_held).count();
            let (_, joined) = versions.split_at(held);
            assert!(held > 0, "{name}: {versions:?}");
            assert!(
                joined.iter().all(|it| !it.is_held && it.pools == ["infra"]),
                "{name}: {versions:?}"
            );
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Nobody can let a node in until this is removed: as if nothing came through.
async fn hold_back(cluster: &Cluster) {
    let gone = format!(
        "object.spec.?taints.orValue([]).exists(it, it.key == '{TAINT}') || \
         !oldObject.spec.?taints.orValue([]).exists(it, it.key == '{TAINT}')"
    );
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "hold-back"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["UPDATE"], "resources": ["nodes"]}]},
            "validations": [{"expression": gone}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "hold-back"},
        "spec": {"policyName": "hold-back", "validationActions": ["Deny"]},
    });
    for object in [policy, binding] {
        cluster.plane.apply(&object.to_string()).unwrap();
    }
    let api: Api<Node> = cluster.api();
    let probe = json!({"metadata": {"name": "probe"},
        "spec": {"taints": [{"key": TAINT, "value": "x", "effect": "NoSchedule"}]}});
    let probe: Node = serde_json::from_value(probe).unwrap();
    api.create(&PostParams::default(), &probe).await.unwrap();
    let free = Patch::Merge(json!({"spec": {"taints": null}}));
    eventually("nobody can let a node in", async || {
        let answer = api.patch("probe", &PatchParams::default().dry_run(), &free).await;
        answer.err().filter(|error| error.to_string().contains("hold-back"))
    })
    .await;
    api.delete("probe", &Default::default()).await.unwrap();
}

fn let_through(cluster: &Cluster) {
    for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
        cluster.plane.kubectl(&["delete", kind, "hold-back"]).unwrap().success().unwrap();
    }
}

fn is_there_already(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_already_exists())
}

async fn register_all(
    cluster: &Cluster,
    replica: &Replica,
    prefix: &str,
    count: usize,
) -> Vec<String> {
    let all = (0..count).map(|at| async move {
        let name = format!("{prefix}-{at}");
        let client = kubelet(cluster, &name).await;
        let claim = claim(replica, "infra").await;
        // A kubelet asks again too where a busy API server does not answer.
        eventually(&format!("{name} is registered"), async || {
            match register(&client, &name, &claim).await {
                Ok(_) => Some(()),
                Err(error) => is_there_already(&error).then_some(()),
            }
        })
        .await;
        name
    });
    stream::iter(all.collect::<Vec<_>>()).buffered(16).collect().await
}

async fn held(cluster: &Cluster, name: &str) -> (String, String) {
    eventually(&format!("{name} is said to be held"), async || {
        let update: NodeUpdate = cluster.api().get_opt(name).await.ok()??;
        assert_eq!(update.spec.pool, "");
        assert!(update.spec.order.is_none());
        let conditions = update.status?.conditions;
        let it = conditions.into_iter().find(|it| it.type_ == "Joined" && it.status == "False")?;
        Some((it.reason, it.message))
    })
    .await
}

async fn is_in(cluster: &Cluster, name: &str, label: &str) {
    eventually(&format!("{name} has {label}"), async || {
        let node: Node = cluster.api().get(name).await.ok()?;
        let is_held = node.spec?.taints.is_some_and(|all| all.iter().any(|it| it.key == TAINT));
        (!is_held && node.metadata.labels?.contains_key(label)).then_some(())
    })
    .await;
}
