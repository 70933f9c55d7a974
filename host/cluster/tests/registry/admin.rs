//! What an admin says of a policy.

use super::support::*;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use tread_cluster::policies::current::Current;
use tread_cluster::policies::snapshot::Room;
use tread_kube::api::disruption_policy::{Layer, State};
use tread_kube::api::words::CLAIMS_ANNOTATION;
use tread_model::verdict::Layer as Speaks;

#[tokio::test]
async fn bytes_that_are_not_those_that_were_pinned_never_decide() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let name = four_letters();
    let (first, second) = (policy(&name, 1), policy(&name, 2));
    put(&client, &namespace, "app", first.clone()).await;
    let object = format!("{namespace}.app");
    until(&client, &object, |it| it.kept_in.is_some()).await;

    // Neither what is in the ConfigMap, nor the last good one, which is the same.
    patch(&client, &object, json!({"digest": digest(&second)})).await;
    let status = until_state(&client, &object, State::Failed).await;
    assert_eq!(condition(&status, "Loaded").1, "DigestMismatch");
    let path = format!("/etc/{name}/none");
    until_current(replica, |it| cost(it, &path, "") == "drain, reboot").await;

    put(&client, &namespace, "app", second.clone()).await;
    until_state(&client, &object, State::Loaded).await;
    let second_decides =
        |it: &Current| decides(it, &name, &digest(&second)) && cost(it, &path, "").is_empty();
    until_current(replica, second_decides).await;

    // A newer one is refused, and the pinned one, which is kept, goes on.
    put(&client, &namespace, "app", policy(&name, 3)).await;
    let status = until_state(&client, &object, State::LastGood).await;
    assert_eq!(status.digest, Some(digest(&second)));
    assert_eq!(status.failure.unwrap().digest, Some(digest(&policy(&name, 3))));
    until_current(replica, second_decides).await;
}

#[tokio::test]
async fn a_policy_beyond_what_its_namespace_lists_decides_nothing_until_it_is_approved() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let name = four_letters();
    let claims = format!("{CLAIMS_ANNOTATION}=unit:app.service");
    let annotate = ["annotate", "namespace", &namespace, &claims];
    plane.kubectl(&annotate).unwrap().success().unwrap();
    put(&client, &namespace, "app", policy(&name, 1)).await;
    let object = format!("{namespace}.app");
    let status = until_state(&client, &object, State::NeedsApproval).await;
    let (approved, reason, message) = condition(&status, "Approved");
    assert_eq!((approved.as_str(), reason.as_str()), ("False", "NeedsApproval"));
    assert!(message.contains("which its namespace does not list"), "{message}");
    assert!(message.contains(&format!("kubectl patch disruptionpolicy {object}")), "{message}");
    assert!(!has(&replica.published.borrow(), &name));

    let claims = format!("{CLAIMS_ANNOTATION}=file:/etc/{name}/**");
    let annotate = ["annotate", "--overwrite", "namespace", &namespace, &claims];
    plane.kubectl(&annotate).unwrap().success().unwrap();
    until_state(&client, &object, State::Loaded).await;
    until_current(replica, |it| has(it, &name)).await;

    let claims = format!("{CLAIMS_ANNOTATION}=");
    let annotate = ["annotate", "--overwrite", "namespace", &namespace, &claims];
    plane.kubectl(&annotate).unwrap().success().unwrap();
    until_current(replica, |it| !has(it, &name)).await;
    patch(&client, &object, json!({"approved": true})).await;
    until_current(replica, |it| has(it, &name)).await;
    until_state(&client, &object, State::Loaded).await;
}

#[tokio::test]
async fn a_claim_on_everything_needs_an_admin() {
    let (plane, _) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    put(&client, &namespace, "app", wide(1)).await;
    let object = format!("{namespace}.app");
    let status = until_state(&client, &object, State::NeedsApproval).await;
    assert!(condition(&status, "Approved").2.contains("it claims as much as file:/**"));
    patch(&client, &object, json!({"approved": true, "mode": "Shadow"})).await;
    until_state(&client, &object, State::Loaded).await;
    // Others are not to find it.
    patch(&client, &object, json!({"mode": "Disabled"})).await;
    until_state(&client, &object, State::Disabled).await;
}

