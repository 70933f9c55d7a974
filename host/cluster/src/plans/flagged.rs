//! Nodes that somebody else has, or is to have, for maintenance: said in plans that concern them, of
//! a change that is about to be made, and to whoever takes a node that is to change. Nobody is
//! kept from anything.

use crate::flags::{Flagged, line};
use crate::pools::{Member, Pool, RollsOut};
use crate::previews::{Cluster, Described};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_kube::api::disruption_plan::FlaggedNode;
use tread_kube::clean::clean;
use tread_model::effect::Effect;

/// So many nodes are named in a plan.
const NAMED: usize = 10;
/// How many pools are named.
const POOLS: usize = 5;
/// The API server passes no longer warning on.
const LONGEST: usize = 256;

/// The nodes of a pool that somebody else has, by name.
pub(super) fn of_pool(cluster: &Cluster, pool: &str) -> Vec<Flagged> {
    let nodes: BTreeSet<&str> = cluster.flags.nodes().chain(cluster.members.held()).collect();
    let flagged = nodes.into_iter().filter_map(|node| {
        let member = cluster.members.get(node).filter(|it| it.place.pool() == Some(pool))?;
        Some((node.to_owned(), cluster.flags.why(node, member)?))
    });
    flagged.collect()
}

/// A line for each of these pools that has such nodes: five at most, with a count of the others.
pub(super) fn lines<'p>(
    cluster: &Cluster,
    pools: impl IntoIterator<Item = &'p str>,
) -> Vec<String> {
    let lines = pools.into_iter().filter_map(|pool| line(pool, &of_pool(cluster, pool), LONGEST));
    let mut lines: Vec<String> = lines.collect();
    if let more @ 1.. = lines.len().saturating_sub(POOLS) {
        lines.truncate(POOLS);
        let pools = if more == 1 { "pool has" } else { "pools have" };
        lines
            .push(format!("tread: and {more} more {pools} nodes that are flagged for maintenance"));
    }
    lines
}

/// The same of one that goes on after a pause: of the nodes to which something happens then.
pub(super) fn unpaused(cluster: &Cluster, pool: &str, plans: &[Arc<Described>]) -> Option<String> {
    let own: Vec<&Arc<Described>> = plans.iter().filter(|plan| plan.pool == pool).collect();
    let mut flagged = of_pool(cluster, pool);
    flagged.retain(|(node, _)| {
        let member = cluster.members.get(node);
        member.is_some_and(|member| own.iter().any(|plan| concerns(plan, member, cluster)))
    });
    line(pool, &flagged, LONGEST)
}

/// Says in plans which of the nodes on their way somebody else has.
pub(super) fn note_in_all(cluster: &Cluster, wanted: &mut BTreeMap<String, Vec<Arc<Described>>>) {
    for (pool, plans) in wanted {
        let flagged = of_pool(cluster, pool);
        for plan in plans {
            if !flagged.is_empty() || !plan.status.flagged.is_empty() {
                note(Arc::make_mut(plan), &flagged, cluster);
            }
        }
    }
}

/// Says in a plan which of its nodes somebody else has.
pub fn note_flagged(plan: &mut Described, cluster: &Cluster) {
    let flagged = of_pool(cluster, &plan.pool);
    note(plan, &flagged, cluster);
}

fn note(plan: &mut Described, flagged: &[Flagged], cluster: &Cluster) {
    let concerned = flagged.iter().filter(|(node, _)| {
        cluster.members.get(node).is_some_and(|member| concerns(plan, member, cluster))
    });
    let mut concerned: Vec<FlaggedNode> =
        concerned.map(|(node, why)| FlaggedNode { node: node.clone(), why: why.clone() }).collect();
    let left_out = concerned.len().saturating_sub(NAMED);
    concerned.truncate(NAMED);
    plan.status.flagged = concerned;
    plan.status.flagged_left_out = i64::try_from(left_out).unwrap_or(i64::MAX);
}

/// Whether a plan says that something happens to a node of its pool.
fn concerns(plan: &Described, member: &Member, cluster: &Cluster) -> bool {
    let happens = plan.effect != Effect::Refuse;
    let from: BTreeSet<&str> = plan.status.transitions.iter().map(|way| &*way.from).collect();
    let pool = cluster.pools.get(&plan.pool).map(|pool| &**pool);
    let by_nobody = pool.is_some_and(|pool| cluster.rolls_out(pool) == RollsOut::Nobody);
    happens && (by_nobody || has(member, pool).is_some_and(|has| from.contains(has.as_str())))
}

/// The config that a node of a pool has, as plans call it.
pub(super) fn has(member: &Member, pool: Option<&Pool>) -> Option<String> {
    let current = member.node.current.as_deref().map(clean);
    // Of one that does not say what it has, its pool does.
    let settled = pool.and_then(|pool| pool.settled.as_ref().or(pool.target.as_ref()));
    current.or_else(|| settled.map(|it| clean(&it.name)))
}

/// What is about to happen to a node, in words: its pool and what for; and who does it.
pub(super) fn due(
    node: &str,
    cluster: &Cluster,
    plans: &[Arc<Described>],
) -> Option<(String, RollsOut)> {
    let member = cluster.members.get(node)?;
    let pool = cluster.pools.get(member.place.pool()?)?;
    if pool.paused || cluster.wanted(&pool.name).paused {
        return None;
    }
    let mut own = plans.iter().filter(|plan| plan.pool == pool.name);
    // The last one is that of all changes together.
    let plan = own.rfind(|plan| concerns(plan, member, cluster));
    let words = match plan {
        Some(plan) => {
            let effect = plan.status.effect.as_deref().unwrap_or_default();
            let cause = plan.status.cause.as_deref().unwrap_or_default();
            format!("in the rollout of pool {} ({cause}: {effect})", clean(&pool.name))
        }
        None => {
            let release = cluster.release.as_ref().filter(|release| release.is_under_way())?;
            format!("in the update of the cluster to {}", clean(&release.desired))
        }
    };
    Some((words, cluster.rolls_out(pool)))
}

/// What becomes of a node that somebody has meanwhile.
pub(super) fn meanwhile(rolls_out: RollsOut) -> &'static str {
    match rolls_out {
        RollsOut::Tread => "; tread leaves it alone meanwhile",
        RollsOut::Operator => "; OpenShift's operator does not wait for that",
        RollsOut::Nobody => "",
    }
}

#[cfg(test)]
mod tests;
