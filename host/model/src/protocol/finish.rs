//! How an operation ends: the node is given back, then its Lease, then its slot.

use super::act::{Act, Waits};
use super::guards::Guards;
use super::lease::Holder;
use super::order::{Config, Disrupts, Operation, Order, Phase, Report, Stage};
use super::seen::{Cordon, Seen, Wanted};
use super::slots::Slot;
use super::terms::Terms;
use super::upkeep::{held, lease_for, taken_by_another};

/// What is still to be given back, one after the other; nothing if all of it is.
pub(super) fn give_back<G: Guards>(seen: &Seen, terms: &Terms) -> Option<Act> {
    let is_leased = matches!(seen.lease, Some(lease) if lease.holder != Holder::Other);
    let is_cordoned = matches!(seen.cordon, Cordon::Ours(..));
    if !is_leased && !is_cordoned && seen.slot.is_none() {
        return None;
    }
    if hands_are_on::<G>(seen) {
        return Some(Act::Wait(Waits::HandsOff));
    }
    if let Cordon::Ours(operation, _) = seen.cordon {
        return Some(match seen.order.is_some_and(|order| order.operation == operation) {
            // All else that was read may be older than the mark of this cordon.
            false => Act::Degrade,
            true if held(seen).is_some() && G::OTHERS_MARKS => {
                let of = G::OWN_CORDON.then_some(operation);
                Act::HandOver { of, within: terms.pass }
            }
            true => uncordon::<G>(seen, operation, terms),
        });
    }
    if is_leased {
        return Some(release_lease::<G>(seen));
    }
    seen.slot.map(|slot| release_slot::<G>(seen, slot))
}

/// The cordon is undone under the Lease too: where somebody else has the node by now, it stays.
fn uncordon<G: Guards>(seen: &Seen, operation: Operation, terms: &Terms) -> Act {
    let of = G::OWN_CORDON.then_some(operation);
    let holder = seen.slot.map_or(operation, |slot| slot.operation);
    if !G::LEASE {
        return Act::Uncordon { of, within: terms.pass };
    }
    if let Err(first) = lease_for::<G>(seen, holder, Disrupts::Drain, terms) {
        return *first;
    }
    let left = seen.lease.map(|lease| lease.left(seen.now)).unwrap_or_default();
    let within = match G::ENDS_BEFORE_LEASE {
        true => left.saturating_sub(terms.margin()),
        false => left,
    };
    Act::Uncordon { of, within }
}

/// Whether a replica may still cordon or evict.
fn hands_are_on<G: Guards>(seen: &Seen) -> bool {
    let until = seen.order.and_then(|order| order.hands_on);
    G::HANDS_OFF && until.is_some_and(|until| seen.now < until)
}

fn release_lease<G: Guards>(seen: &Seen) -> Act {
    let onto = G::LEASE_BY_VERSION.then(|| seen.versions.lease.clone()).flatten();
    Act::ReleaseLease { onto }
}

fn release_slot<G: Guards>(seen: &Seen, slot: Slot) -> Act {
    let onto = G::SLOTS_BY_VERSION.then(|| seen.versions.slots.clone());
    Act::ReleaseSlot { onto, operation: slot.operation }
}

/// Whether an operation has left the node unwell, or found it so and did not change that.
pub(super) fn is_unwell(seen: &Seen, order: &Order) -> bool {
    left_unwell(order, seen.report)
}

fn left_unwell(order: &Order, report: Option<Report>) -> bool {
    let of_order = report.filter(|report| report.operation == order.operation);
    match of_order.map(|report| report.phase) {
        _ if order.stage == Stage::Closed => order.unwell,
        Some(Phase::Degraded) => true,
        Some(Phase::Done | Phase::WentBack) => false,
        _ => order.unwell,
    }
}

/// What is wanted of a node whose turn is said to be, for its newest config. Whoever said so may not
/// know yet that it has that by now. Where an operation left it unwell, its disk may be another one
/// than it says: it is brought there all the same.
pub fn wanted(
    turn: Option<Disrupts>,
    newest: Config,
    has_it: bool,
    (order, report): (Option<&Order>, Option<Report>),
) -> Option<Wanted> {
    let is_due = !has_it || order.is_some_and(|order| left_unwell(order, report));
    let disrupts = turn.filter(|_| is_due)?;
    Some(Wanted { config: newest, disrupts })
}

/// Whether the node proved itself, or nothing was done to it.
pub(super) fn is_proved<G: Guards>(seen: &Seen, order: &Order) -> bool {
    match seen.phase_of(order.operation) {
        Some(Phase::Done | Phase::WentBack) => seen.proved || !G::PROOF,
        _ => !is_unwell(seen, order),
    }
}

/// A node that failed keeps its slot and its cordon. Its Lease is given back, so that somebody
/// can mend it; a retry is an operation of its own, once nobody else has the node.
pub(super) fn degraded<G: Guards>(seen: &Seen, terms: &Terms) -> Act {
    if hands_are_on::<G>(seen) {
        return Act::Wait(Waits::HandsOff);
    }
    if !G::FAILED_KEEPS_SLOT {
        return give_back::<G>(seen, terms).unwrap_or(Act::Degrade);
    }
    let is_wanted = seen.wanted.is_some_and(|wanted| wanted.disrupts.drains());
    let begins = is_wanted && taken_by_another(seen, terms).is_none();
    // The slot of a plan that drains nothing does not count as a node that is down.
    let has_room = seen.room || seen.slot.is_some_and(|slot| slot.unavailable) || !G::ROOM;
    if begins && has_room {
        let slot = Slot { operation: seen.id, unavailable: true };
        let onto = G::SLOTS_BY_VERSION.then(|| seen.versions.slots.clone());
        return Act::TakeSlot { onto, slot };
    }
    match seen.lease {
        Some(lease) if lease.holder != Holder::Other => release_lease::<G>(seen),
        _ if begins => Act::Wait(Waits::Room),
        _ => Act::Degrade,
    }
}
