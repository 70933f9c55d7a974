//! What a watch has seen, of each object only what is needed.

use kube::runtime::watcher::Event;
use std::collections::BTreeMap;

/// The objects that a watch has seen.
#[derive(Debug)]
pub(super) struct Mirror<K, V> {
    now: BTreeMap<K, V>,
    /// What has been listed of a list that is not complete.
    listing: Option<BTreeMap<K, V>>,
    /// Whether a list was complete once.
    synced: bool,
}

impl<K: Ord, V> Mirror<K, V> {
    pub(super) fn new() -> Mirror<K, V> {
        Mirror { now: BTreeMap::new(), listing: None, synced: false }
    }

    /// Takes in an event; `read` gives what is kept of an object.
    pub(super) fn apply<O>(&mut self, event: Event<O>, read: impl Fn(O) -> (K, V)) {
        match event {
            Event::Init => self.listing = Some(BTreeMap::new()),
            Event::InitApply(object) => {
                self.listing.get_or_insert_default().extend([read(object)]);
            }
            Event::InitDone => {
                self.now = self.listing.take().unwrap_or_default();
                self.synced = true;
            }
            Event::Apply(object) => self.now.extend([read(object)]),
            Event::Delete(object) => {
                self.now.remove(&read(object).0);
            }
        }
    }

    pub(super) fn now(&self) -> &BTreeMap<K, V> {
        &self.now
    }

    pub(super) fn synced(&self) -> bool {
        self.synced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_takes_the_place_of_what_was_known_once_it_is_complete() {
        let mut mirror = Mirror::new();
        let mut see = |event| {
            mirror.apply(event, |(key, value): (u8, u8)| (key, value));
            let now: Vec<(u8, u8)> = mirror.now().iter().map(|(k, v)| (*k, *v)).collect();
            (mirror.synced(), now)
        };
        for (event, expected) in [
            (Event::Init, (false, vec![])),
            (Event::InitApply((1, 1)), (false, vec![])),
            (Event::InitApply((2, 2)), (false, vec![])),
            (Event::InitDone, (true, vec![(1, 1), (2, 2)])),
            (Event::Apply((3, 3)), (true, vec![(1, 1), (2, 2), (3, 3)])),
            (Event::Delete((1, 9)), (true, vec![(2, 2), (3, 3)])),
            (Event::Init, (true, vec![(2, 2), (3, 3)])),
            (Event::InitApply((2, 5)), (true, vec![(2, 2), (3, 3)])),
            // The list was cut off, and begins anew.
            (Event::Init, (true, vec![(2, 2), (3, 3)])),
            (Event::InitApply((3, 4)), (true, vec![(2, 2), (3, 3)])),
            (Event::InitDone, (true, vec![(3, 4)])),
        ] {
            assert_eq!(see(event), expected);
        }
    }
}
