//! What machines are served, and what becomes of them until their nodes have joined.

use super::{INFRA, claim, claim_with_an_argument, held, is_in, kubelet, register, with_pools};
use crate::rollouts::fixture::{Cluster, Replica};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::Duration;
use tread_enforce::by_hand::admit;
use tread_kube::agents::{Answer, Ask, Asked};
use tread_kube::api::node_update::ConfigName;
use tread_kube::api::{MachineConfigPool, NodeUpdate, Rollout};
use tread_model::joining::{BOOTSTRAP, GAVE_UP};
use tread_test_bed::eventually;

/// The config that the agent of a node is asked for.
async fn adopts(replica: &Replica, node: &str) -> ConfigName {
    eventually("its agent is told", async || {
        let instructions = replica.agents.wait(node, None, None).await.ok()?;
        Some(instructions.config.filter(|_| instructions.adopt)?.name.clone())
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
    let adopted = adopts(&replica, "one").await;
    assert_eq!(adopted, booted, "by its name and its digest");
    // One of its name that registers again may have had others since.
    let api: Api<Node> = cluster.api();
    api.delete("one", &Default::default()).await.unwrap();
    register(&kubelet(&cluster, "one").await, "one", &first).await.unwrap();
    is_in(&cluster, "one", INFRA).await;
    let adopted = adopts(&replica, "one").await;
    assert_ne!(adopted, booted);
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
    let is_reported = async || {
        eventually("it is told of", async || {
            let rollout: Rollout = cluster.api().get("infra").await.ok()?;
            let missing = rollout.status?.missing;
            (missing.len() == 1).then_some(missing)
        })
        .await
    };
    let reported = is_reported().await;
    assert_eq!(reported[0].address, "192.0.2.1");
    assert!(reported[0].fetched.ends_with('Z'), "{reported:?}");
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
    is_reported().await;
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
    let claim = claim_with_an_argument(&cluster, &replica).await;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.acts.namespace);
    let one = kubelet(&cluster, "one").await;
    register(&one, "one", &claim).await.unwrap();
    let (reason, message) = held(&cluster, "one").await;
    assert_eq!(reason, "Prepares", "{message}");
    let ask = |what, number| Ask { operation: format!("{number:032x}"), what, number };
    let instructions = eventually("its agent is told", async || {
        replica.agents.wait("one", None, None).await.ok().filter(|instructions| instructions.joins)
    })
    .await;
    assert!(instructions.adopt && instructions.order.is_none());
    for (what, number) in [(Asked::Write, 7), (Asked::Boot, 8)] {
        let answer = replica.agents.permit("one", None, &ask(what, number)).await;
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
        let answer = replica.agents.permit("one", None, &ask(Asked::Boot, 9)).await;
        matches!(answer, Answer::Refused { why } if why.contains("Lease")).then_some(())
    })
    .await;
    leases.delete("node-one", &Default::default()).await.unwrap();
    let answer = replica.agents.permit("one", None, &ask(Asked::Boot, 9)).await;
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
    let config = &instructions.config.as_ref().unwrap().name;
    says(&config.name, &config.digest).await;
    is_in(&cluster, "one", INFRA).await;
    let answer = replica.agents.permit("one", None, &ask(Asked::Boot, 10)).await;
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

#[tokio::test]
async fn a_pool_whose_selector_leaves_labels_open_says_so_until_it_is_mended() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    claim(&replica, "infra").await;
    cluster.file("60-own", BOOTSTRAP, "users").await;
    assert_eq!(says(&cluster, "ConfigBrings").await.0, "True");
    let pools: Api<MachineConfigPool> = cluster.api();
    let select = async |selector: serde_json::Value| {
        let patch = Patch::Merge(json!({"spec": {"nodeSelector": selector}}));
        pools.patch("infra", &PatchParams::default(), &patch).await.unwrap();
    };
    select(json!({"matchLabels": null, "matchExpressions": [
        {"key": INFRA, "operator": "In", "values": ["", "other"]}]}))
    .await;
    let (status, message) = says(&cluster, "NoLabels").await;
    assert_eq!(status, "False");
    assert!(message.contains("tread pools admit NODE --pool infra"), "{message}");
    // Machines are served all the same.
    replica.joining.serve("infra", None).await.unwrap();
    select(json!({"matchLabels": {INFRA: ""}, "matchExpressions": null})).await;
    assert_eq!(says(&cluster, "ConfigBrings").await.0, "True");
}

#[tokio::test]
async fn a_node_whose_agent_could_not_bring_what_ignition_cannot_says_so_and_is_let_in_by_hand() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    let claim = claim_with_an_argument(&cluster, &replica).await;
    register(&kubelet(&cluster, "one").await, "one", &claim).await.unwrap();
    assert_eq!(held(&cluster, "one").await.0, "Prepares");
    let gave_up = format!("{GAVE_UP}: the image cannot be read");
    let updates: Api<NodeUpdate> = cluster.api();
    let patch = Patch::Merge(json!({"status": {"message": gave_up}}));
    updates.patch_status("one", &PatchParams::default(), &patch).await.unwrap();
    eventually("its condition says why, and the way out", async || {
        let conditions = updates.get("one").await.ok()?.status?.conditions;
        let it = conditions.into_iter().find(|it| it.type_ == "Joined")?;
        let says = [&gave_up, "is not tried again", "tread pools admit one --pool infra"];
        let is_it = it.reason == "Prepares" && says.iter().all(|part| it.message.contains(*part));
        is_it.then_some(())
    })
    .await;
    let node: Node = cluster.api().get("one").await.unwrap();
    assert!(!node.metadata.labels.unwrap().contains_key(INFRA), "it is held");
    let metrics = &cluster.acts.metrics;
    eventually("it is let in", async || admit(&cluster.client, metrics, "one", "infra").await.ok())
        .await;
    is_in(&cluster, "one", INFRA).await;
}
