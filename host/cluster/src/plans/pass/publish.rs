//! The third step of a pass: everybody who asks is answered with the new plans,
//! and they are counted.

use super::super::previewer::{NotKnown, Previewer};
use super::super::settings::Settings;
use crate::previews::{Cluster, Described};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use tread_kube::metrics::{Metrics, WithEffect};
use tread_model::effect::Effect;

/// Plans by pool.
type Plans = BTreeMap<String, Vec<Arc<Described>>>;

/// Puts these plans in the place of those of their pools, says of plans that could not be made anew
/// that they may not be true any more, and forgets pools that are gone.
pub(super) fn publish(
    settings: &Settings,
    previewer: &Previewer,
    cluster: &Cluster,
    wanted: &Plans,
    failed: &BTreeMap<String, NotKnown>,
) {
    let mut described = previewer.described.write().unwrap_or_else(PoisonError::into_inner);
    described.extend(wanted.iter().map(|(name, plans)| (name.clone(), plans.clone())));
    for pool in failed.keys() {
        for plan in described.get_mut(pool).into_iter().flatten() {
            if !plan.status.stale {
                Arc::make_mut(plan).status.stale = true;
            }
        }
    }
    described.retain(|name, plans| cluster.pools.contains_key(name) && !plans.is_empty());
    measure(&settings.metrics, &described);
    drop(described);
    let mut unplanned = previewer.unplanned.write().unwrap_or_else(PoisonError::into_inner);
    unplanned.retain(|pool, _| !wanted.contains_key(pool) && cluster.pools.contains_key(pool));
    unplanned.extend(failed.iter().map(|(pool, why)| (pool.clone(), why.to_string())));
    let count = i64::try_from(unplanned.len()).unwrap_or(i64::MAX);
    settings.metrics.unplanned_pools.set(count);
    drop(unplanned);
    previewer.once.forget();
}

/// Plans by effect, and what they spare nodes.
fn measure(metrics: &Metrics, plans: &Plans) {
    let effects = [
        Effect::None,
        Effect::Reload,
        Effect::Restart,
        Effect::Drain,
        Effect::Reboot,
        Effect::Refuse,
    ];
    for effect in effects {
        let count = plans.values().flatten().filter(|plan| plan.effect == effect).count();
        let labels = WithEffect { effect: effect.as_str() };
        let gauge = metrics.plans.get_or_create(&labels);
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    // The last plan of a pool is that of all its changes together.
    let (mut spared, mut not) = (0, 0);
    for plan in plans.values().filter_map(|plans| plans.last()) {
        for (effect, nodes) in &plan.happens {
            match effect {
                Effect::Reboot => not += nodes,
                // Nothing happens, and nothing is spared.
                Effect::Refuse => {}
                _ => spared += nodes,
            }
        }
    }
    metrics.reboots_avoided.set(spared);
    metrics.reboots.set(not);
}
