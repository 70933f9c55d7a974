//! The controllers' next act for one node.

use super::act::{Act, Waits};
use super::finish::{degraded, give_back, is_proved, is_unwell};
use super::guards::{AllGuards, Guards};
use super::lease::Holder;
use super::order::{Disrupts, Operation, Order, Phase, Stage};
use super::prepare::{is_still_cordoned, prepare};
use super::seen::{Cordon, Seen, Wanted};
use super::slots::Slot;
use super::terms::Terms;
use super::upkeep::{
    again, held, is_outlived, last_token, lease_for, taken_by_another, upkeep, write,
};

/// What a controller does next for a node.
pub fn next(seen: &Seen, terms: &Terms) -> Act {
    next_with::<AllGuards>(seen, terms)
}

/// The same, with only these guards.
pub fn next_with<G: Guards>(seen: &Seen, terms: &Terms) -> Act {
    match decide::<G>(seen, terms) {
        nothing @ (Act::Wait(_) | Act::Degrade) => nothing,
        _ if !seen.fresh && G::FRESH => Act::ReadAfresh,
        act => act,
    }
}

fn decide<G: Guards>(seen: &Seen, terms: &Terms) -> Act {
    match seen.slot {
        Some(slot) => carry_on::<G>(seen, slot, terms),
        None => match seen.order.filter(|order| !is_over::<G>(seen, order)) {
            // The slots were lost: what is under way counts again, room or not.
            Some(order) => {
                let unavailable = order.disrupts.drains() || is_unwell(seen, &order);
                take_slot::<G>(seen, Slot { operation: order.operation, unavailable })
            }
            None => without_operation::<G>(seen, terms),
        },
    }
}

/// Whether nothing more comes of an order but that the node is given back. Its spec says that: a
/// NodeUpdate can lose its status, and an agent can report anything.
fn is_over<G: Guards>(seen: &Seen, order: &Order) -> bool {
    let phase = seen.phase_of(order.operation);
    let ended = matches!(phase, Some(Phase::Done | Phase::TurnedBack | Phase::WentBack));
    let is_closed = order.stage == Stage::Closed || (ended && !G::CLOSED);
    is_closed && !is_unwell(seen, order)
}

/// What an operation left is taken away; then one may begin.
fn without_operation<G: Guards>(seen: &Seen, terms: &Terms) -> Act {
    let is_given_back = seen.order.is_none_or(|order| is_proved::<G>(seen, &order));
    if let Some(left) = give_back::<G>(seen, terms).filter(|_| is_given_back) {
        return left;
    }
    let Some(Wanted { disrupts, .. }) = seen.wanted else { return Act::Wait(Waits::Nothing) };
    if let Some(waits) = taken_by_another(seen, terms) {
        return Act::Wait(waits);
    }
    let unavailable = disrupts.drains();
    let room = if unavailable { seen.room } else { seen.soft_room };
    match room || !G::ROOM {
        // Written first: from then on, an order that is missing was lost.
        true if seen.order.is_none() && disrupts != Disrupts::Nothing && G::LOST_ORDER => {
            write::<G>(seen, none_yet(seen, seen.id))
        }
        true => take_slot::<G>(seen, Slot { operation: seen.id, unavailable }),
        false => Act::Wait(Waits::Room),
    }
}

/// Whether this act takes a lost slot again, for an operation that was begun before, even if there
/// is no room. Nobody may have written the slots since they were read: the operation may have
/// ended, and others may have taken the room.
pub fn retakes(seen: &Seen, act: &Act) -> bool {
    let Act::TakeSlot { slot, .. } = act else { return false };
    let has = seen.slot.is_some_and(|has| has.operation == slot.operation);
    seen.id != slot.operation && !has
}

/// An order of which nothing comes.
fn none_yet(seen: &Seen, operation: Operation) -> Order {
    Order {
        operation,
        config: seen.newest,
        disrupts: Disrupts::Nothing,
        token: seen.order.map_or(0, |order| order.token),
        stage: Stage::Closed,
        given: false,
        unwell: seen.order.is_some_and(|order| is_unwell(seen, &order)),
        hands_on: None,
        cordon: None,
    }
}

fn take_slot<G: Guards>(seen: &Seen, slot: Slot) -> Act {
    Act::TakeSlot { onto: G::SLOTS_BY_VERSION.then(|| seen.versions.slots.clone()), slot }
}

/// An operation that has its slot goes on.
fn carry_on<G: Guards>(seen: &Seen, slot: Slot, terms: &Terms) -> Act {
    let Some(order) = seen.order.filter(|order| order.operation == slot.operation) else {
        return give_order::<G>(seen, slot, terms);
    };
    if order.stage == Stage::Closed {
        return closed::<G>(seen, &order, terms);
    }
    match seen.phase_of(order.operation) {
        Some(Phase::Begun | Phase::NeedsBoot) => begun::<G>(seen, &order, slot, terms),
        None | Some(Phase::Waiting) => not_begun::<G>(seen, &order, terms),
        Some(Phase::Degraded) => degraded::<G>(seen, terms),
        Some(Phase::Done | Phase::TurnedBack | Phase::WentBack) => ended::<G>(seen, &order, terms),
    }
}

/// An order whose agent is ready with it is closed once the node is proved.
fn ended<G: Guards>(seen: &Seen, order: &Order, terms: &Terms) -> Act {
    let unwell = is_unwell(seen, order);
    match unwell || is_proved::<G>(seen, order) {
        true if G::CLOSED => write::<G>(seen, Order { stage: Stage::Closed, unwell, ..*order }),
        true => closed::<G>(seen, order, terms),
        false => upkeep::<G>(seen, order, terms).unwrap_or(Act::Wait(Waits::Proof)),
    }
}

