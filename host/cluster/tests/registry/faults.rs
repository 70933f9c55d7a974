//! What goes wrong around the registry: each on a control plane of its own.

use super::support::*;
use http::Request;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;
use tread_cluster::policies::current::Current;
use tread_cluster::policies::snapshot::Room;
use tread_engine::sandbox::{Options, Sandbox};
use tread_kube::api::crds;
use tread_kube::api::disruption_policy::State;
use tread_kube::api::words::{LAST_GOOD_LABEL, POLICY_LABEL};
use tread_kube::watching::Watched;
use tread_test_bed::{ControlPlane, Part, answered};

/// The requests that were made in the meantime, watches and leases aside.
fn requests(plane: &ControlPlane) -> BTreeMap<String, usize> {
    let log = fs::read_to_string(plane.audit_log()).unwrap();
    let mut all = BTreeMap::new();
    for event in log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let user = event["user"]["username"].as_str().unwrap_or_default();
        let verb = event["verb"].as_str().unwrap_or_default();
        if !user.starts_with("system:") && verb != "watch" {
            *all.entry(format!("{verb} {}", event["requestURI"])).or_default() += 1;
        }
    }
    all
}

#[tokio::test]
async fn at_rest_nothing_is_asked_and_what_changes_while_the_api_server_is_away_is_not_lost() {
    let plane = &ready(ControlPlane::options().with_audit_log());
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let replica = replica(plane, true, Room::default());
    put(&client, &namespace, "one", policy("one1", 1)).await;
    put(&client, &namespace, "two", policy("two1", 1)).await;
    put(&client, &namespace, "bad", spoiled(policy("bad1", 1))).await;
    for object in ["one", "two"] {
        until(&client, &format!("{namespace}.{object}"), |it| it.kept_in.is_some()).await;
    }
    until_state(&client, &format!("{namespace}.bad"), State::Failed).await;
    until_state(&client, "registries", State::Loaded).await;
    until_current(&replica, |it| it.settled && has(it, "one1") && has(it, "two1")).await;
    event_text(&client, &format!("{namespace}/bad"), "PolicyFailed").await;

    // It comes to rest, and stays there.
    let mut before = requests(plane);
    let rest = async {
        loop {
            tokio::time::sleep(Duration::from_secs(3)).await;
            let after = requests(plane);
            if after == before {
                break;
            }
            before = after;
        }
    };
    tokio::time::timeout(LONG, rest).await.unwrap_or_else(|_| panic!("{:#?}", requests(plane)));

    plane.kill(Part::ApiServer).unwrap();
    let mut watches = replica.watches.subscribe();
    let noticed = watches.wait_for(|all| all.values().any(|it| it.error.is_some()));
    tokio::time::timeout(LONG, noticed).await.unwrap().unwrap();
    assert!(has(&replica.published.borrow(), "one1"), "what decided goes on");
    // Where the watches were is not known any more when it comes back.
    plane.compact().unwrap();
    plane.restart(Part::ApiServer).unwrap();
    let client = plane.client().await.unwrap();
    put(&client, &namespace, "one", policy("one1", 2)).await;
    put(&client, &namespace, "two", spoiled(policy("two1", 2))).await;
    put(&client, &namespace, "bad", policy("bad1", 1)).await;
    until_current(&replica, |it| {
        decides(it, "one1", &digest(&policy("one1", 2)))
            && decides(it, "two1", &digest(&policy("two1", 1)))
            && decides(it, "bad1", &digest(&policy("bad1", 1)))
    })
    .await;
    until_state(&client, &format!("{namespace}.two"), State::LastGood).await;
    until_state(&client, &format!("{namespace}.bad"), State::Loaded).await;
    let second = Some(digest(&policy("one1", 2)));
    until(&client, &format!("{namespace}.one"), |it| it.digest == second).await;
}

