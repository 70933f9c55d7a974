//! MachineConfigs of the cluster as values, so that one that many plans need, one
//! after the other, is parsed once. They never change: another version has another
//! key.

use super::side::BodyKey;
use crate::weight::Weight;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How much is kept, and of what.
const ROOM: usize = 32 << 20;
const LARGEST: usize = 1 << 20;

/// MachineConfigs as values, those that were used last.
#[derive(Debug, Default)]
pub struct Parsed(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    values: BTreeMap<BodyKey, (Arc<Value>, usize, u64)>,
    takes: usize,
    clock: u64,
}

impl Parsed {
    /// What a MachineConfig says; None: it is no JSON.
    pub(super) fn value(&self, key: &BodyKey, bytes: &[u8]) -> Option<Arc<Value>> {
        if let Some(there) = self.kept(key) {
            return Some(there);
        }
        let value = Arc::new(serde_json::from_slice(bytes).ok()?);
        let takes = Weight::of(bytes).takes();
        if takes <= LARGEST {
            self.keep(key.clone(), Arc::clone(&value), takes);
        }
        Some(value)
    }

    fn kept(&self, key: &BodyKey) -> Option<Arc<Value>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        let (value, _, used) = kept.values.get_mut(key)?;
        *used = now;
        Some(Arc::clone(value))
    }

    fn keep(&self, key: BodyKey, value: Arc<Value>, takes: usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        kept.takes += takes;
        if let Some((_, before, _)) = kept.values.insert(key, (value, takes, now)) {
            kept.takes = kept.takes.saturating_sub(before);
        }
        while kept.takes > ROOM {
            let oldest = kept.values.iter().min_by_key(|(_, (_, _, used))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            if let Some((_, takes, _)) = kept.values.remove(&key) {
                kept.takes = kept.takes.saturating_sub(takes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_kept_within_the_room_and_what_is_large_is_not() {
        let parsed = Parsed::default();
        let key = |number: usize| (format!("{number}"), "1".to_owned());
        let text = |size: usize| format!("{{\"a\": \"{}\"}}", "x".repeat(size)).into_bytes();
        let (usual, large) = (text(900 << 10), text(2 << 20));
        for number in 0..100 {
            assert!(parsed.value(&key(number), &usual).is_some());
            assert!(parsed.value(&key(0), &usual).is_some());
        }
        assert!(parsed.kept(&key(0)).is_some() && parsed.kept(&key(1)).is_none());
        assert!(parsed.0.lock().unwrap().takes <= ROOM);
        assert!(parsed.value(&key(1000), &large).is_some());
        assert!(parsed.kept(&key(1000)).is_none());
        for item in ["{}", "0", "[]", "\"\""] {
            let many = format!("[{}{item}]", format!("{item},").repeat(20_000)).into_bytes();
            assert!(parsed.value(&key(1001), &many).is_some());
            assert!(parsed.kept(&key(1001)).is_none(), "{item}: values count, however short");
        }
        assert!(parsed.value(&key(1002), b"no JSON").is_none());
    }
}
