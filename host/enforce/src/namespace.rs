//! The namespace of the nodes' Leases, which nobody may have made yet.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::metrics::Metrics;

/// Makes a namespace, unless it is there.
pub(crate) async fn make(client: &Client, metrics: &Metrics, name: &str) -> Result<(), Failed> {
    let api: Api<Namespace> = Api::all(client.clone());
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    let params = PostParams::default();
    let asked = api.create(&params, &namespace);
    match ask(metrics, Call::new("create", "namespaces"), asked).await {
        Err(failed) if failed.outcome != CallOutcome::Conflict => Err(failed),
        _ => Ok(()),
    }
}
