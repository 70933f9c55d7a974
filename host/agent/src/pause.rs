//! How long to wait before something is tried again: longer each time, and not all at once.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Between two tries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pause {
    least: Duration,
    most: Duration,
    next: Duration,
}

impl Pause {
    pub(crate) fn between(least: Duration, most: Duration) -> Pause {
        Pause { least, most, next: least }
    }

    /// It went well.
    pub(crate) fn is_over(&mut self) {
        self.next = self.least;
    }

    /// The next one: between half of it and all, by chance.
    pub(crate) fn next(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(self.most);
        let chance = u32::try_from(RandomState::new().hash_one(0) % 1024).unwrap_or_default();
        whole / 2 + whole / 2 * chance / 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_the_longest_and_begins_anew_once_it_went_well() {
        let second = Duration::from_secs(1);
        let mut pause = Pause::between(second, second * 60);
        for whole in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            let next = pause.next();
            assert!(next >= second * whole / 2 && next <= second * whole, "{whole}: {next:?}");
        }
        pause.is_over();
        assert!(pause.next() <= second);
    }
}
