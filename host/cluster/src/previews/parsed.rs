//! MachineConfigs of the cluster as they are read, so that one that many plans need,
//! one after the other, is read once. They never change: another version has another
//! key.

use super::body::{Bodies, Body, BodyKey};
use super::config::{Config, LARGEST};
use super::side::Piece;
use crate::weight::Weight;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tread_model::operator::Alike;

/// How much is kept.
const ROOM: usize = 48 << 20;

/// MachineConfigs as they are read, those that were used last.
#[derive(Debug, Default)]
pub struct Parsed {
    kept: Mutex<Kept>,
    alike: Arc<Alike>,
}

#[derive(Debug, Default)]
struct Kept {
    configs: HashMap<BodyKey, (Arc<Config>, u64)>,
    takes: usize,
    clock: u64,
}

impl Parsed {
    /// What a MachineConfig of the cluster says.
    pub(super) fn stored<'b>(&self, key: &BodyKey, body: &'b Body) -> &'b Arc<Config> {
        body.config.get_or_init(|| self.config(key, body.bytes()))
    }

    fn config(&self, key: &BodyKey, bytes: &[u8]) -> Arc<Config> {
        if let Some(there) = self.kept(key) {
            return there;
        }
        let config = Arc::new(Config::of(bytes, &self.alike));
        if config.takes() <= LARGEST {
            self.keep(key.clone(), Arc::clone(&config));
        }
        config
    }

    /// What an object says as a MachineConfig, if what it holds is at hand. Only those of
    /// the cluster are kept beyond these plans.
    pub(super) fn of<'p>(&self, piece: &'p Piece, bodies: &'p Bodies) -> Option<&'p Arc<Config>> {
        match piece {
            Piece::Stored(key) => Some(self.stored(key, bodies.get(key)?)),
            Piece::Given(given) => Some(given.config()),
            Piece::Generated(_) => None,
        }
    }

    /// What an object takes as values; nothing where it is not at hand.
    pub(crate) fn weight(&self, piece: &Piece, bodies: &Bodies) -> Weight {
        self.of(piece, bodies).map(|config| config.weight()).unwrap_or_default()
    }

    fn kept(&self, key: &BodyKey) -> Option<Arc<Config>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        let (config, used) = kept.configs.get_mut(key)?;
        *used = now;
        Some(Arc::clone(config))
    }

    fn keep(&self, key: BodyKey, config: Arc<Config>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        kept.takes += config.takes();
        if let Some((before, _)) = kept.configs.insert(key, (config, now)) {
            kept.takes = kept.takes.saturating_sub(before.takes());
        }
        while kept.takes > ROOM {
            let oldest = kept.configs.iter().min_by_key(|(_, (_, used))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            if let Some((config, _)) = kept.configs.remove(&key) {
                kept.takes = kept.takes.saturating_sub(config.takes());
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
        let key = |number: usize| (format!("{number}").into(), "1".into());
        let text = |size: usize| format!("{{\"a\": \"{}\"}}", "x".repeat(size)).into_bytes();
        let (usual, large) = (text(500 << 10), text(2 << 20));
        for number in 0..200 {
            parsed.config(&key(number), &usual);
            parsed.config(&key(0), &usual);
        }
        assert!(parsed.kept(&key(0)).is_some() && parsed.kept(&key(1)).is_none());
        assert!(parsed.kept.lock().unwrap().takes <= ROOM);
        parsed.config(&key(1000), &large);
        assert!(parsed.kept(&key(1000)).is_none());
        for item in ["{}", "0", "[]", "\"\""] {
            let many = format!("[{}{item}]", format!("{item},").repeat(20_000)).into_bytes();
            parsed.config(&key(1001), &many);
            assert!(parsed.kept(&key(1001)).is_none(), "{item}: values count, however short");
        }
        assert!(parsed.config(&key(1002), b"no JSON").layer(b"no JSON").is_none());
    }
}
