//! Machines that boot become nodes of the pool whose config they asked for, and nothing else,
//! on a real API server with NodeRestriction, by credentials of nodes.

mod again;
mod gate;

use super::agent::well;
use super::fixture::{Cluster, Replica};
use futures::{StreamExt as _, stream};
use gate::Gate;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::core::WatchEvent;
use kube::{Api, Client};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tread_kube::agents::{Answer, Ask, Asked};
use tread_kube::api::node_update::ConfigName;
use tread_kube::api::{MachineConfigPool, NodeUpdate, Rollout};
use tread_model::joining::{
    BOOTSTRAP, Claim, Id, KEYS_SECRET, Key, Mark, TAINT, TOKENS_SECRET as TOKENS,
};
use tread_test_bed::{Part, eventually};

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

/// The claims that are bound, each with its node.
async fn bound(cluster: &Cluster) -> Vec<(String, String)> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let data = eventually("what is bound can be read", async || {
        maps.get_opt("tread-joining").await.ok().map(|map| map.and_then(|map| map.data))
    });
    let claims = data.await.unwrap_or_default().into_iter();
    let claims = claims.filter(|(key, _)| key.starts_with("claim."));
    claims.map(|(key, by)| (key, by.split(' ').next().unwrap_or_default().to_owned())).collect()
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout, reason = "it says what it measured")]
async fn many_nodes_are_held_or_in_their_pool_at_every_version_while_workers_are_rolled_out() {
    // 200 are for whoever has the time.
    let whole = std::env::var_os("TREAD_WHOLE").is_some();
    let count = if whole { 200 } else { 60 };
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let agents = cluster.agents(&replica, well());
    claim(&replica, "infra").await;
    hold_back(&cluster).await;
    let witness = Witness::begin(&cluster.client).await;
    let names = register_all(&cluster, &replica, "held", count).await;
    // There are slots for 50 workers, and one worker.
    cluster.file("90-next", "/etc/hard", "2").await;
    cluster.all_have("/etc/hard", "2").await;
    let rollout: Rollout = cluster.api().get("worker").await.unwrap();
    let status = rollout.status.unwrap();
    assert_eq!(status.nodes, 1, "none of them counts as a worker: {status:?}");
    let updates: Api<NodeUpdate> = cluster.api();
    let about = updates.list(&ListParams::default()).await.unwrap().items;
    let orders = about
        .iter()
        .filter(|it| it.metadata.name.as_ref().is_some_and(|it| it.starts_with("held")));
    assert_eq!(orders.filter(|it| it.spec.order.is_some()).count(), 0, "none has an order");
    assert!(names.iter().all(|name| witness.of(name).iter().all(|it| it.is_held)));
    let_through(&cluster);
    witness.joined(&names).await;
    // And where nobody holds them back.
    let names = register_all(&cluster, &replica, "quick", count).await;
    witness.joined(&names).await;
    let mut times: Vec<Duration> = names
        .iter()
        .map(|name| {
            let versions = witness.of(name);
            versions.iter().find(|it| !it.is_held).unwrap().at - versions[0].at
        })
        .collect();
    times.sort();
    let p99 = times[count * 99 / 100];
    println!(
        "{count} nodes: p50 {:?}, p99 {p99:?} from registration to membership",
        times[count / 2]
    );
    eventually("all of them count in infra", async || {
        let rollout = cluster.api::<Rollout>().get("infra").await.ok()?;
        (rollout.status?.nodes == i32::try_from(2 * count).unwrap()).then_some(())
    })
    .await;
    drop(agents);
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

async fn keys(cluster: &Cluster) -> Vec<Key> {
    let api: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let secret = api.get(KEYS_SECRET).await.unwrap();
    serde_json::from_slice(&secret.data.unwrap()["joining.json"].0).unwrap()
}

async fn is_in(cluster: &Cluster, name: &str, label: &str) {
    eventually(&format!("{name} has {label}"), async || {
        let node: Node = cluster.api().get(name).await.ok()?;
        let is_held = node.spec?.taints.is_some_and(|all| all.iter().any(|it| it.key == TAINT));
        (!is_held && node.metadata.labels?.contains_key(label)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn whoever_claims_what_is_not_theirs_is_held_with_the_reason_and_the_way_out() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let good = claim(&replica, "infra").await;
    let first = kubelet(&cluster, "first").await;
    // No kubelet registers another node, or adds a taint later, or takes one away.
    assert!(register(&first, "other", &good).await.is_err());
    register(&first, "first", &good).await.unwrap();
    is_in(&cluster, "first", INFRA).await;
    let api: Api<Node> = Api::all(first.clone());
    let again = claim(&replica, "infra").await;
    for taints in [json!([{"key": TAINT, "value": again, "effect": "NoSchedule"}]), json!([])] {
        let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
        let patched = api.patch("first", &PatchParams::default(), &patch).await;
        if taints != json!([]) {
            assert!(patched.is_err(), "NodeRestriction is on");
        }
    }

    let key = keys(&cluster).await.remove(0);
    let pool: MachineConfigPool = cluster.api().get("infra").await.unwrap();
    let now = k8s_openapi::jiff::Timestamp::now().as_second() as u64;
    let made = |uid: &str, issued: u64, key: &Key| {
        let (pool, config) = (Mark::of_pool(uid), Mark::of_config("rendered"));
        Claim { pool, config, issued, id: Id(issued.to_be_bytes()) }.signed(key)
    };
    let uid = pool.metadata.uid.unwrap();
    for (name, claim, word) in [
        ("used", good.clone(), "ClaimUsed"),
        ("forged", made(&uid, now, &Key::of([7; 32])), "ClaimForged"),
        ("altered", good.replace(good.get(20..24).unwrap(), "AAAA"), "ClaimForged"),
        ("old", made(&uid, now - 2 * 86_400, &key), "ClaimOld"),
        ("later", made(&uid, now + 3600, &key), "ClaimLater"),
        ("gone", made("another", now, &key), "PoolGone"),
        ("none", "1".to_owned(), "ClaimUnreadable"),
    ] {
        let client = kubelet(&cluster, name).await;
        register(&client, name, &claim).await.unwrap();
        let (reason, message) = held(&cluster, name).await;
        assert_eq!(reason, word, "{message}");
        assert!(message.contains(&format!("tread pools admit {name} --pool")), "{message}");
        eventually("an Event says so", async || {
            let events: Api<Event> = Api::all(cluster.client.clone());
            let events = events.list(&ListParams::default()).await.ok()?.items;
            let about =
                |it: &Event| it.regarding.as_ref().and_then(|it| it.name.as_deref()) == Some(name);
            events.into_iter().find(|it| about(it) && it.reason.as_deref() == Some("NodeHeld"))
        })
        .await;
        // Never silently a worker.
        let rollout: Rollout = cluster.api().get("worker").await.unwrap();
        assert!(rollout.status.is_none_or(|status| status.nodes <= 1), "{name}");
    }
}

#[tokio::test]
async fn a_node_that_registers_again_joins_again_under_its_name_alone() {
    let cluster = with_pools().await;
    cluster.apply::<Rollout>(json!({
        "apiVersion": "tread.dev/v1alpha1", "kind": "Rollout", "metadata": {"name": "infra"},
        "spec": {"nodeTaints": [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}]},
    })).await;
    let replica = cluster.replica();
    let claim = claim(&replica, "infra").await;
    let api: Api<Node> = cluster.api();
    for _ in 0..2 {
        let client = kubelet(&cluster, "again").await;
        register(&client, "again", &claim).await.unwrap();
        is_in(&cluster, "again", INFRA).await;
        let node = api.get("again").await.unwrap();
        let taints = node.spec.unwrap().taints.unwrap();
        assert!(
            taints.iter().any(|it| it.key == "dedicated" && it.value.as_deref() == Some("infra"))
        );
        api.delete("again", &Default::default()).await.unwrap();
    }
    let client = kubelet(&cluster, "another").await;
    register(&client, "another", &claim).await.unwrap();
    assert_eq!(held(&cluster, "another").await.0, "ClaimUsed");
    // A label that an admin takes away stays away.
    let client = kubelet(&cluster, "again").await;
    register(&client, "again", &claim).await.unwrap();
    is_in(&cluster, "again", INFRA).await;
    let patch = Patch::Merge(json!({"metadata": {"labels": {INFRA: null}}}));
    api.patch("again", &PatchParams::default(), &patch).await.unwrap();
    eventually("it is a worker", async || {
        let rollout = cluster.api::<Rollout>().get("worker").await.ok()?;
        (rollout.status?.nodes == 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_leader_that_dies_between_its_two_writes_lets_nobody_in_twice() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let claim = claim(&replica, "infra").await;
    hold_back(&cluster).await;
    let witness = Witness::begin(&cluster.client).await;
    register(&kubelet(&cluster, "one").await, "one", &claim).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    eventually("the claim is bound", async || {
        let data = maps.get_opt("tread-joining").await.ok()??.data?;
        data.values().any(|by| by.starts_with("one ")).then_some(())
    })
    .await;
    drop(replica);
    // Two others, who both believe to lead.
    let (_a, _b) = (cluster.replica(), cluster.replica());
    register(&kubelet(&cluster, "two").await, "two", &claim).await.unwrap();
    assert_eq!(held(&cluster, "two").await.0, "ClaimUsed");
    let_through(&cluster);
    witness.joined(&["one".to_owned()]).await;
    assert!(witness.of("two").iter().all(|it| it.is_held));
}

/// A cluster with a replica that is about to let in the node `one`, which has registered: its claim
/// is bound, and the write by which it joins waits.
async fn about_to_join() -> (Cluster, Replica, Gate, oneshot::Sender<()>) {
    let mut cluster = with_pools().await;
    let (mut gate, gated) = Gate::before(&cluster.acts.client, "/api/v1/nodes/one".to_owned());
    let own = std::mem::replace(&mut cluster.acts.client, gated);
    let replica = cluster.replica();
    // Replicas that begin later write as they please.
    cluster.acts.client = own;
    let claim = claim(&replica, "infra").await;
    register(&kubelet(&cluster, "one").await, "one", &claim).await.unwrap();
    let turn = gate.waits().await;
    assert_eq!(bound(&cluster).await.len(), 1, "the claim is bound before the node is written");
    (cluster, replica, gate, turn)
}

/// That `one` joined by one write, and by nobody's second one: another node that comes later has
/// joined too by now. Its claim is bound once.
async fn joined_once(cluster: &Cluster, replica: &Replica, witness: &Witness) {
    witness.joined(&["one".to_owned()]).await;
    let claim = claim(replica, "infra").await;
    register(&kubelet(cluster, "two").await, "two", &claim).await.unwrap();
    is_in(cluster, "two", INFRA).await;
    let versions = witness.of("one");
    let joins = versions.windows(2).filter(|it| it[0].is_held && !it[1].is_held).count();
    assert_eq!(joins, 1, "{versions:?}");
    let mut by: Vec<String> = bound(cluster).await.into_iter().map(|(_, by)| by).collect();
    by.sort();
    assert_eq!(by, ["one", "two"]);
}

#[tokio::test]
async fn a_node_that_somebody_writes_before_it_joins_is_settled_again_and_joins_once() {
    let (cluster, replica, mut gate, mut turn) = about_to_join().await;
    let witness = Witness::begin(&cluster.client).await;
    let nodes: Api<Node> = cluster.api();
    for times in 1..=3 {
        let note = Patch::Merge(json!({"metadata": {"annotations": {"times": times.to_string()}}}));
        nodes.patch("one", &PatchParams::default(), &note).await.unwrap();
        drop(turn);
        assert_eq!(gate.answered(times).await, vec![Some(409); times]);
        turn = gate.waits().await;
    }
    assert!(witness.of("one").iter().all(|it| it.is_held));
    drop(turn);
    // Whoever else writes nodes may have come before it once more.
    let answers = gate.open();
    joined_once(&cluster, &replica, &witness).await;
    let answers = answers.lock().unwrap().clone();
    let (last, before) = answers.split_last().unwrap();
    assert_eq!(*last, Some(200));
    assert!(before.len() >= 3 && before.iter().all(|it| *it == Some(409)), "{answers:?}");
    let node = nodes.get("one").await.unwrap();
    assert_eq!(node.metadata.annotations.unwrap()["times"], "3", "what others wrote is kept");
}

#[tokio::test]
async fn an_api_server_that_is_gone_while_a_node_joins_lets_it_in_once_when_it_is_back() {
    let (cluster, replica, mut gate, turn) = about_to_join().await;
    cluster.plane.kill(Part::ApiServer).unwrap();
    drop(turn);
    assert_eq!(gate.answered(1).await, [None]);
    cluster.plane.restart(Part::ApiServer).unwrap();
    // One that is started anew tells nobody what was written before: the node still waits.
    let witness = Witness::begin(&cluster.client).await;
    assert!(matches!(&witness.of("one")[..], [it, ..] if it.is_held));
    drop(gate.waits().await);
    let answers = gate.open();
    joined_once(&cluster, &replica, &witness).await;
    let answers = answers.lock().unwrap().clone();
    assert_eq!(answers.iter().filter(|it| **it == Some(200)).count(), 1, "{answers:?}");
    assert_eq!(answers.last(), Some(&Some(200)), "{answers:?}");
}

#[tokio::test]
async fn a_leader_that_writes_after_another_one_let_a_node_in_lets_it_in_no_second_time() {
    let (cluster, late, gate, turn) = about_to_join().await;
    let witness = Witness::begin(&cluster.client).await;
    let replica = cluster.replica();
    witness.joined(&["one".to_owned()]).await;
    drop(turn);
    assert_eq!(gate.answered(1).await, [Some(409)]);
    let answers = gate.open();
    // It goes on alone, and lets in another one after it has seen what became of this one.
    drop(replica);
    joined_once(&cluster, &late, &witness).await;
    assert_eq!(*answers.lock().unwrap(), [Some(409)]);
}

#[tokio::test]
async fn a_leader_that_loses_its_turn_between_its_two_writes_lets_the_node_in_when_it_leads_again()
{
    let mut cluster = with_pools().await;
    let record = format!("/api/v1/namespaces/{}/configmaps/tread-joining", cluster.acts.namespace);
    let (mut gate, gated) = Gate::before(&cluster.acts.client, record);
    let own = std::mem::replace(&mut cluster.acts.client, gated);
    let replica = cluster.replica();
    cluster.acts.client = own;
    let claim = {
        let mut claim = pin!(claim(&replica, "infra"));
        // That a machine is served is noted there too.
        loop {
            tokio::select! {
                claim = &mut claim => break claim,
                turn = gate.waits() => drop(turn),
            }
        }
    };
    let witness = Witness::begin(&cluster.client).await;
    replica.leads.send_replace(false);
    register(&kubelet(&cluster, "one").await, "one", &claim).await.unwrap();
    eventually("others have written the node", async || {
        let node = cluster.api::<Node>().get("one").await.ok()?;
        let is_ready = node.status?.conditions?.iter().any(|it| it.type_ == "Ready");
        (is_ready && node.metadata.annotations.is_some()).then_some(())
    })
    .await;
    // A write of theirs would be looked at.
    for part in [Part::SimulatedNodes, Part::Controllers] {
        cluster.plane.kill(part).unwrap();
    }
    replica.leads.send_replace(true);
    for writes in 1.. {
        let turn = gate.waits().await;
        replica.leads.send_replace(false);
        let answered = gate.answered(0).await.len();
        drop(turn);
        gate.answered(answered + 1).await;
        let is_bound = !bound(&cluster).await.is_empty();
        if is_bound {
            break;
        }
        assert!(writes < 100, "the claim is not bound");
        replica.leads.send_replace(true);
    }
    assert!(witness.of("one").iter().all(|it| it.is_held), "it did not lead");
    replica.leads.send_replace(true);
    let answers = gate.open();
    joined_once(&cluster, &replica, &witness).await;
    drop(answers);
}

#[tokio::test]
async fn only_whoever_has_the_token_of_the_pool_is_admitted() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    claim(&replica, "infra").await;
    let api: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let tokens = eventually("there is a token for each pool", async || {
        let data = api.get_opt(TOKENS).await.ok()??.data?;
        let tokens: Value = serde_json::from_slice(&data["joining.json"].0).ok()?;
        (tokens["infra"].is_object() && tokens["worker"].is_object()).then_some(tokens)
    })
    .await;
    let token = |pool: &str| tokens[pool]["newest"].as_str().unwrap().to_owned();
    eventually("it is known", async || {
        (replica.joining.admit("infra", &token("infra")) == Some(true)).then_some(())
    })
    .await;
    assert_eq!(replica.joining.admit("infra", &token("worker")), Some(false));
    assert_eq!(replica.joining.admit("none", &token("infra")), Some(false));
    assert_eq!(replica.joining.admit("infra", ""), Some(false));
}

/// The config that the agent of a node is asked for.
async fn adopts(replica: &Replica, node: &str) -> ConfigName {
    eventually("its agent is told", async || {
        let told = replica.agents.wait(node, None, None).await.ok()?;
        Some(told.config.filter(|_| told.adopt)?.name.clone())
    })
    .await
}

#[tokio::test]
async fn a_node_is_asked_for_the_config_that_its_machine_booted_with() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let first = claim(&replica, "infra").await;
    let booted: Rollout = eventually("infra has a config", async || {
        let rollout = cluster.api::<Rollout>().get("infra").await.ok()?;
        rollout.status.as_ref()?.target.as_ref()?;
        Some(rollout)
    })
    .await;
    let booted = booted.status.unwrap().target.unwrap();
    // Its pool is to have another one by the time that its agent begins.
    cluster.file("90-next", "/etc/hard", "2").await;
    eventually("infra is to have another config", async || {
        let rollout = cluster.api::<Rollout>().get("infra").await.ok()?;
        (rollout.status?.target? != booted).then_some(())
    })
    .await;
    register(&kubelet(&cluster, "one").await, "one", &first).await.unwrap();
    is_in(&cluster, "one", INFRA).await;
    let told = adopts(&replica, "one").await;
    assert_eq!(told, booted, "by its name and its digest");
    // One of its name that registers again may have had others since.
    let api: Api<Node> = cluster.api();
    api.delete("one", &Default::default()).await.unwrap();
    register(&kubelet(&cluster, "one").await, "one", &first).await.unwrap();
    is_in(&cluster, "one", INFRA).await;
    let told = adopts(&replica, "one").await;
    assert_ne!(told, booted);
}

#[tokio::test]
async fn a_machine_that_registers_no_node_is_told_of_with_its_address_whoever_leads() {
    let cluster = with_pools().await;
    let replica = cluster.impatient(Duration::from_secs(2));
    claim(&replica, "infra").await;
    let serve = async || replica.joining.serve("infra", None).await.unwrap();
    let (missing, came, again) = (serve().await, serve().await, serve().await);
    replica.joining.fetched(&missing, "192.0.2.1".parse().unwrap());
    replica.joining.fetched(&came, "192.0.2.2".parse().unwrap());
    // It asked twice, and registers by its last answer.
    replica.joining.fetched(&again, "192.0.2.2".parse().unwrap());
    register(&kubelet(&cluster, "came").await, "came", &again.claim).await.unwrap();
    let is_told = async || {
        eventually("it is told of", async || {
            let rollout: Rollout = cluster.api().get("infra").await.ok()?;
            let missing = rollout.status?.missing;
            (missing.len() == 1).then_some(missing)
        })
        .await
    };
    let told = is_told().await;
    assert_eq!(told[0].address, "192.0.2.1");
    assert!(told[0].fetched.ends_with('Z'), "{told:?}");
    let event = eventually("an Event says so", async || {
        let events: Api<Event> = Api::all(cluster.client.clone());
        let events = events.list(&ListParams::default()).await.ok()?.items;
        events.into_iter().find(|it| it.reason.as_deref() == Some("MachinesMissing"))
    })
    .await;
    assert_eq!(event.regarding.unwrap().name.as_deref(), Some("infra"));
    let note = event.note.unwrap();
    assert!(note.contains("from 192.0.2.1 at 2"), "{note}");
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let noted = maps.get("tread-joining").await.unwrap().data.unwrap();
    let noted: Vec<_> = noted.keys().filter(|it| it.starts_with("fetched.")).collect();
    assert!(noted.len() <= 2, "what came needs no note: {noted:?}");
    // Another one that leads knows it too, and it is over once its node registers.
    drop(replica);
    let replica = cluster.impatient(Duration::from_secs(2));
    is_told().await;
    register(&kubelet(&cluster, "late").await, "late", &missing.claim).await.unwrap();
    eventually("it came", async || {
        let rollout: Rollout = cluster.api().get("infra").await.ok()?;
        rollout.status?.missing.is_empty().then_some(())
    })
    .await;
    drop(replica);
}

#[tokio::test]
async fn what_ignition_cannot_bring_comes_by_permit_and_without_a_slot_before_a_node_joins() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let argument = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "60-argument",
            "labels": {"machineconfiguration.openshift.io/role": "infra"}},
        "spec": {"kernelArguments": ["nosmt"]},
    });
    claim(&replica, "infra").await;
    cluster.apply::<tread_kube::api::MachineConfig>(argument).await;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let claim = eventually("it is served with the argument", async || {
        let claim = claim(&replica, "infra").await;
        let data = maps.get_opt("tread-joining").await.ok()??.data?;
        data.values().any(|it| it.ends_with(" agent")).then_some(claim)
    })
    .await;
    let one = kubelet(&cluster, "one").await;
    register(&one, "one", &claim).await.unwrap();
    let (reason, message) = held(&cluster, "one").await;
    assert_eq!(reason, "Prepares", "{message}");
    let ask = |what, number| Ask { operation: format!("{number:032x}"), what, number };
    let told = eventually("its agent is told", async || {
        replica.agents.wait("one", None, None).await.ok().filter(|told| told.joins)
    })
    .await;
    assert!(told.adopt && told.order.is_none());
    for (what, number) in [(Asked::Write, 7), (Asked::Boot, 8)] {
        let answer = replica.agents.permit("one", &ask(what, number)).await;
        assert!(
            matches!(answer, Answer::Permitted { number: of, .. } if of == number),
            "{answer:?}"
        );
    }
    let slots = maps.get_opt("tread-slots").await.unwrap().and_then(|it| it.data);
    let slots = slots.unwrap_or_default();
    assert!(!slots.values().any(|it| it.contains("\"one\"")), "{slots:?}");
    // The Lease is held for the boot, and for longer than it may begin.
    let leases: Api<k8s_openapi::api::coordination::v1::Lease> =
        Api::namespaced(cluster.client.clone(), &cluster.acts.leases);
    let held = leases.get("node-one").await.unwrap().spec.unwrap();
    assert_eq!(held.holder_identity.as_deref(), Some(&*cluster.acts.holder));
    assert!(held.lease_duration_seconds.unwrap() > 60, "{held:?}");
    leases.delete("node-one", &Default::default()).await.unwrap();
    // One that others hold stays up.
    let lease = json!({"metadata": {"name": "node-one", "namespace": cluster.acts.leases},
        "spec": {"holderIdentity": "alice", "leaseDurationSeconds": 3600,
            "renewTime": "2999-01-01T00:00:00.000000Z"}});
    let lease = serde_json::from_value(lease).unwrap();
    leases.create(&PostParams::default(), &lease).await.unwrap();
    eventually("it is refused", async || {
        let answer = replica.agents.permit("one", &ask(Asked::Boot, 9)).await;
        matches!(answer, Answer::Refused { why } if why.contains("Lease")).then_some(())
    })
    .await;
    leases.delete("node-one", &Default::default()).await.unwrap();
    let answer = replica.agents.permit("one", &ask(Asked::Boot, 9)).await;
    assert!(matches!(answer, Answer::Permitted { .. }), "{answer:?}");
    // It joins once its agent says that it has the config, and not by what another one says.
    let says = async |name: &str, digest: &str| {
        let status = json!({"status": {"current": {"name": name, "digest": digest}}});
        let updates: Api<NodeUpdate> = cluster.api();
        let patch = Patch::Merge(status);
        updates.patch_status("one", &PatchParams::default(), &patch).await.unwrap();
    };
    says("rendered-infra-other", "").await;
    let nodes: Api<Node> = cluster.api();
    assert!(!nodes.get("one").await.unwrap().metadata.labels.unwrap().contains_key(INFRA));
    let config = &told.config.as_ref().unwrap().name;
    says(&config.name, &config.digest).await;
    is_in(&cluster, "one", INFRA).await;
    let answer = replica.agents.permit("one", &ask(Asked::Boot, 10)).await;
    assert!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
    eventually("its Lease is given back", async || {
        leases.get_opt("node-one").await.ok()?.is_none().then_some(())
    })
    .await;
}