#[tokio::test]
async fn while_a_new_version_waits_for_an_admin_the_one_before_goes_on() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let name = four_letters();
    let first = policy(&name, 1);
    put(&client, &namespace, "app", first.clone()).await;
    let object = format!("{namespace}.app");
    until(&client, &object, |it| it.kept_in.is_some()).await;

    put(&client, &namespace, "app", wide(2)).await;
    let status = until_state(&client, &object, State::LastGood).await;
    assert_eq!(status.digest, Some(digest(&first)));
    assert!(status.failure.is_none());
    let (approved, reason, message) = condition(&status, "Approved");
    assert_eq!((approved.as_str(), reason.as_str()), ("False", "NeedsApproval"));
    assert!(message.ends_with("The version before, 1.0.0, goes on deciding."), "{message}");
    let place = format!("{namespace}/app");
    event_text(&client, &place, "PolicyNeedsApproval").await;
    let goes_on = |it: &Current| {
        let all = it.policies.policies();
        let unapproved = all.iter().any(|it| it.identity.digest.to_string() == digest(&wide(2)));
        decides(it, &name, &digest(&first)) && !unapproved
    };
    assert!(goes_on(&replica.published.borrow()));
    // So it does for a replica that starts now, and when the next one is bad.
    let fresh = self::replica(plane, false, Room::default());
    until_current(&fresh, |it| it.settled && goes_on(it)).await;
    drop(fresh);
    put(&client, &namespace, "app", spoiled(wide(3))).await;
    until(&client, &object, |it| it.state == Some(State::LastGood) && it.failure.is_some()).await;
    assert!(goes_on(&replica.published.borrow()));

    put(&client, &namespace, "app", wide(4)).await;
    patch(&client, &object, json!({"approved": true, "mode": "Shadow"})).await;
    let status = until_state(&client, &object, State::Loaded).await;
    assert_eq!(status.digest, Some(digest(&wide(4))));
    patch(&client, &object, json!({"mode": "Disabled"})).await;
    until_state(&client, &object, State::Disabled).await;
}

#[tokio::test]
async fn limits_rights_and_layer_are_an_admins_to_give() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let name = four_letters();
    put(&client, &namespace, "app", policy(&name, 1)).await;
    let object = format!("{namespace}.app");
    until_state(&client, &object, State::Loaded).await;
    let found = |it: &Current| {
        let all = it.policies.policies();
        let found = all.iter().find(|it| it.identity.policy == name)?;
        Some((found.identity.layer, found.may_relax, found.read_secrets))
    };
    let plain = Some((Speaks::Template, false, false));
    let before = until_current(replica, |it| found(it) == plain).await;

    patch(&client, &object, json!({"mayRelax": true, "readSecrets": true})).await;
    let after =
        until_current(replica, |it| found(it) == Some((Speaks::Template, true, true))).await;
    assert_ne!(before.digest, after.digest);
    patch(&client, &object, json!({"layer": "admin"})).await;
    until_current(replica, |it| found(it) == Some((Speaks::Admin, false, true))).await;
    until(&client, &object, |it| it.layer == Some(Layer::Admin)).await;

    let path = format!("/etc/{name}/restart");
    patch(&client, &object, json!({"limits": {"fuel": 1}})).await;
    until_current(replica, |it| cost(it, &path, "app.service") == "drain, reboot").await;
    patch(&client, &object, json!({"limits": null})).await;
    until_current(replica, |it| cost(it, &path, "app.service") == "restart app.service").await;
}

#[tokio::test]
async fn what_an_admin_forbade_stays_forbidden_when_the_config_map_is_made_anew() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let (off, pinned) = (four_letters(), four_letters());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    for (name, says) in [
        (&off, json!({"mode": "Disabled"})),
        (&pinned, json!({"digest": digest(&policy(&pinned, 1)), "mayRelax": true})),
    ] {
        let object = format!("{namespace}.{name}");
        put(&client, &namespace, name, policy(name, 1)).await;
        until_state(&client, &object, State::Loaded).await;
        patch(&client, &object, says).await;
        until(&client, &object, |it| it.observed_generation == Some(2)).await;
        maps.delete(name, &DeleteParams::default()).await.unwrap();
    }
    // A policy whose ConfigMap is gone decides nothing, also where its object stays.
    let (off_object, object) = (format!("{namespace}.{off}"), format!("{namespace}.{pinned}"));
    let status = until_state(&client, &object, State::Failed).await;
    let (_, reason, message) = condition(&status, "Loaded");
    assert_eq!(reason, "Missing");
    assert!(message.contains("stays for what an admin said in it"), "{message}");
    assert_eq!(status.kept_in, None);
    until_current(replica, |it| !has(it, &pinned) && !has(it, &object)).await;
    // So it costs nothing, and no alert fires for it.
    let states = replica.metrics.text().unwrap();
    let labels = format!("name=\"{object}\",state=\"Failed\",decides=\"nobody\"");
    assert!(states.contains(&format!("tread_policy_state{{{labels}}} 1")), "{states}");

    put(&client, &namespace, &off, policy(&off, 2)).await;
    put(&client, &namespace, &pinned, policy(&pinned, 2)).await;
    let status =
        until(&client, &object, |it| it.failure.as_ref().is_some_and(|it| it.digest.is_some()))
            .await;
    assert_eq!(condition(&status, "Loaded").1, "DigestMismatch");
    assert!(!has(&replica.published.borrow(), &pinned));
    put(&client, &namespace, &pinned, policy(&pinned, 1)).await;
    until_state(&client, &object, State::Loaded).await;
    until_current(replica, |it| decides(it, &pinned, &digest(&policy(&pinned, 1)))).await;
    until_state(&client, &off_object, State::Disabled).await;
    assert!(!has(&replica.published.borrow(), &off));
}
