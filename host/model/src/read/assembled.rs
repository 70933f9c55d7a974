//! Sides that are put together of MachineConfigs which were read before: each is read and
//! digested once, however many sides have it.

use super::diagnosing;
use super::document::Input;
use super::layer::{Layer, LayerFile, LayerUnit};
use super::makeup::Makeup;
use super::merge::{joined, merge};
use crate::config::{Dropin, File, NodeConfig, Origin, Place, Source, Unit};
use crate::config_digest::{Digests, file_digest, unit_digest};
use crate::contents::{Decoder, MAX_UNPACKED_TOGETHER};
use crate::digest::Digest;
use crate::touch::said_of_units;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A MachineConfig as it was read by itself.
#[derive(Debug)]
pub struct ReadConfig {
    /// The node config that it makes if no other MachineConfig says anything of the same things,
    /// with the digests of its entries.
    alone: NodeConfig<'static>,
    files: Vec<Digest>,
    units: Vec<Digest>,
    /// What gzip unpacks to.
    unpacked: usize,
    /// What it says besides files and units.
    rest: Layer,
    /// Whether that is nothing but its name.
    is_plain: bool,
    /// Its files and units as they are written; the texts that stand in `alone` as well
    /// are left out here.
    written_files: Vec<LayerFile>,
    written_units: Vec<LayerUnit>,
}

/// A side that was put together, with what tells its entries apart.
#[derive(Debug, Clone)]
pub struct Assembled<'a> {
    /// All MachineConfigs, merged.
    pub config: NodeConfig<'a>,
    files: Vec<Digest>,
    units: Vec<Digest>,
    /// What gzip unpacks to.
    unpacked: usize,
}

impl ReadConfig {
    /// Reads a MachineConfig. None: it is none, or something is wrong with it, or what it
    /// says has to be read with what others say: that is left to
    /// [`super::side_in_order`].
    pub fn of(bytes: &[u8]) -> Option<ReadConfig> {
        let mut layer = diagnosing::machine_config(&Input { name: "", bytes })?;
        let alone = merge(vec![layer.clone()]);
        // What only provisioning can set may stand where files do, and what is found only
        // when it is merged would have to be found again.
        if !layer.fixed.is_empty() || alone.faults != layer.faults {
            return None;
        }
        let mut decoder = Decoder::default();
        let files = alone.files.iter().map(|file| file_digest(file, &mut decoder));
        let files = files.collect::<Result<_, _>>().ok()?;
        let units = alone.units.iter().map(unit_digest).collect();
        let mut written_files = std::mem::take(&mut layer.files);
        for LayerFile { file, .. } in &mut written_files {
            file.contents.url = file.contents.url.take().filter(|url| url.is_empty());
        }
        let mut written_units = std::mem::take(&mut layer.units);
        for LayerUnit { unit, .. } in &mut written_units {
            unit.contents = unit.contents.take().filter(|text| text.is_empty());
        }
        let (unpacked, rest) = (decoder.unpacked(), layer);
        let is_plain = rest.only_has_files_and_units();
        Some(ReadConfig {
            alone,
            files,
            units,
            unpacked,
            rest,
            is_plain,
            written_files,
            written_units,
        })
    }

