//! What policies answered, so that none is asked the same twice where several
//! plans are made at a time: for many pools that get one change, say.

use super::Heard;
use crate::policy::Policy;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tread_model::change::{Change, Entry};
use tread_model::digest::Digest;

/// How many answers are remembered; more are asked for again.
const REMEMBERED: usize = 10_000;

/// What policies answered while plans were made that belong together.
///
/// A policy has nothing but the question to answer from, so it makes no
/// difference to a plan whether its policies were asked for it.
#[derive(Debug, Default)]
pub struct Answers(Mutex<HashMap<Question, Answered>>);

/// What a policy is asked. The policy is told by where it stands in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Question {
    policy: usize,
    offer: Digest,
}

#[derive(Debug)]
struct Answered {
    heard: Arc<OnceLock<Heard>>,
    /// It stays where it is, so that no other one is taken for it.
    _policy: Arc<Policy>,
}

impl Answers {
    /// What the policy answers to this, asked now if it was not yet. Whoever asks
    /// the same meanwhile waits for the answer.
    pub(super) fn to(
        &self,
        policy: &Arc<Policy>,
        changes: &[Digest],
        unchanged: &[Entry<'_>],
        ask: impl FnOnce() -> Heard,
    ) -> Heard {
        let offer = Digest::of_value(&(changes, unchanged));
        let question = Question { policy: Arc::as_ptr(policy).addr(), offer };
        let Some(place) = self.place(question, policy) else { return ask() };
        let heard = place.get_or_init(ask).clone();
        if !heard.is_reproducible() {
            // It is for those who waited, and the next one asks anew.
            self.lock().remove(&question);
        }
        heard
    }

    fn place(&self, question: Question, policy: &Arc<Policy>) -> Option<Arc<OnceLock<Heard>>> {
        let mut all = self.lock();
        if all.len() >= REMEMBERED && !all.contains_key(&question) {
            return None;
        }
        let answered = all
            .entry(question)
            .or_insert_with(|| Answered { heard: Arc::default(), _policy: Arc::clone(policy) });
        Some(Arc::clone(&answered.heard))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Question, Answered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells changes apart, whoever sees how much of them.
pub(super) fn digests(changes: &[Change<'_>]) -> Vec<Digest> {
    changes.iter().map(Digest::of_value).collect()
}
