//! Nodes that are in no pool any more while something of tread is on them: somebody changed their
//! labels, or the selector of a pool. What was begun is brought to an end, so that no cordon, slot
//! or Lease stays.

use super::by::By;
use super::marks::{is_of, is_quiet};
use super::state::is_lost;
use crate::order;
use tread_cluster::pools::Place;
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::ConfigName;
use tread_model::digest::Digest;
use tread_model::protocol::{Order, Stage};

/// A node that is in no pool, and on which something of tread is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outside {
    pub(crate) name: String,
    /// The pool that its slot counts in, or that it counted in last.
    pub(crate) pool: String,
    /// What was ordered of it, or else what it has: it gets nothing newer.
    pub(crate) ends_with: (ConfigName, Digest),
    /// Whether it counts as one more that is down.
    pub(crate) is_down: bool,
    /// Whether its agent is taken for lost.
    pub(crate) is_lost: bool,
    /// Why it is in no pool, and what becomes of it.
    pub(crate) why: String,
}

/// All of them. One that registered as joining is none: it was in no pool yet.
pub(crate) fn outside(by: By<'_>) -> Vec<Outside> {
    let all = by.cluster.members.all();
    let left = all.filter(|(_, member)| {
        !matches!(member.place, Place::Pool(_) | Place::MasterBeside(_) | Place::Joining)
    });
    left.filter_map(|(name, member)| one(name, &member.place, by)).collect()
}

fn one(name: &str, place: &Place, by: By<'_>) -> Option<Outside> {
    let facts = by.moment.nodes.get(name).filter(|facts| facts.joins.is_none())?;
    let update = by.moment.updates.get(name).map(|it| &**it);
    let update = update.filter(|update| is_of(update, &facts.uid));
    let order = update.and_then(|update| update.spec.order.as_ref());
    let was_left_unwell = |order: &Order| order.stage == Stage::Closed && order.unwell;
    let is_unwell = order.is_some_and(|it| order::read(it).is_ok_and(|it| was_left_unwell(&it)));
    if is_quiet(name, facts, update, is_unwell, by) {
        return None;
    }
    let slot = by.moment.slots.as_ref().ok().and_then(|slots| slots.taken.get(name));
    let acts_since = by.may_act.since(name, by.lost_after);
    let since = (acts_since, by.may_act.unheard_since(name, facts));
    let last = || update.map(|update| update.spec.pool.clone()).unwrap_or_default();
    Some(Outside {
        name: name.to_owned(),
        pool: slot.map_or_else(last, |taken| taken.pool.clone()),
        ends_with: update.and_then(ends_with).unwrap_or((ConfigName::default(), NOTHING)),
        is_down: slot.is_some_and(|taken| taken.slot.unavailable),
        is_lost: is_lost(update, (by.now, by.lost_after), since),
        why: why(place, is_unwell),
    })
}

/// The config of a node that never got an order, and never said that it has a config: its slot is
/// given back by an order that no agent carries out.
const NOTHING: Digest = Digest([0; 32]);

fn ends_with(update: &NodeUpdate) -> Option<(ConfigName, Digest)> {
    let ordered = update.spec.order.as_ref().map(|order| &order.config);
    let has = update.status.as_ref().and_then(|status| status.current.as_ref());
    let read = |config: &ConfigName| Some((config.clone(), Digest::parse(&config.digest)?));
    ordered.and_then(read).or_else(|| has.and_then(read))
}

fn why(place: &Place, is_unwell: bool) -> String {
    let why = match place {
        Place::Several(pools) => format!(
            "it is in no pool any more, since {} select it and nobody can say which is meant",
            pools.join(" and ")
        ),
        Place::Unplaced(pools) => format!(
            "no node is in any pool until somebody mends spec.nodeSelector of {}, which cannot be \
             read",
            pools.join(", ")
        ),
        _ => "it is in no pool any more".to_owned(),
    };
    match is_unwell {
        true => format!(
            "{why}; it failed before that, and keeps its slot here until it is in one pool again \
             and is retried"
        ),
        false => format!("{why}; what was begun on it ends first, and keeps its slot here"),
    }
}