    /// What it is where no other config says anything of the same things.
    pub fn alone(&self) -> &NodeConfig<'static> {
        &self.alone
    }

    fn file(&self, path: &str) -> Option<&File<'static>> {
        let found = self.alone.files.binary_search_by(|file| file.path.as_ref().cmp(path));
        self.alone.files.get(found.ok()?)
    }

    fn unit(&self, name: &str) -> Option<&Unit<'static>> {
        let found = self.alone.units.binary_search_by(|unit| unit.name.as_ref().cmp(name));
        self.alone.units.get(found.ok()?)
    }

    /// Whether it says anything that has to be merged with what others say.
    fn is_merged(&self, shared: &Shared<'_>) -> bool {
        let has_file = |path: &&str| self.file(path).is_some();
        let has_unit = |name: &&str| self.unit(name).is_some();
        !self.is_plain || shared.files.iter().any(has_file) || shared.units.iter().any(has_unit)
    }

    /// This config as layer `number` of a side, without the files and units that no other config
    /// has.
    fn layer(&self, number: u32, shared: &Shared<'_>) -> Layer {
        let mut layer = self.rest.clone();
        let files = self.written_files.iter();
        let files = files.filter(|it| shared.files.contains(it.file.path.as_ref()));
        layer.files = files.cloned().collect();
        for LayerFile { file, .. } in &mut layer.files {
            let whole = self.file(&file.path).and_then(|file| file.contents.url.clone());
            file.contents.url = file.contents.url.take().or(whole);
            file.origin.document = number;
        }
        let units = self.written_units.iter();
        let units = units.filter(|it| shared.units.contains(it.unit.name.as_ref()));
        layer.units = units.cloned().collect();
        for LayerUnit { unit, .. } in &mut layer.units {
            let whole = self.unit(&unit.name).and_then(|unit| unit.contents.clone());
            unit.contents = unit.contents.take().or(whole);
            unit.origin.document = number;
        }
        layer.users.iter_mut().for_each(|user| user.user.origin.document = number);
        layer
    }
}

/// The files and units that several configs say something of.
struct Shared<'c> {
    files: BTreeSet<&'c str>,
    units: BTreeSet<&'c str>,
}

/// An entry of one of several configs: its name, the number of the config, the entry and
/// its digest.
type Of<'c, T> = (&'c str, u32, &'c T, Digest);

/// The entries of all configs by name; and the names of those that several have, which are
/// taken out.
fn sorted<'c, T>(mut entries: Vec<Of<'c, T>>) -> (Vec<Of<'c, T>>, BTreeSet<&'c str>) {
    entries.sort_by_key(|(name, ..)| *name);
    let pairs = entries.iter().zip(entries.iter().skip(1));
    let shared: BTreeSet<&str> =
        pairs.filter(|((a, ..), (b, ..))| a == b).map(|((name, ..), _)| *name).collect();
    if !shared.is_empty() {
        entries.retain(|(name, ..)| !shared.contains(name));
    }
    (entries, shared)
}

