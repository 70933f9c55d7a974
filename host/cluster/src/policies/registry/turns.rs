//! Whose turn it is to be fetched and compiled: whoever took the least time so
//! far, so that one namespace never holds up the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// What is known to take long goes as if its namespace had taken so much more.
const KNOWN_TO_TAKE_LONG: Duration = Duration::from_secs(60);

/// What was taken so long ago counts half.
const HALVED_AFTER: Duration = Duration::from_secs(600);

/// Turns, of which some can be had at the same time. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Turns(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    waiting: Vec<Waiting>,
    /// What each namespace has taken, and how many turns it has now.
    taken: BTreeMap<String, Taken>,
    halved: Instant,
    next: u64,
}

#[derive(Debug, Default)]
struct Taken {
    time: Duration,
    now: usize,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    namespace: String,
    takes_long: bool,
    begins: oneshot::Sender<Turn>,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Turns,
    namespace: String,
    begun: Instant,
}

impl Turns {
    pub(super) fn new(at_once: usize) -> Turns {
        Turns(Arc::new(Mutex::new(State {
            free: at_once,
            waiting: Vec::new(),
            taken: BTreeMap::new(),
            halved: Instant::now(),
            next: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn. What belongs to no namespace is tread's own and an
    /// admin's, which goes first.
    pub(super) async fn take(&self, namespace: Option<&str>, takes_long: bool) -> Turn {
        loop {
            let namespace = namespace.unwrap_or_default().to_owned();
            let (begins, begun) = oneshot::channel();
            {
                let mut state = self.lock();
                let number = state.next;
                state.next = number.wrapping_add(1);
                state.waiting.push(Waiting { number, namespace, takes_long, begins });
            }
            self.hand_out();
            // The sender is only dropped with all turns.
            if let Ok(turn) = begun.await {
                return turn;
            }
        }
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    fn hand_out(&self) {
        loop {
            let first = self.lock().first();
            let Some(Waiting { namespace, begins, .. }) = first else { return };
            let turn = Turn { turns: self.clone(), namespace, begun: Instant::now() };
            // Whoever does not wait any more gives it back by dropping it.
            drop(begins.send(turn));
        }
    }
}

impl State {
    /// Takes out whose turn it is.
    fn first(&mut self) -> Option<Waiting> {
        self.waiting.retain(|it| !it.begins.is_closed());
        if self.free == 0 {
            return None;
        }
        let first = self.waiting.iter().enumerate().min_by_key(|(_, it)| self.order(it));
        let at = first.map(|(at, _)| at)?;
        let first = self.waiting.remove(at);
        self.free = self.free.saturating_sub(1);
        self.taken.entry(first.namespace.clone()).or_default().now += 1;
        Some(first)
    }

    fn order(&self, it: &Waiting) -> (bool, usize, Duration, u64) {
        let known = self.taken.get(&it.namespace);
        let (now, time) = known.map_or((0, Duration::ZERO), |taken| (taken.now, taken.time));
        let more = if it.takes_long { KNOWN_TO_TAKE_LONG } else { Duration::ZERO };
        (!it.namespace.is_empty(), now, time + more, it.number)
    }

    fn ended(&mut self, namespace: &str, took: Duration, now: Instant) {
        self.free += 1;
        let taken = self.taken.entry(namespace.to_owned()).or_default();
        taken.now = taken.now.saturating_sub(1);
        taken.time = taken.time.saturating_add(took);
        if now.saturating_duration_since(self.halved) > HALVED_AFTER {
            self.halved = now;
            self.taken.values_mut().for_each(|taken| taken.time /= 2);
            self.taken.retain(|_, taken| taken.now > 0 || taken.time > Duration::from_millis(1));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let now = Instant::now();
        self.turns.lock().ended(&self.namespace, now - self.begun, now);
        self.turns.hand_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    /// Whoever waits for a turn.
    struct Waits<'t> {
        namespace: &'static str,
        turn: Pin<Box<dyn Future<Output = Turn> + 't>>,
    }

    impl<'t> Waits<'t> {
        /// Asked at once, so that it has its place.
        fn new(turns: &'t Turns, namespace: &'static str, takes_long: bool) -> Waits<'t> {
            let mut it =
                Waits { namespace, turn: Box::pin(turns.take(Some(namespace), takes_long)) };
            // It is answered when it is asked again.
            assert!(it.began().is_none() || turns.waiting() == 0);
            it
        }

        fn began(&mut self) -> Option<Turn> {
            match self.turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(turn) => Some(turn),
                Poll::Pending => None,
            }
        }
    }

    /// In which order they get their turns: each ends before the next begins.
    fn order(mut waiting: Vec<Waits<'_>>) -> Vec<&'static str> {
        let mut order = Vec::new();
        while !waiting.is_empty() {
            let mut begun = Vec::new();
            waiting.retain_mut(|it| match it.began() {
                Some(turn) => {
                    begun.push((it.namespace, turn));
                    false
                }
                None => true,
            });
            assert!(!begun.is_empty(), "nobody gets a turn any more");
            // One after the other, so that each has the next one's turn begin.
            order.extend(begun.into_iter().map(|(namespace, turn)| {
                drop(turn);
                namespace
            }));
        }
        order
    }

    #[tokio::test]
    async fn one_namespace_with_many_holds_up_nobody_else() {
        let turns = Turns::new(2);
        let held = [turns.take(Some("many"), false).await, turns.take(Some("many"), false).await];
        let mut waiting: Vec<Waits<'_>> =
            (0..50).map(|_| Waits::new(&turns, "many", false)).collect();
        waiting.extend(["one", "other", ""].map(|it| Waits::new(&turns, it, false)));
        assert_eq!(turns.waiting(), 53);
        drop(held);
        let order = order(waiting);
        let mut first = order[..4].to_vec();
        first.sort_unstable();
        assert_eq!(first, ["", "many", "one", "other"], "{order:?}");
        assert_eq!(order.len(), 53);
    }

    #[tokio::test]
    async fn what_takes_long_is_tried_side_by_side_and_after_what_does_not() {
        let turns = Turns::new(2);
        // Nobody else waits.
        let both = [turns.take(Some("a"), true).await, turns.take(Some("a"), true).await];
        let slow = Waits::new(&turns, "a", true);
        let fast = Waits::new(&turns, "a", false);
        let others = Waits::new(&turns, "b", true);
        let [first, second] = both;
        drop(first);
        let mut waiting = vec![slow, fast, others];
        let began = |all: &mut Vec<Waits<'_>>| {
            let at = (0..all.len()).find_map(|at| Some((at, all[at].began()?)));
            at.map(|(at, turn)| (all.remove(at).namespace, turn))
        };
        // Who has none now comes before who has one.
        let (namespace, others) = began(&mut waiting).unwrap();
        assert_eq!(namespace, "b");
        drop(second);
        assert!(waiting[0].began().is_none(), "what takes long waits");
        let fast = waiting[1].began().unwrap();
        drop((others, fast));
        assert!(waiting[0].began().is_some());
    }

    #[tokio::test]
    async fn who_waits_no_longer_keeps_no_turn() {
        let turns = Turns::new(1);
        let held = turns.take(Some("a"), false).await;
        let gone = Waits::new(&turns, "b", false);
        drop(gone);
        drop(held);
        let mut next = Waits { namespace: "c", turn: Box::pin(turns.take(Some("c"), false)) };
        assert!(next.began().is_some());
    }

    #[test]
    fn what_was_taken_long_ago_counts_less() {
        let turns = Turns::new(1);
        let now = Instant::now();
        let (took, later) = (Duration::from_secs(100), now + HALVED_AFTER * 2);
        turns.lock().ended("a", took, now);
        assert_eq!(turns.lock().taken["a"].time, took);
        turns.lock().ended("b", Duration::ZERO, later);
        assert_eq!(turns.lock().taken["a"].time, took / 2);
        assert!(!turns.lock().taken.contains_key("b"), "who took nothing is forgotten");
    }
}
