//! `tread pools admit`: lets a node in that is held.

use crate::cluster::connect::Cluster;
use anyhow::{Result, anyhow};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use std::io::Write;
use tread_cluster::pools::Pool;
use tread_console::exit::Exit;
use tread_console::print::line;
use tread_enforce::rollouts;
use tread_kube::api::{MachineConfigPool, Rollout};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::metrics::Metrics;
use tread_model::joining::TAINT;

pub(super) const EXAMPLES: &str = "\
Examples:
  tread pools admit infra-7 --pool infra
      A node that registered as joining, and is held, is one of this pool from now on: you know that it
      is what it says. Its claim is not asked for.

Whoever admits a node needs the right to patch nodes.";

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
    let pools: Api<MachineConfigPool> = Api::all(client.clone());
    let found = ask(&metrics, Call::new("get", "machineconfigpools"), pools.get(pool)).await;
    let found =
        found.map_err(|failed| said(&format!("MachineConfigPool {}", line(pool)), &failed))?;
    let labels = Pool::of(&found).gives();
    let labels = labels.map_err(|why| {
        anyhow!("nobody can say which labels a node of pool {pool} gets: {why}; write a selector that says it")
    })?;
    let rollouts: Api<Rollout> = Api::all(client.clone());
    let rollout = ask(&metrics, Call::new("get", "rollouts"), rollouts.get_opt(pool)).await;
    let rollout = rollout.map_err(|failed| said(&format!("Rollout {pool}"), &failed))?;
    let pool_taints = rollout.map(|rollout| rollout.spec.node_taints).unwrap_or_default();
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
