//! When plans are made again in which a policy failed for a moment: for lack of time, or of room. A busy
//! moment is no reason for a reboot.

use std::fmt;
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::asking::pause;

/// How long it is until then, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How often plans are made again. Some policies never have enough time.
const MOST: u32 = 6;

/// When plans are made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Again {
    pub(super) at: Instant,
    wait: Duration,
    tries: u32,
}

impl Again {
    /// Later each time, and not without an end.
    pub(super) fn after(before: Option<&Again>, now: Instant) -> Option<Again> {
        let tries = before.map_or(0, |before| before.tries);
        let wait = pause(WAITS, tries);
        (tries < MOST).then_some(Again { at: now + wait, wait, tries: tries.saturating_add(1) })
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.at <= now
    }
}

impl fmt::Display for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in {:.1} s, time {} of {MOST}", self.wait.as_secs_f64(), self.tries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_made_again_later_each_time_and_not_without_an_end() {
        let (mut now, mut again, mut waits) = (Instant::now(), None, Vec::new());
        while let Some(next) = Again::after(again.as_ref(), now) {
            assert!(!next.is_due(now) && next.is_due(next.at));
            waits.push(next.at - now);
            now = next.at;
            again = Some(next);
        }
        assert_eq!(waits.len(), 6);
        assert!(waits[0] <= WAITS.0 && waits[5] > Duration::from_secs(15), "{waits:?}");
        assert!(waits.is_sorted(), "{waits:?}");
    }
}
