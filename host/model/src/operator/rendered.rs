//! A MachineConfig as the operator's daemon sees it: the entries as they are
//! written, since it compares writing, not meaning.

use super::written::{Alike, Written, are_alike};
use crate::canonical::{Pair, join};
use crate::ignition::{self, CONFIG, Shape};
use crate::read::GENERATED_BY;
use serde_json::{Map, Value};
use std::borrow::Borrow;
use std::collections::btree_map::Entry::{Occupied, Vacant};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Entries by their path or name. Many configs that are merged share each of them.
pub(super) type Entries = BTreeMap<Arc<str>, Arc<Written>>;

/// Reads an entry of the name as it is written.
type Read = fn(&str, Value) -> Written;

/// Changes how an entry is written.
type Change = fn(&mut Value);

/// What several MachineConfigs set together, or what one rendered one sets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rendered {
    pub(super) files: Entries,
    pub(super) units: Entries,
    pub(super) passwd: Value,
    /// `disks`, `filesystems`, `raid`, `directories`, `links`.
    pub(super) storage: Map<String, Value>,
    pub(super) ignition_arguments: Value,
    pub(super) kernel_arguments: Vec<String>,
    pub(super) extensions: Vec<String>,
    pub(super) kernel_type: &'static str,
    pub(super) os_image: String,
    pub(super) fips: bool,
}

/// One MachineConfig, read so that it can be merged with others again and again.
#[derive(Debug)]
pub struct Layer {
    files: Vec<Entry>,
    units: Vec<Entry>,
    /// Of the Ignition config what counts besides its files and units.
    rest: Value,
    kernel_arguments: Vec<String>,
    extensions: Vec<String>,
    kernel_type: Option<&'static str>,
    os_image: Option<String>,
    is_generated: bool,
    fips: bool,
}

#[derive(Debug)]
struct Entry {
    name: Arc<str>,
    /// As it is written here.
    written: Arc<Written>,
    /// As it is rendered where no other config says anything of it.
    rendered: Arc<Written>,
}

impl Layer {
    /// Of a MachineConfig. What others have is held once for all that have these `alike`.
    pub fn of(mut machine_config: Value, alike: &Alike) -> Layer {
        let annotations = machine_config.pointer("/metadata/annotations");
        let version = annotations.and_then(|all| all.get(GENERATED_BY)?.as_str());
        let is_generated = version.is_some_and(|version| !version.is_empty());
        let mut spec = taken(&mut machine_config, "spec");
        let mut rest = taken(&mut spec, "config");
        crate::read::leave_out(&mut rest);
        prune(&mut rest);
        let files = rest.pointer_mut("/storage/files").map(Value::take);
        let units = rest.pointer_mut("/systemd/units").map(Value::take);
        leave_what_counts(&mut rest);
        let spec = &spec;
        let image = spec["osImageURL"].as_str().filter(|image| !image.is_empty());
        let kernel_type = spec["kernelType"].as_str().map(canonical_kernel_type);
        Layer {
            files: entries(files, "path", (Written::file, as_rendered), alike),
            units: entries(units, "name", (Written::unit, |_| {}), alike),
            rest,
            kernel_arguments: texts(&spec["kernelArguments"]).collect(),
            extensions: texts(&spec["extensions"]).collect(),
            kernel_type: kernel_type.filter(|kind| *kind != "default"),
            os_image: image.map(str::to_owned),
            is_generated,
            fips: spec["fips"].as_bool().unwrap_or_default(),
        }
    }
}

/// Leaves out what is neither merged nor looked at.
fn leave_what_counts(rest: &mut Value) {
    let Value::Object(fields) = rest else { return };
    fields.retain(|name, _| ["storage", "passwd", "kernelArguments"].contains(&name.as_str()));
    if let Some(Value::Object(storage)) = fields.get_mut("storage") {
        storage.remove("files");
        if storage.is_empty() {
            fields.remove("storage");
        }
    }
}

/// The entries of a list that have a name.
fn entries(
    list: Option<Value>,
    key: &str,
    (read, render): (Read, Change),
    alike: &Alike,
) -> Vec<Entry> {
    let Some(Value::Array(list)) = list else { return Vec::new() };
    let named = list.into_iter().filter_map(|entry| {
        let name: Arc<str> = Arc::from(entry.get(key)?.as_str()?);
        let mut rendered = entry.clone();
        render(&mut rendered);
        let rendered = alike.one(read(&name, rendered));
        let written = match *rendered.value() == entry {
            true => Arc::clone(&rendered),
            false => alike.one(read(&name, entry)),
        };
        Some(Entry { name, written, rendered })
    });
    named.collect()
}