#[tokio::test]
async fn modules_beyond_the_room_cost_reboots_and_who_came_first_stays() {
    let plane = &ready(ControlPlane::options().maybe_used());
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let bytes = policy("one1", 1).len() * 2 + 100;
    let room = Room { bytes, registered_of_namespace: 3, ..Room::default() };
    let replica = replica(plane, true, room);
    for name in ["one1", "two1"] {
        put(&client, &namespace, name, policy(name, 1)).await;
        until_state(&client, &format!("{namespace}.{name}"), State::Loaded).await;
    }
    // Times of creation are seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    put(&client, &namespace, "aaa1", policy("aaa1", 1)).await;
    let object = format!("{namespace}.aaa1");
    let status = until_state(&client, &object, State::Failed).await;
    let (_, reason, message) = condition(&status, "Loaded");
    assert_eq!(reason, "TooLarge");
    assert!(message.contains(&format!("together may have {bytes} bytes")), "{message}");
    event_text(&client, &format!("{namespace}/aaa1"), "PolicyFailed").await;
    let current = until_current(&replica, |it| has(it, &object)).await;
    assert_eq!(cost(&current, "/etc/aaa1/none", ""), "drain, reboot");
    assert_eq!(cost(&current, "/etc/one1/none", ""), "");

    // A namespace has room for so many.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    put(&client, &namespace, "aaa2", policy("aaa2", 1)).await;
    let text = event_text(&client, &format!("{namespace}/aaa2"), "TooManyPolicies").await;
    assert!(text.contains("has 3 policies already"), "{text}");

    let gone = ["-n", &namespace, "delete", "configmap", "one1"];
    plane.kubectl(&gone).unwrap().success().unwrap();
    until_state(&client, &object, State::Loaded).await;
    until_state(&client, &format!("{namespace}.aaa2"), State::Failed).await;
    until_current(&replica, |it| cost(it, "/etc/aaa1/none", "").is_empty()).await;
}

