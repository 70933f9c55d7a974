//! What is said of a request that takes a node, where that is to change; and of one that lets
//! changes come to nodes that somebody has. Nothing is refused.

use super::flagged::{due, lines, meanwhile, unpaused};
use crate::previews::{Cluster, Described};
use k8s_openapi::api::core::v1::Node;
use kube::core::admission::Operation;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use tread_kube::api::words::{CONFIG_GROUP, GROUP, MACHINE_CONFIG_GROUP};
use tread_kube::clean::clean;
use tread_kube::held::{NODE_MAINTENANCE, flagged, is_treads};
use tread_kube::review::Asked;
use tread_kube::whole::Whole;

/// What somebody does to nodes by a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Taken {
    /// They take this node.
    Node(String),
    /// A pool goes on after a pause.
    Unpaused(String),
    /// Its rollout by tread does.
    Resumed(String),
    /// The cluster is to be updated.
    Updated,
    /// Nothing to nodes, although the request is for an object of such a kind.
    Nothing,
}

/// What it is; None if it is about none of these.
pub(super) fn taken(asked: &Asked) -> Option<Taken> {
    let known = [
        (MACHINE_CONFIG_GROUP, "machineconfigpools", is_unpaused as fn(&Asked) -> Option<Taken>),
        (GROUP, "rollouts", is_resumed),
        (CONFIG_GROUP, "clusterversions", is_updated),
        ("", "nodes", is_flagged),
        ("coordination.k8s.io", "leases", is_leased),
        (NODE_MAINTENANCE.group, NODE_MAINTENANCE.plural, is_maintained),
    ];
    let of = |(group, resource, _): &(&str, &str, _)| {
        (*group, *resource) == (asked.group.as_str(), asked.resource.as_str())
    };
    let (.., read) = known.into_iter().find(of)?;
    let is_whole = asked.subresource.is_none() && asked.operation != Operation::Delete;
    Some(is_whole.then(|| read(asked)).flatten().unwrap_or(Taken::Nothing))
}

/// The lines that are said of it.
pub(super) fn says(taken: &Taken, cluster: &Cluster, plans: &[Arc<Described>]) -> Vec<String> {
    match taken {
        Taken::Nothing => Vec::new(),
        Taken::Updated => lines(cluster, cluster.pools.keys().map(String::as_str)),
        // Pool and Rollout can both be paused: while the other one is, no change comes to nodes.
        Taken::Unpaused(pool) if cluster.wanted(pool).paused => Vec::new(),
        Taken::Resumed(pool) if cluster.pools.get(pool).is_some_and(|it| it.paused) => Vec::new(),
        Taken::Unpaused(pool) | Taken::Resumed(pool) => {
            unpaused(cluster, pool, plans).into_iter().collect()
        }
        Taken::Node(node) => {
            let due = due(node, cluster, plans);
            let line = due.map(|(words, rolls_out)| {
                let node = clean(node);
                format!("tread: node {node} is due {words}{}", meanwhile(rolls_out))
            });
            line.into_iter().collect()
        }
    }
}

/// Of an object only what is needed.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Parts {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    paused: bool,
    desired_update: Option<Value>,
    holder_identity: Option<String>,
    node_name: Option<String>,
}

fn spec(object: Option<&Whole>) -> Spec {
    let parts = object.and_then(|it| serde_json::from_slice::<Parts>(&it.body).ok());
    parts.unwrap_or_default().spec
}

fn is_unpaused(asked: &Asked) -> Option<Taken> {
    goes_on(asked).map(Taken::Unpaused)
}

fn is_resumed(asked: &Asked) -> Option<Taken> {
    goes_on(asked).map(Taken::Resumed)
}

/// The name of what goes on after a pause.
fn goes_on(asked: &Asked) -> Option<String> {
    let object = asked.object.as_ref()?;
    let goes_on = !spec(Some(object)).paused && spec(asked.before.as_ref()).paused;
    goes_on.then(|| object.name.clone())
}

fn is_updated(asked: &Asked) -> Option<Taken> {
    let wanted = |object: Option<&Whole>| spec(object).desired_update.filter(|it| !it.is_null());
    let now = wanted(asked.object.as_ref());
    (now.is_some() && now != wanted(asked.before.as_ref())).then_some(Taken::Updated)
}

fn is_flagged(asked: &Asked) -> Option<Taken> {
    let read = |object: &Whole| serde_json::from_slice::<Node>(&object.body).ok();
    let object = asked.object.as_ref()?;
    let before = asked.before.as_ref().and_then(read);
    let is_new = before.is_none_or(|before| flagged(&before).is_none());
    (is_new && flagged(&read(object)?).is_some()).then(|| Taken::Node(object.name.clone()))
}

/// The webhook asks of Leases in the nodes' namespace alone.
fn is_leased(asked: &Asked) -> Option<Taken> {
    let name = match asked.name.as_str() {
        "" => asked.object.as_ref()?.name.as_str(),
        name => name,
    };
    let node = name.strip_prefix("node-")?;
    let holder = |object: Option<&Whole>| spec(object).holder_identity.filter(|it| !it.is_empty());
    let now = holder(asked.object.as_ref())?;
    let is_new = !is_treads(&now) && Some(now) != holder(asked.before.as_ref());
    is_new.then(|| Taken::Node(node.to_owned()))
}

fn is_maintained(asked: &Asked) -> Option<Taken> {
    let node = spec(asked.object.as_ref()).node_name?;
    (asked.operation == Operation::Create).then_some(Taken::Node(node))
}

#[cfg(test)]
mod tests;
