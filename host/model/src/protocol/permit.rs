//! Permits: an agent asks before each step that disrupts, and is told for how long it may begin.

use super::guards::{AllGuards, Guards};
use super::order::{Disrupts, Operation, Stage};
use super::prepare::is_still_cordoned;
use super::question::{Question, What};
use super::seen::{HeldBy, Seen};
use super::terms::Terms;
use super::upkeep::held;
use std::time::Duration;

/// That something may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permit {
    /// In which operation.
    pub operation: Operation,
    /// The question that it answers.
    pub number: u64,
    /// For how long, from the question on.
    pub lasts: Duration,
}

/// Why there is no permit now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotNow {
    /// What is known of it may be old.
    #[error("the slot, the Lease and the order have to be read again for this question")]
    ReadAfresh,
    /// It is about something else.
    #[error("the node's order is another one by now")]
    AnotherOrder,
    /// It is not its time.
    #[error("the node is not prepared for it yet, or the order is withdrawn")]
    AnotherStage,
    /// Pods may have come back.
    #[error("somebody uncordoned the node: it is cordoned and drained again first")]
    NotCordoned,
    /// The order does not have this step.
    #[error(
        "the order has no boot: one that a failed step needs waits for a slot, the Lease and a drain"
    )]
    NotOrdered,
    /// Its slot is not there.
    #[error("the node has no slot for it")]
    NoSlot,
    /// Its Lease is not there.
    #[error("the node's Lease is not held for it, or not the one under which it was ordered")]
    NoLease,
    /// Too little of its Lease is left.
    #[error("the node's Lease ends too soon, and is renewed first")]
    TooShort,
    /// A newer config is to be had.
    #[error("nothing is written yet, and the pool has a newer config")]
    NewerConfig,
    /// It turns back: its window has ended, or others failed, and nothing was written yet.
    #[error(
        "nothing is written yet, and the node turns back: its window has ended, or others of its \
         pool failed"
    )]
    TurnsBack,
    /// Somebody else has the node.
    #[error("somebody else has the node")]
    Held(HeldBy),
}

impl Permit {
    /// When it ends by the agent's clock, which only counts: `asked` is when it asked, `came`
    /// when this came. Nothing if it answers another question.
    pub fn ends(&self, question: &Question, asked: Duration, came: Duration) -> Option<Duration> {
        self.ends_with::<AllGuards>(question, asked, came)
    }

    /// The same, with only these guards.
    pub fn ends_with<G: Guards>(
        &self,
        question: &Question,
        asked: Duration,
        came: Duration,
    ) -> Option<Duration> {
        let answers = self.operation == question.operation
            && (self.number == question.number || !G::ONE_QUESTION);
        let from = if G::FROM_QUESTION { asked } else { came };
        answers.then(|| from.saturating_add(self.lasts))
    }
}

/// Whether an agent may begin what it asks for, and for how long.
pub fn permit(seen: &Seen, question: &Question, terms: &Terms) -> Result<Permit, NotNow> {
    permit_with::<AllGuards>(seen, question, terms)
}

/// The same, with only these guards.
pub fn permit_with<G: Guards>(
    seen: &Seen,
    question: &Question,
    terms: &Terms,
) -> Result<Permit, NotNow> {
    let Question { operation, what, number } = *question;
    if !seen.fresh && G::FRESH {
        return Err(NotNow::ReadAfresh);
    }
    if let Some(held) = held(seen) {
        return Err(NotNow::Held(held));
    }
    let order = seen.order.filter(|order| order.operation == operation);
    let order = order.ok_or(NotNow::AnotherOrder)?;
    if order.stage != Stage::Go {
        return Err(NotNow::AnotherStage);
    }
    if order.disrupts.drains() && !is_still_cordoned::<G>(seen, &order) && G::TOKEN {
        return Err(NotNow::NotCordoned);
    }
    if what == What::Write && order.config != seen.newest {
        return Err(NotNow::NewerConfig);
    }
    if what == What::Write && seen.turns_back {
        return Err(NotNow::TurnsBack);
    }
    if what == What::Boot && order.disrupts != Disrupts::Reboot && G::ESCALATION {
        return Err(NotNow::NotOrdered);
    }
    let slot = seen.slot.filter(|slot| slot.operation == operation).ok_or(NotNow::NoSlot)?;
    if order.disrupts.drains() && !slot.unavailable {
        return Err(NotNow::NoSlot);
    }
    let lasts = match order.disrupts {
        Disrupts::Nothing if seen.lease.is_some_and(|it| it.is_anothers(seen.now, terms)) => {
            return Err(NotNow::NoLease);
        }
        Disrupts::Nothing => terms.step,
        _ => under_the_lease::<G>(seen, order.token, question, terms)?,
    };
    match lasts.is_zero() {
        true => Err(NotNow::TooShort),
        false => Ok(Permit { operation, number, lasts }),
    }
}

/// For how long the Lease lets this begin.
fn under_the_lease<G: Guards>(
    seen: &Seen,
    token: u32,
    question: &Question,
    terms: &Terms,
) -> Result<Duration, NotNow> {
    if !G::LEASE {
        return Ok(terms.step);
    }
    let held = seen.lease.filter(|lease| lease.is_held_for(question.operation, seen.now));
    let lease = held.filter(|lease| lease.transitions == token || !G::TOKEN);
    let left = lease.ok_or(NotNow::NoLease)?.left(seen.now);
    Ok(match G::ENDS_BEFORE_LEASE {
        true => left.saturating_sub(terms.margin()).saturating_sub(terms.lasts(question.what)),
        false => left,
    })
}
