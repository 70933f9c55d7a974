//! Whether a look at a node would only wait, decided by what is watched: most changes are the
//! agent's progress, and need nothing of the controller. Acts are decided by what is read from the
//! API server.

use super::known::Moment;
use super::marks::is_of;
use crate::order;
use crate::reading::{Aim, Room, drains_next, has, proof_is_due};
use tread_kube::node_lease;
use tread_model::protocol::{
    Act, Config, Cordon, Disrupts, Operation, Seen, Terms, Time, Version, Versions, Waits, next,
    wanted,
};

/// Why nothing is done for a node, where what is watched is enough to know that.
pub(crate) fn waits(
    name: &str,
    (aim, room): (&Aim, &Room),
    moment: &Moment,
    (us, terms): (&str, &Terms),
    now: Time,
) -> Option<Waits> {
    let facts = moment.nodes.get(name)?;
    let update = moment.updates.get(name).filter(|update| is_of(update, &facts.uid))?;
    let order = order::of(update).ok()?;
    let report = update.status.as_ref().and_then(order::report);
    let drains = order.is_some_and(|order| drains_next(&order));
    let proof = proof_is_due(order, report);
    if drains || proof.is_some_and(|disrupts| disrupts != Disrupts::Nothing) {
        // Pods and kubelets' Leases are not watched.
        return None;
    }
    let slots = moment.slots.as_ref().ok()?;
    let node = name.to_owned();
    let has_room =
        |softly| slots.has_room(&node, &aim.pool, softly, room.limits, &room.unavailable);
    let lease = node_lease::name(name).and_then(|lease| moment.leases.get(&lease));
    let version = |text: Option<&String>| Version(text.map_or("", String::as_str).into());
    let newest = Config(aim.target.digest);
    let seen = Seen {
        now,
        fresh: false,
        versions: Versions {
            slots: Version("".into()),
            lease: lease.map(|it| version(it.metadata.resource_version.as_ref())),
            update: version(update.metadata.resource_version.as_ref()),
        },
        slot: slots.of(&node),
        soft_room: has_room(true),
        room: has_room(false),
        lease: lease.map(|it| node_lease::read(it, us)),
        order,
        report,
        cordon: facts.cordon.unwrap_or(Cordon::No),
        drained: false,
        proved: proof.is_some(),
        held: facts.held.or_else(|| aim.maintained.held()),
        wanted: wanted(aim.turn, newest, has(update, newest), (order.as_ref(), report)),
        newest,
        turns_back: aim.turns_back,
        id: Operation(0),
    };
    match next(&seen, terms) {
        Act::Wait(waits) => Some(waits),
        _ => None,
    }
}
