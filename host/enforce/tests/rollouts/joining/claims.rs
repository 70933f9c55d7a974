//! Who joins which pool by its claim, and who is held.

use super::{
    INFRA, Witness, claim, held, hold_back, is_in, kubelet, let_through, register, register_all,
    with_pools,
};
use crate::rollouts::agent::well;
use crate::rollouts::fixture::Cluster;
use k8s_openapi::api::core::v1::{Node, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;
use tread_kube::api::{MachineConfigPool, NodeUpdate, Rollout};
use tread_model::joining::{Claim, Id, KEYS_SECRET, Key, Mark, TAINT, TOKENS_SECRET as TOKENS};
use tread_test_bed::eventually;

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

async fn keys(cluster: &Cluster) -> Vec<Key> {
    let api: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let secret = api.get(KEYS_SECRET).await.unwrap();
    serde_json::from_slice(&secret.data.unwrap()["joining.json"].0).unwrap()
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

async fn token_of_infra(api: &Api<Secret>) -> Option<String> {
    let data = api.get_opt(TOKENS).await.ok()??.data?;
    let tokens: Value = serde_json::from_slice(&data["joining.json"].0).ok()?;
    tokens["infra"]["newest"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn a_machine_with_a_right_token_is_told_to_ask_again_while_its_pool_is_not_known() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    claim(&replica, "infra").await;
    let api: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let known = eventually("infra has a token", async || token_of_infra(&api).await).await;
    let is_told = async |answer: Option<bool>| {
        eventually(&format!("it is told {answer:?}"), async || {
            (replica.joining.admit("infra", &known) == answer).then_some(())
        })
        .await;
    };
    is_told(Some(true)).await;
    let pools: Api<MachineConfigPool> = cluster.api();
    pools.delete("infra", &Default::default()).await.unwrap();
    // It is gone: others are there.
    is_told(Some(false)).await;
    // So it looks while the API server does not know the kind.
    pools.delete("worker", &Default::default()).await.unwrap();
    is_told(None).await;
    for (pool, shown) in [("infra", "another"), ("infra", ""), ("none", known.as_str())] {
        assert_eq!(replica.joining.admit(pool, shown), Some(false), "{pool} {shown}");
    }
    assert_eq!(token_of_infra(&api).await, Some(known), "it is kept");
}
