//! MachineConfigs of the cluster as they are read, so that one that many plans need,
//! one after the other, is read once. They never change: another version has another
//! key.

use super::body::BodyKey;
use crate::weight::Weight;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tread_model::config::NodeConfig;
use tread_model::diff;
use tread_model::operator::Layer;
use tread_model::read::{self, Input};

/// How much is kept, and of what.
const ROOM: usize = 32 << 20;
const LARGEST: usize = 1 << 20;

/// What a MachineConfig says.
#[derive(Debug)]
pub(super) struct Config {
    /// As the operator's daemon sees it; None: it is no JSON.
    pub(super) layer: Option<Layer>,
    /// The ids of everything that it says anything of; None: it cannot be read.
    says: OnceLock<Option<BTreeSet<String>>>,
}

impl Config {
    pub(super) fn of(bytes: &[u8]) -> Config {
        let layer = serde_json::from_slice(bytes).ok().map(Layer::of);
        Config { layer, says: OnceLock::new() }
    }

    /// The ids of everything that it says anything of. `name` and `bytes` are what it
    /// was read of.
    pub(super) fn says(&self, name: &str, bytes: &[u8]) -> Option<&BTreeSet<String>> {
        self.says.get_or_init(|| says(name, bytes)).as_ref()
    }
}

fn says(name: &str, bytes: &[u8]) -> Option<BTreeSet<String>> {
    let input = [Input { name, bytes }];
    let (side, _) = read::sides_in_order(&input, &input).ok()?;
    let comparison = diff::compare(&NodeConfig::default(), &side.config).ok()?;
    let changes = comparison.changes.into_iter().map(|change| change.id);
    let refusals = comparison.refusals.into_iter().map(|refusal| refusal.id);
    let settled = comparison.settled.into_iter().map(|settled| settled.id);
    Some(changes.chain(refusals).chain(settled).collect())
}

/// MachineConfigs as they are read, those that were used last.
#[derive(Debug, Default)]
pub struct Parsed(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    configs: BTreeMap<BodyKey, (Arc<Config>, usize, u64)>,
    takes: usize,
    clock: u64,
}

impl Parsed {
    /// What a MachineConfig says.
    pub(super) fn config(&self, key: &BodyKey, bytes: &[u8]) -> Arc<Config> {
        if let Some(there) = self.kept(key) {
            return there;
        }
        let config = Arc::new(Config::of(bytes));
        let takes = Weight::of(bytes).takes();
        if takes <= LARGEST {
            self.keep(key.clone(), Arc::clone(&config), takes);
        }
        config
    }

    fn kept(&self, key: &BodyKey) -> Option<Arc<Config>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        let (config, _, used) = kept.configs.get_mut(key)?;
        *used = now;
        Some(Arc::clone(config))
    }

    fn keep(&self, key: BodyKey, config: Arc<Config>, takes: usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        kept.takes += takes;
        if let Some((_, before, _)) = kept.configs.insert(key, (config, takes, now)) {
            kept.takes = kept.takes.saturating_sub(before);
        }
        while kept.takes > ROOM {
            let oldest = kept.configs.iter().min_by_key(|(_, (_, _, used))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            if let Some((_, takes, _)) = kept.configs.remove(&key) {
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
            parsed.config(&key(number), &usual);
            parsed.config(&key(0), &usual);
        }
        assert!(parsed.kept(&key(0)).is_some() && parsed.kept(&key(1)).is_none());
        assert!(parsed.0.lock().unwrap().takes <= ROOM);
        parsed.config(&key(1000), &large);
        assert!(parsed.kept(&key(1000)).is_none());
        for item in ["{}", "0", "[]", "\"\""] {
            let many = format!("[{}{item}]", format!("{item},").repeat(20_000)).into_bytes();
            parsed.config(&key(1001), &many);
            assert!(parsed.kept(&key(1001)).is_none(), "{item}: values count, however short");
        }
        assert!(parsed.config(&key(1002), b"no JSON").layer.is_none());
    }
}
