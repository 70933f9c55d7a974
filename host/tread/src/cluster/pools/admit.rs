//! `tread pools admit` and `tread pools stub`: what an admin does about machines that join.

use crate::cluster::connect::Cluster;
use anyhow::{Result, anyhow};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use tread_cluster::pools::Pool;
use tread_console::exit::Exit;
use tread_console::print::line;
use tread_enforce::rollouts;
use tread_front::names::{AGENTS_AUTHORITY_KEY, MACHINES, MACHINES_ADDRESS_KEY};
use tread_kube::api::{MachineConfigPool, Rollout};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::metrics::Metrics;
use tread_model::joining::{self, TAINT, TOKENS_SECRET, Tokens};

pub(super) const ADMIT: &str = "\
Examples:
  tread pools admit infra-7 --pool infra
      A node that registered as joining, and is held, is one of this pool from now on: you know that it
      is what it says. Its claim is not asked for.

Whoever admits a node needs the right to patch nodes.";

pub(super) const STUB: &str = "\
Examples:
  tread pools stub infra | kubectl apply -f -
      The Secret that a MachineSet of this pool names as its user data.
  tread pools stub infra --secret-namespace default --secret-name my-machines

Whoever prints it needs the right to get the Secret tread-joining-tokens and the ConfigMap tread-ignition in
tread's namespace. With its token a machine is given all that nodes of the pool have, secrets too.";

fn said(what: &str, failed: &Failed) -> anyhow::Error {
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

/// Of which tread, and what the Secret is called.
pub(super) struct Stub<'a> {
    pub(super) namespace: &'a str,
    pub(super) secret_namespace: &'a str,
    pub(super) secret_name: Option<&'a str>,
}

/// Prints the Secret with which machines of a pool boot.
pub(super) async fn stub(
    cluster: &Cluster,
    pool: &str,
    of: Stub<'_>,
    out: &mut impl Write,
) -> Result<Exit> {
    let (metrics, client, namespace) = (Metrics::new(), &cluster.client, of.namespace);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let call = Call::new("get", "configmaps").within(namespace);
    let map = ask(&metrics, call, maps.get(MACHINES)).await.map_err(|failed| match failed.outcome {
        CallOutcome::Gone => anyhow!(
            "no machine is served here: install tread with tread manifests --mode enforce --ignition-address \
             HOST:PORT, or name its namespace with --namespace"
        ),
        _ => said(&format!("ConfigMap {namespace}/{MACHINES}"), &failed),
    })?;
    let data = map.data.unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let call = Call::new("get", "secrets").within(namespace);
    let secret = ask(&metrics, call, secrets.get(TOKENS_SECRET)).await;
    let secret =
        secret.map_err(|failed| said(&format!("Secret {namespace}/{TOKENS_SECRET}"), &failed))?;
    let json = secret.data.unwrap_or_default().remove("joining.json").unwrap_or_default();
    let tokens: BTreeMap<String, Tokens> = serde_json::from_slice(&json.0).unwrap_or_default();
    let tokens = tokens.get(pool).ok_or_else(|| {
        anyhow!("pool {} has no token: is there such a MachineConfigPool?", line(pool))
    })?;
    let (Some(address), Some(authority)) =
        (data.get(MACHINES_ADDRESS_KEY), data.get(AGENTS_AUTHORITY_KEY))
    else {
        return Err(anyhow!(
            "the ConfigMap {namespace}/{MACHINES} does not say where machines ask yet"
        ));
    };
    let stub = joining::stub(address, pool, tokens.newest(), authority).to_string();
    let name = of.secret_name.map_or_else(|| format!("{pool}-user-data-tread"), str::to_owned);
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": of.secret_namespace},
        "type": "Opaque",
        "stringData": {"disableTemplating": "true", "userData": stub},
    });
    writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
    Ok(Exit::Done)
}
