//! How a node is cordoned and drained before an agent is given its order.

use super::act::{Act, Waits};
use super::guards::Guards;
use super::order::{Order, Stage};
use super::seen::{Cordon, Seen};
use super::stamp::Stamp;
use super::terms::Terms;
use super::upkeep::{held, write};
use std::time::Duration;

/// The next act of preparing a node, whose Lease is held.
pub(super) fn prepare<G: Guards>(seen: &Seen, order: &Order, terms: &Terms) -> Act {
    let cordon = match seen.cordon {
        Cordon::Ours(operation, stamp) if operation == order.operation => stamp,
        _ => None,
    };
    if let Some(held) = held(seen) {
        return Act::Wait(Waits::Held(held));
    }
    if !order.disrupts.drains() || (cordon.is_some() && seen.drained) {
        return write::<G>(seen, Order { stage: Stage::Go, given: true, cordon, ..*order });
    }
    let within = within::<G>(seen, order, terms);
    if within.is_zero() {
        return write::<G>(seen, Order { hands_on: Some(seen.now.after(terms.pass)), ..*order });
    }
    match cordon {
        Some(_) => Act::Evict { within },
        None => {
            let (operation, stamp) = (order.operation, Stamp(seen.id.0));
            Act::Cordon { operation, stamp, within }
        }
    }
}

/// Whether a node that was prepared still is: it has the cordon under which it was seen drained.
/// Where somebody uncordoned it, pods may have come, also if another replica cordoned it again.
pub(super) fn is_still_cordoned<G: Guards>(seen: &Seen, order: &Order) -> bool {
    match seen.cordon {
        Cordon::Ours(operation, stamp) if operation == order.operation => {
            !G::SAME_CORDON || (stamp.is_some() && stamp == order.cordon)
        }
        _ => false,
    }
}

/// For how long a replica that read this may cordon and evict: as long as the order says, and
/// only under the Lease.
fn within<G: Guards>(seen: &Seen, order: &Order, terms: &Terms) -> Duration {
    let said = order.hands_on.map_or(Duration::ZERO, |until| until.since(seen.now));
    let said = said.saturating_sub(terms.drift);
    let left = seen.lease.map_or(Duration::ZERO, |lease| lease.left(seen.now));
    match G::ENDS_BEFORE_LEASE && G::LEASE {
        true => said.min(left.saturating_sub(terms.margin())),
        false => said,
    }
}
