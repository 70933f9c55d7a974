//! New versions, good and bad.

use super::support::*;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use kube::runtime::wait::await_condition;
use serde_json::json;
use tread_cluster::policies::snapshot::Room;
use tread_kube::api::DisruptionPolicyStatus;
use tread_kube::api::disruption_policy::State;

#[tokio::test]
async fn a_good_version_takes_over_and_a_bad_one_leaves_the_last_good_one_deciding() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let (name, other) = (four_letters(), four_letters());
    let versions = [policy(&name, 1), policy(&name, 2), policy(&name, 3)];
    let [first, second, third] = &versions;
    put(&client, &namespace, "other", policy(&other, 1)).await;
    put(&client, &namespace, "app", first.clone()).await;
    let object = format!("{namespace}.app");
    until_current(replica, |it| has(it, &other)).await;
    until_current(replica, |it| decides(it, &name, &digest(first))).await;
    let kept = |version: &[u8]| {
        let digest = Some(digest(version));
        move |it: &DisruptionPolicyStatus| it.digest == digest && it.kept_in.is_some()
    };
    let one = until(&client, &object, kept(first)).await;

    put(&client, &namespace, "app", second.clone()).await;
    until_current(replica, |it| decides(it, &name, &digest(second))).await;
    let two = until(&client, &object, kept(second)).await;
    assert_eq!(two.state, Some(State::Loaded));
    // The copy that no status names any more is gone.
    let copies: Api<ConfigMap> = Api::namespaced(client.clone(), OWN);
    let gone = |it: Option<&ConfigMap>| it.is_none();
    let place = one.kept_in.unwrap();
    let wait = await_condition(copies.clone(), &place, gone);
    tokio::time::timeout(LONG, wait).await.unwrap().unwrap();
    assert!(copies.get_opt(two.kept_in.as_ref().unwrap()).await.unwrap().is_some());

    // Bad in one way, and then in another.
    put(&client, &namespace, "app", spoiled(third.clone())).await;
    let status = until_state(&client, &object, State::LastGood).await;
    assert_eq!(status.digest, Some(digest(second)));
    let failure = status.failure.clone().unwrap();
    assert_eq!(failure.name, "not-a-component");
    assert_eq!(failure.digest, Some(digest(&spoiled(third.clone()))));
    let (loaded, reason, message) = condition(&status, "Loaded");
    assert_eq!((loaded.as_str(), reason.as_str()), ("False", "NotAComponent"));
    assert!(message.contains("The version before, 1.0.0, goes on deciding"), "{message}");
    let text = event_text(&client, &format!("{namespace}/app"), "PolicyLastGood").await;
    assert!(text.starts_with("not-a-component: "), "{text}");
    put(&client, &namespace, "app", b"no module".to_vec()).await;
    let failed = Some(digest(b"no module"));
    until(&client, &object, |it| it.failure.as_ref().is_some_and(|it| it.digest == failed)).await;
    // Others come and go in this cluster, and are not settled meanwhile.
    let current =
        until_current(replica, |it| it.settled && decides(it, &name, &digest(second))).await;
    assert!(has(&current, &other), "one bad module never touches another");
    let path = format!("/etc/{name}/reload");
    assert_eq!(cost(&current, &path, "app.service"), "reload app.service");

    // A replica that starts now knows the bad one only, and loads the copy.
    let fresh = self::replica(plane, false, Room::default());
    let found = until_current(&fresh, |it| it.settled && decides(it, &name, &digest(second))).await;
    assert_eq!(cost(&found, &path, "app.service"), "reload app.service");
    drop(fresh);

    put(&client, &namespace, "app", third.clone()).await;
    until_current(replica, |it| decides(it, &name, &digest(third))).await;
    let status = until(&client, &object, kept(third)).await;
    assert_eq!(status.state, Some(State::Loaded));
    assert_eq!(status.failure, None);
}

#[tokio::test]
async fn a_policy_that_was_never_good_costs_reboots_for_what_it_says_that_it_claims() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let name = four_letters();
    let modules = vec![("policy.wasm", policy(&name, 1))];
    let settings = Some("no: such setting");
    let map = Map { namespace: &namespace, name: "app", modules, settings, ..Map::default() };
    map.put(&client).await;
    let object = format!("{namespace}.app");
    let status = until_state(&client, &object, State::Failed).await;
    assert_eq!(condition(&status, "Loaded").1, "InvalidSettings");
    assert_eq!(status.claims_summary, Some(format!("file:/etc/{name}/*")));
    let path = format!("/etc/{name}/none");
    // Known to be bad.
    let current = until_current(replica, |it| it.settled && has(it, &object)).await;
    assert!(cost(&current, &path, "") == "drain, reboot");
    event_text(&client, &format!("{namespace}/app"), "PolicyFailed").await;
}

