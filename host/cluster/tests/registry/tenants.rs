//! Those who share a cluster: what one writes holds up no other, and drives
//! nobody's terminal.

use super::support::*;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, ObjectMeta};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tread_cluster::policies::snapshot::Room;
use tread_kube::api::disruption_policy::State;
use tread_kube::api::words::{KEY_ANNOTATION, LAST_GOOD_LABEL, LOST_ANNOTATION, POLICY_LABEL};
use tread_kube::api::{DisruptionPolicy, DisruptionPolicyStatus, crds};
use tread_model::text::is_unfit;
use tread_test_bed::{ControlPlane, eventually};

async fn events_for(client: &Client, namespace: &str, reason: &str) -> Vec<Event> {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    events.list(&ListParams::default().fields(&format!("reason={reason}"))).await.unwrap().items
}

#[tokio::test]
async fn very_many_config_maps_without_permission_delay_nobody_and_are_told_of_once() {
    const MANY: usize = 3000;
    let plane = &ready(ControlPlane::options().with_audit_log());
    let client = plane.client().await.unwrap();
    let (elsewhere, namespace) = (plane.namespace("elsewhere").unwrap(), allowed(plane));
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &elsewhere);
    stream::iter(0..MANY)
        .for_each_concurrent(16, async |number| {
            let metadata = ObjectMeta {
                name: Some(format!("m{number}")),
                labels: Some([(POLICY_LABEL.to_owned(), "true".to_owned())].into()),
                ..ObjectMeta::default()
            };
            let map = ConfigMap { metadata, ..ConfigMap::default() };
            maps.create(&PostParams::default(), &map).await.unwrap();
        })
        .await;
    for version in [1, 2] {
        // Each is a new leader, that knows nothing of what was told.
        let leader = replica(plane, true, Room::default());
        put(&client, &namespace, "good", policy("good", version)).await;
        let of = Some(digest(&policy("good", version)));
        until(&client, &format!("{namespace}.good"), |it| it.digest == of).await;
        eventually("it is told", async || {
            (!events_for(&client, &elsewhere, "NamespaceNotAllowed").await.is_empty()).then_some(())
        })
        .await;
        // What comes last in a round was written.
        put(&client, &namespace, "last", spoiled(policy("last", version))).await;
        event_text(&client, &format!("{namespace}/last"), "PolicyFailed").await;
        let all = events_for(&client, &elsewhere, "NamespaceNotAllowed").await;
        let [event] = all.as_slice() else { panic!("{all:#?}") };
        let note = event.note.clone().unwrap();
        assert!(note.contains(&format!("{} more ConfigMaps here", MANY - 1)), "{note}");
        drop(leader);
    }
    // What they could delay others by: none of them costs a request of its own.
    let log = std::fs::read_to_string(plane.audit_log()).unwrap();
    let done = log.lines().filter(|line| line.contains("\"stage\":\"ResponseComplete\""));
    let asked = |line: &&str| {
        let about = |what: &str| line.contains(&format!("\"{what}\""));
        // Those of this test itself.
        let creates = about("verb\":\"create") && about("resource\":\"configmaps");
        let looks = about("verb\":\"list") && about("resource\":\"events");
        !creates && !looks && line.contains(&format!("\"namespace\":\"{elsewhere}\""))
    };
    let asked: Vec<&str> = done.filter(asked).collect();
    assert!(asked.len() <= 60, "{} requests: {:#?}", asked.len(), asked.last());
}

/// The resource version of each policy.
async fn versions(client: &Client) -> BTreeMap<String, String> {
    let all: Api<DisruptionPolicy> = Api::all(client.clone());
    let all = all.list_metadata(&ListParams::default()).await.unwrap().items;
    all.into_iter().map(|it| (it.name_any(), it.resource_version().unwrap())).collect()
}

