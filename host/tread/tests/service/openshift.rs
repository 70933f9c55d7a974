//! What tests of machines and pools have in common.

use crate::replica::{Replica, asks};
use serde_json::Value;
use tread_test_bed::{ControlPlane, eventually};

pub fn kubectl(plane: &ControlPlane, args: &[&str]) -> String {
    plane.kubectl(args).unwrap().success().unwrap()
}

pub fn apply(plane: &ControlPlane, object: &Value) {
    plane.apply(&object.to_string()).unwrap();
}

/// Has the API server ask this replica, and waits until it does.
pub async fn asked(replica: &Replica<'_>) {
    asks(replica.plane, &replica.tls);
    eventually("it is asked", async || {
        replica.get("/readyz").await.filter(|(_, text)| text.contains("warnings are asked for"))
    })
    .await;
}
