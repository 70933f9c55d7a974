//! The next acts for one node, one after the other, until somebody else has to do something.

use crate::balancers;
use crate::carry::carry_out;
use crate::conditions;
use crate::cordon_mark;
use crate::drain::{self, Blocked, Course};
use crate::drain_status;
use crate::reading::{Aim, Read, Room, Unread, node, read};
use crate::settings::Settings;
use crate::slots;
use crate::turn::Change;
use tread_kube::asking::{CallOutcome, Failed};
use tread_model::protocol::{
    Act, Cordon, NotNow, Permit, Phase, Question, Terms, Waits, next, retakes,
};

/// More acts than one look at a node ever brings: then others get their turn.
const MOST: usize = 32;
/// So often what others see on the node is set in one look: whoever sets it back each time keeps
/// nothing else from being done.
const MARKS: usize = 3;

/// How a look at a node ended.
#[derive(Debug)]
pub enum Ended {
    /// Nothing is done until something changes.
    Waits(Waits, Box<Read>),
    /// Pods have to move first: those that do not go.
    Drains(Vec<Blocked>, Box<Read>),
    /// It is not begun, or does not boot yet: these pods keep it from being drained until somebody
    /// changes something. It has no slot for the drain.
    Stuck(Vec<Blocked>, Box<Read>),
    /// It was its turn when the look began, and is not any more: nothing was begun.
    NotItsTurn(Box<Read>),
    /// The node stays as it is until somebody looks at it.
    Degraded(Box<Read>),
    /// Others were faster, again and again.
    Busy,
}

/// Does for a node what is next for it, and says in its NodeUpdate what it waits for.
pub async fn step(
    settings: &Settings,
    node: &str,
    aim: &Aim,
    room: &Room,
) -> Result<Ended, Unread> {
    let ended = acts(settings, node, aim, room).await?;
    match &ended {
        Ended::Drains(blocked, read) => drain_status::drains(settings, read, aim, blocked).await,
        Ended::Stuck(blocked, read) => drain_status::stuck(settings, read, aim, blocked).await,
        // It was not looked at whether it can be drained by now.
        Ended::Waits(Waits::Room, read) | Ended::Degraded(read) if drain_status::is_stuck(read) => {
        }
        Ended::Waits(_, read) | Ended::NotItsTurn(read) | Ended::Degraded(read) => {
            drain_status::nothing(settings, read, aim).await
        }
        Ended::Busy => {}
    }
    Ok(ended)
}

async fn acts(settings: &Settings, node: &str, aim: &Aim, room: &Room) -> Result<Ended, Unread> {
    let mut may_drain = aim.leaves_pods();
    let mut blocked = Vec::new();
    let mut marks_left = MARKS;
    let mut turn = None;
    for _ in 0..MOST {
        let mut read = Box::pin(read(settings, node, aim, room)).await?;
        if !blocked.is_empty() {
            // It keeps what it has, and takes no more.
            (read.seen.room, read.seen.wanted) = (false, None);
        }
        let marked = if marks_left > 0 { marks(settings, &read, aim).await } else { Ok(false) };
        match marked {
            Ok(false) => {}
            // What was read of the node is old.
            Ok(true) => {
                marks_left -= 1;
                continue;
            }
            Err(failed) if failed.outcome == CallOutcome::Conflict => {
                marks_left -= 1;
                continue;
            }
            Err(failed) => return Err(failed.into()),
        }
        let act = next(&read.seen, &settings.terms);
        tracing::debug!(node, ?act);
        let takes_lease = matches!(act, Act::MakeLease(_) | Act::WriteLease { .. });
        if takes_lease && aim.is_lost && !is_to_be_given_back(&read) {
            return Ok(Ended::Waits(Waits::Agent, read));
        }
        if begins_to_drain(&act, &read) && !may_drain {
            let (now, course) = (read.seen.now, Course::default());
            let left = drain::look(settings, node, &aim.drain, now, course).await?;
            blocked = drain::blocked_for_good(settings, &left, &aim.drain).await?;
            if !blocked.is_empty() && read.seen.slot.is_none() {
                return Ok(Ended::Stuck(blocked, read));
            }
            may_drain = true;
            // What was read is old by now.
            continue;
        }
        if retakes(&read.seen, &act) {
            if turn.is_none() {
                turn = Some(settings.at_slots.taken().await);
                // Others wrote the slots since they were read.
                continue;
            }
        } else {
            turn = None;
        }
        if begins(&act, &read) && !aim.still.holds() {
            return Ok(Ended::NotItsTurn(read));
        }
        match act {
            Act::Wait(Waits::Room) | Act::Degrade if !blocked.is_empty() => {
                return Ok(Ended::Stuck(blocked, read));
            }
            Act::Wait(waits) => return Ok(Ended::Waits(waits, read)),
            Act::Degrade => return Ok(Ended::Degraded(read)),
            Act::Evict { within } => {
                let is_late = read.late_since(&aim.drain).is_some();
                let until = read.began + within;
                let stay = match read.left.as_ref().filter(|_| read.has_left) {
                    Some(left) => drain::pass(settings, left, &aim.drain, is_late, until).await,
                    None => Vec::new(),
                };
                return Ok(Ended::Drains(stay, read));
            }
            act => match carry_out(settings, &read, act.clone(), aim).await {
                Ok(()) => {
                    if let Some(waits) = ends_with(&read, act, &settings.terms) {
                        return Ok(Ended::Waits(waits, read));
                    }
                }
                // What was read is old.
                Err(failed) if failed.outcome == CallOutcome::Conflict => {}
                Err(failed) => return Err(failed.into()),
            },
        }
    }
    Ok(Ended::Busy)
}

