//! What is seen of one node: whose NodeUpdate it is, who else has it, and whether something is left
//! to be done for it.

use super::by::By;
use super::facts::Facts;
use super::may_act::others_lease;
use super::said;
use super::sightings::mark;
use crate::order;
use tread_kube::api::NodeUpdate;
use tread_kube::node_lease::{self, operation_text, parse_operation};
use tread_model::protocol::{Cordon, Holder, Stage};

/// Whether a NodeUpdate is that of the node with this UID.
pub(crate) fn is_of(update: &NodeUpdate, uid: &str) -> bool {
    let owners = update.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().any(|owner| owner.kind == "Node" && owner.uid == uid)
}

/// Whether it takes the place of another one that would be drained.
pub(crate) fn is_unavailable(facts: &Facts) -> bool {
    !facts.is_ready || facts.is_cordoned_by_others()
}

/// Nodes that have a slot and are not there.
pub(crate) fn gone(by: By<'_>) -> Vec<String> {
    let Ok(slots) = &by.moment.slots else { return Vec::new() };
    let is_gone = |name: &&String| !by.moment.nodes.contains_key(*name);
    slots.taken.keys().filter(is_gone).cloned().collect()
}

/// Whether nothing is left to be done for what was ordered of a node. `is_under_way` says what its
/// order does not: a closed one may have left it unwell.
pub(crate) fn is_quiet(
    name: &str,
    facts: &Facts,
    update: Option<&NodeUpdate>,
    is_under_way: bool,
    by: By<'_>,
) -> bool {
    let has_slot = by.moment.slots.as_ref().is_ok_and(|it| it.taken.contains_key(name));
    let order = update.and_then(|update| update.spec.order.as_ref());
    let is_open = order
        .is_some_and(|order| order::read(order).is_ok_and(|order| order.stage != Stage::Closed));
    let lease = node_lease::name(name).and_then(|lease| by.moment.leases.get(&lease));
    let has_lease =
        lease.is_some_and(|lease| node_lease::read(lease, by.us).holder != Holder::Other);
    let is_marked = facts.is_cordoned_by_tread() || facts.has_old_mark;
    !(has_slot || is_open || has_lease || is_under_way || is_marked)
}

/// What is to be done about a cordon of tread's that was made for an operation of which nothing is
/// known: its NodeUpdate was removed meanwhile. Nobody knows whether the node is well.
pub(crate) fn stray_cordon(
    name: &str,
    facts: &Facts,
    update: Option<&NodeUpdate>,
    by: By<'_>,
) -> Option<String> {
    let Some(Cordon::Ours(operation, _)) = facts.cordon else { return None };
    // Slots that cannot be read are said to be, and stop everything.
    let has_slot = by.moment.slots.as_ref().is_ok_and(|it| it.taken.contains_key(name));
    let order = update.and_then(|update| update.spec.order.as_ref());
    let is_of_it = order.is_some_and(|order| parse_operation(&order.operation) == Some(operation));
    (!has_slot && !is_of_it).then(|| {
        format!(
            "it is cordoned for the operation {} of tread's, of which nothing is known any more, so \
             nobody knows whether it is well: see to it, then kubectl uncordon {name}",
            operation_text(operation)
        )
    })
}

/// Who else has a node, in words.
pub(crate) fn held(name: &str, facts: &Facts, by: By<'_>) -> Option<String> {
    let lease = others_lease(name, by.moment, (by.us, by.terms), by.now);
    let by_lease = lease.map(|(object, lease)| said::holds(object, &lease));
    by_lease.or_else(|| {
        let mark = mark(name, facts, by.moment)?;
        Some(mark.says(by.sightings.since(name, mark)))
    })
}