/// Puts a side together from MachineConfigs, each with its name, as [`super::side_in_order`] would
/// read it. None: they do not make a side, or gzip unpacks to more than is allowed.
pub fn assembled<'c>(configs: &[(&str, &'c ReadConfig)]) -> Option<Assembled<'c>> {
    let names: BTreeSet<&str> = configs.iter().map(|(_, it)| it.rest.name.as_str()).collect();
    let is_rendered = configs.iter().any(|(_, it)| matches!(it.rest.makeup, Makeup::Rendered(_)));
    if configs.is_empty() || names.len() < configs.len() || is_rendered && configs.len() > 1 {
        return None;
    }
    let (mut files, mut units) = (Vec::new(), Vec::new());
    for (number, (_, config)) in (0_u32..).zip(configs) {
        let own = config.alone.files.iter().zip(&config.files);
        files.extend(own.map(|(file, digest)| (file.path.as_ref(), number, file, *digest)));
        let own = config.alone.units.iter().zip(&config.units);
        units.extend(own.map(|(unit, digest)| (unit.name.as_ref(), number, unit, *digest)));
    }
    let ((files, of_files), (units, of_units)) = (sorted(files), sorted(units));
    let shared = Shared { files: of_files, units: of_units };
    let merged = (0_u32..).zip(configs).filter(|(_, (_, it))| it.is_merged(&shared));
    let layers = merged.map(|(number, (_, it))| it.layer(number, &shared));
    let mut config: NodeConfig<'c> = merge(layers.collect());
    config.name = Cow::Owned(joined(configs.iter().map(|(_, it)| it.rest.name.as_str())));
    let place = |(name, _): &(&str, _)| Place {
        file: (*name).to_owned(),
        document: String::new(),
        config: diagnosing::MACHINE_CONFIG,
    };
    config.places = configs.iter().map(place).collect();
    let mut decoder = Decoder::default();
    let of_merged = config.files.iter().map(|file| file_digest(file, &mut decoder));
    let of_merged: Vec<Digest> = of_merged.collect::<Result<_, _>>().ok()?;
    let unpacked = configs.iter().map(|(_, it)| it.unpacked);
    let unpacked = unpacked.fold(decoder.unpacked(), usize::saturating_add);

    let merged = std::mem::take(&mut config.files).into_iter().zip(of_merged);
    let files = files.into_iter().map(|(_, number, it, digest)| (file_of(it, number), digest));
    let mut files: Vec<(File<'c>, Digest)> = files.chain(merged).collect();
    let of_merged: Vec<Digest> = config.units.iter().map(unit_digest).collect();
    let merged = std::mem::take(&mut config.units).into_iter().zip(of_merged);
    let units = units.into_iter().map(|(_, number, it, digest)| (unit_of(it, number), digest));
    let mut units: Vec<(Unit<'c>, Digest)> = units.chain(merged).collect();
    if !shared.files.is_empty() {
        files.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
    }
    if !shared.units.is_empty() {
        units.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    }
    let (files, of_files) = files.into_iter().unzip();
    let (units, of_units) = units.into_iter().unzip();
    let config = NodeConfig { files, units, ..config };
    Some(Assembled { config, files: of_files, units: of_units, unpacked })
}

/// A file of the config of this number.
fn file_of<'c>(file: &'c File<'static>, document: u32) -> File<'c> {
    File {
        path: Cow::Borrowed(&*file.path),
        contents: Source {
            url: file.contents.url.as_deref().map(Cow::Borrowed),
            gzip: file.contents.gzip,
        },
        mode: file.mode,
        user: Cow::Borrowed(&*file.user),
        group: Cow::Borrowed(&*file.group),
        appends: file.appends,
        needs_source: file.needs_source,
        raw: b"",
        origin: Origin { document, ..file.origin },
    }
}

/// A unit of the config of this number.
fn unit_of<'c>(unit: &'c Unit<'static>, document: u32) -> Unit<'c> {
    let dropin = |dropin: &'c Dropin<'static>| Dropin {
        name: Cow::Borrowed(&*dropin.name),
        contents: dropin.contents.as_deref().map(Cow::Borrowed),
    };
    Unit {
        name: Cow::Borrowed(&*unit.name),
        contents: unit.contents.as_deref().map(Cow::Borrowed),
        enabled: unit.enabled,
        mask: unit.mask,
        dropins: unit.dropins.iter().map(dropin).collect(),
        raw: b"",
        origin: Origin { document, ..unit.origin },
    }
}

impl Assembled<'_> {
    /// What tells the entries of the two configs apart. None: there is more to unpack than
    /// is.
    pub fn differences(old: &Assembled<'_>, new: &Assembled<'_>) -> Option<(Digests, Digests)> {
        let of = |side: &Assembled<'_>| Digests {
            config: Digest::NONE,
            files: side.files.clone(),
            units: side.units.clone(),
        };
        let unpacked = old.unpacked.saturating_add(new.unpacked);
        (unpacked <= MAX_UNPACKED_TOGETHER).then(|| (of(old), of(new)))
    }

    /// A digest that is equal for two sides that say the same of units. None: any file may say
    /// something of them.
    pub fn said_of_units(&self) -> Option<Digest> {
        said_of_units(&self.config, &self.files, &self.units)
    }

    /// Takes files out.
    pub fn forget_files(&mut self, paths: &BTreeSet<String>) {
        let files = std::mem::take(&mut self.config.files);
        let all = files.into_iter().zip(std::mem::take(&mut self.files));
        let kept = all.filter(|(file, _)| !paths.contains(file.path.as_ref()));
        (self.config.files, self.files) = kept.unzip();
    }
}
