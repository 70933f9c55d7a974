//! Who counts as another tread.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use tread_front::installations::{Met, look_out};
use tread_kube::metrics::Metrics;
use tread_test_bed::{ControlPlane, eventually};

async fn namespace(client: &Client, name: &str, of: &str) {
    let label = "app.kubernetes.io/name";
    let namespace: Namespace = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {
            label: of, "app.kubernetes.io/part-of": "tread"}}}))
    .unwrap();
    let api: Api<Namespace> = Api::all(client.clone());
    api.create(&PostParams::default(), &namespace).await.unwrap();
}

/// Before it is asked again.
const SOON: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_somebody_labels_is_no_other_tread_before_an_admin_lets_it_write() {
    let plane = ControlPlane::start().unwrap();
    let client = plane.client().await.unwrap();
    // Of two of the same second the first by name is the older one.
    namespace(&client, "a-strangers", "tread").await;
    namespace(&client, "b-own", "tread").await;
    // As the mode enforce has it.
    namespace(&client, "a-strangers-agents", "tread-agent").await;
    let (met, may_lead) = (Met::default(), watch::Sender::new(false));
    let (mut leads, sender) = (may_lead.subscribe(), may_lead.clone());
    let looks = tokio::spawn({
        let (client, met) = (client.clone(), met.clone());
        async move { look_out(client, "b-own", &Metrics::new(), &met, &sender, SOON).await }
    });
    let alone = leads.wait_for(|may| *may);
    timeout(Duration::from_secs(600), alone).await.expect("it waits for a label").unwrap();
    assert_eq!(met.why_not(), None);

    let bind = ["create", "clusterrolebinding", "writes", "--clusterrole=writes"];
    let bind = [&bind[..], &["--serviceaccount=a-strangers:tread"]].concat();
    plane
        .apply(
            "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: writes}
rules: [{apiGroups: [tread.dev], resources: [disruptionplans/status], verbs: [update]}]
",
        )
        .unwrap();
    plane.kubectl(&bind).unwrap().success().unwrap();
    // One that was installed since is older: whoever leads already sees that, too.
    let said = eventually("it says whom it met", async || met.why_not()).await;
    assert!(said.contains("in the namespace a-strangers, before this one in b-own"), "{said}");
    for removes in [
        "--namespace a-strangers --mode enforce --without-definitions",
        "--namespace b-own --without",
    ] {
        assert!(said.contains(removes), "{removes}: {said}");
    }
    assert!(!*leads.borrow());
    looks.abort();
}
