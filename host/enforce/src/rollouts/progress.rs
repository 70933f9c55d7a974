//! How far a pool is.

use super::plans::MOST;
use super::scene::OfPool;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use tread_cluster::previews::Cluster;
use tread_kube::api::rollout::{NAMED, WaitingNode};
use tread_kube::dated::timestamp;
use tread_model::rollout::State;
use tread_model::text::and_more;

/// How many nodes of a pool stand how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) nodes: usize,
    pub(crate) updated: usize,
    pub(crate) under_way: usize,
    pub(crate) failed: usize,
    pub(crate) down: usize,
}

impl Counts {
    pub(crate) fn of(pool: &OfPool) -> Counts {
        let of = |which: fn(State) -> bool| pool.nodes.iter().filter(|it| which(it.state)).count();
        Counts {
            nodes: pool.nodes.len(),
            updated: of(|state| state == State::Updated),
            under_way: of(|state| matches!(state, State::UnderWay(_) | State::NeedsBoot)),
            failed: of(|state| state == State::Failed),
            down: pool.nodes.iter().filter(|node| node.is_down()).count(),
        }
    }
}

/// Since when what its nodes are to have waits: when its config was made, whoever leads since.
pub(crate) fn waits_since(pool: &OfPool, cluster: &Cluster) -> Option<Time> {
    let target = cluster.configs.get(&pool.target.as_ref()?.name)?;
    // One that is not in the cluster yet has no time.
    Timestamp::from_second(target.created).ok().map(Time)
}

/// The first nodes that wait, each with its reason.
pub(crate) fn waiting(pool: &OfPool, since: Option<&Time>) -> Vec<WaitingNode> {
    let waits = pool.turns.waits.iter().take(NAMED);
    let waiting = waits.map(|(node, why)| WaitingNode {
        node: node.clone(),
        why: why.to_string(),
        since: since.cloned(),
    });
    waiting.collect()
}

/// How far a pool is, in a sentence.
pub(crate) fn sentence(pool: &OfPool) -> String {
    let Counts { nodes, updated, under_way, failed, .. } = Counts::of(pool);
    if let Some((_, why)) = &pool.not_made {
        let failing = pool
            .failing
            .first()
            .map(|(node, why)| format!("; {node}: {why}{}", and_more(pool.failing.len(), 1)));
        return format!("{why}{}", failing.unwrap_or_default());
    }
    if let Some(why) = &pool.halted {
        return why.clone();
    }
    let mut said = match updated == nodes {
        true => format!("all {nodes} nodes have it"),
        false => format!("{updated} of {nodes} nodes have it"),
    };
    if pool.still_cordoned > 0 {
        said.push_str(&format!(", {} still cordoned", pool.still_cordoned));
    }
    if under_way > 0 {
        said.push_str(&format!(", {under_way} under way"));
    }
    if let Some((node, why)) = pool.failing.first() {
        said.push_str(&format!(" ({node}: {why}{})", and_more(pool.failing.len(), 1)));
    }
    if failed > 0 {
        said.push_str(&format!(", {failed} failed"));
        if let Some((at, node)) = &pool.again {
            said.push_str(&format!(" ({node} is begun again at {:.0})", timestamp(*at)));
        }
    }
    if let Some((node, why)) = pool.turns.waits.first() {
        let waiting = pool.turns.waits.len();
        said.push_str(&format!(", {waiting} waiting ({node}: {why})"));
    }
    if let Some((node, bytes)) = pool.too_large.first() {
        said.push_str(&format!(
            "; drained and booted, whatever was previewed: {node}{}, since the plan takes {} KiB, \
             and a NodeUpdate holds {} KiB of one",
            and_more(pool.too_large.len(), 1),
            bytes.div_ceil(1024),
            MOST / 1024,
        ));
    }
    if let Some(anew) = &pool.anew {
        said.push_str(&format!("; {anew}"));
    }
    said
}
