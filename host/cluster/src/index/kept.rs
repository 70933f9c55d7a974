//! One kind: folded by the task of the index, and published as snapshots.

use futures::stream::{BoxStream, unfold};
use futures::{Stream, StreamExt as _};
use kube::runtime::watcher::Event;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tread_kube::resting::Resting;
use tread_kube::watching::fold::{Fold, Folded};

/// So many events are taken in before the next snapshot.
const AT_ONCE: usize = 512;
/// The most of a core that snapshots take: each is a copy of all that is known of the kind.
const RESTS: Resting = Resting { parts: 50, longest: Duration::from_millis(100) };

/// All objects of a kind, at one moment.
pub type All<K, V> = Arc<BTreeMap<K, V>>;

/// What is known of a kind. Clones share everything.
#[derive(Debug)]
pub struct Kept<K, V>(watch::Receiver<Option<All<K, V>>>);

impl<K, V> Clone for Kept<K, V> {
    fn clone(&self) -> Kept<K, V> {
        Kept(self.0.clone())
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Kept<K, V> {
    /// Of a kind of which nobody asks for objects.
    pub fn none() -> Kept<K, V> {
        Kept(watch::channel(Some(All::default())).1)
    }

    /// All objects as they are now; None: they were not listed yet.
    pub fn now(&self) -> Option<All<K, V>> {
        self.0.borrow().clone()
    }

    /// All objects as soon as they were listed, and whenever something changed.
    /// Who takes the next one late gets the newest.
    pub fn moments(&self) -> BoxStream<'static, All<K, V>> {
        let mut receiver = self.0.clone();
        // What is there already is new for whoever begins.
        receiver.mark_changed();
        let next = async |mut receiver: watch::Receiver<Option<All<K, V>>>| loop {
            if receiver.changed().await.is_err() {
                // The index has ended, and with it everything.
                std::future::pending::<()>().await;
            }
            let now = receiver.borrow_and_update().clone();
            if let Some(now) = now {
                return Some((now, receiver));
            }
        };
        unfold(receiver, next).boxed()
    }
}

struct Kind<K, V, Key, Read> {
    fold: Fold<K>,
    now: All<K, V>,
    key: Key,
    read: Read,
    publish: watch::Sender<Option<All<K, V>>>,
}

/// What is known of a kind by these events, and what keeps it up to date.
pub fn keep<O, K, V>(
    events: impl Stream<Item = Event<O>> + Send + Unpin,
    key: impl Fn(&O) -> K + Send,
    read: impl Fn(O) -> V + Send,
) -> (Kept<K, V>, impl Future<Output = ()> + Send)
where
    O: Send,
    K: Ord + Clone + Send + Sync,
    V: Clone + Send + Sync,
{
    let (publish, published) = watch::channel(None);
    let mut kind = Kind { fold: Fold::default(), now: All::default(), key, read, publish };
    let mut events = events.ready_chunks(AT_ONCE);
    let keep = async move {
        let mut rests_until = Instant::now();
        while let Some(mut batch) = events.next().await {
            // What comes while it rests is taken in together.
            while batch.len() < AT_ONCE {
                let Ok(Some(more)) = timeout_at(rests_until, events.next()).await else { break };
                batch.extend(more);
            }
            let begun = Instant::now();
            kind.take(batch);
            rests_until = begun + RESTS.after(begun.elapsed());
        }
    };
    (Kept(published), keep)
}

impl<K, V, Key, Read> Kind<K, V, Key, Read>
where
    K: Ord + Clone,
    V: Clone,
{
    /// Takes in some events. Nobody sees a list that is not complete.
    fn take<O>(&mut self, events: Vec<Event<O>>)
    where
        Key: Fn(&O) -> K,
        Read: Fn(O) -> V,
    {
        let now = Arc::make_mut(&mut self.now);
        let mut changed = false;
        for event in events {
            let change = self.fold.take(event, &self.key);
            changed |= !matches!(change, Folded::Nothing);
            change.apply(now, &self.read);
        }
        if changed && self.fold.is_settled() {
            self.publish.send_replace(Some(Arc::clone(&self.now)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    type Pair = (u8, u8);

    fn events() -> Vec<Event<Pair>> {
        vec![
            Event::Init,
            Event::InitApply((1, 1)),
            Event::InitApply((2, 2)),
            Event::InitDone,
            Event::Apply((3, 3)),
            Event::Delete((1, 1)),
            Event::Init,
            Event::InitApply((2, 5)),
            // The list was cut off, and begins anew.
            Event::Init,
            Event::InitApply((3, 4)),
            Event::InitDone,
        ]
    }

    fn kind() -> Kind<u8, u8, impl Fn(&Pair) -> u8, impl Fn(Pair) -> u8> {
        let publish = watch::Sender::new(None);
        let (key, read) = (|it: &Pair| it.0, |it: Pair| it.1);
        Kind { fold: Fold::default(), now: All::default(), key, read, publish }
    }

    fn published(of: &Kind<u8, u8, impl Sized, impl Sized>) -> Option<Vec<Pair>> {
        let now = of.publish.borrow().clone()?;
        Some(now.iter().map(|(key, value)| (*key, *value)).collect())
    }

    #[test]
    fn a_list_takes_the_place_of_what_was_known_once_it_is_complete() {
        let mut kind = kind();
        let after_each = [
            None,
            None,
            None,
            Some(vec![(1, 1), (2, 2)]),
            Some(vec![(1, 1), (2, 2), (3, 3)]),
            Some(vec![(2, 2), (3, 3)]),
            Some(vec![(2, 2), (3, 3)]),
            Some(vec![(2, 2), (3, 3)]),
            Some(vec![(2, 2), (3, 3)]),
            Some(vec![(2, 2), (3, 3)]),
            Some(vec![(3, 4)]),
        ];
        for (event, expected) in events().into_iter().zip(after_each) {
            kind.take(vec![event]);
            assert_eq!(published(&kind), expected);
        }
    }

    #[test]
    fn of_a_kind_that_nobody_asks_for_there_are_none_from_the_beginning() {
        let none: Kept<u8, u8> = Kept::none();
        let mut moments = none.moments();
        let first = moments.next().now_or_never().flatten();
        assert!(first.is_some_and(|all| all.is_empty()) && none.now().is_some());
        assert!(moments.next().now_or_never().is_none());
    }

    #[test]
    fn the_same_events_give_the_same_however_they_come_together() {
        for size in 1..=events().len() {
            let (mut kind, mut events) = (kind(), events());
            while !events.is_empty() {
                let rest = events.split_off(size.min(events.len()));
                kind.take(std::mem::replace(&mut events, rest));
            }
            assert_eq!(published(&kind), Some(vec![(3, 4)]), "{size} at a time");
        }
    }

    #[test]
    fn who_begins_late_gets_everything_and_a_snapshot_never_changes() {
        let mut kind = kind();
        let kept = Kept(kind.publish.subscribe());
        let mut early = kept.moments();
        assert!(early.next().now_or_never().is_none(), "nothing was listed yet");
        let mut events = events();
        let later = events.split_off(4);
        kind.take(events);
        let first = early.next().now_or_never().flatten().unwrap();
        let mut late = kept.moments();
        assert_eq!(late.next().now_or_never().flatten().unwrap(), first);
        kind.take(later);
        for moments in [&mut early, &mut late] {
            let now = moments.next().now_or_never().flatten().unwrap();
            assert_eq!(*now, BTreeMap::from([(3, 4)]));
        }
        assert_eq!(*first, BTreeMap::from([(1, 1), (2, 2)]));
        assert_eq!(kept.now().unwrap().len(), 1);
        assert!(early.next().now_or_never().is_none(), "it is told once");
    }
}
