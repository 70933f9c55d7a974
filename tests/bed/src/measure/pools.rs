//! What many pools cost, and how soon a node that strays is told of.

use crate::Arguments;
use crate::cluster::{Cluster, GROUP, config, create, name_of};
use crate::figures::{Figures, megabytes, milliseconds, percentile};
use crate::process::Tread;
use crate::say;
use anyhow::{Context, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The start takes no longer.
pub(crate) const START: Duration = Duration::from_secs(20);
/// One more pool takes no more of a core.
const ONE_MORE: Duration = Duration::from_millis(250);
/// A node that strays is reported no later.
const REPORTED: Duration = Duration::from_secs(1);
/// What it takes at most, in KB.
pub(crate) const MEMORY: u64 = 200 * 1024;
/// How many nodes go to a new pool.
const NODES: usize = 10;
/// How long nothing has to be done so that all is done.
const CALM: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures it.
pub(crate) async fn measure(
    arguments: &Arguments,
    cluster: &Cluster,
    tread: &Tread,
    figures: &mut Figures,
) -> Result<()> {
    say("timing strays");
    let mut reported = Vec::new();
    for number in 0..arguments.times {
        calm(tread).await?;
        reported.push(cluster.stray(number).await?);
    }
    say("making one more pool after the other");
    let (mut pools, mut statuses) = (Vec::new(), Vec::new());
    for number in 0..arguments.times {
        cluster.nodes_of_site(number).await?;
        let before = calm(tread).await?;
        cluster.one_more(number).await?;
        let made = calm(tread).await?;
        pools.push(made.saturating_sub(before));
        cluster.count(number).await?;
        statuses.push(calm(tread).await?.saturating_sub(made));
    }
    let memory = tread.memory()?;
    let limit = |time: Duration| format!("{} ms", time.as_millis());
    let (pool, late) = (percentile(&mut pools, 100), percentile(&mut reported, 99));
    figures.row("one more pool, of a core, median", milliseconds(percentile(&mut pools, 50)), "");
    figures.row("one more pool, of a core, at most", milliseconds(pool), &limit(ONE_MORE));
    let median = percentile(&mut statuses, 50);
    figures.row("a pool's numbers change, of a core, median", milliseconds(median), "");
    figures.row("a stray is told of, median", milliseconds(percentile(&mut reported, 50)), "");
    figures.row("a stray is told of, p99", milliseconds(late), &limit(REPORTED));
    figures.row("resident at the end", megabytes(memory.resident), "");
    figures.row("resident at its peak", megabytes(memory.peak), &megabytes(MEMORY));
    say("changing what all pools are made of");
    let begun = Instant::now();
    let before = tread.spent()?;
    cluster.change_of_all().await?;
    let time = begun.elapsed();
    let cost = calm(tread).await?.saturating_sub(before);
    figures.row("a change of all pools, until all are planned", milliseconds(time), "");
    figures.row("  of a core", milliseconds(cost), "");
    figures.row("resident at its peak then", megabytes(tread.memory()?.peak), "");
    figures.promised(pool <= ONE_MORE, format!("one more pool takes {}", milliseconds(pool)));
    figures.promised(late <= REPORTED, format!("a stray is told of after {}", milliseconds(late)));
    figures.promised(memory.peak <= MEMORY, format!("{} KB are taken", memory.peak));
    Ok(())
}

/// Waits until tread does hardly anything; what it has spent by then.
pub(crate) async fn calm(tread: &Tread) -> Result<Duration> {
    calm_for(tread, CALM).await
}

/// Waits until tread has done next to nothing for so long.
pub(crate) async fn calm_for(tread: &Tread, calm: Duration) -> Result<Duration> {
    let begun = Instant::now();
    let mut before = tread.spent()?;
    loop {
        tokio::time::sleep(calm).await;
        let now = tread.spent()?;
        if now.saturating_sub(before) <= calm / 100 {
            return Ok(before);
        }
        before = now;
        if begun.elapsed() > PATIENCE {
            bail!("tread does not come to rest");
        }
    }
}

impl Cluster {
    /// Workers of a site of which there is no pool yet.
    async fn nodes_of_site(&self, number: usize) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let of_site = |at: usize| {
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": format!("site-{number}-{at}"),
                "labels": {"node-role.kubernetes.io/worker": "", "example.com/site": site(number)},
                "annotations": {
                    format!("{GROUP}/currentConfig"): "rendered-worker-1",
                    format!("{GROUP}/desiredConfig"): "rendered-worker-1",
                    format!("{GROUP}/state"): "Done"}}})
        };
        create(&nodes, (0..NODES).map(of_site)).await?;
        Ok(())
    }

    /// The pool of that site with what is rendered for it, until tread says what its nodes will
    /// go through.
    async fn one_more(&self, number: usize) -> Result<()> {
        let name = site(number);
        let pools = self.api(GROUP, "v1", "MachineConfigPool");
        let role = format!("{GROUP}/role");
        let selects = json!([{"key": role, "operator": "In", "values": ["worker", name]}]);
        let pool = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfigPool",
            "metadata": {"name": name}, "spec": {
                "machineConfigSelector": {"matchExpressions": selects},
                "nodeSelector": {"matchLabels": {"example.com/site": name}}}});
        let made = create(&pools, [pool].into_iter()).await?;
        let uid = made.first().and_then(|it| it.metadata.uid.clone());
        let (own, rendered) = (format!("99-{name}"), format!("rendered-{name}-1"));
        let file = json!({"path": format!("/etc/{name}"), "mode": 0o644,
            "contents": {"source": "data:,a"}});
        let mut spec = config(0, "worker").pointer("/spec").cloned().unwrap_or_default();
        if let Some(files) = spec.pointer_mut("/config/storage/files").and_then(Value::as_array_mut)
        {
            files.push(file.clone());
        }
        let configs = self.api(GROUP, "v1", "MachineConfig");
        let of = |metadata: Value, spec: &Value| {
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfig",
                "metadata": metadata, "spec": spec})
        };
        let own_spec = json!({"config": {"ignition": {"version": "3.4.0"},
            "storage": {"files": [file]}}});
        let metadata = json!({"name": own, "labels": {role: name}});
        create(&configs, [of(metadata, &own_spec)].into_iter()).await?;
        let owner = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfigPool",
            "name": name, "uid": uid, "controller": true});
        let metadata = json!({"name": rendered, "ownerReferences": [owner]});
        create(&configs, [of(metadata, &spec)].into_iter()).await?;
        let sources = json!([{"name": name_of(0)}, {"name": own}]);
        let configuration = json!({"configuration": {"name": rendered, "source": sources}});
        let params = PatchParams::default();
        let patch = Patch::Merge(json!({"spec": configuration}));
        pools.patch(&name, &params, &patch).await?;
        let patch = Patch::Merge(json!({"status": configuration}));
        pools.patch_status(&name, &params, &patch).await?;
        self.planned_for(&name).await
    }

    /// Waits until a pool has a plan.
    async fn planned_for(&self, pool: &str) -> Result<()> {
        let plans = self.api("tread.dev", "v1alpha1", "DisruptionPlan");
        let begun = Instant::now();
        loop {
            let all = plans.list(&ListParams::default()).await?;
            let text = |plan: &DynamicObject, path: &str| {
                plan.data.pointer(path).and_then(Value::as_str).map(str::to_owned)
            };
            let is_its = |plan: &DynamicObject| {
                text(plan, "/spec/pool").as_deref() == Some(pool)
                    && text(plan, "/status/effect").is_some()
            };
            if all.iter().any(is_its) {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                let names =
                    all.iter().map(|plan| format!("{:?} {}", plan.metadata.name, plan.data));
                bail!(
                    "pool {pool} has no plan among {}: {:?}",
                    all.items.len(),
                    names.take(3).collect::<Vec<_>>()
                );
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The operator counts the nodes of a pool anew, as it does all the time.
    async fn count(&self, number: usize) -> Result<()> {
        let pools = self.api(GROUP, "v1", "MachineConfigPool");
        let status = json!({"status": {"machineCount": NODES, "unavailableMachineCount": 1}});
        let (name, params) = (site(number), PatchParams::default());
        pools.patch_status(&name, &params, &Patch::Merge(status)).await?;
        Ok(())
    }

    /// How long it takes from the annotations of a node that booted into a pool and counts as a
    /// worker to the Event on it.
    async fn stray(&self, number: usize) -> Result<Duration> {
        let (nodes, events): (Api<Node>, Api<Event>) =
            (Api::all(self.client.clone()), Api::all(self.client.clone()));
        let name = format!("stray-{number}");
        let labels = json!({"node-role.kubernetes.io/worker": ""});
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels}});
        create(&nodes, [node].into_iter()).await?;
        let version = events.list_metadata(&ListParams::default().limit(1)).await?;
        let version = version.metadata.resource_version.unwrap_or_default();
        let mut watched = events.watch(&WatchParams::default(), &version).await?.boxed();
        let has = format!("rendered-{}-1", self.pool(1));
        let annotations = json!({"metadata": {"annotations": {
            format!("{GROUP}/currentConfig"): has, format!("{GROUP}/firstPivotConfig"): has}}});
        let begun = Instant::now();
        nodes.patch(&name, &PatchParams::default(), &Patch::Merge(annotations)).await?;
        let is_its = |event: &Event| {
            let about = event.regarding.as_ref().and_then(|it| it.name.as_deref());
            event.reason.as_deref() == Some("NodeStrays") && about == Some(&*name)
        };
        let time = loop {
            let next = tokio::time::timeout(PATIENCE, watched.try_next()).await;
            match next.context("a stray is not told of")??.context("the watch ended")? {
                WatchEvent::Added(event) if is_its(&event) => break begun.elapsed(),
                _ => {}
            }
        };
        nodes.delete(&name, &DeleteParams::default()).await?;
        Ok(time)
    }
}

fn site(number: usize) -> String {
    format!("site-{number}")
}
