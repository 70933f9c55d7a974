//! What a policy is asked, as answers are remembered by it.

use crate::policy::Policy;
use std::sync::Arc;
use tread_model::change::{Change, Entry};
use tread_model::digest::Digest;

/// What a policy is asked. The policy is identified by its place in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Question {
    policy: usize,
    offer: Digest,
}

impl Question {
    /// The digests of changes, and all of what did not change.
    pub(super) fn of(
        policy: &Arc<Policy>,
        changes: &[Digest],
        unchanged: &[Entry<'_>],
    ) -> Question {
        let offer = Digest::of_value(&(changes, unchanged));
        Question { policy: Arc::as_ptr(policy).addr(), offer }
    }
}

/// Tells changes apart, whoever sees how much of them.
pub(super) fn digests(changes: &[Change<'_>]) -> Vec<Digest> {
    changes.iter().map(Digest::of_value).collect()
}
