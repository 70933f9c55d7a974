//! What a replica watches.

use crate::replica::NAMESPACE;
use crate::story::cluster_of_nothing;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tread_kube::api::machines;
use tread_kube::held::NODE_MAINTENANCE;
use tread_test_bed::ControlPlane;

/// The watches of tread that have begun and have not ended, by what they are of.
fn watches(plane: &ControlPlane) -> Vec<String> {
    let user = format!("system:serviceaccount:{NAMESPACE}:tread");
    let mut watches = BTreeMap::new();
    let log = std::fs::read_to_string(plane.audit_log()).unwrap();
    // The last line may be half written.
    for event in log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if event["verb"] != "watch" || event["user"]["username"] != user.as_str() {
            continue;
        }
        let id = event["auditID"].as_str().unwrap().to_owned();
        let text = |field: &str| event["objectRef"][field].as_str().unwrap_or_default();
        let is_refused = event["responseStatus"]["code"].as_u64() != Some(200);
        if event["stage"] == "ResponseComplete" || is_refused {
            watches.remove(&id);
            continue;
        }
        let uri = event["requestURI"].as_str().unwrap().replace("%3D", "=").replace("%2F", "/");
        let selectors = uri.split(['?', '&']).filter(|it| it.contains("Selector="));
        let kind = match text("apiGroup") {
            "" => text("resource").to_owned(),
            group => format!("{}.{group}", text("resource")),
        };
        let mut words = vec![kind.as_str(), text("namespace")];
        words.extend(selectors);
        words.retain(|word| !word.is_empty());
        watches.insert(id, words.join(" "));
    }
    let mut watches: Vec<String> = watches.into_values().collect();
    watches.sort();
    watches
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_watches_each_kind_once() {
    let plane = ControlPlane::options().with_audit_log().start().unwrap();
    let maintenances = machines::definition(&NODE_MAINTENANCE).unwrap();
    plane.define(&machines::definitions().unwrap()).unwrap();
    plane.define(&[maintenances]).unwrap();
    let _replica = cluster_of_nothing(&plane).await;
    let mut expected = vec![
        "bootimages.tread.dev",
        "clusterversions.config.openshift.io fieldSelector=metadata.name=version",
        // Each of them other objects.
        "configmaps labelSelector=tread.dev/policy=true",
        "configmaps openshift-machine-config-operator fieldSelector=metadata.name=coreos-bootimages",
        "configmaps tread-system fieldSelector=metadata.name=tread-boot-images",
        "configmaps tread-system labelSelector=tread.dev/boot-images",
        "disruptionplans.tread.dev",
        "disruptionpolicies.tread.dev",
        "imagecontentsourcepolicies.operator.openshift.io",
        "imagedigestmirrorsets.config.openshift.io",
        "imagetagmirrorsets.config.openshift.io",
        "machineconfigpools.machineconfiguration.openshift.io",
        "machineconfigs.machineconfiguration.openshift.io",
        "machineconfigurations.operator.openshift.io fieldSelector=metadata.name=cluster",
        "leases.coordination.k8s.io medik8s-leases",
        NODE_MAINTENANCE.name,
        "namespaces labelSelector=tread.dev/policies=allowed",
        "nodes",
        "secrets tread-system fieldSelector=metadata.name=tread-webhook",
        "validatingwebhookconfigurations.admissionregistration.k8s.io \
         fieldSelector=metadata.name=tread.tread-system",
        // Of ClusterOperators its own.
        "clusteroperators.config.openshift.io fieldSelector=metadata.name=tread",
    ];
    let others = machines::ALL.iter().filter(|kind| **kind != machines::CLUSTER_OPERATOR);
    expected.extend(others.map(|kind| kind.name));
    expected.sort_unstable();
    let begun = Instant::now();
    loop {
        let seen = watches(&plane);
        if seen == expected {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(600), "{seen:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
