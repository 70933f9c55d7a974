//! How often each of many askers may ask: a few times at once, and then once after
//! each pause.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;
use tokio::time::Instant;

/// How many at once.
const AT_ONCE: u32 = 10;
/// After each such pause, one more.
pub(super) const PAUSE: Duration = Duration::from_secs(1);
/// How many askers are remembered; all others count as one.
const MOST: usize = 4096;

/// How often each of many asked. None of them may be known.
#[derive(Debug)]
pub(super) struct Rates<K> {
    each: HashMap<K, Asked>,
    others: Asked,
}

#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    /// How many of those at once are used up.
    used: u32,
    since: Option<Instant>,
}

impl<K> Default for Rates<K> {
    fn default() -> Rates<K> {
        Rates { each: HashMap::new(), others: Asked::default() }
    }
}

impl<K: Eq + Hash> Rates<K> {
    /// Whether this one may ask now. It is counted if so.
    pub(super) fn take(&mut self, who: K, now: Instant) -> bool {
        if self.each.len() >= MOST && !self.each.contains_key(&who) {
            self.each.retain(|_, asked| asked.used_now(now) > 0);
            if self.each.len() >= MOST {
                return self.others.take(now);
            }
        }
        self.each.entry(who).or_default().take(now)
    }

    /// Takes back the last question of this asker: it does not count.
    pub(super) fn give_back(&mut self, who: K) {
        let asked = self.each.get_mut(&who).unwrap_or(&mut self.others);
        asked.used = asked.used.saturating_sub(1);
    }
}

impl Asked {
    fn used_now(&self, now: Instant) -> u32 {
        let passed = self.since.map_or(Duration::ZERO, |since| now.duration_since(since));
        let again = passed.as_millis() / PAUSE.as_millis();
        self.used.saturating_sub(u32::try_from(again).unwrap_or(u32::MAX))
    }

    fn take(&mut self, now: Instant) -> bool {
        let used = self.used_now(now);
        if used >= AT_ONCE {
            return false;
        }
        // The part of a pause that has passed already is kept.
        let again = self.used.saturating_sub(used);
        self.since = match self.since {
            Some(since) if used > 0 => Some(since + PAUSE.saturating_mul(again)),
            _ => Some(now),
        };
        self.used = used + 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_may_ask_some_at_once_and_then_one_after_each_pause() {
        let (mut rates, now) = (Rates::default(), Instant::now());
        let mut take = |who, at: Duration| rates.take(who, now + at);
        for _ in 0..AT_ONCE {
            assert!(take("a", Duration::ZERO));
        }
        assert!(!take("a", Duration::ZERO));
        assert!(take("b", Duration::ZERO), "others are not kept out");
        for second in 1..5 {
            assert!(take("a", PAUSE * second));
            assert!(!take("a", PAUSE * second));
            assert!(!take("a", PAUSE * second + PAUSE / 2));
        }
        // Whoever rested has all again, and no more than that.
        let late = PAUSE * 1000;
        assert_eq!((0..100).filter(|_| take("a", late)).count(), 10);
    }

    #[test]
    fn what_was_answered_with_yes_does_not_count() {
        let (mut rates, now) = (Rates::default(), Instant::now());
        for _ in 0..100 {
            assert!(rates.take("a", now));
            rates.give_back("a");
        }
    }

    #[test]
    fn of_many_little_is_remembered_and_those_beyond_count_as_one() {
        let (mut rates, now) = (Rates::default(), Instant::now());
        let all = (0..10 * MOST).filter(|who| rates.take(*who, now)).count();
        assert_eq!(all, MOST + 10);
        assert!(rates.each.len() <= MOST);
        // Those that rested are forgotten.
        assert!(rates.take(usize::MAX, now + PAUSE));
        assert_eq!(rates.each.len(), 1);
    }
}
