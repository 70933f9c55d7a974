//! The first step of a pass: the cluster as it is, with what has to be asked for.

use super::super::previewer::{NotKnown, Previewer};
use crate::pools::{RollsOut, says_unplaced, unreadable};
use crate::previews::Cluster;
use futures::{StreamExt as _, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

/// How many questions are asked at the same time.
const AT_ONCE: usize = 8;

/// The cluster at one moment, and what can be planned of it.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) cluster: Cluster,
    /// The pools of which everything is known.
    pub(super) known: BTreeSet<String>,
    /// Those of which it cannot be found out, and why.
    pub(super) unknown: BTreeMap<String, NotKnown>,
}

/// The cluster as it is now. For pools that nobody renders, this finds out what they were made of
/// before anything changed; for the others, which of the configs that are named no longer exist. If
/// the API server has a config that the watch has not shown yet, its pools are looked at again when
/// the watch shows it.
pub(super) async fn prepare(previewer: &Previewer, pools: &BTreeSet<String>) -> Prepared {
    let cluster = previewer.snapshot();
    let mut unknown = BTreeMap::new();
    let unreadable = unreadable(&cluster.pools);
    if !unreadable.is_empty() {
        let why = NotKnown::from(says_unplaced(&unreadable));
        unknown.extend(pools.iter().map(|pool| (pool.clone(), why.clone())));
    }
    let found = baselines(previewer, &cluster, pools, &mut unknown).await;
    let gone = gone(previewer, &cluster, pools, &mut unknown).await;
    let cluster = {
        let mut now = previewer.cluster.write().unwrap_or_else(PoisonError::into_inner);
        now.baselines.extend(found);
        // A config that the watch has shown meanwhile is not gone.
        let gone = gone.into_iter().filter(|config| !now.configs.contains_key(config));
        let gone: Vec<String> = gone.collect();
        now.note_gone(gone);
        now.clone()
    };
    let is_known = |name: &&String| {
        let unheard = cluster.unheard_of(name);
        if let Some(config) = unheard.first() {
            tracing::debug!(pool = name, config, "waits until it is known what is in it");
        }
        unheard.is_empty() && !unknown.contains_key(*name)
    };
    let known = pools.iter().filter(is_known).cloned().collect();
    Prepared { cluster, known, unknown }
}

/// What pools are made of that nobody renders, where that is not known yet.
async fn baselines(
    previewer: &Previewer,
    cluster: &Cluster,
    pools: &BTreeSet<String>,
    unknown: &mut BTreeMap<String, NotKnown>,
) -> Vec<(String, std::sync::Arc<crate::previews::Baseline>)> {
    let has_none = |name: &&String| {
        let pool = cluster.pools.get(*name);
        // Of one that cannot be read nobody knows what it is made of.
        let pool = pool.filter(|it| it.unread.is_none());
        let by_nobody = pool.is_some_and(|it| cluster.rolls_out(it) == RollsOut::Nobody);
        by_nobody && !cluster.baselines.contains_key(*name)
    };
    let mut found = Vec::new();
    for name in pools.iter().filter(has_none) {
        match previewer.baseline(cluster, name).await {
            Ok(baseline) => found.push((name.clone(), std::sync::Arc::new(baseline))),
            Err(why) => {
                unknown.insert(name.clone(), why);
            }
        }
    }
    found
}

/// The configs that pools or nodes name, and that are not there.
async fn gone(
    previewer: &Previewer,
    cluster: &Cluster,
    pools: &BTreeSet<String>,
    unknown: &mut BTreeMap<String, NotKnown>,
) -> Vec<String> {
    let asked = pools.iter().flat_map(|pool| {
        let unheard = cluster.unheard_of(pool);
        unheard.into_iter().map(|config| (pool.clone(), config.to_owned())).collect::<Vec<_>>()
    });
    let mut answers = stream::iter(asked.collect::<Vec<_>>())
        .map(async |(pool, config): (String, String)| {
            (pool, previewer.is_there(&config).await, config)
        })
        .buffer_unordered(AT_ONCE);
    let mut gone = Vec::new();
    while let Some((pool, is_there, config)) = answers.next().await {
        match is_there {
            Ok(true) => {}
            Ok(false) => gone.push(config),
            Err(failed) => {
                unknown.insert(pool, failed.into());
            }
        }
    }
    gone
}
