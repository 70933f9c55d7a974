//! What several plans share that are made together, such as those of many pools for
//! one change: what policies answered, so that none is asked the same twice; how many
//! changes a plan may have; and whether anybody still waits for them.

use super::heard::Heard;
use super::question::Question;
use super::remembered::Remembered;
use super::shared::Plans;
use crate::policy::Policy;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tread_model::problem::Problems;

/// How many answers are remembered, and how many bytes of them; more are asked for
/// again.
const REMEMBERED: (usize, usize) = (10_000, 16 << 20);

/// The answers of policies, for plans that are made together.
///
/// A policy has nothing but the question to answer from, so it makes no difference to
/// a plan whether its policies were asked for it.
#[derive(Debug)]
pub struct Answers {
    heard: Mutex<HashMap<Question, Answered>>,
    /// How many bytes the answers take.
    bytes: AtomicUsize,
    most_changes: usize,
    /// Whether anybody looks at more than what plans do.
    whole: bool,
    /// Those that were made.
    plans: Plans,
    /// What was answered to others before.
    before: Option<Arc<Remembered>>,
    /// Whether there is only one plan, so that a processor may be idle.
    one_plan: bool,
    ended: AtomicBool,
}

impl Default for Answers {
    fn default() -> Answers {
        Answers::to_at_most(usize::MAX)
    }
}

/// Why a plan was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unplanned {
    /// What is compared cannot be.
    #[error(transparent)]
    Problems(#[from] Problems),
    /// There are more changes than there is room for.
    #[error(
        "{changes} changes: planned as a reboot, since more than {most} at once are not looked at \
         one by one"
    )]
    TooMany {
        /// So many.
        changes: usize,
        /// So many would be planned.
        most: usize,
    },
    /// Nobody waits for it any more.
    #[error("nobody waits for this plan any more")]
    Ended,
}

/// Where an answer comes to stand.
#[derive(Debug, Default)]
struct Place {
    /// Whether somebody asks already.
    begun: AtomicBool,
    heard: OnceLock<Heard>,
}

/// How a policy is asked what others may be asking it at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Their answer is waited for.
    Waits,
    /// There is no answer then.
    GoesOn,
}

#[derive(Debug)]
struct Answered {
    place: Arc<Place>,
    /// Held, so that no other policy comes to its place in memory.
    _policy: Arc<Policy>,
}

impl Answers {
    /// For plans of at most so many changes: one that would have more is not made.
    pub fn to_at_most(most_changes: usize) -> Answers {
        Answers {
            heard: Mutex::default(),
            bytes: AtomicUsize::new(0),
            most_changes,
            whole: true,
            plans: Plans::default(),
            before: None,
            one_plan: false,
            ended: AtomicBool::new(false),
        }
    }

    /// Together with what was answered to others before.
    #[must_use]
    pub fn remembering(self, before: Arc<Remembered>) -> Answers {
        Answers { before: Some(before), ..self }
    }

    /// For one plan alone: its policies are asked side by side.
    #[must_use]
    pub fn for_one_plan(self) -> Answers {
        Answers { one_plan: true, ..self }
    }

    /// Whether a second thread may ask.
    pub(super) fn are_for_one_plan(&self) -> bool {
        self.one_plan
    }

    /// For plans of which nobody is told more than what they do, and why: digests of
    /// configs are not computed, no policy in the shadow is asked, and one plan is for
    /// all to whom the same happens.
    #[must_use]
    pub fn in_short(self) -> Answers {
        Answers { whole: false, ..self }
    }

    /// Whether somebody looks at the plans' digests, and at shadows.
    pub(super) fn whole(&self) -> bool {
        self.whole
    }

    /// The plans that others may share.
    pub(super) fn plans(&self) -> Option<&Plans> {
        (!self.whole).then_some(&self.plans)
    }

    /// Nobody waits for these plans any more: no policy is asked after this.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Whether nobody waits for these plans any more.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Whether a plan of so many changes is made.
    pub(super) fn check(&self, changes: usize) -> Result<(), Unplanned> {
        match self.has_ended() {
            true => Err(Unplanned::Ended),
            false if changes > self.most_changes => {
                Err(Unplanned::TooMany { changes, most: self.most_changes })
            }
            false => Ok(()),
        }
    }

    /// The policy's answer to this question. The policy is asked now if it was not asked before.
    /// None: another plan is asking it, and the caller does not wait for that. Answers about a
    /// secret are not kept for others: a quick answer would tell that the same was asked before.
    pub(super) fn to(
        &self,
        (question, policy): (Question, &Arc<Policy>),
        is_secret: bool,
        patience: Patience,
        ask: impl FnOnce() -> Heard,
    ) -> Option<Heard> {
        let before = self.before.as_ref().filter(|_| !is_secret);
        if let Some(heard) = before.and_then(|it| it.get(&question)) {
            return Some(heard);
        }
        let Some(place) = self.place(question, policy) else { return Some(ask()) };
        let others_ask = place.begun.swap(true, Ordering::AcqRel) && place.heard.get().is_none();
        if others_ask && patience == Patience::GoesOn {
            return None;
        }
        let mut is_new = false;
        let heard = place.heard.get_or_init(|| {
            is_new = true;
            ask()
        });
        let has_room = !is_new || self.has_room(heard.bytes());
        let is_reproducible = heard.is_reproducible();
        if !(is_reproducible && has_room) {
            // It is for those who waited, and the next one asks anew.
            self.lock().remove(&question);
        }
        if let Some(before) = before.filter(|_| is_new && is_reproducible) {
            before.put(question, policy, heard);
        }
        Some(heard.clone())
    }

    /// Whether there is room for so many bytes; they take it if so.
    fn has_room(&self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|all| *all <= REMEMBERED.1);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn place(&self, question: Question, policy: &Arc<Policy>) -> Option<Arc<Place>> {
        let mut all = self.lock();
        if all.len() >= REMEMBERED.0 && !all.contains_key(&question) {
            return None;
        }
        let answered = all
            .entry(question)
            .or_insert_with(|| Answered { place: Arc::default(), _policy: Arc::clone(policy) });
        Some(Arc::clone(&answered.place))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Question, Answered>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
