//! Nodes that register again, or are held, and replicas that begin or do not lead.

use super::super::fixture::Replica;
use super::{
    INFRA, Witness, claim, claim_with_an_argument, held, hold_back, is_in, kubelet, let_through,
    register, with_pools,
};
use futures::future::join_all;
use http::{Method, Request};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tread_enforce::rollouts::NotServed;
use tread_kube::agents::{Answer, Ask, Asked, Instructions};
use tread_kube::api::node_update::ConfigName;
use tread_kube::api::{MachineConfigPool, NodeUpdate, Rollout};
use tread_model::joining::{KEYS_SECRET, TAINT, TOKENS_SECRET};
use tread_test_bed::eventually;

/// What the record of claims holds.
async fn record(maps: &Api<ConfigMap>) -> Option<std::collections::BTreeMap<String, String>> {
    maps.get_opt("tread-joining").await.ok()?.map(|map| map.data.unwrap_or_default())
}

#[tokio::test]
async fn a_node_that_registers_again_joins_at_once_also_where_its_config_needs_the_agent() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let claim = claim_with_an_argument(&cluster, &replica).await;
    let one = kubelet(&cluster, "one").await;
    register(&one, "one", &claim).await.unwrap();
    let (reason, message) = held(&cluster, "one").await;
    assert_eq!(reason, "Prepares", "{message}");
    assert!(message.contains("tread pools admit one --pool infra"), "{message}");
    let instructions = eventually("its agent is told", async || {
        replica.agents.wait("one", None, None).await.ok().filter(|instructions| instructions.joins)
    })
    .await;
    let config = &instructions.config.as_ref().unwrap().name;
    let status = json!({"status": {"current": {"name": config.name, "digest": config.digest}}});
    let updates: Api<NodeUpdate> = cluster.api();
    let patch = Patch::Merge(status);
    updates.patch_status("one", &PatchParams::default(), &patch).await.unwrap();
    is_in(&cluster, "one", INFRA).await;
    // Its agent forgets what it said, and says nothing before the node is in its pool.
    let nodes: Api<Node> = cluster.api();
    for _ in 0..2 {
        nodes.delete("one", &Default::default()).await.unwrap();
        register(&one, "one", &claim).await.unwrap();
        is_in(&cluster, "one", INFRA).await;
    }
    eventually("its NodeUpdate does not say that it waits", async || {
        let node = nodes.get("one").await.ok()?;
        let update: NodeUpdate = updates.get_opt("one").await.ok()??;
        let owner = update.metadata.owner_references?.first()?.uid.clone();
        let conditions = update.status.unwrap_or_default().conditions;
        let waits = conditions.iter().any(|it| it.type_ == "Joined" && it.status == "False");
        (Some(owner) == node.metadata.uid && update.spec.pool == "infra" && !waits).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_node_that_registers_again_is_asked_for_what_its_disk_has_of_its_own_pool() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let claim = claim(&replica, "infra").await;
    let target = async |pool: &str| {
        eventually(&format!("{pool} has a config"), async || {
            cluster.api::<Rollout>().get(pool).await.ok()?.status?.target
        })
        .await
    };
    let (booted, anothers) = (target("infra").await, target("worker").await);
    cluster.file("90-next", "/etc/hard", "2").await;
    let next = eventually("infra is to have another config", async || {
        let rollout = cluster.api::<Rollout>().get("infra").await.ok()?;
        rollout.status?.target.filter(|it| *it != booted)
    })
    .await;
    let one = kubelet(&cluster, "one").await;
    let nodes: Api<Node> = cluster.api();
    register(&one, "one", &claim).await.unwrap();
    is_in(&cluster, "one", INFRA).await;
    nodes.delete("one", &Default::default()).await.unwrap();
    register(&one, "one", &claim).await.unwrap();
    is_in(&cluster, "one", INFRA).await;
    let gone = ConfigName { name: "rendered-infra-gone".to_owned(), digest: String::new() };
    // Without a word of its disk it is its pool's.
    for (has, expected) in [
        (None, &next),
        (Some(&booted), &booted),
        (Some(&next), &next),
        (Some(&anothers), &next),
        (Some(&gone), &next),
    ] {
        eventually(&format!("with {has:?} it is asked for {expected:?}"), async || {
            let instructions = replica.agents.wait_having(("one", None), None, has).await.ok()?;
            (instructions.config.filter(|_| instructions.adopt)?.name == *expected).then_some(())
        })
        .await;
    }
}

/// What the agent of a node is told, once it is this.
async fn told(replica: &Replica, node: &Node, is: fn(&Instructions) -> bool) -> Instructions {
    let (name, uid) = (node.metadata.name.as_deref().unwrap(), node.metadata.uid.as_deref());
    eventually("its agent is told", async || {
        replica.agents.wait(name, uid, None).await.ok().filter(is)
    })
    .await
}

#[tokio::test]
async fn a_node_that_registers_again_and_is_held_is_permitted_nothing_of_what_was_ordered_before() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let claim = claim_with_an_argument(&cluster, &replica).await;
    let one = kubelet(&cluster, "one").await;
    let before = register(&one, "one", &claim).await.unwrap();
    let config = told(&replica, &before, |told| told.adopt && told.joins).await.config.unwrap();
    let patch = Patch::Merge(json!({"status": {"current": config.name}}));
    let updates: Api<NodeUpdate> = cluster.api();
    updates.patch_status("one", &PatchParams::default(), &patch).await.unwrap();
    is_in(&cluster, "one", INFRA).await;
    hold_back(&cluster).await;
    cluster.api::<Node>().delete("one", &Default::default()).await.unwrap();
    let node = register(&one, "one", &claim).await.unwrap();
    told(&replica, &node, |told| told.joins && told.order.is_none()).await;
    // By the token of a pod on the node before, of one on this node, and of one that says no node's UID.
    for uid in [&before, &node].map(|it| it.metadata.uid.as_deref()).into_iter().chain([None]) {
        for (what, number) in [(Asked::Write, 7), (Asked::Unit, 8), (Asked::Boot, 9)] {
            let ask = Ask { operation: "0123456789abcdef".repeat(2), what, number };
            let answer = replica.agents.permit("one", uid, &ask).await;
            let says = if uid == before.metadata.uid.as_deref() { "made anew" } else { "again" };
            let is_it = matches!(&answer, Answer::Refused { why } if why.contains(says));
            assert!(is_it, "{what:?} by {uid:?}: {answer:?}");
        }
    }
    let_through(&cluster);
    is_in(&cluster, "one", INFRA).await;
}

