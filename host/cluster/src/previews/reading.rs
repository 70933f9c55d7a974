//! One reader of one side: all that it is made of, merged, with its mirrors rendered.

use super::body::{Bodies, BodyKey};
use super::config::{Config, Given};
use super::parsed::Parsed;
use super::side::Side;
use super::texts::gone;
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use tread_model::config::NodeConfig;
use tread_model::config_digest::Digests;
use tread_model::contents::decode;
use tread_model::diff::{self, Comparison};
use tread_model::digest::Digest;
use tread_model::mirrors::{REGISTRIES_CONF, rendered};
use tread_model::operator::Rendered;
use tread_model::problem::Problems;
use tread_model::read::{self, Assembled, Input, MACHINE_CONFIG_API};

/// What a side is called that no MachineConfig says anything of.
const NO_CONFIG: &str = "no-machine-config";

/// The objects of a side, at hand.
pub(super) struct Objects<'b> {
    side: &'b Side,
    bodies: &'b Bodies,
    /// In the order in which they are merged.
    configs: Vec<Object<'b>>,
    /// Whether the first of them only says what OS image there is.
    has_os_image: bool,
}

/// A MachineConfig at hand.
struct Object<'b> {
    name: Cow<'b, str>,
    bytes: Bytes<'b>,
    config: Arc<Config>,
}

enum Bytes<'b> {
    There(&'b [u8]),
    Made(Arc<Given>),
}

impl Object<'_> {
    fn made(given: &Arc<Given>) -> Object<'static> {
        Object {
            name: Cow::Owned(given.name().to_owned()),
            bytes: Bytes::Made(Arc::clone(given)),
            config: Arc::clone(given.config()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::There(bytes) => bytes,
            Bytes::Made(given) => given.bytes(),
        }
    }
}

impl<'b> Objects<'b> {
    /// What a side is made of; or why it cannot be told.
    pub(super) fn of(
        side: &'b Side,
        bodies: &'b Bodies,
        parsed: &Parsed,
    ) -> Result<Objects<'b>, String> {
        let rendered = side.os_image_of.as_ref().and_then(|key| Some((key, bodies.get(key)?)));
        let image = rendered.and_then(|(key, body)| {
            parsed.stored(key, body).os_image(&key.0, body.bytes()).map(Object::made)
        });
        let has_os_image = image.is_some();
        // A pool without any MachineConfig is one that says nothing.
        let says_nothing = side.configs.is_empty() && side.mirrors.is_empty() && !has_os_image;
        let nothing =
            says_nothing.then(|| Object::made(&Given::new(NO_CONFIG.to_owned(), no_config())));
        let mut configs = Vec::with_capacity(side.configs.len() + 2);
        configs.extend(image);
        for piece in &side.configs {
            let bytes = piece.bytes(bodies).ok_or_else(|| gone(piece.name()))?;
            let config = parsed.of(piece, bodies).ok_or_else(|| gone(piece.name()))?;
            configs.push(Object {
                name: Cow::Borrowed(piece.name()),
                bytes: Bytes::There(bytes),
                config: Arc::clone(config),
            });
        }
        configs.extend(nothing);
        Ok(Objects { side, bodies, configs, has_os_image })
    }

    /// Reads them: those that were read before are put together.
    pub(super) fn read(&self) -> Result<ReadSide<'_>, String> {
        if self.side.mirrors.is_empty()
            && let Some(assembled) = self.assembled()
        {
            return Ok(ReadSide::Assembled(assembled));
        }
        let mut inputs = Vec::new();
        for object in &self.configs {
            inputs.push(Input { name: &object.name, bytes: object.bytes() });
        }
        for piece in &self.side.mirrors {
            let bytes = piece.bytes(self.bodies).ok_or_else(|| gone(piece.name()))?;
            inputs.push(Input { name: piece.name(), bytes });
        }
        let side = read::side_in_order("new", &inputs);
        let side = side.and_then(rendered).map_err(|problems| problems.to_string())?;
        Ok(ReadSide::Whole(side.config))
    }

    fn assembled(&self) -> Option<Assembled<'_>> {
        let configs = self.configs.iter();
        let configs = configs.map(|it| Some((&*it.name, it.config.read(it.bytes())?)));
        read::assembled(&configs.collect::<Option<Vec<_>>>()?)
    }

    /// The side as the operator's daemon sees it. `read` is what it is by tread.
    pub(super) fn rendered(&self, read: &ReadSide<'_>) -> Arc<Rendered> {
        let image = self.side.os_image_of.as_ref().filter(|_| self.has_os_image);
        let is_own =
            |(name, _): &BodyKey| self.side.configs.iter().any(|piece| piece.name() == &**name);
        let skipped = usize::from(image.is_some_and(is_own));
        let configs = self.configs.get(skipped..).unwrap_or_default();
        if let ([object], true) = (configs, self.side.mirrors.is_empty())
            && let Some(rendered) = object.config.rendered(object.bytes())
        {
            return Arc::clone(rendered);
        }
        let layers = configs.iter().filter_map(|it| it.config.layer(it.bytes()));
        let rendered = Rendered::merged(layers);
        if self.side.mirrors.is_empty() {
            return Arc::new(rendered);
        }
        Arc::new(match registries_conf(read.config()) {
            Some(text) => rendered.with_file(REGISTRIES_CONF, &text),
            None => rendered,
        })
    }
}