#[tokio::test]
async fn what_an_older_definition_drops_is_told_and_not_written_again_and_again() {
    let plane = &ready(ControlPlane::options().maybe_used());
    let client = plane.client().await.unwrap();
    let mut old = crds::own().remove(0);
    assert!(old.metadata.name.as_deref().unwrap().starts_with("disruptionpolicies"));
    let mut value = serde_json::to_value(&old).unwrap();
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let fields = value.pointer_mut(fields).unwrap().as_object_mut().unwrap();
    for dropped in ["newestDigest", "claims", "lastChange", "settingsDigest", "failure"] {
        assert!(fields.remove(dropped).is_some(), "{dropped}");
    }
    old = serde_json::from_value(value).unwrap();
    plane.apply(&serde_saphyr::to_string(&old).unwrap()).unwrap();
    let namespace = allowed(plane);
    let probe = "probe";
    eventually("the API server takes the definition up", async || {
        let api: Api<DynamicObject> =
            Api::all_with(client.clone(), &ApiResource::erase::<DisruptionPolicy>(&()));
        let object = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPolicy",
            "metadata": {"name": probe}, "spec": {"rules": [{"match": ["file:/a"], "actions": []}]}});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let _ = api.create(&PostParams::default(), &object).await;
        let status = json!({"status": {"state": "Loaded", "newestDigest": "a"}});
        let params = PatchParams::default();
        let kept = api.patch_status(probe, &params, &Patch::Merge(&status)).await.ok()?;
        kept.data["status"]["newestDigest"].is_null().then_some(())
    })
    .await;

    let leader = replica(plane, true, Room::default());
    put(&client, &namespace, "good", policy("good", 1)).await;
    put(&client, &namespace, "bad", spoiled(policy("bad1", 1))).await;
    until_state(&client, &format!("{namespace}.good"), State::Loaded).await;
    until_state(&client, &format!("{namespace}.bad"), State::Failed).await;
    let rest = async {
        loop {
            let before = versions(&client).await;
            // Endless writes come several times a second.
            tokio::time::sleep(Duration::from_secs(3)).await;
            if versions(&client).await == before {
                break;
            }
        }
    };
    tokio::time::timeout(LONG, rest).await.expect("it writes the same again and again");
    let [said] = leader.watches.outdated().try_into().unwrap();
    assert!(
        said.contains("the definition of disruptionpolicies is older than this tread"),
        "{said}"
    );
    assert!(said.contains("status.newestDigest") || said.contains("more"), "{said}");
}

