//! The fourth step of a pass: the leader writes the plans.

use super::super::settings::Settings;
use super::super::standing::Standing;
use super::super::write::{OfPool, Wrote, mark_stale, write_pool};
use crate::previews::{Cluster, Described};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_kube::watching::{Pruned, Unwritten};

/// What was written before.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// What the API server left of it.
    pruned: Pruned,
    /// Pools of which plans were not written, and why.
    unwritten: BTreeMap<String, Unwritten>,
}

/// What has to be written.
pub(super) struct Writing<'w> {
    pub(super) cluster: &'w Cluster,
    /// The plans that there have to be, by pool.
    pub(super) wanted: &'w BTreeMap<String, Vec<Arc<Described>>>,
    /// The pools whose plans may not be true any more.
    pub(super) stale: &'w BTreeSet<String>,
    pub(super) standing: &'w BTreeMap<String, Standing>,
    /// Since when it is known what pools have that nobody renders.
    pub(super) known_since: i64,
}

/// Writes it; the pools of which not all was written.
pub(super) async fn write(
    settings: &Settings,
    writing: &Writing<'_>,
    written: &mut Written,
) -> BTreeSet<String> {
    let mut again = BTreeSet::new();
    if settings.leads.now() {
        let is_stale = |it: &Standing| writing.stale.contains(&it.pool);
        for (plan, standing) in writing.standing.iter().filter(|(_, it)| is_stale(it)) {
            // It is tried again with the pool.
            let _ = mark_stale(settings, plan, standing).await;
        }
        for (name, wanted) in writing.wanted {
            let of_pool = OfPool {
                name,
                pool: writing.cluster.pools.get(name).map(Arc::as_ref),
                wanted,
                standing: writing.standing,
                known_since: writing.known_since,
                keep: settings.keep,
                pruned: &mut written.pruned,
            };
            let Wrote { failed, lacks_rights, overtaken } = write_pool(settings, of_pool).await;
            if let Some(why) = &failed {
                tracing::warn!(pool = name, "plans were not written, and will be: {why}");
            }
            written.unwritten.remove(name);
            if let Some(why) = failed.or(overtaken) {
                again.insert(name.clone());
                written.unwritten.insert(name.clone(), Unwritten { why, lacks_rights });
            }
        }
    }
    // Whoever leads says what waits to be written.
    if !settings.leads.now() {
        written.unwritten.clear();
    }
    written.unwritten.retain(|pool, _| writing.cluster.pools.contains_key(pool));
    settings.watches.unwritten("plans", written.unwritten.values().next().cloned());
    again
}
