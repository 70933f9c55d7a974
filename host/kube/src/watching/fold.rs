//! What the events of a watch mean, one after the other: which objects are there,
//! and which are gone.

use kube::runtime::watcher::Event;
use std::collections::{BTreeMap, BTreeSet};

/// What an event changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Folded<K, O> {
    /// This object is there, as it is.
    There(K, O),
    /// This one is gone.
    Gone(K),
    /// A list is complete: of all that was known before, this is gone.
    Listed(Vec<K>),
    /// Nothing yet: a list begins.
    Nothing,
}

impl<K: Ord, O> Folded<K, O> {
    /// Makes the same change to a map; `read` gives what is kept of an object.
    pub fn apply<V>(self, to: &mut BTreeMap<K, V>, read: impl FnOnce(O) -> V) {
        match self {
            Folded::There(key, object) => {
                to.insert(key, read(object));
            }
            Folded::Gone(key) => {
                to.remove(&key);
            }
            Folded::Listed(gone) => {
                for key in &gone {
                    to.remove(key);
                }
            }
            Folded::Nothing => {}
        }
    }
}

/// Which objects a watch has told of. A list that begins again removes what is
/// gone when it is complete, and nothing before that.
#[derive(Debug, Clone)]
pub struct Fold<K> {
    known: BTreeSet<K>,
    /// What a list that is not complete has had so far.
    listing: Option<BTreeSet<K>>,
    synced: bool,
}

impl<K> Default for Fold<K> {
    fn default() -> Fold<K> {
        Fold { known: BTreeSet::new(), listing: None, synced: false }
    }
}

impl<K: Ord + Clone> Fold<K> {
    /// Takes in an event; `key` tells objects apart.
    pub fn take<O>(&mut self, event: Event<O>, key: impl FnOnce(&O) -> K) -> Folded<K, O> {
        match event {
            Event::Init => {
                self.listing = Some(BTreeSet::new());
                Folded::Nothing
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let key = key(&object);
                if let Some(listing) = &mut self.listing {
                    listing.insert(key.clone());
                }
                self.known.insert(key.clone());
                Folded::There(key, object)
            }
            Event::InitDone => {
                self.synced = true;
                let Some(listed) = self.listing.take() else { return Folded::Listed(Vec::new()) };
                let before = std::mem::replace(&mut self.known, listed);
                Folded::Listed(before.difference(&self.known).cloned().collect())
            }
            Event::Delete(object) => {
                let key = key(&object);
                if let Some(listing) = &mut self.listing {
                    listing.remove(&key);
                }
                self.known.remove(&key);
                Folded::Gone(key)
            }
        }
    }

    /// Whether an object is there.
    pub fn has(&self, key: &K) -> bool {
        self.known.contains(key)
    }

    /// Whether a list was complete once.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Whether a whole list came, and no other one is under way.
    pub fn is_settled(&self) -> bool {
        self.synced && self.listing.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Objects = BTreeMap<u8, u32>;

    /// A fold, and a map that follows it.
    #[derive(Default)]
    struct Follower {
        fold: Fold<u8>,
        now: Objects,
    }

    impl Follower {
        fn take(&mut self, event: Event<(u8, u32)>) {
            let change = self.fold.take(event, |(key, _)| *key);
            change.apply(&mut self.now, |(_, value)| value);
        }
    }

    /// Numbers that look random, and are the same each time.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % limit
        }

        fn key(&mut self) -> u8 {
            u8::try_from(self.below(8)).unwrap()
        }
    }

    #[test]
    fn a_list_that_begins_again_removes_exactly_what_is_gone_and_nothing_before_it_is_complete() {
        for seed in 0..200 {
            let (mut numbers, mut cluster) = (Numbers(seed), Objects::new());
            let mut it = Follower::default();
            assert!(!it.fold.is_synced());
            for value in 0..60 {
                let key = numbers.key();
                match numbers.below(5) {
                    // The watch tells of a write.
                    0 | 1 if it.fold.is_synced() => {
                        cluster.insert(key, value);
                        it.take(Event::Apply((key, value)));
                    }
                    2 if it.fold.is_synced() => {
                        if let Some(value) = cluster.remove(&key) {
                            it.take(Event::Delete((key, value)));
                        }
                    }
                    // It broke off, and missed what happened meanwhile.
                    _ => {
                        for _ in 0..numbers.below(4) {
                            cluster.remove(&numbers.key());
                            cluster.insert(numbers.key(), value);
                        }
                        let before: BTreeSet<u8> = it.now.keys().copied().collect();
                        // Lists may be cut off, and begin anew.
                        for _ in 0..numbers.below(3) {
                            it.take(Event::Init);
                            let some = usize::try_from(numbers.below(8)).unwrap();
                            for (key, value) in cluster.iter().take(some) {
                                it.take(Event::InitApply((*key, *value)));
                            }
                            assert!(!it.fold.is_settled());
                            assert!(before.iter().all(|key| it.now.contains_key(key)));
                        }
                        it.take(Event::Init);
                        for (key, value) in &cluster {
                            it.take(Event::InitApply((*key, *value)));
                            assert!(before.iter().all(|key| it.now.contains_key(key)));
                        }
                        let known: BTreeSet<u8> = it.now.keys().copied().collect();
                        let change = it.fold.take(Event::<(u8, u32)>::InitDone, |(key, _)| *key);
                        let gone: Vec<u8> = known
                            .iter()
                            .copied()
                            .filter(|key| !cluster.contains_key(key))
                            .collect();
                        assert_eq!(change, Folded::Listed(gone));
                        change.apply(&mut it.now, |(_, value)| value);
                    }
                }
                if it.fold.is_synced() {
                    assert!(it.fold.is_settled());
                    assert_eq!(it.now, cluster, "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn what_is_written_or_deleted_while_a_list_is_under_way_counts() {
        let mut it = Follower::default();
        for event in [
            Event::Init,
            Event::InitApply((1, 1)),
            Event::InitApply((2, 2)),
            Event::Apply((3, 3)),
            Event::Delete((1, 1)),
            Event::InitDone,
        ] {
            it.take(event);
        }
        assert_eq!(it.now, Objects::from([(2, 2), (3, 3)]));
        // Nothing was listed, so nothing is known to be gone.
        it.take(Event::InitDone);
        assert_eq!(it.now.len(), 2);
        // A kind that is not installed has no objects.
        it.take(Event::Init);
        it.take(Event::InitDone);
        assert!(it.now.is_empty());
    }
}