#[tokio::test]
async fn a_copy_that_no_status_names_is_swept_away_by_whoever_leads_next() {
    let plane = &ready(ControlPlane::options().maybe_used());
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let before = replica(plane, true, Room::default());
    put(&client, &namespace, "good", policy("good", 1)).await;
    let object = format!("{namespace}.good");
    let status = until(&client, &object, |it| it.kept_in.is_some()).await;
    drop(before);
    // As a leader leaves it that is killed after it wrote it.
    let copies: Api<ConfigMap> = Api::namespaced(client.clone(), OWN);
    let place = status.kept_in.unwrap();
    let mut left = copies.get(&place).await.unwrap();
    let uid = left.metadata.labels.as_ref().unwrap()[LAST_GOOD_LABEL].clone();
    left.metadata = ObjectMeta {
        name: Some(format!("tread-last-good-{uid}-0123456789ab")),
        labels: Some([(LAST_GOOD_LABEL.to_owned(), uid)].into()),
        ..ObjectMeta::default()
    };
    let left = copies.create(&PostParams::default(), &left).await.unwrap().name_any();
    // Nobody else's.
    let theirs = ConfigMap {
        metadata: ObjectMeta { name: Some("theirs".to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    copies.create(&PostParams::default(), &theirs).await.unwrap();

    let _next = replica(plane, true, Room::default());
    let gone = await_condition(copies.clone(), &left, |it: Option<&ConfigMap>| it.is_none());
    tokio::time::timeout(LONG, gone).await.expect("it stays").unwrap();
    assert!(copies.get_opt(&place).await.unwrap().is_some(), "the one that is named stays");
    assert!(copies.get_opt("theirs").await.unwrap().is_some());
    until(&client, &object, |it| it.kept_in.as_ref() == Some(&place)).await;
}

/// Colours, a title, a line of its own, text that is turned round and hidden.
const ODD: &str = "x\u{1b}[31mred\u{1b}]0;title\u{7}\nforged: line\u{202e}turned\u{200b}\u{9b}2J";

#[tokio::test]
async fn nothing_that_anybody_writes_drives_a_terminal() {
    let plane = &ready(ControlPlane::options().maybe_used());
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let leader = replica(plane, true, Room::default());
    let map = |name| Map {
        namespace: &namespace,
        name,
        modules: vec![("policy.wasm", policy("good", 1))],
        ..Map::default()
    };
    let odd_yaml = serde_json::to_string(&json!({ODD: ODD, "at_most": ODD})).unwrap();
    let raw = format!("at_most: {ODD}");
    let modules = || vec![("policy.wasm", with_settings())];
    let mut names = Vec::new();
    for (name, map) in [
        ("key", Map { annotations: vec![(KEY_ANNOTATION, ODD)], ..map("key") }),
        ("notes", Map { annotations: vec![("example.com/note", ODD)], ..map("notes") }),
        ("settings", Map { modules: modules(), settings: Some(&odd_yaml), ..map("settings") }),
        ("raw", Map { modules: modules(), settings: Some(&raw), ..map("raw") }),
        ("text", Map { settings: Some(ODD), ..map("text") }),
        ("module", Map { modules: vec![("a", ODD.as_bytes().to_vec())], ..map("module") }),
        ("spec", Map { modules: modules(), ..map("spec") }),
        ("pinned", map("pinned")),
    ] {
        // As JSON: what is applied is read as YAML, which takes less.
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        maps.create(&PostParams::default(), &map.object()).await.unwrap();
        names.push(format!("{namespace}.{name}"));
    }
    for name in &names {
        until(&client, name, |it| it.state.is_some_and(|state| state != State::Loading)).await;
    }
    patch(&client, &names[6], json!({"settings": {ODD: ODD, "unit": ODD}})).await;
    until(&client, &names[6], |it| it.failure.is_some()).await;
    // What the API server itself refuses needs no cleaning.
    let api: Api<DisruptionPolicy> = Api::all(client.clone());
    for refused in [json!({"digest": ODD}), json!({"layer": ODD}), json!({"mode": ODD})] {
        let spec = json!({ "spec": refused });
        let params = PatchParams::default();
        assert!(api.patch(&names[7], &params, &Patch::Merge(&spec)).await.is_err(), "{spec}");
    }
    let claims = format!("tread.dev/claims=file:/{ODD}");
    let args = ["annotate", "namespace", &namespace, "--overwrite", &claims];
    plane.kubectl(&args).unwrap().success().unwrap();
    until(&client, &names[7], |it| it.state == Some(State::NeedsApproval)).await;
    // What tread itself writes there anybody may write who may write policies.
    let lost = json!({"metadata": {"annotations": {LOST_ANNOTATION: ODD}}});
    api.patch(&names[1], &PatchParams::default(), &Patch::Merge(&lost)).await.unwrap();
    let says = |it: &DisruptionPolicyStatus| {
        let mut approved = it.conditions.iter().filter(|it| it.type_ == "Approved");
        approved.any(|it| it.message.contains("spec.x"))
    };
    until(&client, &names[1], says).await;
    let rules = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPolicy",
        "metadata": {"name": "rules", "annotations": {"note": ODD}},
        "spec": {"rules": [{"match": [format!("file:/{ODD}")], "reason": ODD, "actions": []}]}});
    let rules: DynamicObject = serde_json::from_value(rules).unwrap();
    let kind = ApiResource::erase::<DisruptionPolicy>(&());
    let policies: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    policies.create(&PostParams::default(), &rules).await.unwrap();
    until(&client, "rules", |it| it.failure.is_some()).await;
    // Events come after the status that they tell of.
    let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
    eventually("each owner is told", async || {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let about = |name: &str| {
            let of = |it: &Event| it.regarding.as_ref().and_then(|it| it.name.clone());
            all.iter().any(|it| of(it).is_some_and(|it| format!("{namespace}.{it}") == name))
        };
        names.iter().all(|name| about(name)).then_some(())
    })
    .await;

    let mut texts = Vec::new();
    for object in policies.list(&ListParams::default()).await.unwrap() {
        all_texts(&object.data["status"], &mut texts);
    }
    // What else shows them: metrics, and the columns of kubectl.
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    texts.extend(lines(leader.metrics.text().unwrap()));
    let columns = plane.kubectl(&["get", "dpol", "-o", "wide"]).unwrap().success().unwrap();
    texts.extend(lines(columns));
    let events: Api<Event> = Api::all(client.clone());
    for event in events.list(&ListParams::default()).await.unwrap() {
        texts.extend(event.note);
    }
    let about = |word: &str| texts.iter().any(|text| text.contains(word));
    assert!(about("forged: line") && about("red"), "it is repeated: {texts:#?}");
    let odd: Vec<&String> = texts.iter().filter(|it| it.chars().any(is_unfit)).collect();
    assert!(odd.is_empty(), "{odd:#?}");
}

fn all_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|it| all_texts(it, texts)),
        Value::Object(all) => all.iter().for_each(|(name, it)| {
            texts.push(name.clone());
            all_texts(it, texts);
        }),
        _ => {}
    }
}