/// What a node waits for after this act, if nothing else happened meanwhile: so it need not be read
/// again only to find that out. Other changes are seen by the watches, and lead to another look.
fn ends_with(read: &Read, act: Act, terms: &Terms) -> Option<Waits> {
    let mut seen = read.seen.clone();
    match act {
        Act::WriteOrder { order, .. } => seen.order = Some(order),
        Act::ReleaseSlot { .. } => (seen.slot, seen.wanted) = (None, None),
        _ => return None,
    }
    // What others see of a drain is brought up to date by the next read.
    if read.says_drain() || seen.order.is_none_or(|order| order.disrupts.drains()) {
        return None;
    }
    match next(&seen, terms) {
        Act::Wait(waits @ (Waits::Agent | Waits::Nothing)) => Some(waits),
        _ => None,
    }
}

/// Whether the agent says that it does nothing more, and the node is proved where it has to be: then
/// it is given back under its Lease.
fn is_to_be_given_back(read: &Read) -> bool {
    let (order, report) = (read.seen.order, read.seen.report);
    let of_order = report.filter(|it| order.is_some_and(|order| order.operation == it.operation));
    of_order.is_some_and(|report| match report.phase {
        Phase::Done | Phase::WentBack => read.seen.proved,
        phase => phase.is_end(),
    })
}

/// Sets what others see on the node; says whether any of it was another way.
async fn marks(settings: &Settings, read: &Read, aim: &Aim) -> Result<bool, Failed> {
    Ok(conditions::set(settings, read, !aim.leaves_pods_for(&read.update)).await?
        || cordon_mark::tidy(settings, &read.node).await?
        || balancers::tidy(settings, &read.node).await?)
}

/// Whether a new operation takes its slot, or what comes right before that is written.
fn begins(act: &Act, read: &Read) -> bool {
    let of = match act {
        Act::TakeSlot { slot, .. } => slot.operation,
        Act::WriteOrder { order, .. } => order.operation,
        _ => return false,
    };
    of == read.seen.id
}

/// Whether the node takes a slot to be drained: for a new operation, also one after one that
/// failed, or since a step failed of a plan without a boot. One that has such a slot for its
/// operation, or lost it, is drained anyway.
fn begins_to_drain(act: &Act, read: &Read) -> bool {
    let seen = &read.seen;
    let is_new = begins(act, read);
    let drains = match act {
        Act::TakeSlot { slot, .. } => {
            let escalates = seen.slot.is_some_and(|has| !has.unavailable);
            slot.unavailable && (is_new || escalates)
        }
        _ => is_new && seen.wanted.is_some_and(|wanted| wanted.disrupts.drains()),
    };
    drains && !matches!(seen.cordon, Cordon::Ours(..))
}

/// Whether the node's agent may begin what it asks for.
pub async fn permit(
    settings: &Settings,
    node: &str,
    aim: &Aim,
    room: &Room,
    question: &Question,
) -> Result<Result<Permit, NotNow>, Unread> {
    let read = Box::pin(read(settings, node, aim, room)).await?;
    Ok(tread_model::protocol::permit(&read.seen, question, &settings.terms))
}

/// Gives the slot of a node back that is not there any more; says whether it had one.
pub async fn forget(settings: &Settings, name: &str) -> Result<bool, Unread> {
    for _ in 0..MOST {
        // The slots first: if the node is made anew meanwhile and takes one, this write fails.
        let slots = slots::read(settings).await?;
        let name = name.to_owned();
        let Some(slot) = slots.slots.of(&name) else { return Ok(false) };
        match node(settings, &name).await {
            Err(Unread::Gone) => {}
            found => return found.map(|_| false),
        }
        let change = Change::release(name, slot.operation, &slots.slots);
        match slots::change(settings, change).await {
            Err(failed) if failed.outcome == CallOutcome::Conflict => {}
            written => return Ok(written.map(|()| true)?),
        }
    }
    Err(slots::overtaken(settings, "others wrote the slots again and again").into())
}
