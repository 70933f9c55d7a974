//! The Lease of an operation: taken, renewed, and taken again where it was lost.

use super::act::{Act, Waits};
use super::guards::Guards;
use super::lease::{Holder, Lease};
use super::order::{Disrupts, Operation, Order, Report, Stage};
use super::seen::{Cordon, HeldBy, Seen};
use super::terms::Terms;
use super::time::Time;

/// More transitions than any Lease really has, and far below the largest number that one can hold.
const MOST: u32 = 1 << 30;

/// The highest token that is known. A Lease that others removed counts from zero again, so the
/// order keeps the token; if the order is lost too, the agent still reports it.
pub(super) fn last_token(seen: &Seen) -> u32 {
    let said = seen.report.map_or(0, |report| report.token);
    let ordered = seen.order.map_or(0, |order| order.token);
    if said > MOST { ordered } else { ordered.max(said) }
}

/// Whether the agent took a later order than this one, so that it will ignore this one for ever:
/// the API server was restored from an older state.
pub(super) fn is_outlived(seen: &Seen, order: &Order) -> bool {
    // One that says no token says nothing of that.
    let is_later = |it: Report| (order.token.max(1)..=MOST).contains(&it.token);
    seen.report.is_some_and(|it| it.operation != order.operation && is_later(it))
}

/// The token of the Lease, if it is held for this operation for long enough; otherwise what has
/// to be done first.
pub(super) fn lease_for<G: Guards>(
    seen: &Seen,
    operation: Operation,
    disrupts: Disrupts,
    terms: &Terms,
) -> Result<u32, Box<Act>> {
    let lasts = terms.lease_for(disrupts);
    let Some(lease) = seen.lease else {
        // The Lease is made without a holder: a request that arrives again, after it is gone,
        // claims nothing.
        return Err(Box::new(Act::MakeLease(Lease::ours(None, 0, seen.now, lasts, terms))));
    };
    if G::OTHERS_LEASE && lease.is_anothers(seen.now, terms) {
        return Err(Box::new(Act::Wait(Waits::Lease)));
    }
    let last = last_token(seen);
    // Somebody else may have written any number there, and a token that agents took counts for
    // ever. Above the limit only the one after the last is taken: that is what tread itself writes.
    let is_token = lease.transitions <= MOST.max(last.saturating_add(1));
    let is_ours = lease.holder == Holder::Us(Some(operation)) && is_token;
    if is_ours && lease.left(seen.now) > lasts.saturating_sub(terms.lease / 3) {
        return Ok(lease.transitions);
    }
    let token = match is_ours {
        true => lease.transitions,
        false if lease.transitions >= MOST => last.saturating_add(1),
        false => lease.transitions.max(last).saturating_add(1),
    };
    let ours = Lease::ours(Some(operation), token, seen.now, lasts, terms);
    let onto = G::LEASE_BY_VERSION.then(|| seen.versions.lease.clone()).flatten();
    Err(Box::new(Act::WriteLease { onto, lease: ours }))
}

/// What has to be written into a node's Lease before its agent may disrupt the node to bring what
/// it joins with. There is no order then, and no token is known. None: nothing has to be written.
/// It is an error while somebody else holds the Lease.
pub fn lease_to_join(
    lease: Option<&Lease>,
    operation: Operation,
    now: Time,
    terms: &Terms,
) -> Result<Option<Lease>, Waits> {
    let lasts = terms.lease_for(Disrupts::Reboot);
    let Some(lease) = lease else {
        return Ok(Some(Lease::ours(None, 0, now, lasts, terms)));
    };
    if lease.is_anothers(now, terms) {
        return Err(Waits::Lease);
    }
    let is_ours = lease.holder == Holder::Us(Some(operation));
    if is_ours && lease.left(now) > lasts.saturating_sub(terms.lease / 3) {
        return Ok(None);
    }
    let token = match is_ours {
        true => lease.transitions,
        false if lease.transitions >= MOST => 1,
        false => lease.transitions.saturating_add(1),
    };
    Ok(Some(Lease::ours(Some(operation), token, now, lasts, terms)))
}

/// What has to be done about the Lease of an order, if anything. While somebody else has the node
/// it is not renewed: nothing is begun then, and they may be waiting for the Lease.
pub(super) fn upkeep<G: Guards>(seen: &Seen, order: &Order, terms: &Terms) -> Option<Act> {
    if order.disrupts == Disrupts::Nothing || held(seen).is_some() || !G::LEASE {
        return None;
    }
    match lease_for::<G>(seen, order.operation, order.disrupts, terms) {
        Err(first) => Some(*first),
        Ok(token) if token == order.token || !G::TOKEN => None,
        // Somebody else had the node meanwhile: nothing that was prepared counts.
        Ok(token) => Some(write::<G>(seen, Order { token, ..again(order) })),
    }
}

/// An order that has to be prepared again.
pub(super) fn again(order: &Order) -> Order {
    let stage = if order.disrupts.drains() { Stage::Prepare } else { Stage::Go };
    Order { stage, cordon: None, ..*order }
}

/// The act that writes an order.
pub(super) fn write<G: Guards>(seen: &Seen, order: Order) -> Act {
    Act::WriteOrder { onto: G::ORDER_BY_VERSION.then(|| seen.versions.update.clone()), order }
}

/// What has to be waited for where somebody else has the node.
pub(super) fn taken_by_another(seen: &Seen, terms: &Terms) -> Option<Waits> {
    if seen.lease.is_some_and(|lease| lease.is_anothers(seen.now, terms)) {
        return Some(Waits::Lease);
    }
    held(seen).map(Waits::Held)
}

/// Whose marks are on the node.
pub(super) fn held(seen: &Seen) -> Option<HeldBy> {
    seen.held.or((seen.cordon == Cordon::Anothers).then_some(HeldBy::Cordon))
}
