//! The next acts for one node, one after the other, until somebody else has to do something.

use crate::carry::carry_out;
use crate::conditions;
use crate::drain::{self, Blocked};
use crate::reading::{Aim, Cluster, Read, Unread, node, read};
use crate::settings::Settings;
use crate::slots;
use tread_kube::asking::CallOutcome;
use tread_model::protocol::{Act, NotNow, Permit, Question, Waits, next};

/// More acts than one look at a node ever brings: then others get their turn.
const MOST: usize = 32;

/// How a look at a node ended.
#[derive(Debug)]
pub enum Ended {
    /// Nothing is done until something changes.
    Waits(Waits, Box<Read>),
    /// Pods have to move first: those whose eviction was not accepted.
    Drains(Vec<Blocked>, Box<Read>),
    /// The node stays as it is until somebody looks at it.
    Degraded(Box<Read>),
    /// Others were faster, again and again.
    Busy,
}

/// Does for a node what is next for it.
pub async fn step(
    settings: &Settings,
    node: &str,
    aim: &Aim,
    cluster: &Cluster,
) -> Result<Ended, Unread> {
    for _ in 0..MOST {
        let read = read(settings, node, aim, cluster).await?;
        match conditions::set(settings, &read).await {
            Ok(false) => {}
            // What was read of the node is old.
            Ok(true) => continue,
            Err(failed) if failed.outcome == CallOutcome::Conflict => continue,
            Err(failed) => return Err(failed.into()),
        }
        let act = next(&read.seen, &settings.terms);
        tracing::debug!(node, ?act);
        let read = Box::new(read);
        match act {
            Act::Wait(waits) => return Ok(Ended::Waits(waits, read)),
            Act::Degrade => return Ok(Ended::Degraded(read)),
            Act::Evict { within } => {
                let blocked = match &read.left {
                    Some(left) => drain::pass(settings, left, read.began + within).await,
                    None => Vec::new(),
                };
                return Ok(Ended::Drains(blocked, read));
            }
            act => match carry_out(settings, &read, act, aim).await {
                // On a conflict, what was read is old.
                Err(failed) if failed.outcome != CallOutcome::Conflict => return Err(failed.into()),
                _ => {}
            },
        }
    }
    Ok(Ended::Busy)
}

/// Whether the node's agent may begin what it asks for.
pub async fn permit(
    settings: &Settings,
    node: &str,
    aim: &Aim,
    cluster: &Cluster,
    question: &Question,
) -> Result<Result<Permit, NotNow>, Unread> {
    let read = read(settings, node, aim, cluster).await?;
    Ok(tread_model::protocol::permit(&read.seen, question, &settings.terms))
}

/// Gives the slot of a node back that is not there any more; says whether it had one.
pub async fn forget(settings: &Settings, name: &str) -> Result<bool, Unread> {
    for _ in 0..MOST {
        // The slots first: a node that is made meanwhile under this name changes them.
        let slots = slots::read(settings).await?;
        let name = name.to_owned();
        let Some(slot) = slots.slots.of(&name) else { return Ok(false) };
        match node(settings, &name).await {
            Err(Unread::Gone) => {}
            found => return found.map(|_| false),
        }
        let left = slots.slots.clone().without(&name, slot.operation);
        match slots::write(settings, &slots, &left).await {
            Err(failed) if failed.outcome == CallOutcome::Conflict => {}
            written => return Ok(written.map(|()| true)?),
        }
    }
    Ok(false)
}
