//! `tread pools admit`: lets a node in that is held.

use crate::cluster::connect::Cluster;
use anyhow::{Result, anyhow};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use std::io::Write;
use tread_cluster::membership::entry::entry;
use tread_cluster::membership::gather::pools;
use tread_console::exit::Exit;
use tread_console::print::line;
use tread_enforce::rollouts;
use tread_kube::api::Rollout;
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::metrics::Metrics;
use tread_model::joining::TAINT;

pub(super) const EXAMPLES: &str = "\
Examples:
  tread pools admit infra-7 --pool infra
      A node that registered as joining, and is held, is one of this pool from now on: you know that it
      is what it says. Its claim is not asked for. It gets the labels that the pool's selector determines;
      where these leave a choice it has to have some already: kubectl label node infra-7 KEY=VALUE
      Where it would still be in another pool, nothing is changed, and the labels in the way are named.

Whoever admits a node needs the rights to patch nodes and to list MachineConfigPools.";

pub(super) fn said(what: &str, failed: &Failed) -> anyhow::Error {
    match failed.outcome {
        CallOutcome::Gone => anyhow!("there is no {what}"),
        _ => anyhow!("{what}: {failed}"),
    }
}

/// Lets a node in that is held.
pub(super) async fn admit(
    cluster: &Cluster,
    node: &str,
    pool: &str,
    out: &mut impl Write,
) -> Result<Exit> {
    let (metrics, client) = (Metrics::new(), &cluster.client);
    let pools = pools(client, &metrics).await;
    let pools = pools.map_err(|failed| said("MachineConfigPools", &failed))?;
    let nodes: Api<Node> = Api::all(client.clone());
    let there = ask(&metrics, Call::new("get", "nodes"), nodes.get(node)).await;
    let there = there.map_err(|failed| said(&format!("node {}", line(node)), &failed))?;
    let mut taints = there.spec.and_then(|spec| spec.taints).unwrap_or_default();
    let before = taints.len();
    taints.retain(|taint| taint.key != TAINT);
    if taints.len() == before {
        return Err(anyhow!(
            "node {node} is not held: it has no taint {TAINT}. To move it, label it: tread pools explain {node}"
        ));
    }
    let has = there.metadata.labels.unwrap_or_default();
    let labels = entry(node, &has, pool, &pools).map_err(|why| anyhow!("{}", line(&why)))?;
    let rollouts: Api<Rollout> = Api::all(client.clone());
    let rollout = ask(&metrics, Call::new("get", "rollouts"), rollouts.get_opt(pool)).await;
    let rollout = rollout.map_err(|failed| said(&format!("Rollout {pool}"), &failed))?;
    let pool_taints = rollout.map(|rollout| rollout.spec.node_taints).unwrap_or_default();
    let (uid, version) = (there.metadata.uid, there.metadata.resource_version);
    let patch = rollouts::patch(rollouts::Patch {
        uid: uid.as_deref().unwrap_or_default(),
        version: version.as_deref().unwrap_or_default(),
        taints: &taints,
        labels: &labels,
        pool_taints: &pool_taints,
    });
    let params = PatchParams::default();
    let patch = Patch::Merge(patch);
    let patched = nodes.patch(node, &params, &patch);
    match ask(&metrics, Call::new("patch", "nodes"), patched).await {
        Ok(_) => {}
        Err(failed) if failed.outcome == CallOutcome::Conflict => {
            return Err(anyhow!("node {node} changed meanwhile: try again"));
        }
        Err(failed) => return Err(said(&format!("node {node}"), &failed)),
    }
    writeln!(out, "{} is a node of pool {}", line(node), line(pool))?;
    Ok(Exit::Done)
}
