//! What makes a plan necessary.

use super::cluster::{Baseline, Cluster, MirrorKey, is_since};
use super::side::Piece;
use crate::pools::{Configuration, GENERATED_REGISTRIES, Pool};
use std::collections::BTreeSet;
use tread_kube::api::disruption_plan::{Cause, CauseEvent};

const MACHINE_CONFIG: &str = "MachineConfig";
const CLUSTER_VERSION: &str = "ClusterVersion";
const CLUSTER_VERSION_NAME: &str = "version";

/// One of the changes that are pending together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub cause: Cause,
    /// What tells which differences are its: itself, if it is a MachineConfig.
    pub body: Option<Piece>,
    /// Whether what it changes is where images are pulled from.
    pub mirrors: bool,
}

/// What a pool whose last rollout ended with `settled` is made of now, and was
/// not then. Of a config that was only written in the meantime it is not known
/// whether it says anything else.
pub(super) fn causes(
    cluster: &Cluster,
    pool: &Pool,
    settled: &Configuration,
    now: &[&str],
) -> Vec<Part> {
    let settled_at = cluster.configs.get(&settled.name).map_or(0, |meta| meta.created);
    let generated = format!("99-{}{GENERATED_REGISTRIES}", pool.name);
    let update = cluster.release.as_ref().filter(|release| release.is_under_way());
    let settled_sources = match &pool.target {
        Some(target) if settled.sources.is_empty() && target.name == settled.name => {
            &target.sources
        }
        _ => &settled.sources,
    };
    let knows_sources = !settled_sources.is_empty();
    let mut parts = Vec::new();
    let mut updates = false;
    for name in now.iter().copied() {
        let Some(config) = cluster.configs.get(name) else { continue };
        let event = match knows_sources && !settled_sources.contains(name) {
            true => CauseEvent::Created,
            false if is_since(config.modified, settled_at) => CauseEvent::Changed,
            false => continue,
        };
        if update.is_some() && config.generated_by.is_some() {
            updates = true;
        } else if name != generated {
            parts.push(Part { body: cluster.piece(name), ..part(MACHINE_CONFIG, name, event) });
        }
    }
    let there: BTreeSet<&str> = now.iter().copied().collect();
    let gone = settled_sources.iter().filter(|name| !there.contains(name.as_str()));
    let mut gone: BTreeSet<&str> = gone.map(String::as_str).collect();
    // What is about to go is a cause also if the last rollout knew nothing of it.
    let lost = cluster.lost.get(&pool.name).into_iter().flatten();
    let lost = lost.filter(|(_, at)| **at == i64::MAX || !knows_sources);
    gone.extend(lost.filter(|(_, at)| is_since(**at, settled_at)).map(|(name, _)| name.as_str()));
    for name in gone.into_iter().filter(|name| *name != generated) {
        parts.push(part(MACHINE_CONFIG, name, CauseEvent::Deleted));
    }
    for ((kind, name), mirror) in &cluster.mirrors {
        let event =
            match (is_since(mirror.created, settled_at), is_since(mirror.modified, settled_at)) {
                (true, _) => CauseEvent::Created,
                (_, true) => CauseEvent::Changed,
                _ => continue,
            };
        parts.push(Part { mirrors: true, ..part(kind, name, event) });
    }
    for ((kind, name), gone) in &cluster.gone_mirrors {
        if is_since(*gone, settled_at) {
            parts.push(Part { mirrors: true, ..part(kind, name, CauseEvent::Deleted) });
        }
    }
    if updates {
        parts.push(part(CLUSTER_VERSION, CLUSTER_VERSION_NAME, CauseEvent::Changed));
    }
    if cluster.unpaused.contains(&pool.name) {
        parts.push(whole(pool, CauseEvent::Unpaused));
    } else if parts.is_empty() {
        parts.push(whole(pool, CauseEvent::Rollout));
    }
    parts
}

/// The rollout of a pool as a whole.
pub(super) fn whole(pool: &Pool, event: CauseEvent) -> Part {
    part(tread_kube::api::POOL_KIND, &pool.name, event)
}

/// What became of a pool since tread saw it first.
pub(super) fn since_baseline(cluster: &Cluster, baseline: &Baseline, now: &[&str]) -> Vec<Part> {
    let mut parts = Vec::new();
    for name in now.iter().copied() {
        let Some(config) = cluster.configs.get(name) else { continue };
        let event = match baseline.versions.get(name) {
            None => CauseEvent::Created,
            Some(version) if **version != *config.version => CauseEvent::Changed,
            Some(_) => continue,
        };
        parts.push(Part { body: cluster.piece(name), ..part(MACHINE_CONFIG, name, event) });
    }
    for name in baseline.versions.keys().filter(|name| !now.contains(&name.as_str())) {
        parts.push(part(MACHINE_CONFIG, name, CauseEvent::Deleted));
    }
    let mirror =
        |(kind, name): &MirrorKey, event| Part { mirrors: true, ..part(kind, name, event) };
    for (key, there) in &cluster.mirrors {
        match baseline.mirrors.get(key) {
            None => parts.push(mirror(key, CauseEvent::Created)),
            Some(before) if *before != there.body => parts.push(mirror(key, CauseEvent::Changed)),
            Some(_) => {}
        }
    }
    for key in baseline.mirrors.keys().filter(|key| !cluster.mirrors.contains_key(*key)) {
        parts.push(mirror(key, CauseEvent::Deleted));
    }
    parts
}

fn part(kind: &str, name: &str, event: CauseEvent) -> Part {
    let cause = Cause { kind: kind.to_owned(), name: name.to_owned(), event };
    Part { cause, body: None, mirrors: false }
}
