//! Times as the API server has them.

use std::time::Duration;

/// A time by the clock of the API server: since 1970.
///
/// It comes from the `Date` of an answer. No clock of a replica or of a node is compared with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Duration);

impl Time {
    /// So much later.
    pub fn after(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span))
    }

    /// So much earlier.
    pub fn before(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(span))
    }

    /// How long it is from another time to this one; nothing if that one is later.
    pub fn since(self, earlier: Time) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
