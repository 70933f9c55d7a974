//! Lets a node in that is held: its labels and taints by one write, as when a claim lets it join.

use crate::rollouts;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use tread_cluster::membership::entry::entry;
use tread_cluster::membership::gather::pools;
use tread_kube::api::Rollout;
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::clean::clean;
use tread_kube::metrics::Metrics;
use tread_model::joining::TAINT;

/// Why a node was not let in.
#[derive(Debug, thiserror::Error)]
pub enum NotAdmitted {
    /// It would not count in the pool: why, and what to do first.
    #[error("{0}")]
    Elsewhere(String),
    /// Which taints it would get is not known: why, and what to do first.
    #[error("node {0} is not let in: {1}")]
    NoTaints(String, String),
    /// It joined already, or never registered as joining.
    #[error(
        "node {0} is not held: it has no taint {TAINT}. To move it, label it: tread pools explain {0}"
    )]
    NotHeld(String),
    /// Somebody else wrote it first.
    #[error("node {0} changed meanwhile: try again")]
    Overtaken(String),
    /// There is none.
    #[error("there is no {0}")]
    Missing(String),
    /// The API server's answer.
    #[error("{what}: {failed}")]
    Failed {
        /// What was asked for.
        what: String,
        /// What came.
        failed: Failed,
    },
}

impl NotAdmitted {
    fn of(what: String, failed: Failed) -> NotAdmitted {
        match failed.outcome {
            CallOutcome::Gone => NotAdmitted::Missing(what),
            _ => NotAdmitted::Failed { what, failed },
        }
    }
}

/// Lets a node in that is held. Its claim is not asked for: whoever calls knows what it is.
pub async fn admit(
    client: &Client,
    metrics: &Metrics,
    node: &str,
    pool: &str,
) -> Result<(), NotAdmitted> {
    let pools = pools(client, metrics).await;
    let pools = pools.map_err(|failed| NotAdmitted::of("MachineConfigPools".to_owned(), failed))?;
    let nodes: Api<Node> = Api::all(client.clone());
    let of_node = |failed| NotAdmitted::of(format!("node {node}"), failed);
    let there = ask(metrics, Call::new("get", "nodes"), nodes.get(node)).await.map_err(of_node)?;
    let mut taints = there.spec.and_then(|spec| spec.taints).unwrap_or_default();
    let before = taints.len();
    taints.retain(|taint| taint.key != TAINT);
    if taints.len() == before {
        return Err(NotAdmitted::NotHeld(node.to_owned()));
    }
    let has = there.metadata.labels.unwrap_or_default();
    let labels =
        entry(node, &has, pool, &pools).map_err(|why| NotAdmitted::Elsewhere(clean(&why)))?;
    let api: Api<Rollout> = Api::all(client.clone());
    let rollout = ask(metrics, Call::new("get", "rollouts"), api.get_opt(pool)).await;
    let rollout = rollout.map_err(|failed| NotAdmitted::of(format!("Rollout {pool}"), failed))?;
    let pool_taints = rollouts::node_taints(pool, rollout.as_ref());
    let pool_taints =
        pool_taints.map_err(|why| NotAdmitted::NoTaints(node.to_owned(), clean(&why)))?;
    let (uid, version) = (there.metadata.uid, there.metadata.resource_version);
    let patch = Patch::Merge(rollouts::patch(rollouts::Patch {
        uid: uid.as_deref().unwrap_or_default(),
        version: version.as_deref().unwrap_or_default(),
        taints: &taints,
        labels: &labels,
        pool_taints,
    }));
    let params = PatchParams::default();
    let patched = nodes.patch(node, &params, &patch);
    match ask(metrics, Call::new("patch", "nodes"), patched).await {
        Ok(_) => Ok(()),
        Err(failed) if failed.outcome == CallOutcome::Conflict => {
            Err(NotAdmitted::Overtaken(node.to_owned()))
        }
        Err(failed) => Err(of_node(failed)),
    }
}
