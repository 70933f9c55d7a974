//! What is remembered for a while: bounded, and forgotten by itself.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

/// What is remembered, each until its time is over. So many at most: where there are more, all
/// that is known is forgotten.
pub(super) struct Kept<K, V> {
    most: usize,
    all: Mutex<HashMap<K, (Instant, V)>>,
}

impl<K: Eq + Hash, V: Clone> Kept<K, V> {
    pub(super) fn new(most: usize) -> Kept<K, V> {
        Kept { most, all: Mutex::default() }
    }

    pub(super) fn find(&self, key: &K, now: Instant) -> Option<V> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, value) = all.get(key)?;
        (now < *until).then(|| value.clone())
    }

    pub(super) fn keep(&self, key: K, value: V, now: Instant, until: Instant) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= self.most {
            all.retain(|_, (until, _)| now < *until);
        }
        if all.len() >= self.most {
            all.clear();
        }
        all.insert(key, (until, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_remembered_is_bounded_and_forgotten() {
        let kept = Kept::new(16);
        let now = Instant::now();
        let until = now + Duration::from_secs(10);
        for key in 0..100 {
            kept.keep(key, true, now, until);
            assert_eq!(kept.find(&key, now), Some(true));
            assert!(kept.all.lock().unwrap().len() <= 16);
        }
        kept.keep(1, true, now, until);
        assert_eq!(kept.find(&1, until), None);
    }
}