/// Takes away what another kind of entry of a later config stands in place of: files,
/// directories and links have one key in Ignition's merge.
fn displace(files: &mut Entries, rests: &mut [Value], layer: &Layer) {
    if layer.rest.is_null() && rests.is_empty() {
        return;
    }
    let kinds = ["directories", "links"];
    let above = |kind: &str| {
        let list = layer.rest.get("storage").and_then(|it| it.get(kind)?.as_array());
        list.into_iter().flatten().filter_map(|entry| entry.get("path")?.as_str())
    };
    kinds.iter().flat_map(|kind| above(kind)).for_each(|path| drop(files.remove(path)));
    for (kind, other) in kinds.into_iter().zip(["links", "directories"]) {
        let mut displaced: BTreeSet<&str> = above(other).collect();
        displaced.extend(layer.files.iter().map(|file| &*file.name));
        for rest in rests.iter_mut() {
            let below = rest.get_mut("storage").and_then(|storage| storage.get_mut(kind));
            let Some(Value::Array(below)) = below else { continue };
            below.retain(|entry| {
                let path = entry.get("path").and_then(Value::as_str);
                path.is_none_or(|path| !displaced.contains(path))
            });
        }
    }
}

/// Says of contents that nothing compresses them, where nothing is said: a config above
/// decides on that, whatever one below says.
fn with_compression(file: &mut Value) {
    let Value::Object(file) = file else { return };
    let contents = file.entry("contents").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(contents) = contents {
        contents.entry("compression").or_insert_with(|| Value::from(""));
    }
}

/// Puts entries over those that are there.
fn merge(below: &mut Entries, above: &[Entry], read: Read, (prepare, render): (Change, Change)) {
    for entry in above {
        match below.entry(Arc::clone(&entry.name)) {
            Occupied(mut there) => {
                let mut value = there.get().value().clone();
                let mut written = entry.written.value().clone();
                prepare(&mut written);
                overlay(&mut value, written);
                render(&mut value);
                there.insert(Arc::new(read(&entry.name, value)));
            }
            Vacant(place) => {
                place.insert(Arc::clone(&entry.rendered));
            }
        }
    }
}

impl Rendered {
    /// As [`Rendered::merged`], of MachineConfigs that are read for it.
    pub fn of(machine_configs: impl IntoIterator<Item = Value>) -> Rendered {
        let alike = Alike::default();
        Rendered::merged(machine_configs.into_iter().map(|config| Layer::of(config, &alike)))
    }

    /// Merges MachineConfigs, in the order given, as the operator does for a
    /// pool. One that is rendered already is the merge of itself.
    pub fn merged(layers: impl IntoIterator<Item = impl Borrow<Layer>>) -> Rendered {
        let mut rendered = Rendered { kernel_type: "default", ..Rendered::default() };
        let mut rests = Vec::new();
        let mut admins_image = None;
        for layer in layers {
            let layer = layer.borrow();
            displace(&mut rendered.files, &mut rests, layer);
            let ways: (Change, Change) = (with_compression, as_rendered);
            merge(&mut rendered.files, &layer.files, Written::file, ways);
            merge(&mut rendered.units, &layer.units, Written::unit, (|_| {}, |_| {}));
            rests.extend((!layer.rest.is_null()).then(|| layer.rest.clone()));
            rendered.kernel_arguments.extend_from_slice(&layer.kernel_arguments);
            rendered.extensions.extend_from_slice(&layer.extensions);
            rendered.kernel_type = layer.kernel_type.unwrap_or(rendered.kernel_type);
            // Of those that the operator makes it does not take the image: they have the one
            // of the release.
            match &layer.os_image {
                Some(image) if layer.is_generated => rendered.os_image.clone_from(image),
                Some(image) => admins_image = Some(image.clone()),
                None => {}
            }
            rendered.fips |= layer.fips;
        }
        rendered.os_image = admins_image.unwrap_or(rendered.os_image);
        let mut rest = ignition::merge(rests, Shape::Object(CONFIG));
        prune(&mut rest);
        if let Value::Object(storage) = taken(&mut rest, "storage") {
            rendered.storage = storage;
        }
        rendered.storage.remove("files");
        rendered.passwd = taken(&mut rest, "passwd");
        rendered.ignition_arguments = taken(&mut rest, "kernelArguments");
        rendered
    }

