//! What a test can do to a control plane, seen by its clients.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::io::Read;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use kube::{Api, Error};
use serde_json::json;
use tread_test_bed::{ControlPlane, Part, Shared, Signal, shared};

// Not the one that others share: nobody else may be hurt.
static HURT: Shared = Shared::new(|| ControlPlane::options().with_readable_store());
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

async fn maps(plane: &ControlPlane, prefix: &str) -> Api<ConfigMap> {
    let namespace = plane.namespace(prefix).unwrap();
    Api::namespaced(plane.client().await.unwrap(), &namespace)
}

#[tokio::test]
async fn a_paused_api_server_hangs_and_goes_on() {
    let _alone = ALONE.lock().await;
    let plane = HURT.get().unwrap();
    let maps = maps(plane, "paused").await;
    let paused = plane.pause(Part::ApiServer).unwrap();
    let list = ListParams::default();
    let asked = tokio::time::timeout(Duration::from_millis(300), maps.list(&list)).await;
    assert!(asked.is_err(), "a stopped process has answered");
    paused.resume().unwrap();
    maps.list(&list).await.unwrap();
}

#[tokio::test]
async fn a_killed_api_server_comes_back_with_its_data_at_the_same_address() {
    let _alone = ALONE.lock().await;
    let plane = HURT.get().unwrap();
    let maps = maps(plane, "killed").await;
    maps.create(&PostParams::default(), &map("kept")).await.unwrap();
    plane.kill(Part::ApiServer).unwrap();
    assert!(maps.get("kept").await.is_err());
    plane.restart(Part::ApiServer).unwrap();
    maps.get("kept").await.unwrap();
}

#[tokio::test]
async fn all_that_was_written_is_in_the_history_whoever_was_gone_meanwhile() {
    let _alone = ALONE.lock().await;
    let plane = HURT.get().unwrap();
    let maps = maps(plane, "history").await;
    let made = maps.create(&PostParams::default(), &map("one")).await.unwrap();
    let begin: u64 = made.metadata.resource_version.unwrap().parse().unwrap();
    maps.create(&PostParams::default(), &map("another")).await.unwrap();
    plane.kill(Part::ApiServer).unwrap();
    plane.restart(Part::ApiServer).unwrap();
    maps.delete("one", &DeleteParams::default()).await.unwrap();
    let prefix = format!("/registry/configmaps/{}/one", made.metadata.namespace.unwrap());
    let [first, last] = <[_; 2]>::try_from(plane.history(&prefix, begin).unwrap()).unwrap();
    assert_eq!((first.key.as_str(), first.revision, first.deleted), (&*prefix, begin, false));
    assert_eq!(first.value["metadata"]["name"], "one");
    assert!(last.deleted && last.revision > begin, "{last:?}");
    assert_eq!(last.value["metadata"]["name"], "one");
    assert!(plane.history(&prefix, last.revision + 1).unwrap().is_empty());
}

#[tokio::test]
async fn etcd_keeps_its_data_when_it_is_killed() {
    let _alone = ALONE.lock().await;
    let plane = HURT.get().unwrap();
    let maps = maps(plane, "etcd").await;
    maps.create(&PostParams::default(), &map("kept")).await.unwrap();
    plane.restart(Part::Etcd).unwrap();
    maps.get("kept").await.unwrap();
}

#[tokio::test]
async fn a_full_etcd_refuses_writes_and_answers_reads() {
    let _alone = ALONE.lock().await;
    let plane = HURT.get().unwrap();
    let maps = maps(plane, "full").await;
    maps.create(&PostParams::default(), &map("before")).await.unwrap();
    let full = plane.fill().unwrap();
    match maps.create(&PostParams::default(), &map("during")).await.unwrap_err() {
        Error::Api(status) => assert!(status.message.contains("space exceeded"), "{status:?}"),
        other => panic!("{other:?}"),
    }
    maps.get("before").await.unwrap();
    full.empty().unwrap();
    maps.create(&PostParams::default(), &map("after")).await.unwrap();
}

