//! What a MachineConfig says, read once for everybody who needs it.

use crate::weight::Weight;
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use tread_model::config::NodeConfig;
use tread_model::diff;
use tread_model::operator::{Alike, Layer, Rendered};
use tread_model::read::{self, Input, MACHINE_CONFIG_API, ReadConfig};

/// The largest that is read by itself, and kept.
pub(super) const LARGEST: usize = 1 << 20;

/// An object that is at hand, for all pools that get it.
#[derive(Debug)]
pub struct Given {
    /// What it is called.
    name: String,
    /// What it holds.
    bytes: Arc<[u8]>,
    /// What the bytes say, read by whoever needs it first.
    config: OnceLock<Arc<Config>>,
}

impl Given {
    pub(super) fn new(name: String, bytes: Arc<[u8]>) -> Arc<Given> {
        Arc::new(Given { name, bytes, config: OnceLock::new() })
    }

    /// What it is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What it says as a MachineConfig.
    pub(super) fn config(&self) -> &Arc<Config> {
        self.config.get_or_init(|| Arc::new(Config::of(&self.bytes, &Arc::default())))
    }

    /// What it holds.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl PartialEq for Given {
    fn eq(&self, other: &Given) -> bool {
        (&self.name, &self.bytes) == (&other.name, &other.bytes)
    }
}

impl Eq for Given {}

/// What a MachineConfig says: each form of it is made when somebody needs it first.
#[derive(Debug)]
pub(crate) struct Config {
    /// What its text takes as values.
    weight: Weight,
    /// Who holds what others have as well.
    alike: Arc<Alike>,
    layer: OnceLock<Option<Layer>>,
    rendered: OnceLock<Option<Arc<Rendered>>>,
    read: OnceLock<Option<ReadConfig>>,
    says: OnceLock<Option<BTreeSet<String>>>,
    os_image: OnceLock<Option<Arc<Given>>>,
}

impl Config {
    /// What others that are `alike` have is held once.
    pub(super) fn of(bytes: &[u8], alike: &Arc<Alike>) -> Config {
        Config {
            weight: Weight::of(bytes),
            alike: Arc::clone(alike),
            layer: OnceLock::new(),
            rendered: OnceLock::new(),
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
    pub(super) fn takes(&self) -> usize {
        self.weight.takes().saturating_add(self.weight.bytes)
    }

    /// As the operator's daemon sees it; None: it is no JSON. `bytes` is what it is read
    /// of, here and below.
    pub(super) fn layer(&self, bytes: &[u8]) -> Option<&Layer> {
        let read = || {
            let config = serde_json::from_slice(bytes).ok()?;
            Some(Layer::of(config, &self.alike))
        };
        self.layer.get_or_init(read).as_ref()
    }

    /// What the operator renders of it, where a side is made of nothing else.
    pub(super) fn rendered(&self, bytes: &[u8]) -> Option<&Arc<Rendered>> {
        let rendered = || Some(Arc::new(Rendered::merged([self.layer(bytes)?])));
        self.rendered.get_or_init(rendered).as_ref()
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
        "apiVersion": MACHINE_CONFIG_API,
        "kind": "MachineConfig",
        "metadata": {"name": format!("os-image-of-{name}")},
        "spec": {"osImageURL": image},
    });
    Some(Given::new(name.to_owned(), config.to_string().into_bytes().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(
                Config::of(&bytes, &Arc::default()).read(&bytes).is_some(),
                is_read,
                "{size}"
            );
        }
    }
}