#[tokio::test]
async fn instructions_of_a_node_that_was_made_anew_have_another_revision() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let claim = claim(&replica, "infra").await;
    let one = kubelet(&cluster, "one").await;
    let nodes: Api<Node> = cluster.api();
    let registers = async || {
        let node = register(&one, "one", &claim).await.unwrap();
        is_in(&cluster, "one", INFRA).await;
        told(&replica, &node, |told| told.adopt && !told.joins && told.order.is_none()).await
    };
    // The first time it is asked for what its machine booted with.
    registers().await;
    nodes.delete("one", &Default::default()).await.unwrap();
    let before = registers().await;
    nodes.delete("one", &Default::default()).await.unwrap();
    let after = registers().await;
    let config = |told: &Instructions| told.config.as_ref().unwrap().name.clone();
    assert_eq!(config(&before), config(&after), "they are told the same");
    assert_ne!(before.revision, after.revision);
}

#[tokio::test]
async fn a_node_registers_again_and_joins_while_all_pools_are_paused() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let claim = claim(&replica, "infra").await;
    let one = kubelet(&cluster, "one").await;
    register(&one, "one", &claim).await.unwrap();
    is_in(&cluster, "one", INFRA).await;
    let params = PatchParams::default();
    for pool in ["worker", "infra"] {
        let paused = Patch::Merge(json!({"spec": {"paused": true}}));
        cluster.api::<MachineConfigPool>().patch(pool, &params, &paused).await.unwrap();
        eventually("its Rollout is there", async || {
            cluster.api::<Rollout>().patch(pool, &params, &paused).await.ok()
        })
        .await;
    }
    let nodes: Api<Node> = cluster.api();
    nodes.delete("one", &Default::default()).await.unwrap();
    let witness = Witness::begin(&cluster.client).await;
    register(&one, "one", &claim).await.unwrap();
    witness.joined(&["one".to_owned()]).await;
    eventually("it counts in its pool, and has no order", async || {
        let rollout = cluster.api::<Rollout>().get("infra").await.ok()?;
        let update: NodeUpdate = cluster.api().get_opt("one").await.ok()??;
        (rollout.status?.nodes == 1 && update.spec.pool == "infra" && update.spec.order.is_none())
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_held_node_cannot_take_its_own_taint_away() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    claim(&replica, "infra").await;
    let client = kubelet(&cluster, "held").await;
    register(&client, "held", "1").await.unwrap();
    assert_eq!(held(&cluster, "held").await.0, "ClaimUnreadable");
    let api: Api<Node> = Api::all(client);
    let other = json!([{"key": TAINT, "value": "2", "effect": "NoSchedule"}]);
    for spec in [
        json!({"spec": {"taints": []}}),
        json!({"spec": {"taints": null}}),
        json!({"spec": {"taints": other}}),
        json!({"metadata": {"labels": {INFRA: ""}}}),
    ] {
        let patched = api.patch("held", &PatchParams::default(), &Patch::Merge(&spec)).await;
        let is_refused = matches!(&patched, Err(kube::Error::Api(status)) if status.code == 403);
        assert!(is_refused, "{spec}: {patched:?}");
    }
    let node = cluster.api::<Node>().get("held").await.unwrap();
    assert!(node.spec.unwrap().taints.unwrap().iter().any(|it| it.key == TAINT));
    drop(replica);
}

#[tokio::test]
async fn a_held_node_that_is_let_in_by_hand_is_not_missing() {
    let cluster = with_pools().await;
    let replica = cluster.impatient(Duration::from_secs(2));
    claim(&replica, "infra").await;
    // A selector that leaves open which labels a node gets.
    let selects = json!({"spec": {"nodeSelector": {"matchLabels": null, "matchExpressions": [
        {"key": INFRA, "operator": "In", "values": ["", "other"]}]}}});
    let pools: Api<MachineConfigPool> = cluster.api();
    pools.patch("infra", &PatchParams::default(), &Patch::Merge(&selects)).await.unwrap();
    let boots = replica.joining.serve("infra", None).await.unwrap();
    replica.joining.fetched(&boots, "192.0.2.1".parse().unwrap());
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let is_noted = async |expected: bool| {
        eventually(&format!("it is noted: {expected}"), async || {
            let record = record(&maps).await?;
            let is_noted = record.keys().any(|key| key.starts_with("fetched."));
            (is_noted == expected).then_some(())
        })
        .await;
    };
    is_noted(true).await;
    register(&kubelet(&cluster, "one").await, "one", &boots.claim).await.unwrap();
    assert_eq!(held(&cluster, "one").await.0, "NoLabels");
    // It has registered, whatever becomes of it.
    is_noted(false).await;
    let admitted = json!({"metadata": {"labels": {INFRA: "other"}}, "spec": {"taints": null}});
    let nodes: Api<Node> = cluster.api();
    nodes.patch("one", &PatchParams::default(), &Patch::Merge(&admitted)).await.unwrap();
    eventually("nobody misses it", async || {
        let status = cluster.api::<Rollout>().get("infra").await.ok()?.status?;
        (status.nodes == 1 && status.missing.is_empty()).then_some(())
    })
    .await;
    // Its claim is its own, whoever has read it while it was held.
    register(&kubelet(&cluster, "two").await, "two", &boots.claim).await.unwrap();
    assert_eq!(held(&cluster, "two").await.0, "ClaimUsed");
    let claims = record(&maps).await.unwrap().into_iter();
    let claims: Vec<_> = claims.filter(|(key, _)| key.starts_with("claim.")).collect();
    assert!(matches!(&claims[..], [(_, by)] if by.starts_with("one ")), "{claims:?}");
}

#[tokio::test]
async fn a_claim_is_the_first_nodes_that_shows_it_also_while_that_is_held() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let claim = claim(&replica, "infra").await;
    // Another pool of its own name has it too.
    let other = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "metadata": {"name": "edge"},
        "spec": {
            "machineConfigSelector": {"matchLabels": {
                "machineconfiguration.openshift.io/role": "worker"}},
            "nodeSelector": {"matchLabels": {"kubernetes.io/arch": "arm64"}},
        },
    });
    cluster.apply::<MachineConfigPool>(other).await;
    eventually("edge is known", async || {
        cluster.api::<Rollout>().get_opt("edge").await.ok()??.status
    })
    .await;
    let one = kubelet(&cluster, "one").await;
    let node = json!({
        "metadata": {"name": "one", "labels": {"kubernetes.io/arch": "arm64"}},
        "spec": {"taints": [{"key": TAINT, "value": claim, "effect": "NoSchedule"}]},
    });
    let node: Node = serde_json::from_value(node).unwrap();
    Api::<Node>::all(one).create(&Default::default(), &node).await.unwrap();
    assert_eq!(held(&cluster, "one").await.0, "Elsewhere");
    register(&kubelet(&cluster, "two").await, "two", &claim).await.unwrap();
    assert_eq!(held(&cluster, "two").await.0, "ClaimUsed");
    // Nothing keeps the first one out once the label in the way is gone.
    let nodes: Api<Node> = cluster.api();
    let patch = Patch::Merge(json!({"metadata": {"labels": {"kubernetes.io/arch": null}}}));
    nodes.patch("one", &PatchParams::default(), &patch).await.unwrap();
    is_in(&cluster, "one", INFRA).await;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let claims = record(&maps).await.unwrap().into_iter();
    let claims: Vec<_> = claims.filter(|(key, _)| key.starts_with("claim.")).collect();
    assert!(
        matches!(&claims[..], [(_, by)] if by.starts_with("one ") && !by.ends_with("held")),
        "{claims:?}"
    );
}

