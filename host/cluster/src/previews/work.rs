//! What has to be compared so that it is known what a pool's nodes will go
//! through.

use super::body::BodyKey;
use super::causes::{Part, causes};
use super::cluster::{Cluster, is_since};
use super::side::{Generated, Piece, Side};
use crate::pools::{Configuration, GENERATED_REGISTRIES, Pool, RollsOut, place, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_kube::api::disruption_plan::{CauseEvent, Nodes, PlanStray};
use tread_kube::clean::clean;

/// How many nodes a plan names.
const NAMED_NODES: usize = 10;

/// What has to be compared so that it is known what a pool's nodes will go
/// through.
#[derive(Debug, Clone)]
pub struct Work {
    /// The pool.
    pub pool: Arc<Pool>,
    /// The ways that its nodes will go.
    pub ways: Vec<Way>,
    /// What all of them are to get.
    pub to: Side,
    /// What it is called; empty if it is not rendered yet.
    pub to_name: String,
    /// What the operator rendered last, where that may be the same.
    pub target: Option<(String, Side)>,
    /// What makes it necessary. Never empty.
    pub parts: Vec<Part>,
    /// Whether OpenShift's operator rolls it out.
    pub operated: bool,
    /// Whether tread begins no nodes, since the Rollout of the pool is paused.
    pub rollout_paused: bool,
    /// Whether pods cannot go elsewhere.
    pub single_replica: bool,
    /// What nodes had when all of them had the same: what is planned for the same
    /// cause from somewhere else is another plan, with another name.
    pub since: String,
    /// What cannot be told, and what is counted on in place of it.
    pub doubt: Option<String>,
}

/// The way that some nodes go.
#[derive(Debug, Clone)]
pub struct Way {
    /// What they have; None: it is gone.
    pub from: Option<Side>,
    /// What it is called.
    pub from_name: String,
    /// Which nodes.
    pub nodes: Nodes,
}

/// What has to be compared for a pool; None if its nodes have what they are to
/// have. Whether there is a difference is not known before it is compared.
pub fn work(cluster: &Cluster, name: &str) -> Option<Work> {
    let pool = cluster.pools.get(name)?;
    match (cluster.rolls_out(pool), &pool.target) {
        (_, Some(target)) => rendered(cluster, pool, target),
        (RollsOut::Nobody, None) => unattended(cluster, pool),
        // Nothing reaches a node before it is rendered.
        (RollsOut::Operator | RollsOut::Tread, None) => None,
    }
}

/// What has to be compared for a node that has a rendered config, of whichever pool, and is to
/// get the one that was rendered for a pool last; None: one of both is not there.
pub fn between(cluster: &Cluster, from: &str, pool: &str) -> Option<Work> {
    let pool = cluster.pools.get(pool)?;
    let target = pool.target.as_ref()?;
    let side = |name: &str| Some(Side::rendered(cluster.configs.key(name)?));
    let from_side = side(from)?;
    Some(Work {
        pool: Arc::clone(pool),
        ways: vec![Way {
            from: Some(from_side),
            from_name: from.to_owned(),
            nodes: Nodes::default(),
        }],
        to: side(&target.name)?,
        to_name: target.name.clone(),
        target: None,
        parts: vec![super::causes::whole(pool, CauseEvent::Rollout)],
        operated: cluster.rolls_out(pool) == RollsOut::Operator,
        rollout_paused: is_rollout_paused(cluster, pool),
        single_replica: cluster.members.are_single_replica(&pool.name),
        since: from.to_owned(),
        doubt: None,
    })
}

/// A pool for which OpenShift's operator renders, or tread. What was rendered counts, until
/// somebody changes what it is made of.
fn rendered(cluster: &Cluster, pool: &Arc<Pool>, target: &Configuration) -> Option<Work> {
    let now = sources(pool, &cluster.configs);
    let rendered = cluster.configs.get(&target.name);
    let rendered_at = rendered.map_or(0, |meta| meta.created);
    let others = !target.sources.is_empty()
        && (now.len() != target.sources.len()
            || now.iter().any(|name| !target.sources.contains(*name)));
    let changed = now.iter().filter_map(|name| cluster.configs.get(name));
    let changed = changed.into_iter().any(|config| is_since(config.modified, rendered_at));
    let mirrors = mirrors_since(cluster, rendered_at);
    // What was deleted or taken from the pool is then seen by what was rendered alone.
    let is_unknown = target.sources.is_empty();
    let pending = others || changed || mirrors || is_unknown;

    let rendered_key = cluster.configs.key(&target.name);
    let to = match rendered_key.clone() {
        Some(key) if !pending => Side::rendered(key),
        _ if cluster.by_tread => sources_now(cluster, &now),
        key => own(cluster, pool, &now, mirrors, key),
    };
    let known = rendered_key.clone().map(Side::rendered);
    let settled = pool.settled.as_ref().unwrap_or(target);
    let mut ways = Vec::new();
    // Nodes that do not say what they have go the way of those that have what the pool had.
    let mut groups: BTreeMap<&str, Vec<&BTreeSet<String>>> = BTreeMap::new();
    for (from, nodes) in cluster.members.of_pool(&pool.name) {
        groups.entry(from.unwrap_or(&settled.name)).or_default().push(nodes);
    }
    for (from, nodes) in groups {
        if from == target.name && !pending {
            continue;
        }
        ways.push(Way {
            from: cluster.configs.key(from).map(Side::rendered),
            from_name: from.to_owned(),
            nodes: with_strays(counted(&nodes), cluster, (&pool.name, from)),
        });
    }
    // Nodes will come: what they are to get concerns whoever changes it.
    if ways.is_empty() && pending && cluster.members.count(&pool.name) == 0 {
        ways.push(Way {
            from: rendered_key.map(Side::rendered),
            from_name: target.name.clone(),
            nodes: Nodes::default(),
        });
    }
    if ways.is_empty() {
        return None;
    }
    Some(Work {
        pool: Arc::clone(pool),
        ways,
        to,
        to_name: if pending { String::new() } else { target.name.clone() },
        target: known.filter(|_| pending).map(|side| (target.name.clone(), side)),
        parts: causes(cluster, pool, settled, &now),
        operated: cluster.rolls_out(pool) == RollsOut::Operator,
        rollout_paused: is_rollout_paused(cluster, pool),
        single_replica: cluster.members.are_single_replica(&pool.name),
        since: settled.name.clone(),
        doubt: is_unknown.then(|| made_of_unknown(&target.name)),
    })
}

fn made_of_unknown(rendered: &str) -> String {
    format!(
        "it cannot be told what {rendered} was made of, since the pool names no \
         spec.configuration.source: all counts in which it differs from what the pool's \
         MachineConfigs say now"
    )
}

/// A pool that nobody renders: what it was made of when tread saw it first is
/// what its nodes have.
fn unattended(cluster: &Cluster, pool: &Arc<Pool>) -> Option<Work> {
    let baseline = cluster.baselines.get(&pool.name)?;
    let now = sources(pool, &cluster.configs);
    let parts = super::causes::since_baseline(cluster, baseline, &now);
    if parts.is_empty() {
        return None;
    }
    let nodes: Vec<_> = cluster.members.of_pool(&pool.name).map(|(_, nodes)| nodes).collect();
    let way = Way {
        from: Some(baseline.side.clone()),
        from_name: baseline.name.clone(),
        nodes: counted(&nodes),
    };
    Some(Work {
        pool: Arc::clone(pool),
        ways: vec![way],
        to: sources_now(cluster, &now),
        to_name: String::new(),
        target: None,
        parts,
        operated: false,
        rollout_paused: false,
        single_replica: cluster.members.are_single_replica(&pool.name),
        since: baseline.name.clone(),
        doubt: None,
    })
}

/// What tread renders for its nodes: MachineConfigs, and mirrors over them.
fn sources_now(cluster: &Cluster, now: &[&str]) -> Side {
    let mirrors = mirror_pieces(cluster);
    Side { configs: pieces(cluster, now), mirrors, ..Side::default() }
}

/// What tread itself renders for a pool of the operator. Mirrors come into it as
/// the operator renders them: into a MachineConfig of theirs, which also has what
/// the cluster's image configuration says, and over which others may stand.
fn own(
    cluster: &Cluster,
    pool: &Pool,
    now: &[&str],
    mirrors: bool,
    rendered: Option<BodyKey>,
) -> Side {
    let generated = format!("99-{}{GENERATED_REGISTRIES}", pool.name);
    let mut configs = pieces(cluster, now);
    let there = cluster.configs.get(&generated);
    // What it was rendered of after the last change of a mirror needs nothing anew.
    if mirrors && there.is_none_or(|it| mirrors_since(cluster, it.modified)) {
        let templates = now.iter().filter(|name| **name != generated);
        let templates = templates.filter(|name| {
            cluster.configs.get(name).is_some_and(|config| config.generated_by.is_some())
        });
        let anew = Piece::Generated(Box::new(Generated {
            before: cluster.piece(&generated),
            templates: templates.filter_map(|name| cluster.piece(name)).collect(),
            mirrors: mirror_pieces(cluster),
            name: generated.clone(),
        }));
        match configs.iter_mut().find(|piece| piece.name() == generated) {
            Some(there) => *there = anew,
            None => configs.insert(place(pool, &cluster.configs, now, &generated), anew),
        }
    }
    Side { configs, mirrors: Vec::new(), os_image_of: rendered }
}

/// Whether the mirrors of a cluster are others than those that were rendered.
fn mirrors_since(cluster: &Cluster, rendered_at: i64) -> bool {
    cluster.mirrors.values().any(|mirror| is_since(mirror.modified, rendered_at))
        || cluster.gone_mirrors.values().any(|gone| is_since(*gone, rendered_at))
}

/// MachineConfigs of the cluster, and the one that is not there yet.
pub(super) fn pieces(cluster: &Cluster, names: &[&str]) -> Vec<Piece> {
    names.iter().filter_map(|name| cluster.piece(name)).collect()
}

/// The objects that redirect image pulls, whole.
pub fn mirror_pieces(cluster: &Cluster) -> Vec<Piece> {
    let all = cluster.mirrors.iter();
    all.map(|((kind, name), mirror)| {
        Piece::given(format!("{kind}/{name}"), Arc::clone(&mirror.body))
    })
    .collect()
}

/// The nodes of some groups.
fn counted(groups: &[&BTreeSet<String>]) -> Nodes {
    let count: usize = groups.iter().map(|nodes| nodes.len()).sum();
    let mut first: Vec<&String> =
        groups.iter().flat_map(|nodes| nodes.iter().take(NAMED_NODES)).collect();
    first.sort();
    Nodes {
        count: i64::try_from(count).unwrap_or(i64::MAX),
        first: first.into_iter().take(NAMED_NODES).cloned().collect(),
        ..Nodes::default()
    }
}

/// Whether tread would roll out, and an admin wants it to wait.
fn is_rollout_paused(cluster: &Cluster, pool: &Pool) -> bool {
    cluster.rolls_out(pool) == RollsOut::Tread && cluster.wanted(&pool.name).paused
}

/// Names those that booted into another pool.
fn with_strays(mut nodes: Nodes, cluster: &Cluster, (pool, from): (&str, &str)) -> Nodes {
    let strays = cluster.strays.on_the_way(pool, from);
    let mut strays = strays.map(|it| PlanStray {
        node: it.node.clone(),
        uid: it.uid.clone(),
        booted: it.booted.clone(),
        because: clean(&it.says()),
        ends: clean(&it.ends()),
    });
    nodes.strays = strays.by_ref().take(NAMED_NODES).collect();
    nodes.strays_left_out = i64::try_from(strays.count()).unwrap_or(i64::MAX);
    nodes
}

#[cfg(test)]
mod tests;