/// What a pool says of the kubeconfig that its machines get.
async fn says(cluster: &Cluster, reason: &str) -> (String, String) {
    eventually(&format!("infra says {reason}"), async || {
        let rollout = cluster.api::<Rollout>().get("infra").await.ok()?;
        let mut all = rollout.status?.conditions.into_iter();
        let it = all.find(|it| it.type_ == "Serves" && it.reason == reason)?;
        Some((it.status, it.message))
    })
    .await
}

#[tokio::test]
async fn a_pool_says_why_its_machines_get_no_kubeconfig_until_they_do() {
    const NAME: &str = "site-bootstrap";
    let cluster = with_pools().await;
    let replica = cluster.bootstraps_by(NAME);
    let api: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let put = async |key: &str, base64: &str| {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME},
            "data": {key: base64}});
        let params = PatchParams::apply("tests").force();
        api.patch(NAME, &params, &Patch::Apply(secret)).await.unwrap();
    };
    let gets = async |what: &str, expected: bool| {
        eventually(what, async || {
            let boots = replica.joining.serve("infra", None).await.ok()?;
            let text = [&boots.head[..], &boots.tail[..]].concat();
            (String::from_utf8_lossy(&text).contains(BOOTSTRAP) == expected).then_some(())
        })
        .await;
    };
    let lacks = async |reason: &str, wrong: &str| {
        let (status, message) = says(&cluster, reason).await;
        assert_eq!(status, "False");
        assert!(message.contains(wrong) && message.contains(NAME), "{message}");
        let namespace = &cluster.acts.namespace;
        let mends =
            format!("kubectl create secret generic {NAME} -n {namespace} --from-file=kubeconfig=");
        assert!(message.contains(&mends), "{message}");
        gets("a machine is served without", false).await;
    };
    lacks("NoBootstrapSecret", "there is no Secret").await;
    put("other", "YQ==").await;
    lacks("NoKubeconfig", "nothing in its key kubeconfig").await;
    put("kubeconfig", "//4=").await;
    lacks("KubeconfigUnreadable", "no text").await;
    put("kubeconfig", "dXNlcnM6IFtdCg==").await;
    assert_eq!(says(&cluster, "Bootstraps").await.0, "True");
    gets("a machine is served with it", true).await;
    // What else the Rollout says stays there.
    let rollout: Rollout = cluster.api().get("infra").await.unwrap();
    let conditions = rollout.status.unwrap().conditions;
    let types: Vec<&str> = conditions.iter().map(|it| it.type_.as_str()).collect();
    for expected in ["Updated", "Progressing", "Rendered", "Serves"] {
        assert_eq!(types.iter().filter(|it| **it == expected).count(), 1, "{types:?}");
    }
    api.delete(NAME, &Default::default()).await.unwrap();
    lacks("NoBootstrapSecret", "there is no Secret").await;
    cluster.file("60-own", BOOTSTRAP, "users").await;
    assert_eq!(says(&cluster, "ConfigBrings").await.0, "True");
}