/// A side that was read, with its mirrors rendered.
#[derive(Debug, Clone)]
pub(super) enum ReadSide<'b> {
    /// Of configs that were read before.
    Assembled(Assembled<'b>),
    /// All of it at once.
    Whole(NodeConfig<'b>),
}

impl<'b> ReadSide<'b> {
    /// Everything that it says.
    pub(super) fn config(&self) -> &NodeConfig<'b> {
        match self {
            ReadSide::Assembled(side) => &side.config,
            ReadSide::Whole(config) => config,
        }
    }

    /// The same, to take out what is not in a list of files.
    pub(super) fn config_mut(&mut self) -> &mut NodeConfig<'b> {
        match self {
            ReadSide::Assembled(side) => &mut side.config,
            ReadSide::Whole(config) => config,
        }
    }

    /// Takes files out.
    pub(super) fn forget_files(&mut self, paths: &BTreeSet<String>) {
        match self {
            ReadSide::Assembled(side) => side.forget_files(paths),
            ReadSide::Whole(config) => {
                config.files.retain(|file| !paths.contains(file.path.as_ref()));
            }
        }
    }
}

/// What tells the entries of two sides apart, where that is known already.
pub(super) fn differences(old: &ReadSide<'_>, new: &ReadSide<'_>) -> Option<(Digests, Digests)> {
    match (old, new) {
        (ReadSide::Assembled(old), ReadSide::Assembled(new)) => Assembled::differences(old, new),
        _ => None,
    }
}

/// A digest for each side: sides with equal digests say the same of units. None: that is not known.
pub(super) fn said_of_units(old: &ReadSide<'_>, new: &ReadSide<'_>) -> Option<[Digest; 2]> {
    match (old, new) {
        (ReadSide::Assembled(old), ReadSide::Assembled(new)) => {
            Some([old.said_of_units()?, new.said_of_units()?])
        }
        _ => None,
    }
}

/// Whether two sides differ in nothing.
pub(super) fn mean_the_same(one: &ReadSide<'_>, other: &ReadSide<'_>) -> bool {
    let compared: Result<Comparison<'_>, Problems> = match differences(one, other) {
        Some((from, to)) => diff::compare_digested(one.config(), &from, other.config(), &to),
        None => diff::compare(one.config(), other.config()),
    };
    compared
        .is_ok_and(|it| it.changes.is_empty() && it.refusals.is_empty() && it.settled.is_empty())
}

/// The text of registries.conf.
pub(super) fn registries_conf(config: &NodeConfig<'_>) -> Option<String> {
    let file = config.files.iter().find(|file| file.path == REGISTRIES_CONF)?;
    let bytes = decode(&file.contents).ok()??;
    String::from_utf8(bytes.into_owned()).ok()
}

/// A MachineConfig that says nothing.
fn no_config() -> Arc<[u8]> {
    let config = json!({
        "apiVersion": MACHINE_CONFIG_API,
        "kind": "MachineConfig",
        "metadata": {"name": NO_CONFIG},
        "spec": {},
    });
    config.to_string().into_bytes().into()
}