/// The newest token of a pool.
async fn token(secrets: &Api<Secret>, pool: &str) -> String {
    eventually("the pool has a token", async || {
        let data = secrets.get_opt(TOKENS_SECRET).await.ok()??.data?;
        let tokens: Value = serde_json::from_slice(&data["joining.json"].0).ok()?;
        tokens[pool]["newest"].as_str().map(str::to_owned)
    })
    .await
}

#[tokio::test]
async fn a_replica_that_does_not_lead_serves_machines_and_admits_nobody_before_it_knows_the_tokens()
{
    let cluster = with_pools().await;
    let leader = cluster.replica();
    claim(&leader, "infra").await;
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let token = token(&secrets, "infra").await;
    // Nothing of it runs before somebody waits for something.
    let replica = cluster.replica();
    replica.leads.send_replace(false);
    assert_eq!(replica.joining.admit("infra", &token), None, "nobody knows yet");
    let early = replica.joining.serve("infra", None).await;
    assert!(matches!(early, Err(NotServed::NotYet(_))), "{:?}", early.err());
    drop(leader);
    eventually("it admits machines", async || {
        (replica.joining.admit("infra", &token) == Some(true)).then_some(())
    })
    .await;
    assert_eq!(replica.joining.admit("infra", "another"), Some(false));
    let claim = claim(&replica, "infra").await;
    let witness = Witness::begin(&cluster.client).await;
    register(&kubelet(&cluster, "one").await, "one", &claim).await.unwrap();
    eventually("others have written the node", async || {
        let node = cluster.api::<Node>().get("one").await.ok()?;
        node.status?.conditions?.iter().any(|it| it.type_ == "Ready").then_some(())
    })
    .await;
    assert!(witness.of("one").iter().all(|it| it.is_held), "nobody leads");
    replica.leads.send_replace(true);
    witness.joined(&["one".to_owned()]).await;
}

