//! Nodes that are not drained, whatever their plan: no other node takes their pods, or an admin wants
//! no pod to be moved. That is so where tread rolls out.

use super::flagged::has;
use crate::pools::Member;
use crate::previews::{Cluster, Described, Line};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_kube::api::disruption_plan::DrainSkipped;
use tread_kube::clean::clean;
use tread_model::effect::Effect;

/// So many pools are named.
const POOLS: usize = 5;

/// Whether a node of a pool is not drained.
pub(super) fn is_skipped(node: &str, pool: &str, cluster: &Cluster) -> bool {
    cluster.by_tread && (cluster.wanted(pool).skips_drain || cluster.members.is_alone(node))
}

/// Says in a plan how many of its nodes are not drained, and why.
pub fn note_undrained(plan: &mut Described, cluster: &Cluster) {
    let drained = plan.status.transitions.iter();
    let drained = drained.filter(|way| way.steps.iter().any(|step| step.r#do == "drain"));
    let from: BTreeSet<&str> = drained.map(|way| &*way.from).collect();
    let pool = cluster.pools.get(&plan.pool).map(|pool| &**pool);
    let is_on_its_way =
        |member: &Member| has(member, pool).is_some_and(|current| from.contains(current.as_str()));
    let skipped = match plan.effect {
        Effect::Refuse => None,
        _ => skipped(&plan.pool, cluster, is_on_its_way),
    };
    let nodes = cluster.members.of_pool(&plan.pool).flat_map(|(_, nodes)| nodes);
    let drained = nodes.filter(|node| cluster.members.get(node).is_some_and(is_on_its_way)).count();
    let are_all = skipped.as_ref().is_some_and(|it| usize::try_from(it.nodes) == Ok(drained));
    let effect = plan.planned_effect();
    plan.status.effect = Some(if are_all { without_drain(&effect) } else { effect });
    plan.status.drain_skipped = skipped;
}

/// What a plan does, for a column, where none of its nodes is drained.
fn without_drain(effect: &str) -> String {
    match effect.strip_prefix("drain") {
        Some("") => "none, not drained".to_owned(),
        Some(rest) => format!("{}, not drained", rest.trim_start_matches(" + ")),
        None => effect.to_owned(),
    }
}

/// The same in all that is wanted.
pub(super) fn note_in_all(cluster: &Cluster, wanted: &mut BTreeMap<String, Vec<Arc<Described>>>) {
    if !cluster.by_tread {
        return;
    }
    for plan in wanted.values_mut().flatten() {
        note_undrained(Arc::make_mut(plan), cluster);
    }
}

/// The same in the lines about a change, for pools of which no node is drained: a change comes to
/// all nodes of its pools.
pub(super) fn reword(cluster: &Cluster, lines: &mut [Line]) {
    for line in lines {
        let Some(pool) = line.drains() else { continue };
        let nodes: usize = cluster.members.of_pool(pool).map(|(_, nodes)| nodes.len()).sum();
        let are_all = skipped(pool, cluster, |_| true)
            .is_some_and(|skipped| usize::try_from(skipped.nodes) == Ok(nodes));
        if are_all {
            line.reword(without_drain);
        }
    }
}

/// A line for each of these pools that has such nodes: five at most.
pub(super) fn lines<'p>(
    cluster: &Cluster,
    pools: impl IntoIterator<Item = &'p str>,
) -> Vec<String> {
    let line = |pool: &str| {
        let skipped = skipped(pool, cluster, |_| true)?;
        Some(format!("tread: pool {}: {}", clean(pool), says(&skipped)))
    };
    pools.into_iter().filter_map(line).take(POOLS).collect()
}

/// That nodes are not drained, in words.
pub fn says(skipped: &DrainSkipped) -> String {
    match skipped.nodes {
        1 => format!("1 node is not drained: {}", skipped.why),
        nodes => format!("{nodes} nodes are not drained: {}", skipped.why),
    }
}

fn skipped(
    pool: &str,
    cluster: &Cluster,
    is_on_its_way: impl Fn(&Member) -> bool,
) -> Option<DrainSkipped> {
    let nodes = cluster.members.of_pool(pool).flat_map(|(_, nodes)| nodes);
    let nodes = nodes.filter(|node| is_skipped(node, pool, cluster));
    let nodes = nodes.filter(|node| cluster.members.get(node).is_some_and(&is_on_its_way)).count();
    let why = match cluster.wanted(pool).skips_drain {
        true => format!("spec.drain.skip of Rollout {} says so", clean(pool)),
        false => "no other node takes the pods".to_owned(),
    };
    (nodes > 0).then(|| DrainSkipped { nodes: i64::try_from(nodes).unwrap_or(i64::MAX), why })
}

#[cfg(test)]
mod tests;
