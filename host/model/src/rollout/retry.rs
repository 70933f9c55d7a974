//! When a node that failed is begun again by itself.

use crate::protocol::Time;
use std::time::Duration;

/// No pause is longer.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// How often a node that failed is begun again by itself, and how soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// So often at most, for one config.
    pub attempts: u32,
    /// The pause before the first time; each later one is twice as long, a day at most.
    pub first_after: Duration,
}

impl Retry {
    /// When a node is begun again that failed then, and was begun again so often for the same
    /// config; never, if that was often enough.
    pub fn at(&self, failed: Time, tried: u32) -> Option<Time> {
        let factor = 1_u32.checked_shl(tried).unwrap_or(u32::MAX);
        let pause = self.first_after.checked_mul(factor).unwrap_or(LONGEST).min(LONGEST);
        (tried < self.attempts).then(|| failed.after(pause))
    }
}