#[tokio::test]
async fn an_object_that_cannot_be_read_names_its_field_and_the_others_go_on() {
    let plane = &ready(ControlPlane::options().maybe_used());
    let client = plane.client().await.unwrap();
    let rules = |name: &str, mode: &str, path: &str| {
        format!(
            "{{apiVersion: tread.dev/v1alpha1, kind: DisruptionPolicy, metadata: {{name: {name}}}, \
             spec: {{mode: {mode}, rules: [{{match: ['file:{path}'], actions: []}}]}}}}"
        )
    };
    let replica = replica(plane, true, Room::default());
    plane.apply(&rules("wrong", "Enforce", "/etc/wrong")).unwrap();
    until_state(&client, "wrong", State::Loaded).await;
    until_current(&replica, |it| it.settled && cost(it, "/etc/wrong", "").is_empty()).await;

    // As if an old definition had let it in.
    let all = crds::crds();
    let strict = all.iter().find(|crd| crd.spec.names.kind == "DisruptionPolicy").unwrap();
    let mut loose = serde_json::to_value(strict).unwrap();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = schema;
    loose["spec"]["versions"][0]["selectableFields"] = Value::Null;
    plane.apply(&loose.to_string()).unwrap();
    let wrong = rules("wrong", "Sometimes", "/etc/wrong");
    let taken = tokio::time::timeout(LONG, async {
        while plane.apply(&wrong).is_err() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    taken.await.unwrap();
    plane.apply(&rules("right", "Enforce", "/etc/right")).unwrap();
    let strict = serde_json::to_string(strict).unwrap();
    plane.apply(&strict).unwrap();

    let status = until_state(&client, "wrong", State::Invalid).await;
    let (loaded, _, message) = condition(&status, "Loaded");
    assert_eq!(loaded, "False");
    assert!(message.contains("spec.mode cannot be read: unknown variant `Sometimes`"), "{message}");
    until_state(&client, "right", State::Loaded).await;
    let right = |it: &_| cost(it, "/etc/right", "").is_empty();
    let current = until_current(&replica, |it| it.settled && right(it)).await;
    // What it claimed before is not left to others.
    assert_eq!(cost(&current, "/etc/wrong", ""), "drain, reboot");

    plane.apply(&rules("wrong", "Enforce", "/etc/wrong")).unwrap();
    until_state(&client, "wrong", State::Loaded).await;
    until_current(&replica, |it| cost(it, "/etc/wrong", "").is_empty()).await;
}

#[tokio::test]
async fn only_the_leader_writes_and_every_replica_decides() {
    let plane = &ready(ControlPlane::options().with_audit_log());
    let client = plane.client().await.unwrap();
    let follower = replica(plane, false, Room::default());
    let namespace = allowed(plane);
    put(&client, &namespace, "app", policy("one1", 1)).await;
    let mut watches = follower.watches.subscribe();
    let synced = |all: &BTreeMap<_, Watched>| all.len() == 8 && all.values().all(|it| it.synced);
    tokio::time::timeout(LONG, watches.wait_for(synced)).await.unwrap().unwrap();
    assert!(!follower.published.borrow().settled, "nobody listed what comes with tread");
    let wrote = || {
        let all = requests(plane);
        let writes = ["create", "patch", "update", "delete"];
        let places = ["/apis/tread.dev/", "/events", &format!("/namespaces/{OWN}/configmaps")];
        all.keys()
            .filter(|line| writes.iter().any(|verb| line.starts_with(verb)))
            .filter(|line| places.iter().any(|place| line.contains(place)))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(wrote(), Vec::<String>::new());
    follower.leads.send(true).unwrap();
    until(&client, &format!("{namespace}.app"), |it| it.kept_in.is_some()).await;
    until_current(&follower, |it| it.settled && has(it, "one1")).await;
    assert!(!wrote().is_empty());

    let other = replica(plane, false, Room::default());
    let (one, two) = (
        until_current(&follower, |it| it.settled && has(it, "one1")).await,
        until_current(&other, |it| it.settled && has(it, "one1")).await,
    );
    assert_eq!(one.digest, two.digest);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_map_that_is_written_all_the_time_is_loaded_and_holds_up_nobody() {
    let plane = &ready(ControlPlane::options().maybe_used());
    let client = plane.client().await.unwrap();
    let leader = replica(plane, true, Room::default());
    let namespace = allowed(plane);
    put(&client, &namespace, "busy", policy("busy", 1)).await;
    until(&client, &format!("{namespace}.busy"), |it| it.kept_in.is_some()).await;
    until_current(&leader, |it| it.settled && has(it, "busy")).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let writing = |writer: u64| {
        let maps = maps.clone();
        tokio::spawn(async move {
            for number in writer * 1_000_000.. {
                let busy = json!({"metadata": {"annotations": {"busy": number.to_string()}}});
                let (params, busy) = (PatchParams::default(), Patch::Merge(&busy));
                answered(|| maps.patch("busy", &params, &busy)).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
    };
    let writers = [writing(0), writing(1)];

    // One that starts now compiles everything itself, which takes longer than
    // there is between two writes.
    let fresh =
        replica_with(plane, false, Room::default(), Sandbox::new(Options::default()).unwrap());
    until_current(&fresh, |it| it.settled && has(it, "busy")).await;
    // And what an admin says takes effect.
    let reads = |it: &Current| it.policies.policies().iter().any(|it| it.read_secrets);
    let object = format!("{namespace}.busy");
    patch(&client, &object, json!({"readSecrets": true})).await;
    until_current(&fresh, reads).await;
    patch(&client, &object, json!({"readSecrets": false})).await;
    until_current(&fresh, |it| !reads(it)).await;
    for writer in writers {
        assert!(!writer.is_finished());
        writer.abort();
    }
}

#[tokio::test]
async fn a_config_map_whose_settings_change_all_the_time_leaves_two_copies_at_most() {
    let plane = &ready(ControlPlane::options().maybe_used());
    let client = plane.client().await.unwrap();
    let leader = replica(plane, true, Room::default());
    let namespace = allowed(plane);
    let module = with_settings();
    let settings = |number: u32| format!("at_most: {number}\nunit: a.service\n");
    let put = async |number: u32| {
        let (modules, settings) = (vec![("policy.wasm", module.clone())], settings(number));
        let map = Map { namespace: &namespace, name: "app", modules, ..Map::default() };
        Map { settings: Some(&settings), ..map }.put(&client).await;
    };
    put(1).await;
    let object = format!("{namespace}.app");
    let first = until(&client, &object, |it| it.kept_in.is_some()).await;
    until_current(&leader, |it| it.settled).await;
    let copies: Api<ConfigMap> = Api::namespaced(client.clone(), OWN);
    let of_it = ListParams::default().labels(LAST_GOOD_LABEL);
    for number in 2..150 {
        put(number).await;
        let there = copies.list_metadata(&of_it).await.unwrap().items.len();
        assert!(there <= 2, "{there} copies after {number} versions");
    }
    // The last one is told of, and kept alone.
    until(&client, &object, |it| {
        it.settings_digest != first.settings_digest && it.kept_in != first.kept_in
    })
    .await;
    let alone = async {
        while copies.list_metadata(&of_it).await.unwrap().items.len() > 1 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(LONG, alone).await.unwrap();
}

#[tokio::test]
async fn who_is_pushed_out_of_the_room_by_one_that_grew_costs_reboots() {
    let plane = &ready(ControlPlane::options().maybe_used());
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let bytes = policy("one1", 1).len() * 2 + 100;
    let replica = replica(plane, true, Room { bytes, ..Room::default() });
    put(&client, &namespace, "one", policy("one1", 1)).await;
    until(&client, &format!("{namespace}.one"), |it| it.kept_in.is_some()).await;
    // Times of creation are seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    put(&client, &namespace, "two", policy("two1", 1)).await;
    let object = format!("{namespace}.two");
    let before = until(&client, &object, |it| it.kept_in.is_some()).await;
    until_current(&replica, |it| it.settled && cost(it, "/etc/two1/none", "").is_empty()).await;

    // A section that nobody reads.
    let grown = [policy("one1", 1), vec![0, 122, 1, b'g'], vec![0; 120]].concat();
    put(&client, &namespace, "one", grown.clone()).await;
    let status = until_state(&client, &object, State::Failed).await;
    let (_, reason, message) = condition(&status, "Loaded");
    assert_eq!(reason, "TooLarge");
    assert!(message.contains("every change that it claims costs a reboot"), "{message}");
    assert_eq!(status.kept_in, before.kept_in);
    let pushed_out = |it: &Current| {
        decides(it, "one1", &digest(&grown)) && cost(it, "/etc/two1/none", "") == "drain, reboot"
    };
    until_current(&replica, pushed_out).await;
    put(&client, &namespace, "one", policy("one1", 2)).await;
    until_state(&client, &object, State::Loaded).await;
    until_current(&replica, |it| cost(it, "/etc/two1/none", "").is_empty()).await;
}

#[tokio::test]
async fn who_wrote_a_config_map_is_not_read_however_deep_it_is() {
    let plane = &ready(ControlPlane::options().maybe_used());
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let elsewhere = plane.namespace("elsewhere").unwrap();
    // Whoever may write ConfigMaps somewhere may write this.
    let deep = format!("{}{{}}{}", "{\"f:data\":".repeat(300), "}".repeat(300));
    let map = |namespace: &str, name: &str| {
        let text = format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {{\"name\": \"{name}\", \
             \"namespace\": \"{namespace}\", \"labels\": {{\"{POLICY_LABEL}\": \"true\"}}, \
             \"managedFields\": [{{\"manager\": \"m\", \"operation\": \"Update\", \"apiVersion\": \"v1\", \
             \"time\": \"2026-01-01T00:00:00Z\", \"fieldsType\": \"FieldsV1\", \"fieldsV1\": {deep}}}]}}}}"
        );
        Request::post(format!("/api/v1/namespaces/{namespace}/configmaps"))
            .header("content-type", "application/json")
            .body(text.into_bytes())
            .unwrap()
    };
    for (namespace, name) in [(&elsewhere, "evil"), (&namespace, "app")] {
        let written = client.request_text(map(namespace, name)).await.unwrap();
        assert!(written.contains(&"{\"f:data\":".repeat(130)), "{written}");
    }
    let replica = replica(plane, true, Room::default());
    until_current(&replica, |it| it.settled).await;
    // It can be a policy like any other.
    let module = json!({"binaryData": {"policy.wasm": ByteString(policy("deep", 1))}});
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let patch = Patch::Merge(&module);
    let patched = maps.patch_metadata("app", &PatchParams::default(), &patch).await;
    // The answer is what no client reads.
    drop(patched);
    until_current(&replica, |it| it.settled && has(it, "deep")).await;
    until_state(&client, &format!("{namespace}.app"), State::Loaded).await;
}
