//! Whether this replica leads, for whoever is about to write.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// As long as no process lives.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// What is known of the election, for whoever asks in between.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Until when this replica leads for certain.
    pub(super) until: Option<Instant>,
    /// Who leads, as far as is known.
    pub(super) holder: Option<String>,
    /// Why the Lease cannot be read or written.
    pub(super) problem: Option<String>,
}

pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this replica leads. Clones share it.
#[derive(Debug, Clone)]
pub struct Leading {
    identity: Arc<str>,
    watch: watch::Receiver<bool>,
    state: Arc<Mutex<State>>,
}

impl Leading {
    /// Who takes part in an election under this identity, and what the election notes.
    pub(super) fn of(identity: &str, watch: watch::Receiver<bool>) -> (Leading, Arc<Mutex<State>>) {
        let state = Arc::new(Mutex::new(State::default()));
        (Leading { identity: identity.into(), watch, state: state.clone() }, state)
    }

    /// Without an election: `leads` says whether this replica leads, for so long at
    /// most.
    pub fn without_election(leads: watch::Receiver<bool>, at_most: Option<Duration>) -> Leading {
        let until = Instant::now() + at_most.unwrap_or(FOR_EVER);
        let state = State { until: Some(until), ..State::default() };
        Leading { identity: Arc::from("told"), watch: leads, state: Arc::new(Mutex::new(state)) }
    }

    /// Tells of every change.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.watch.clone()
    }

    /// Whether this replica leads at this instant: right also in a process that
    /// was paused and has not come to note that its time is over. To be asked
    /// right before a write that another leader's write could contradict.
    pub fn now(&self) -> bool {
        *self.watch.borrow() && lock(&self.state).until.is_some_and(|until| Instant::now() < until)
    }

    /// Who leads, as far as this replica knows.
    pub fn holder(&self) -> Option<String> {
        lock(&self.state).holder.clone()
    }

    /// Who this replica is in the Lease.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Why the Lease cannot be read or written, if it cannot.
    pub fn problem(&self) -> Option<String> {
        lock(&self.state).problem.clone()
    }
}
