//! Policies from ConfigMaps.

use super::support::*;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use kube::runtime::wait::await_condition;
use serde_json::json;
use tread_cluster::policies::current::Current;
use tread_kube::api::DisruptionPolicy;
use tread_kube::api::DisruptionPolicyStatus;
use tread_kube::api::disruption_policy::{Layer, State};
use tread_kube::api::words::KEY_ANNOTATION;
use tread_model::packed::DIGEST_ANNOTATION;

#[tokio::test]
async fn a_labelled_config_map_registers_itself_and_goes_with_its_policy() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let name = four_letters();
    put(&client, &namespace, "app", policy(&name, 1)).await;
    let object = format!("{namespace}.app");
    let status = until(&client, &object, |it| it.kept_in.is_some()).await;
    assert_eq!(status.state, Some(State::Loaded));
    assert_eq!(status.layer, Some(Layer::Template));
    assert_eq!(status.source, Some(format!("{namespace}/app")));
    assert_eq!(status.claims_summary, Some(format!("file:/etc/{name}/*")));
    let current = until_current(replica, |it| has(it, &name)).await;
    let path = format!("/etc/{name}/restart");
    assert_eq!(cost(&current, &path, "app.service"), "restart app.service");
    let text = event_text(&client, &format!("{namespace}/app"), "PolicyLoaded").await;
    assert!(text.contains("was loaded and checked"), "{text}");

    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    maps.delete("app", &DeleteParams::default()).await.unwrap();
    until_gone(&client, &object).await;
    let current = until_current(replica, |it| !has(it, &name)).await;
    assert!(cost(&current, &path, "app.service") == "drain, reboot");
    let text = event_text(&client, &object, "PolicyWithdrawn").await;
    assert!(text.contains(&format!("The ConfigMap {namespace}/app, or its label, is gone")));
    // The copy belongs to the object, and goes with it.
    let copies: Api<ConfigMap> = Api::namespaced(client.clone(), OWN);
    let place = status.kept_in.unwrap();
    let gone = await_condition(copies, &place, |it: Option<&ConfigMap>| it.is_none());
    tokio::time::timeout(LONG, gone).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_an_admin_granted_and_is_lost_with_the_config_map_is_told_of() {
    let (plane, _replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let name = four_letters();
    put(&client, &namespace, "app", policy(&name, 1)).await;
    let object = format!("{namespace}.app");
    let first = until_state(&client, &object, State::Loaded).await;
    assert!(!condition(&first, "Approved").2.contains("An admin"));
    patch(&client, &object, json!({"mayRelax": true, "approved": true})).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    maps.delete("app", &DeleteParams::default()).await.unwrap();
    until_gone(&client, &object).await;
    let text = event_text(&client, &object, "PolicyWithdrawn").await;
    let lost = "is lost with it: spec.approved, spec.mayRelax.";
    assert!(text.contains(lost), "{text}");

    put(&client, &namespace, "app", policy(&name, 1)).await;
    let says = |words: &'static str| {
        move |it: &DisruptionPolicyStatus| {
            it.state == Some(State::Loaded) && condition(it, "Approved").2.contains(words)
        }
    };
    until(&client, &object, says("An admin had said spec.approved, spec.mayRelax in")).await;
    patch(&client, &object, json!({"approved": true})).await;
    until(&client, &object, says("An admin had said spec.mayRelax in")).await;
    patch(&client, &object, json!({"mayRelax": true})).await;
    let again = |it: &DisruptionPolicyStatus| !condition(it, "Approved").2.contains("An admin");
    until(&client, &object, again).await;
}

#[tokio::test]
async fn treads_own_namespace_is_always_allowed() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let name = four_letters();
    put(&client, OWN, &name, policy(&name, 1)).await;
    until_state(&client, &format!("{OWN}.{name}"), State::Loaded).await;
    until_current(replica, |it| has(it, &name)).await;
}

