//! What an admin says of a policy.

use crate::support::*;
use serde_json::json;
use tread_cluster::api::disruption_policy::{Layer, State};
use tread_cluster::api::words::CLAIMS_ANNOTATION;
use tread_cluster::policies::current::Current;
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
