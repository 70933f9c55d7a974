//! MachineConfigs of the cluster as they are read, so that one that many plans need,
//! one after the other, is read once. They never change: another version has another
//! key.

use super::body::BodyKey;
use super::side::{Given, Piece};
use crate::weight::Weight;
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tread_model::config::NodeConfig;
use tread_model::diff;
use tread_model::operator::Layer;
use tread_model::read::{self, Input, ReadConfig};

/// How much is kept, and of what.
const ROOM: usize = 48 << 20;
const LARGEST: usize = 1 << 20;

/// What a MachineConfig says: each form of it is made when somebody needs it first.
#[derive(Debug)]
pub(crate) struct Config {
    /// What its text takes as values.
    weight: Weight,
    layer: OnceLock<Option<Layer>>,
    read: OnceLock<Option<ReadConfig>>,
    says: OnceLock<Option<BTreeSet<String>>>,
    os_image: OnceLock<Option<Arc<Given>>>,
}

impl Config {
    pub(super) fn of(bytes: &[u8]) -> Config {
        Config {
            weight: Weight::of(bytes),
            layer: OnceLock::new(),
            read: OnceLock::new(),
            says: OnceLock::new(),
            os_image: OnceLock::new(),
        }
    }

    /// What its text takes as values.
    pub(crate) fn weight(&self) -> Weight {
        self.weight
    }

    /// What all its forms take together.
    fn takes(&self) -> usize {
        self.weight.takes().saturating_add(self.weight.bytes)
    }

    /// As the operator's daemon sees it; None: it is no JSON. `bytes` is what it is read
    /// of, here and below.
    pub(super) fn layer(&self, bytes: &[u8]) -> Option<&Layer> {
        let read = || serde_json::from_slice(bytes).ok().map(Layer::of);
        self.layer.get_or_init(read).as_ref()
    }

    /// As tread sees it, to be put together with others; None: it is read with them.
    pub(super) fn read(&self, bytes: &[u8]) -> Option<&ReadConfig> {
        if self.takes() > LARGEST {
            return None;
        }
        self.read.get_or_init(|| ReadConfig::of(bytes)).as_ref()
    }

    /// The ids of everything that it says anything of; None: it cannot be read.
    pub(super) fn says(&self, name: &str, bytes: &[u8]) -> Option<&BTreeSet<String>> {
        self.says.get_or_init(|| says(name, bytes)).as_ref()
    }

    /// A MachineConfig that says of the OS image what this one says, which is called
    /// `name`; None: it says nothing of it.
    pub(super) fn os_image(&self, name: &str, bytes: &[u8]) -> Option<&Arc<Given>> {
        self.os_image.get_or_init(|| os_image(name, bytes)).as_ref()
    }
}

fn says(name: &str, bytes: &[u8]) -> Option<BTreeSet<String>> {
    let side = read::side_in_order("new", &[Input { name, bytes }]).ok()?;
    let comparison = diff::compare(&NodeConfig::default(), &side.config).ok()?;
    let changes = comparison.changes.into_iter().map(|change| change.id);
    let refusals = comparison.refusals.into_iter().map(|refusal| refusal.id);
    let settled = comparison.settled.into_iter().map(|settled| settled.id);
    Some(changes.chain(refusals).chain(settled).collect())
}

fn os_image(name: &str, rendered: &[u8]) -> Option<Arc<Given>> {
    #[derive(serde::Deserialize)]
    struct Body<'b> {
        #[serde(borrow)]
        spec: Spec<'b>,
    }
    #[derive(serde::Deserialize)]
    struct Spec<'b> {
        #[serde(rename = "osImageURL", default, borrow)]
        os_image: Cow<'b, str>,
    }
    let body: Body<'_> = serde_json::from_slice(rendered).ok()?;
    let image = Some(body.spec.os_image).filter(|image| !image.is_empty())?;
    let config = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": format!("os-image-of-{name}")},
        "spec": {"osImageURL": image},
    });
    Some(Given::new(name.to_owned(), config.to_string().into_bytes().into()))
}

/// MachineConfigs as they are read, those that were used last.
#[derive(Debug, Default)]
pub struct Parsed(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    configs: BTreeMap<BodyKey, (Arc<Config>, u64)>,
    takes: usize,
    clock: u64,
}

impl Parsed {
    /// What a MachineConfig of the cluster says.
    pub(super) fn config(&self, key: &BodyKey, bytes: &[u8]) -> Arc<Config> {
        if let Some(there) = self.kept(key) {
            return there;
        }
        let config = Arc::new(Config::of(bytes));
        if config.takes() <= LARGEST {
            self.keep(key.clone(), Arc::clone(&config));
        }
        config
    }

    /// What an object takes as values; nothing where it is not at hand.
    pub(crate) fn weight(&self, piece: &Piece, bodies: &super::Bodies) -> Weight {
        piece.config(bodies, self).map(|config| config.weight()).unwrap_or_default()
    }

    fn kept(&self, key: &BodyKey) -> Option<Arc<Config>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        let (config, used) = kept.configs.get_mut(key)?;
        *used = now;
        Some(Arc::clone(config))
    }

    fn keep(&self, key: BodyKey, config: Arc<Config>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let key = |number: usize| (format!("{number}"), "1".to_owned());
        let text = |size: usize| format!("{{\"a\": \"{}\"}}", "x".repeat(size)).into_bytes();
        let (usual, large) = (text(500 << 10), text(2 << 20));
        for number in 0..200 {
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
        assert!(parsed.config(&key(1002), b"no JSON").layer(b"no JSON").is_none());
    }

    #[test]
    fn what_is_large_is_read_with_the_others_and_never_by_itself() {
        let config = |size: usize| {
            let text = "x".repeat(size);
            json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
                "metadata": {"name": "a"}, "spec": {"config": {"ignition": {"version": "3.4.0"},
                    "storage": {"files": [{"path": "/etc/a",
                        "contents": {"source": format!("data:,{text}")}}]}}}})
            .to_string()
            .into_bytes()
        };
        for (size, is_read) in [(100, true), (LARGEST, false)] {
            let bytes = config(size);
            assert_eq!(Config::of(&bytes).read(&bytes).is_some(), is_read, "{size}");
        }
    }
}