#[tokio::test]
async fn a_key_that_is_gone_costs_reboots_for_what_it_claimed() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let name = four_letters();
    put(&client, &namespace, "app", policy(&name, 1)).await;
    let object = format!("{namespace}.app");
    until_state(&client, &object, State::Loaded).await;
    Map { namespace: &namespace, name: "app", ..Map::default() }.put(&client).await;
    let status = until_state(&client, &object, State::Failed).await;
    assert_eq!(condition(&status, "Loaded").1, "Missing");
    assert_eq!(status.claims_summary, Some(format!("file:/etc/{name}/*")));
    let path = format!("/etc/{name}/none");
    until_current(replica, |it| cost(it, &path, "") == "drain, reboot").await;

    put(&client, &namespace, "app", policy(&name, 1)).await;
    until_state(&client, &object, State::Loaded).await;
    until_current(replica, |it| decides(it, &name, &digest(&policy(&name, 1)))).await;
}

#[tokio::test]
async fn an_admins_own_object_outlives_its_config_map() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    // Where nobody allowed ConfigMaps to be policies, an admin may name one.
    let namespace = plane.namespace("mine").unwrap();
    let name = four_letters();
    plane
        .apply(&format!(
            "{{apiVersion: tread.dev/v1alpha1, kind: DisruptionPolicy, metadata: {{name: {name}}}, \
             spec: {{layer: admin, source: {{configMap: {{namespace: {namespace}, name: app}}}}}}}}"
        ))
        .unwrap();
    let status = until_state(&client, &name, State::Failed).await;
    assert_eq!(condition(&status, "Loaded").1, "Missing");
    put(&client, &namespace, "app", policy(&name, 1)).await;
    until_state(&client, &name, State::Loaded).await;
    let current = until_current(replica, |it| has(it, &name)).await;
    let path = format!("/etc/{name}/none");
    assert!(cost(&current, &path, "").is_empty());

    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    maps.delete("app", &DeleteParams::default()).await.unwrap();
    until_state(&client, &name, State::Failed).await;
    until_current(replica, |it| cost(it, &path, "") == "drain, reboot").await;
    patch(&client, &name, json!({"mode": "Disabled"})).await;
    until_current(replica, |it| !has(it, &name)).await;
}

#[tokio::test]
async fn a_bad_version_right_behind_a_good_one_never_leaves_nobody() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let name = four_letters();
    put(&client, &namespace, "app", policy(&name, 0)).await;
    let object = format!("{namespace}.app");
    until(&client, &object, |it| it.kept_in.is_some()).await;
    until_current(replica, |it| has(it, &name)).await;
    let mut published = replica.published.clone();
    let always = name.clone();
    let absent = tokio::spawn(async move {
        let _ = published.wait_for(|it| !has(it, &always)).await;
    });
    let path = format!("/etc/{name}/reload");
    for version in 1..=8 {
        put(&client, &namespace, "app", policy(&name, version)).await;
        let bad = [spoiled(policy(&name, version)), vec![version]].concat();
        put(&client, &namespace, "app", bad.clone()).await;
        let bad = Some(digest(&bad));
        let failed = |it: &DisruptionPolicyStatus| {
            it.failure.as_ref().is_some_and(|failure| failure.digest == bad)
        };
        let status = until(&client, &object, failed).await;
        assert_eq!(status.state, Some(State::LastGood), "{version}");
        let good = status.digest.unwrap();
        assert!((0..=version).any(|it| digest(&policy(&name, it)) == good));
        let copies: Api<ConfigMap> = Api::namespaced(client.clone(), OWN);
        let copy = copies.get(&status.kept_in.unwrap()).await.unwrap();
        assert_eq!(digest(&copy.binary_data.unwrap()["policy.wasm"].0), good);
        let current = until_current(replica, |it| decides(it, &name, &good)).await;
        assert_eq!(cost(&current, &path, "app.service"), "reload app.service");
    }
    assert!(!absent.is_finished(), "for a moment it did not decide");
    absent.abort();
}

#[tokio::test]
async fn a_module_whose_claims_are_none_holds_up_no_other_policy() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let (name, other) = (four_letters(), four_letters());
    put(&client, &namespace, "spoilt", claims_nonsense(&name)).await;
    let object = format!("{namespace}.spoilt");
    let status = until_state(&client, &object, State::Failed).await;
    assert_eq!(condition(&status, "Loaded").1, "BadDescription");
    put(&client, &namespace, "other", policy(&other, 1)).await;
    until_current(replica, |it| decides(it, &other, &digest(&policy(&other, 1)))).await;
    put(&client, &namespace, "other", policy(&other, 2)).await;
    until_current(replica, |it| decides(it, &other, &digest(&policy(&other, 2)))).await;
    assert_eq!(status.claims, []);
}
