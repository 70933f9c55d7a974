//! What could not be written, by its name: each node is tried again later each time, and none of the
//! others waits for it.

use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::asking::Backoff;

/// How long is waited, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// All of them, each with the time of its next try.
#[derive(Debug, Default)]
pub(super) struct Refused(BTreeMap<String, (Instant, Backoff)>);

impl Refused {
    /// That its write failed.
    pub(super) fn again(&mut self, node: &str, now: Instant) {
        let before = self.0.remove(node).map(|(_, backoff)| backoff);
        let mut backoff = before.unwrap_or_else(|| Backoff::new(WAITS));
        self.0.insert(node.to_owned(), (now + backoff.next_wait(), backoff));
    }

    /// Whether it is not tried yet at this time.
    pub(super) fn waits(&self, node: &str, now: Instant) -> bool {
        self.0.get(node).is_some_and(|(until, _)| *until > now)
    }

    /// Forgets all others than these.
    pub(super) fn keep(&mut self, joins: impl Fn(&str) -> bool) {
        self.0.retain(|node, _| joins(node));
    }

    /// When the next one is tried that waited at this time.
    pub(super) fn due(&self, then: Instant) -> Option<Instant> {
        self.0.values().map(|(until, _)| *until).filter(|until| *until > then).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_tried_again_by_itself_and_later_each_time() {
        let mut refused = Refused::default();
        let (mut last, mut now) = (Duration::ZERO, Instant::now());
        for _ in 0..10 {
            refused.again("odd", now);
            assert!(refused.waits("odd", now) && !refused.waits("well", now));
            let due = refused.due(now).unwrap();
            last = due - now;
            assert!(last <= WAITS.1, "{last:?}");
            assert!(!refused.waits("odd", due));
            // It is looked at now, and nothing else waits.
            assert_eq!(refused.due(due), None);
            now = due;
        }
        assert!(last > WAITS.0 * 8, "{last:?}");
        refused.keep(|node| node != "odd");
        assert!(refused.0.is_empty());
    }
}
