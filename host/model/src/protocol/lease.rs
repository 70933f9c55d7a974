//! A node's Lease, as medik8s and others use it, and when somebody may take it.

use super::order::Operation;
use super::terms::Terms;
use super::time::Time;
use std::time::Duration;

/// What a node's Lease says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Who holds it.
    pub holder: Holder,
    /// How often it went from one to another: the fencing token of who holds it.
    pub transitions: u32,
    /// When it was renewed last.
    pub renewed: Option<Time>,
    /// How long it lasts from then on.
    pub lasts: Option<Duration>,
}

/// Who holds a Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// This installation, for this operation; none if it was made and is not claimed yet.
    Us(Option<Operation>),
    /// Somebody else.
    Other,
}

impl Lease {
    /// One of this installation, from now on.
    ///
    /// It is dated back by as much as clocks may differ: medik8s takes a Lease at once that
    /// seems to be renewed in the future.
    pub fn ours(
        operation: Option<Operation>,
        transitions: u32,
        now: Time,
        lasts: Duration,
        terms: &Terms,
    ) -> Lease {
        Lease {
            holder: Holder::Us(operation),
            transitions,
            renewed: Some(now.before(terms.skew)),
            lasts: Some(lasts.saturating_add(terms.skew)),
        }
    }

    /// When it ends; never, if it does not say so in a way that can be read.
    pub fn ends(&self) -> Option<Time> {
        Some(self.renewed?.after(self.lasts?))
    }

    /// Whether this installation holds it for this operation, and it has not ended.
    pub fn is_held_for(&self, operation: Operation, now: Time) -> bool {
        self.holder == Holder::Us(Some(operation)) && self.ends().is_some_and(|ends| now < ends)
    }

    /// Whether somebody else has to be taken for its holder.
    ///
    /// Stricter than medik8s: a Lease of another one counts until it has ended by every clock,
    /// also one that seems to be renewed in the future, and without an end until it is given
    /// back. One that was never renewed is nobody's.
    pub fn is_anothers(&self, now: Time, terms: &Terms) -> bool {
        let has_ended = self.ends().is_some_and(|ends| ends.after(terms.skew) < now);
        self.holder == Holder::Other && self.renewed.is_some() && !has_ended
    }

    /// How much is left of it.
    pub fn left(&self, now: Time) -> Duration {
        self.ends().map_or(Duration::ZERO, |ends| ends.since(now))
    }
}
