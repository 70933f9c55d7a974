//! What agents cost the service at its port: each asks by a token that is bound to a pod on its
//! node, as those of the DaemonSet do. Their nodes have what they are to have, so that each question
//! is answered at once, with nothing to do.

use crate::cluster::{Cluster, create, prompt};
use crate::figures::{Figures, tenths};
use crate::process::Tread;
use crate::say;
use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::api::{ListParams, PostParams, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

const NAMESPACE: &str = "tread-system-agents";
const ACCOUNT: &str = "tread-agent";
const AUDIENCE: &str = "tread.dev/agents";
/// The ConfigMap by which they know the service, and its key.
const AUTHORITY: (&str, &str) = ("tread-agents-ca", "ca.crt");
const QUESTION: &str = "/v1/agent/wait";
/// So many of the nodes have one.
const AGENTS: u32 = 1000;
/// How often each asks once it has connected.
const FURTHER: u32 = 5;
const AT_ONCE: usize = 16;

pub(crate) async fn measure(
    cluster: &Cluster,
    tread: &Tread,
    port: u16,
    figures: &mut Figures,
) -> Result<()> {
    say("having agents ask");
    let agents = agents(cluster, port).await?;
    let first = takes(tread, &agents, 1).await?;
    let further = takes(tread, &agents, FURTHER).await?;
    figures.row("an agent connects and asks, of a core", tenths(first), "");
    figures.row("  it asks once more, of a core", tenths(further), "");
    Ok(())
}

/// The processor time of the service for a question, where each asks so often.
async fn takes(tread: &Tread, agents: &[Client], times: u32) -> Result<Duration> {
    let before = tread.spent()?;
    for _ in 0..times {
        stream::iter(agents).map(asks).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
    }
    let asked = u32::try_from(agents.len())? * times;
    Ok(tread.spent()?.saturating_sub(before) / asked)
}

async fn asks(agent: &Client) -> Result<()> {
    let question = json!({"form": 1}).to_string().into_bytes();
    let question = Request::new(QUESTION).create(&PostParams::default(), question)?;
    let instructions: Value = agent.request(question).await.context("an agent is not answered")?;
    let revision = instructions.get("revision").and_then(Value::as_str);
    revision.context("an agent is told nothing").map(drop)
}

/// Those of the first nodes.
async fn agents(cluster: &Cluster, port: u16) -> Result<Vec<Client>> {
    let updates = cluster.api("tread.dev", "v1alpha1", "NodeUpdate");
    let nodes = updates.list(&ListParams::default().limit(AGENTS)).await?.items;
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let pods = create(&pods, nodes.iter().map(|node| pod(&node.name_any()))).await?;
    let configs: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let authority = configs.get(AUTHORITY.0).await?.data.unwrap_or_default();
    let authority = authority.get(AUTHORITY.1).context("tread writes no authority")?;
    let path = cluster.plane.dir().join("agents-ca.crt");
    fs::write(&path, authority)?;
    stream::iter(&pods)
        .map(async |pod| agent(port, &path, token(cluster, pod).await?).await)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

fn pod(node: &str) -> Value {
    json!({"metadata": {"name": node}, "spec": {"nodeName": node, "serviceAccountName": ACCOUNT,
        "containers": [{"name": "agent", "image": "tread"}]}})
}

/// As the kubelet asks for one.
async fn token(cluster: &Cluster, pod: &Pod) -> Result<String> {
    let bound =
        json!({"apiVersion": "v1", "kind": "Pod", "name": pod.name_any(), "uid": pod.uid()});
    let asked: TokenRequest = serde_json::from_value(json!({"spec": {
        "audiences": [AUDIENCE], "boundObjectRef": bound, "expirationSeconds": 3600}}))?;
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let answer = accounts.create_token_request(ACCOUNT, &PostParams::default(), &asked).await?;
    Ok(answer.status.context("a TokenRequest without a token")?.token)
}

async fn agent(port: u16, authority: &Path, token: String) -> Result<Client> {
    let url = format!("https://127.0.0.1:{port}");
    let access: Kubeconfig = serde_json::from_value(json!({
        "clusters": [{"name": "tread", "cluster": {"server": url, "certificate-authority": authority}}],
        "users": [{"name": "agent", "user": {"token": token}}],
        "contexts": [{"name": "agent", "context": {"cluster": "tread", "user": "agent"}}],
        "current-context": "agent",
    }))?;
    prompt(Config::from_custom_kubeconfig(access, &KubeConfigOptions::default()).await?)
}