/// What asks as `client` does, and counts the patches of the object with this path.
fn counting(client: &Client, path: String) -> (Client, Arc<AtomicUsize>) {
    let count: Arc<AtomicUsize> = Arc::default();
    let (to, counts) = (client.clone(), Arc::clone(&count));
    let service = tower::service_fn(move |request: Request<Body>| {
        if request.method() == Method::PATCH && request.uri().path() == path {
            counts.fetch_add(1, Ordering::SeqCst);
        }
        let to = to.clone();
        async move { to.send(request).await }
    });
    (Client::new(service, client.default_namespace()), count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_machines_that_boot_first_at_once_have_their_config_noted_once() {
    const MACHINES: usize = 200;
    let mut cluster = with_pools().await;
    let path = format!("/api/v1/namespaces/{}/configmaps/tread-joining", cluster.acts.namespace);
    let (counted, count) = counting(&cluster.acts.client, path);
    cluster.acts.client = counted;
    let replica = cluster.replica();
    eventually("infra has a config", async || {
        cluster.api::<Rollout>().get("infra").await.ok()?.status?.target
    })
    .await;
    // Nobody was served before.
    assert_eq!(count.load(Ordering::SeqCst), 0);
    let serve = |replica: &Replica| {
        let joining = replica.joining.clone();
        tokio::spawn(async move { joining.serve("infra", None).await.is_ok() })
    };
    eventually("all are served at once", async || {
        let all = join_all((0..MACHINES).map(|_| serve(&replica))).await;
        all.into_iter().all(|is_served| is_served.unwrap()).then_some(())
    })
    .await;
    let count = count.load(Ordering::SeqCst);
    assert!((1..=2).contains(&count), "{count} patches");
}

#[tokio::test]
async fn pools_say_that_nobody_is_served_while_a_secret_of_joining_is_spoilt() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let claim = claim(&replica, "infra").await;
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let former = token(&secrets, "infra").await;
    let says = async |reason: &str| {
        eventually(&format!("infra says {reason}"), async || {
            let rollout = cluster.api::<Rollout>().get("infra").await.ok()?;
            let mut all = rollout.status?.conditions.into_iter();
            let it = all.find(|it| it.type_ == "Serves" && it.reason == reason)?;
            (it.status == "False").then_some(it.message)
        })
        .await
    };
    let put = async |name: &str, bytes: &[u8]| {
        let data = json!({"data": {"joining.json": ByteString(bytes.to_vec())}});
        secrets.patch(name, &PatchParams::default(), &Patch::Merge(&data)).await.unwrap();
    };
    says("NoBootstrapSecret").await;
    put(TOKENS_SECRET, b"s3cret").await;
    let message = says("TokensUnreadable").await;
    assert!(message.contains(TOKENS_SECRET) && message.contains("remove it"), "{message}");
    assert!(!message.contains("s3cret"), "{message}");
    eventually("nobody is admitted", async || {
        replica.joining.admit("infra", &former).is_none().then_some(())
    })
    .await;
    let keys = secrets.get(KEYS_SECRET).await.unwrap().data.unwrap();
    put(KEYS_SECRET, b"s3cret").await;
    let message = says("KeysUnreadable").await;
    assert!(message.contains(KEYS_SECRET), "{message}");
    // A node that registers meanwhile says what it waits for, and joins once that is mended.
    register(&kubelet(&cluster, "one").await, "one", &claim).await.unwrap();
    let (reason, message) = held(&cluster, "one").await;
    assert_eq!(reason, "KeysUnreadable", "{message}");
    put(KEYS_SECRET, &keys["joining.json"].0).await;
    is_in(&cluster, "one", INFRA).await;
    secrets.delete(TOKENS_SECRET, &Default::default()).await.unwrap();
    says("NoBootstrapSecret").await;
    let new = token(&secrets, "infra").await;
    eventually("only the new token is good", async || {
        let admits = [&new, &former].map(|token| replica.joining.admit("infra", token));
        (admits == [Some(true), Some(false)]).then_some(())
    })
    .await;
}
