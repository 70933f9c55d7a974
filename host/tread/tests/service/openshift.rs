//! What tests of machines and pools have in common: a control plane with the definitions of
//! OpenShift's objects.

use crate::replica::{Replica, install};
use serde_json::Value;
use tread_kube::api::{crds, machines};
use tread_test_bed::{ControlPlane, eventually};

/// Where OpenShift's machine API has its objects.
pub const MACHINES: &str = "openshift-machine-api";

/// A control plane that knows the objects of tread, OpenShift and its machine APIs, with these
/// namespaces.
pub fn openshift(namespaces: &[&str]) -> ControlPlane {
    let plane = ControlPlane::start().unwrap();
    let definitions = [crds::crds(), crds::openshift(), machines::definitions().unwrap()].concat();
    plane.define(&definitions).unwrap();
    for namespace in namespaces {
        kubectl(&plane, &["create", "namespace", namespace]);
    }
    plane
}

pub fn kubectl(plane: &ControlPlane, args: &[&str]) -> String {
    plane.kubectl(args).unwrap().success().unwrap()
}

pub fn apply(plane: &ControlPlane, object: &Value) {
    plane.apply(&object.to_string()).unwrap();
}

/// Has the API server ask this replica, and waits until it does.
pub async fn asked(replica: &Replica<'_>) {
    install(replica.plane, &replica.tls);
    eventually("it is asked", async || {
        replica.get("/readyz").await.filter(|(_, text)| text.contains("warnings are asked for"))
    })
    .await;
}
