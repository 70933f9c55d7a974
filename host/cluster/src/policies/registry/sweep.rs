//! Copies that no status names: a leader that was killed after it wrote one, or
//! before it removed one, leaves it behind. Whoever leads next sweeps them away.

use crate::policies::kept;
use kube::api::Preconditions;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// How long a new leader waits before it sweeps: requests of the leader before it, for example a
/// status that names a copy, may arrive until then. No request takes longer.
pub(super) const SETTLES_AFTER: Duration = Duration::from_secs(30);

/// Before a list that failed is asked for again.
const AGAIN: Duration = Duration::from_secs(30);

/// How far the sweeping of a leader has come.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// When it begins; None: it does not lead, or has swept.
    pub(super) begins: Option<Instant>,
    pub(super) begun: bool,
    /// The copies to remove, as they were seen.
    pub(super) copies: BTreeMap<String, Preconditions>,
}

/// What there is: each copy, whose it is, and as which it was seen; and what the
/// statuses name.
#[derive(Debug)]
pub(super) struct Leftovers {
    pub(super) copies: Vec<Found>,
    pub(super) named: BTreeSet<String>,
    /// The policies, by UID, that cannot be read: what they name is not known.
    pub(super) unread: BTreeSet<String>,
}

/// A copy as it was seen.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) place: String,
    /// The policy, by UID.
    pub(super) of: Option<String>,
    pub(super) as_seen: Preconditions,
}

impl Sweep {
    /// Whether a copy of this policy, by UID, is about to go.
    pub(super) fn holds_any_of(&self, uid: &str) -> bool {
        self.copies.keys().any(|place| kept::is_of(place, uid))
    }

    /// Notes what was listed; None: it could not be.
    pub(super) fn found(&mut self, found: Option<Leftovers>) {
        match found {
            None => self.begins = Some(Instant::now() + AGAIN),
            Some(Leftovers { copies, named, unread }) => {
                let is_known = |it: &Found| it.of.as_ref().is_some_and(|uid| !unread.contains(uid));
                let left =
                    copies.into_iter().filter(|it| !named.contains(&it.place) && is_known(it));
                self.copies = left.map(|it| (it.place, it.as_seen)).collect();
            }
        }
    }

    /// Notes what is gone, or was written anew meanwhile, by [`Write::name`].
    pub(super) fn settled(&mut self, names: &[String]) {
        self.copies.retain(|place, _| !names.contains(&format!("copy {place}")));
    }
}