#[tokio::test]
async fn a_config_map_elsewhere_is_ignored_and_told_why_until_an_admin_allows_it() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = plane.namespace("other").unwrap();
    let name = four_letters();
    put(&client, &namespace, &name, policy(&name, 1)).await;
    let text = event_text(&client, &format!("{namespace}/{name}"), "NamespaceNotAllowed").await;
    let way = format!("kubectl label namespace {namespace} tread.dev/policies=allowed");
    assert!(text.contains(&way), "{text}");
    let policies: Api<DisruptionPolicy> = Api::all(client.clone());
    assert!(policies.get_opt(&format!("{namespace}.{name}")).await.unwrap().is_none());

    // Once: another write of the ConfigMap brings no other Event.
    put(&client, &namespace, &name, policy(&name, 2)).await;
    let label = ["label", "namespace", &namespace, "tread.dev/policies=allowed"];
    plane.kubectl(&label).unwrap().success().unwrap();
    until_current(replica, |it| decides(it, &name, &digest(&policy(&name, 2)))).await;
    let events: Api<k8s_openapi::api::events::v1::Event> =
        Api::namespaced(client.clone(), &namespace);
    let all = events.list(&ListParams::default().fields("reason=NamespaceNotAllowed")).await;
    let all = all.unwrap().items;
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].series.is_none());

    let label = ["label", "namespace", &namespace, "tread.dev/policies-"];
    plane.kubectl(&label).unwrap().success().unwrap();
    until_gone(&client, &format!("{namespace}.{name}")).await;
    until_current(replica, |it| !has(it, &name)).await;
}

#[tokio::test]
async fn an_annotation_names_the_key_of_the_module() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let (one, other) = (four_letters(), four_letters());
    let modules = vec![("one", policy(&one, 1)), ("other", policy(&other, 1))];
    let map = Map { namespace: &namespace, name: "app", modules, ..Map::default() };
    map.put(&client).await;
    let object = format!("{namespace}.app");
    let status = until_state(&client, &object, State::Failed).await;
    let failure = status.failure.unwrap();
    assert_eq!(failure.name, "missing");
    assert!(failure.message.contains("has the keys one, other"), "{failure:?}");

    Map { annotations: vec![(KEY_ANNOTATION, "other")], ..map.clone() }.put(&client).await;
    until_state(&client, &object, State::Loaded).await;
    until_current(replica, |it| has(it, &other) && !has(it, &one)).await;
    Map { annotations: vec![(KEY_ANNOTATION, "one")], ..map }.put(&client).await;
    until_current(replica, |it| has(it, &one) && !has(it, &other)).await;
}

#[tokio::test]
async fn an_admins_settings_stand_over_those_of_the_config_map() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let modules = vec![("policy.wasm", with_settings())];
    let settings = Some("at_most: 1\nunit: theirs.service\n");
    let map = Map { namespace: &namespace, name: "app", modules, settings, ..Map::default() };
    map.put(&client).await;
    let object = format!("{namespace}.app");
    let theirs = until_state(&client, &object, State::Loaded).await;
    let path = "/etc/settings.d/a";
    let restarts =
        |unit: &'static str| move |it: &Current| cost(it, path, "") == format!("restart {unit}");
    until_current(replica, restarts("theirs.service")).await;

    patch(&client, &object, json!({"settings": {"unit": "admins.service"}})).await;
    until_current(replica, restarts("admins.service")).await;
    let changed = |it: &DisruptionPolicyStatus| {
        it.state == Some(State::Loaded) && it.settings_digest != theirs.settings_digest
    };
    until(&client, &object, changed).await;

    // Bad settings are a bad version: the one before goes on.
    patch(&client, &object, json!({"settings": {"at_most": 0}})).await;
    let status = until_state(&client, &object, State::LastGood).await;
    assert_eq!(condition(&status, "Loaded").1, "InvalidSettings");
    let (_, _, message) = condition(&status, "Loaded");
    assert!(message.starts_with("spec.settings: "), "{message}");
    assert!(message.contains("at_most: expected more than 0"), "{message}");
    assert!(message.contains(". The settings before go on deciding."), "{message}");
    until_current(replica, restarts("admins.service")).await;

    // A value of the ConfigMap that an admin replaced does no harm; others do.
    patch(&client, &object, json!({"settings": {"at_most": 2}})).await;
    until_state(&client, &object, State::Loaded).await;
    let settings = Some("at_most: 0\nunti: theirs.service\n");
    Map { settings, ..map }.put(&client).await;
    let status = until_state(&client, &object, State::LastGood).await;
    let (_, _, message) = condition(&status, "Loaded");
    let whose = "data.settings of the ConfigMap: unti: there is no such setting";
    assert!(message.starts_with(whose), "{message}");
    assert!(!message.contains("at_most: expected"), "{message}");
    assert!(message.contains(" The settings before go on deciding."), "{message}");
}