#[tokio::test]
async fn after_a_compaction_and_a_restart_an_old_watch_and_an_old_list_are_gone() {
    let _alone = ALONE.lock().await;
    let plane = HURT.get().unwrap();
    let maps = maps(plane, "compacted").await;
    for number in 0..5 {
        let map = map(&format!("map-{number}"));
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let page = maps.list(&ListParams::default().limit(2)).await.unwrap();
    let token = page.metadata.continue_.unwrap();
    let old = page.metadata.resource_version.unwrap();
    maps.create(&PostParams::default(), &map("later")).await.unwrap();
    assert!(plane.compact().unwrap() > old.parse().unwrap());
    plane.restart(Part::ApiServer).unwrap();
    let rest = ListParams::default().limit(2).continue_token(&token);
    match maps.list(&rest).await.unwrap_err() {
        Error::Api(status) => assert_eq!(status.code, 410, "{status:?}"),
        other => panic!("{other:?}"),
    }
    let watch = maps.watch(&WatchParams::default(), &old).await;
    match watch {
        Err(Error::Api(status)) => assert_eq!(status.code, 410, "{status:?}"),
        Err(other) => panic!("{other:?}"),
        Ok(events) => {
            pin_mut!(events);
            match events.next().await {
                Some(Ok(WatchEvent::Error(status))) => assert_eq!(status.code, 410, "{status:?}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_webhook_is_called() {
    let plane = shared().unwrap();
    let namespace = plane.namespace("webhook").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It hears the first byte of a TLS handshake, and hangs up.
    let heard = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        first[0]
    });
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [{
            "name": "webhook.bed.tread.dev",
            "clientConfig": {"url": format!("https://127.0.0.1:{port}/")},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["configmaps"],
            }],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    });
    plane.apply(&configuration.to_string()).unwrap();
    // The API server learns of it by a watch.
    let mut number = 0;
    let refused = loop {
        number += 1;
        let name = format!("map-{number}");
        let create = ["create", "configmap", &name, "-n", &namespace];
        let ran = plane.kubectl(&create).unwrap();
        if ran.code != 0 {
            break ran.stderr;
        }
        thread::sleep(Duration::from_millis(100));
    };
    assert!(refused.contains("failed calling webhook"), "{refused}");
    assert_eq!(heard.join().unwrap(), 0x16);
}

#[test]
fn a_program_of_the_test_runs_until_it_is_stopped() {
    let plane = shared().unwrap();
    let sleep = std::path::Path::new("/bin/sleep");
    plane.spawn("sleeper", plane.admin(), sleep, &["1000000"]).unwrap();
    assert_eq!(plane.ended("sleeper").unwrap(), None);
    plane.signal("sleeper", Signal::Stop).unwrap();
    assert_eq!(plane.stop("sleeper").unwrap(), "signal: killed");
    let printed = "echo \"$KUBECONFIG\"; exit 3";
    let shell = std::path::Path::new("/bin/sh");
    plane.spawn("printer", plane.admin(), shell, &["-c", printed]).unwrap();
    let how = loop {
        match plane.ended("printer").unwrap() {
            Some(how) => break how,
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    assert_eq!(how, "exit status 3");
    let log = std::fs::read_to_string(plane.log("printer")).unwrap();
    assert_eq!(log.trim(), plane.kubeconfig().to_str().unwrap());
}

#[test]
fn every_request_is_in_the_audit_log() {
    let plane = ControlPlane::options().with_audit_log().start().unwrap();
    plane.namespace("audited").unwrap();
    let requests = std::fs::read_to_string(plane.audit_log()).unwrap();
    let created = requests
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .any(|event| {
            let name = event["objectRef"]["name"].as_str().unwrap_or_default();
            event["verb"] == "create" && name.starts_with("audited-")
        });
    assert!(created, "{requests}");
}
