//! What the image of a machine is held against at its first boot is what BootImages says then.

use super::fixture::{Cluster, Replica};
use super::joining::with_pools;
use serde_json::{Value, json};
use tread_kube::api::BootImages;
use tread_model::config::Source;
use tread_model::contents::decode;
use tread_model::joining::first_boot::{AUTHORITY, SETTINGS, UNIT};
use tread_test_bed::eventually;

async fn judges(cluster: &Cluster, spec: Value) {
    cluster
        .apply::<BootImages>(json!({
            "apiVersion": "tread.dev/v1alpha1", "kind": "BootImages", "metadata": {"name": "cluster"},
            "spec": spec,
        }))
        .await;
}

/// What a machine gets that shows this token, once it says so.
async fn served(replica: &Replica, token: &str, until: impl Fn(&str) -> bool) -> Value {
    eventually("a machine is served what is in force", async || {
        let boots = replica.joining.shown(token).serve("infra", None).await.ok()?;
        let part = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let text = format!("{}{}{}", part(&boots.head), boots.claim, part(&boots.tail));
        let config: Value = serde_json::from_str(&text).unwrap();
        until(&file(&config, SETTINGS)).then_some(config)
    })
    .await
}

/// What a file has; nothing if it is not there.
fn file(config: &Value, path: &str) -> String {
    let files = config["storage"]["files"].as_array().unwrap();
    let Some(file) = files.iter().find(|file| file["path"] == path) else { return String::new() };
    let url = Some(file["contents"]["source"].as_str().unwrap().to_owned().into());
    let bytes = decode(&Source { url, gzip: false }).unwrap().unwrap();
    String::from_utf8(bytes.into_owned()).unwrap()
}

#[tokio::test]
async fn a_machine_is_held_against_the_limit_that_is_in_force_when_it_boots() {
    let cluster = with_pools().await;
    let replica = cluster.replica();
    // Without OpenShift nothing is asked, unless an admin asks it.
    let config = served(&replica, "one", str::is_empty).await;
    assert!(!config.to_string().contains(UNIT));
    judges(&cluster, json!({"limits": [{"rhelVersion": "9.2"}]})).await;
    let config = served(&replica, "one", |it| it.contains("RHEL=9.2\n")).await;
    let settings = file(&config, SETTINGS);
    for line in [
        "STOPS=yes",
        "OPENSHIFT=",
        "POOL=infra",
        "URL=https://tread.example:22623/first-boot/infra",
        "TOKEN=one",
    ] {
        assert!(settings.lines().any(|it| it == line), "{line}: {settings}");
    }
    assert!(file(&config, AUTHORITY).contains("BEGIN CERTIFICATE"));
    assert!(config.to_string().contains(UNIT));
    // Each tells by the token that it has shown: another one's is in no other's text.
    let other = served(&replica, "two", |it| !it.is_empty()).await;
    assert!(file(&other, SETTINGS).contains("TOKEN=two\n"));
    assert!(
        file(&served(&replica, "one", |it| !it.is_empty()).await, SETTINGS).contains("TOKEN=one\n")
    );
    judges(&cluster, json!({"mode": "None", "limits": [{"rhelVersion": "9.4"}]})).await;
    let config = served(&replica, "one", |it| it.contains("RHEL=9.4\n")).await;
    let settings = file(&config, SETTINGS);
    assert!(
        settings.contains("STOPS=no\nPASSING=spec.mode of BootImages cluster is None\n"),
        "{settings}"
    );
}
