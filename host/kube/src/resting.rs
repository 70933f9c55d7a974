//! Rests after work that grows with the cluster, so that it takes a part of a core at most, however
//! much happens: what happens meanwhile is worked on together.

use std::time::Duration;

/// No timer counts less.
const SHORTEST: Duration = Duration::from_millis(1);

/// How long is rested after some work.
#[derive(Debug, Clone, Copy)]
pub struct Resting {
    /// The work takes one of so many parts of a core.
    pub parts: u32,
    /// And never waits for longer.
    pub longest: Duration,
}

impl Resting {
    /// How long is rested after work that took so long.
    pub fn after(self, took: Duration) -> Duration {
        took.saturating_mul(self.parts.saturating_sub(1)).min(self.longest)
    }

    /// Rests after work that took so long, if that is worth a timer.
    pub async fn rest_after(self, took: Duration) {
        let rest = self.after(took);
        if rest >= SHORTEST {
            tokio::time::sleep(rest).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn work_takes_its_part_of_a_core_and_never_waits_for_long() {
        let resting = Resting { parts: 20, longest: Duration::from_secs(2) };
        let after = |micros| resting.after(Duration::from_micros(micros));
        assert_eq!(after(1_000), Duration::from_millis(19));
        assert_eq!(after(500_000), Duration::from_secs(2));
        assert_eq!(after(u64::MAX), Duration::from_secs(2));
        let of_no_parts = Resting { parts: 0, ..resting };
        assert_eq!(of_no_parts.after(Duration::from_secs(1)), Duration::ZERO);
    }

    #[tokio::test]
    async fn little_work_is_followed_by_no_rest() {
        let resting = Resting { parts: 50, longest: Duration::from_millis(100) };
        let is_over = |took| resting.rest_after(took).now_or_never().is_some();
        assert!(is_over(Duration::from_micros(10)));
        assert!(!is_over(Duration::from_millis(1)));
    }
}
