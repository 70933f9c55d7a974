//! What the mode enforce takes where nothing is to be done: all nodes have what their pool is to
//! have. Their agents are not there: what they cost is measured after it, and what their connections
//! take by the tests of host/front.

use crate::audit;
use crate::cluster::Cluster;
use crate::figures::{Figures, megabytes};
use crate::pools::{MEMORY, calm_for};
use crate::process::{Ports, Tread};
use crate::{Arguments, say};
use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tread_test_bed::free_port;

/// Thousands of NodeUpdates are made one after the other.
const PATIENCE: Duration = Duration::from_secs(900);
const BETWEEN: Duration = Duration::from_millis(500);
/// Between two looks at thousands of nodes it rests for up to two seconds.
const CALM: Duration = Duration::from_secs(5);
const AT_ONCE: usize = 16;
const VERSION: &str = "v1alpha1";

/// Installs what the mode enforce needs, but for its own programs: the API server reaches no
/// Service here, so that it asks for warnings at the process itself.
pub(crate) fn install(program: &Path, cluster: &Cluster) -> Result<Ports> {
    let ports = Ports { plain: free_port(), tls: free_port(), agents: Some(free_port()) };
    let args = ["manifests", "--mode=enforce", "--with-inputs", "--image=tread", "-o", "json"];
    let printed = Command::new(program).args(args).output().context("cannot run tread")?;
    if !printed.status.success() {
        bail!("tread manifests: {}", String::from_utf8_lossy(&printed.stderr));
    }
    let mut list: Value = serde_json::from_slice(&printed.stdout)?;
    let objects = list.get_mut("items").and_then(Value::as_array_mut);
    let objects = objects.context("tread manifests prints no list")?;
    objects.retain(|object| {
        let kind = object.get("kind").and_then(Value::as_str);
        !matches!(kind, Some("Deployment" | "DaemonSet"))
    });
    let url = format!("https://127.0.0.1:{}/warn", ports.tls);
    for object in objects {
        if let Some(called) = object.pointer_mut("/webhooks/0/clientConfig") {
            *called = json!({"url": url});
        }
    }
    cluster.plane.apply(&list.to_string())?;
    let wait = ["wait", "--for=condition=Established", "--timeout=600s", "crd", "--all"];
    cluster.plane.kubectl(&wait)?.success()?;
    Ok(ports)
}

/// What a pool is to have.
struct Target {
    name: String,
    digest: String,
}

pub(crate) async fn measure(
    arguments: &Arguments,
    cluster: &Cluster,
    tread: &Tread,
    figures: &mut Figures,
) -> Result<()> {
    let begun = Instant::now();
    say("waiting until all pools have a config, and all nodes a NodeUpdate");
    let targets = until("every pool has a config", async || {
        let rollouts = cluster.api("tread.dev", VERSION, "Rollout");
        let all = rollouts.list(&ListParams::default()).await?;
        let targets: BTreeMap<String, Target> = all.iter().filter_map(target).collect();
        Ok((targets.len() == arguments.pools).then_some(targets))
    })
    .await?;
    let updates = cluster.api("tread.dev", VERSION, "NodeUpdate");
    let all = until("every node has a NodeUpdate", async || {
        let all = updates.list(&ListParams::default()).await?.items;
        Ok((all.len() == arguments.nodes).then_some(all))
    })
    .await?;
    let took = begun.elapsed().as_secs_f64();
    figures.row("until all nodes have a NodeUpdate", format!("{took:.1} s"), "");
    say("saying of all nodes that they have what they are to have");
    stream::iter(&all)
        .map(async |update| {
            let pool = update.data.pointer("/spec/pool").and_then(Value::as_str);
            let target = pool.and_then(|pool| targets.get(pool)).context("a node of no pool")?;
            let current = json!({"name": target.name, "digest": target.digest});
            let patch = Patch::Merge(json!({"status": {"current": current}}));
            updates.patch_status(&update.name_any(), &PatchParams::default(), &patch).await?;
            anyhow::Ok(())
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    until("all nodes are told to be updated", async || {
        let rollouts = cluster.api("tread.dev", VERSION, "Rollout");
        let all = rollouts.list(&ListParams::default()).await?;
        let updated = |it: &DynamicObject| it.data.pointer("/status/updated")?.as_u64();
        let updated: u64 = all.iter().filter_map(updated).sum();
        Ok((updated == arguments.nodes as u64).then_some(()))
    })
    .await?;
    calm_for(tread, CALM).await?;
    say("watching it at rest");
    let (since, before) = (cluster.audit()?, tread.spent()?);
    tokio::time::sleep(Duration::from_secs(arguments.rest)).await;
    let spent = tread.spent()?.saturating_sub(before);
    let requests = audit::requests(&cluster.audit_log(), since, tread.user())?;
    let memory = tread.memory()?;
    let rest = arguments.rest;
    figures.row("resident at rest", megabytes(memory.resident), &megabytes(MEMORY));
    figures.row("resident at its peak", megabytes(memory.peak), "");
    figures.row(&format!("processor time, in {rest} s"), format!("{spent:.2?}"), "");
    figures.row(&format!("requests at rest, in {rest} s"), requests.all.to_string(), "");
    figures.row("  of them for Leases", requests.leases.to_string(), "");
    let mut writes = 0;
    for (what, count) in requests.others {
        let is_read = ["get ", "list ", "watch "].iter().any(|verb| what.starts_with(verb));
        writes += if is_read { 0 } else { count };
        figures.row(&format!("  {what}"), count.to_string(), "");
    }
    figures.row("writes at rest but for the Lease", writes.to_string(), "0");
    figures.promised(memory.resident <= MEMORY, format!("{} KB are taken", memory.resident));
    figures.promised(writes == 0, format!("{writes} writes at rest"));
    Ok(())
}

fn target(rollout: &DynamicObject) -> Option<(String, Target)> {
    let text = |path| rollout.data.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let target =
        Target { name: text("/status/target/name")?, digest: text("/status/target/digest")? };
    Some((rollout.name_any(), target))
}

async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if begun.elapsed() > PATIENCE {
            bail!("waited in vain: {what}");
        }
        tokio::time::sleep(BETWEEN).await;
    }
}