#[tokio::test]
async fn a_first_version_of_which_no_policy_can_be_made_costs_reboots_for_what_it_claims() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let other = digest(b"other");
    let wrong: &[(&str, &str)] = &[(DIGEST_ANNOTATION, &other)];
    let elsewhere: &[(&str, &str)] = &[(KEY_ANNOTATION, "elsewhere.wasm")];
    for (settings, annotations, modules, reason) in [
        (Some("strict: [true"), &[][..], 1, "InvalidSettings"),
        (Some("[1]"), &[], 1, "InvalidSettings"),
        (Some("a: 1\n---\nb: 2\n"), &[], 1, "InvalidSettings"),
        (Some("a: 1\na: 2\n"), &[], 1, "InvalidSettings"),
        (None, wrong, 1, "DigestMismatch"),
        (None, elsewhere, 1, "Missing"),
        (None, &[], 2, "Missing"),
    ] {
        let name = four_letters();
        let paths: Vec<String> = (0..modules).map(|_| four_letters()).collect();
        let keys: Vec<String> = paths.iter().map(|path| format!("{path}.wasm")).collect();
        let modules = keys.iter().zip(&paths).map(|(key, path)| (key.as_str(), policy(path, 1)));
        let (modules, annotations) = (modules.collect(), annotations.to_vec());
        let map = Map { namespace: &namespace, name: &name, modules, settings, annotations };
        map.put(&client).await;
        let object = format!("{namespace}.{name}");
        let status = until_state(&client, &object, State::Failed).await;
        let (_, found, message) = condition(&status, "Loaded");
        assert_eq!(found, reason, "{message}");
        assert!(message.contains("every change that it claims costs a reboot"), "{message}");
        let claims: Vec<&str> = status.claims.iter().map(|it| it.changes.as_str()).collect();
        let expected: Vec<String> = paths.iter().map(|it| format!("file:/etc/{it}/*")).collect();
        assert_eq!(claims, expected);
        let current = until_current(replica, |it| has(it, &object)).await;
        for path in &paths {
            // What would be nothing if it could decide.
            assert_eq!(cost(&current, &format!("/etc/{path}/none"), ""), "drain, reboot");
        }
    }
}

#[tokio::test]
async fn settings_that_are_only_a_comment_are_none() {
    let (plane, _replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let modules = vec![("policy.wasm", policy(&four_letters(), 1))];
    let settings = Some("# drain: never\n");
    let map = Map { namespace: &namespace, name: "app", modules, settings, ..Map::default() };
    map.put(&client).await;
    until_state(&client, &format!("{namespace}.app"), State::Loaded).await;
}

#[tokio::test]
async fn a_module_whose_digest_is_not_the_noted_one_does_not_take_over() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let name = four_letters();
    let [first, second] = [policy(&name, 1), policy(&name, 2)];
    let noted = digest(&first);
    let map = |module: &Vec<u8>, annotations| {
        Map {
            namespace: &namespace,
            name: "app",
            modules: vec![("policy.wasm", module.clone())],
            annotations,
            ..Map::default()
        }
        .object()
    };
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let put = async |map: ConfigMap| {
        let params = kube::api::PatchParams::apply("test").force();
        maps.patch("app", &params, &kube::api::Patch::Apply(&map)).await.unwrap();
    };
    let object = format!("{namespace}.app");
    put(map(&first, vec![(DIGEST_ANNOTATION, &noted)])).await;
    until(&client, &object, |it| it.kept_in.is_some()).await;
    put(map(&second, vec![(DIGEST_ANNOTATION, &noted)])).await;
    let status = until_state(&client, &object, State::LastGood).await;
    let (_, reason, message) = condition(&status, "Loaded");
    assert_eq!(reason, "DigestMismatch");
    assert!(message.contains(&digest(&second)), "{message}");
    assert!(message.contains("pack the module again, or remove the annotation"), "{message}");
    until_current(replica, |it| decides(it, &name, &digest(&first))).await;
    put(map(&second, Vec::new())).await;
    until_current(replica, |it| decides(it, &name, &digest(&second))).await;
}