    /// The same with other bytes in a file: what a controller that renders the
    /// file would make of it. A file that holds these bytes already stays as it
    /// is written.
    #[must_use]
    pub fn with_file(mut self, path: &str, text: &str) -> Rendered {
        let there = self.files.get(path).and_then(|file| contents(file.value()));
        if there.is_some_and(|bytes| bytes == text.as_bytes()) {
            return self;
        }
        let data = base64_simd::STANDARD.encode_to_string(text.as_bytes());
        let source = format!("data:text/plain;charset=utf-8;base64,{data}");
        let before = self.files.remove(path).map(Arc::unwrap_or_clone);
        let mut file = match before.map(Written::into_value) {
            Some(Value::Object(file)) => file,
            _ => Map::from_iter([
                ("path".to_owned(), Value::from(path)),
                ("mode".to_owned(), Value::from(0o644)),
                ("overwrite".to_owned(), Value::from(true)),
            ]),
        };
        file.insert("contents".to_owned(), serde_json::json!({ "source": source }));
        let file = Written::file(path, Value::Object(file));
        self.files.insert(Arc::from(path), Arc::new(file));
        self
    }

    /// Leaves out these files, and the hashes of passwords.
    pub fn forget(&mut self, files: &BTreeSet<String>, passwords: bool) {
        self.files.retain(|path, _| !files.contains(&**path));
        let users = self.passwd.get_mut("users").and_then(Value::as_array_mut);
        for user in users.into_iter().flatten().filter_map(Value::as_object_mut) {
            if passwords {
                user.remove("passwordHash");
            }
        }
    }

    /// The names whose entries are not written alike on both sides: first those that the
    /// new side has not.
    pub(super) fn differing<'r>(old: &'r Entries, new: &'r Entries) -> Vec<&'r str> {
        let (mut removed, mut others) = (Vec::new(), Vec::new());
        for pair in join(old.iter(), new.iter(), |(name, _)| &***name) {
            match pair {
                Pair::Old((name, _)) => removed.push(&**name),
                Pair::Both((_, old), (_, new)) if are_alike(old, new) => {}
                Pair::Both(_, (name, _)) | Pair::New((name, _)) => others.push(&**name),
            }
        }
        removed.append(&mut others);
        removed
    }
}

/// The bytes that a file's entry holds, without looking into compression, which
/// the operator does not do either.
pub(super) fn contents(file: &Value) -> Option<Vec<u8>> {
    let url = file.pointer("/contents/source").and_then(Value::as_str).unwrap_or_default();
    let source = crate::config::Source { url: Some(url.into()), gzip: false };
    if url.is_empty() {
        return Some(Vec::new());
    }
    crate::contents::decode(&source).ok().flatten().map(std::borrow::Cow::into_owned)
}

fn texts(list: &Value) -> impl Iterator<Item = String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
}

fn canonical_kernel_type(kernel_type: &str) -> &'static str {
    match kernel_type {
        "realtime" => "realtime",
        "64k-pages" => "64k-pages",
        _ => "default",
    }
}

/// What the operator writes into each file when it renders, where nothing else is
/// said, and what it takes out.
fn as_rendered(file: &mut Value) {
    let Value::Object(file) = file else { return };
    file.entry("overwrite").or_insert(Value::Bool(true));
    if let Some(Value::Object(contents)) = file.get_mut("contents")
        && contents.get("compression").is_some_and(|compression| compression == "")
    {
        contents.remove("compression");
        if contents.is_empty() {
            file.remove("contents");
        }
    }
}

/// A field, without a copy of what it holds.
fn taken(value: &mut Value, field: &str) -> Value {
    value.get_mut(field).map(Value::take).unwrap_or_default()
}

/// Leaves out what the operator does not write: null, and empty lists and objects.
fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|_, value| {
            prune(value);
            !is_empty(value)
        }),
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// What tells the entries of Ignition's lists apart.
const KEYS: [&str; 3] = ["path", "name", "device"];

/// Merges as Ignition merges configs: objects field by field, lists entry by
/// entry where entries have a name, else one behind the other.
fn overlay(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                overlay(below.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(below), Value::Array(above)) => overlay_list(below, above),
        (_, Value::Null) => {}
        (below, above) => *below = above,
    }
}

fn overlay_list(below: &mut Vec<Value>, above: Vec<Value>) {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (index, entry) in below.iter().enumerate() {
        places.extend(name_of(entry).map(|name| (name, index)));
    }
    for entry in above {
        let name = name_of(&entry);
        let place = name.as_ref().and_then(|name| places.get(name)).copied();
        match place.and_then(|place| below.get_mut(place)) {
            Some(there) => overlay(there, entry),
            None => {
                places.extend(name.map(|name| (name, below.len())));
                below.push(entry);
            }
        }
    }
}

/// What an entry is told apart by: its name, or itself if it is a text such as
/// an SSH key.
fn name_of(entry: &Value) -> Option<String> {
    match entry {
        Value::String(text) => Some(text.clone()),
        entry => KEYS.iter().find_map(|key| entry.get(key)?.as_str()).map(str::to_owned),
    }
}
