//! The policies that come with tread.

use super::support::*;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use tread_cluster::policies::current::Current;
use tread_kube::api::DisruptionPolicy;
use tread_kube::api::disruption_policy::State;

#[tokio::test]
async fn what_comes_with_tread_is_listed_and_comes_back_when_it_is_deleted() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let status = until_state(&client, "registries", State::Loaded).await;
    assert_eq!(status.source.as_deref(), Some("builtin"));
    assert_eq!(status.name.as_deref(), Some("registries"));
    assert!(status.last_change.is_some() && !status.claims.is_empty());
    assert_eq!(condition(&status, "Loaded").0, "True");
    until_current(replica, |it| it.settled && has(it, "registries")).await;
    let text = replica.metrics.text().unwrap();
    assert!(text.contains("tread_policies{state=\"Loaded\"}"), "{text}");

    let policies: Api<DisruptionPolicy> = Api::all(client.clone());
    let before = policies.get("registries").await.unwrap().metadata.uid;
    policies.delete("registries", &DeleteParams::default()).await.unwrap();
    let again = tokio::time::timeout(LONG, async {
        loop {
            until_state(&client, "registries", State::Loaded).await;
            if policies.get("registries").await.unwrap().metadata.uid != before {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
    again.await.unwrap();
    until_current(replica, |it| it.settled && has(it, "registries")).await;
}

#[tokio::test]
async fn an_admin_tries_or_switches_off_a_policy_at_any_time() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    until_state(&client, "ssh-keys", State::Loaded).await;
    patch(&client, "ssh-keys", json!({"mode": "Shadow"})).await;
    let current = until_current(replica, |it| !has(it, "ssh-keys") && it.shadows.is_some()).await;
    let shadows = current.shadows.as_ref().unwrap();
    let tried: Vec<&str> = shadows.policies.iter().map(|it| it.policy.as_str()).collect();
    assert!(tried.contains(&"ssh-keys"), "{tried:?}");
    assert!(shadows.with.policies().iter().any(|it| it.identity.policy == "ssh-keys"));

    patch(&client, "ssh-keys", json!({"mode": "Disabled"})).await;
    until_state(&client, "ssh-keys", State::Disabled).await;
    let tried = |it: &Current| {
        it.shadows.as_ref().is_some_and(|it| it.policies.iter().any(|it| it.policy == "ssh-keys"))
    };
    until_current(replica, |it| !has(it, "ssh-keys") && !tried(it)).await;

    patch(&client, "ssh-keys", json!({"mode": "Enforce"})).await;
    until_current(replica, |it| has(it, "ssh-keys")).await;
    until_state(&client, "ssh-keys", State::Loaded).await;
}