/// What comes after an order: the node is given back, unless it is unwell.
fn closed<G: Guards>(seen: &Seen, order: &Order, terms: &Terms) -> Act {
    match is_unwell(seen, order) {
        true => degraded::<G>(seen, terms),
        false => give_back::<G>(seen, terms).unwrap_or(Act::Wait(Waits::Nothing)),
    }
}

/// The first order of an operation, which needs the Lease.
fn give_order<G: Guards>(seen: &Seen, slot: Slot, terms: &Terms) -> Act {
    if let Some(lost) = lost::<G>(seen, slot, terms) {
        return write::<G>(seen, lost);
    }
    let order = none_yet(seen, slot.operation);
    let wanted = seen.wanted.filter(|it| it.disrupts.drains() == slot.unavailable);
    let wanted = wanted.filter(|_| taken_by_another(seen, terms).is_none());
    let Some(Wanted { config, disrupts }) = wanted else {
        // Nobody gives this operation an order any more: only then its slot may go.
        return write::<G>(seen, order);
    };
    let token = match disrupts {
        Disrupts::Softly | Disrupts::Drain | Disrupts::Reboot if G::LEASE => {
            match lease_for::<G>(seen, slot.operation, disrupts, terms) {
                Ok(token) => token,
                Err(first) => return *first,
            }
        }
        _ => last_token(seen).saturating_add(1),
    };
    let given = !disrupts.drains();
    let stage = if given { Stage::Go } else { Stage::Prepare };
    write::<G>(seen, Order { config, disrupts, token, stage, given, ..order })
}

/// The order that this operation may have had, if somebody removed the NodeUpdate and it was made
/// anew. The agent then turns back, or says how far it is.
fn lost<G: Guards>(seen: &Seen, slot: Slot, terms: &Terms) -> Option<Order> {
    let ours = Holder::Us(Some(slot.operation));
    let lease = seen.lease.filter(|lease| lease.holder == ours);
    // Before what only writes is ordered, there may have been no order ever.
    let had_one = slot.unavailable || lease.is_some();
    (seen.order.is_none() && had_one && G::LOST_ORDER).then(|| Order {
        operation: slot.operation,
        config: seen.newest,
        disrupts: if slot.unavailable { Disrupts::Reboot } else { Disrupts::Softly },
        // An agent that never heard of it says so, too.
        token: lease.map_or(0, |it| it.transitions).max(last_token(seen).saturating_add(1)),
        stage: Stage::Withdrawn,
        given: true,
        unwell: false,
        // Another replica may still cordon and evict.
        hands_on: slot.unavailable.then(|| seen.now.after(terms.pass)),
        cordon: None,
    })
}

/// An order of which the agent has done nothing yet, as far as it said.
fn not_begun<G: Guards>(seen: &Seen, order: &Order, terms: &Terms) -> Act {
    if is_outlived(seen, order) && G::OUTLIVED {
        return write::<G>(seen, Order { stage: Stage::Closed, ..*order });
    }
    if order.stage == Stage::Withdrawn {
        return match G::AGENTS_WORD {
            true => Act::Wait(Waits::Agent),
            false => give_back::<G>(seen, terms).unwrap_or(Act::Wait(Waits::Nothing)),
        };
    }
    if order.given && !G::CARRY_ON {
        let unavailable = order.disrupts.drains();
        return take_slot::<G>(seen, Slot { operation: seen.id, unavailable });
    }
    let is_old = order.config != seen.newest || seen.turns_back;
    if is_old || held(seen).is_some() {
        let stage = if order.given { Stage::Withdrawn } else { Stage::Closed };
        return write::<G>(seen, Order { stage, ..*order });
    }
    goes_on::<G>(seen, order, terms)
}

/// An order that the agent has begun, and finishes.
fn begun<G: Guards>(seen: &Seen, order: &Order, slot: Slot, terms: &Terms) -> Act {
    let phase = seen.phase_of(order.operation);
    let escalates = phase == Some(Phase::NeedsBoot) && order.disrupts != Disrupts::Reboot;
    if escalates && !slot.unavailable {
        return match seen.room || !G::ROOM {
            true => take_slot::<G>(seen, Slot { unavailable: true, ..slot }),
            false => upkeep::<G>(seen, order, terms).unwrap_or(Act::Wait(Waits::Room)),
        };
    }
    if escalates {
        let order = Order { disrupts: Disrupts::Reboot, ..*order };
        return write::<G>(seen, again(&order));
    }
    if order.stage == Stage::Withdrawn {
        return write::<G>(seen, again(order));
    }
    goes_on::<G>(seen, order, terms)
}

/// The Lease is kept, the node prepared, and the agent waited for.
fn goes_on<G: Guards>(seen: &Seen, order: &Order, terms: &Terms) -> Act {
    if let Some(first) = upkeep::<G>(seen, order, terms) {
        return first;
    }
    match order.stage {
        Stage::Prepare => prepare::<G>(seen, order, terms),
        // Somebody uncordoned it: pods may have come back. What somebody else cordoned is theirs.
        Stage::Go
            if order.disrupts.drains()
                && seen.cordon != Cordon::Anothers
                && !is_still_cordoned::<G>(seen, order)
                && G::TOKEN =>
        {
            write::<G>(seen, again(order))
        }
        Stage::Go | Stage::Withdrawn | Stage::Closed => Act::Wait(Waits::Agent),
    }
}
