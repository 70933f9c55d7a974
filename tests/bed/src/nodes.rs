//! Many nodes at once.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::{BETWEEN_LATER, ControlPlane, LONGEST_BETWEEN, Part};

/// Requests under way at a time.
const AT_ONCE: usize = 32;

impl ControlPlane {
    /// Makes the worker nodes `PREFIX-0` to `PREFIX-(count - 1)`. With simulated
    /// nodes it waits until all are Ready.
    ///
    /// # Errors
    /// The API server refused, or kwok has ended.
    pub async fn create_nodes(&self, prefix: &str, count: usize) -> Result<Vec<String>> {
        let nodes = (0..count)
            .map(|number| node(&format!("{prefix}-{number}")))
            .collect::<Result<Vec<Node>>>()?;
        self.create_these_nodes(nodes).await
    }

    /// Makes these nodes, and waits likewise.
    ///
    /// # Errors
    /// As [`ControlPlane::create_nodes`].
    pub async fn create_these_nodes(&self, nodes: Vec<Node>) -> Result<Vec<String>> {
        let client = self.client().await?;
        let api: Api<Node> = Api::all(client.clone());
        let names: Vec<String> = stream::iter(nodes)
            .map(|node| {
                let api = api.clone();
                async move {
                    let created = api.create(&PostParams::default(), &node).await?;
                    created.metadata.name.context("a node without a name")
                }
            })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        if self.has(Part::SimulatedNodes) {
            self.wait_until_ready_nodes(&client, &names).await?;
        }
        Ok(names)
    }

    async fn wait_until_ready_nodes(&self, client: &Client, names: &[String]) -> Result<()> {
        let api: Api<Node> = Api::all(client.clone());
        loop {
            let looked = Instant::now();
            let all = api.list(&ListParams::default()).await?;
            let ready = all
                .items
                .iter()
                .filter(|node| is_ready(node))
                .filter_map(|node| node.metadata.name.as_ref())
                .collect::<std::collections::BTreeSet<_>>();
            if names.iter().all(|name| ready.contains(name)) {
                return Ok(());
            }
            let kwok = Part::SimulatedNodes.name();
            if let Some(how) = self.ended(kwok)? {
                bail!("{kwok} has ended: {how}. {}", self.end_of_log(kwok));
            }
            let pause = (looked.elapsed() * 3).clamp(BETWEEN_LATER, LONGEST_BETWEEN);
            tokio::time::sleep(pause).await;
        }
    }
}

fn node(name: &str) -> Result<Node> {
    Ok(serde_json::from_value(json!({
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node-role.kubernetes.io/worker": "",
            },
        },
    }))?)
}

/// Whether a node says of itself that it is Ready.
fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| &status.conditions);
    conditions.flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
