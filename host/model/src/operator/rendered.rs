//! A MachineConfig as the operator's daemon sees it: the entries as they are
//! written, since it compares writing, not meaning.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What several MachineConfigs set together, or what one rendered one sets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rendered {
    pub(super) files: BTreeMap<String, Value>,
    pub(super) units: BTreeMap<String, Value>,
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

impl Rendered {
    /// Merges MachineConfigs, in the order given, as the operator does for a
    /// pool. One that is rendered already is the merge of itself.
    pub fn of(machine_configs: impl IntoIterator<Item = Value>) -> Rendered {
        let mut rendered = Rendered { kernel_type: "default", ..Rendered::default() };
        let mut config = Value::Null;
        for mut machine_config in machine_configs {
            let mut spec = taken(&mut machine_config, "spec");
            let mut own = taken(&mut spec, "config");
            crate::read::leave_out(&mut own);
            prune(&mut own);
            overlay(&mut config, own);
            let spec = &spec;
            rendered.kernel_arguments.extend(texts(&spec["kernelArguments"]));
            rendered.extensions.extend(texts(&spec["extensions"]));
            let kernel_type = spec["kernelType"].as_str().map(canonical_kernel_type);
            if let Some(other) = kernel_type.filter(|kind| *kind != "default") {
                rendered.kernel_type = other;
            }
            if let Some(image) = spec["osImageURL"].as_str().filter(|image| !image.is_empty()) {
                rendered.os_image = image.to_owned();
            }
            rendered.fips |= spec["fips"].as_bool().unwrap_or_default();
        }
        if let Value::Object(storage) = taken(&mut config, "storage") {
            rendered.storage = storage;
        }
        rendered.files = keyed(rendered.storage.remove("files"), "path");
        rendered.files.values_mut().for_each(as_rendered);
        rendered.units = keyed(config.pointer_mut("/systemd/units").map(Value::take), "name");
        rendered.passwd = taken(&mut config, "passwd");
        rendered.ignition_arguments = taken(&mut config, "kernelArguments");
        rendered
    }

    /// The same with other bytes in a file: what a controller that renders the
    /// file would make of it. A file that holds these bytes already stays as it
    /// is written.
    #[must_use]
    pub fn with_file(mut self, path: &str, text: &str) -> Rendered {
        let there = self.files.get(path).and_then(contents);
        if there.is_some_and(|bytes| bytes == text.as_bytes()) {
            return self;
        }
        let data = base64_simd::STANDARD.encode_to_string(text.as_bytes());
        let source = format!("data:text/plain;charset=utf-8;base64,{data}");
        let mut file = match self.files.remove(path) {
            Some(Value::Object(file)) => file,
            _ => Map::from_iter([
                ("path".to_owned(), Value::from(path)),
                ("mode".to_owned(), Value::from(0o644)),
                ("overwrite".to_owned(), Value::from(true)),
            ]),
        };
        file.insert("contents".to_owned(), serde_json::json!({ "source": source }));
        self.files.insert(path.to_owned(), Value::Object(file));
        self
    }

    /// Leaves out these files, and the hashes of passwords.
    pub fn forget(&mut self, files: &BTreeSet<String>, passwords: bool) {
        self.files.retain(|path, _| !files.contains(path));
        let users = self.passwd.get_mut("users").and_then(Value::as_array_mut);
        for user in users.into_iter().flatten().filter_map(Value::as_object_mut) {
            if passwords {
                user.remove("passwordHash");
            }
        }
    }

    /// The names whose entries are not written alike on both sides.
    pub(super) fn differing<'r>(
        old: &'r BTreeMap<String, Value>,
        new: &'r BTreeMap<String, Value>,
    ) -> impl Iterator<Item = &'r str> {
        let removed = old.keys().filter(|name| !new.contains_key(*name));
        let other = new.iter().filter(|(name, entry)| old.get(*name) != Some(entry));
        removed.chain(other.map(|(name, _)| name)).map(String::as_str)
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

/// A list of entries by what names them; of equal names the last counts.
fn keyed(list: Option<Value>, key: &str) -> BTreeMap<String, Value> {
    let Some(Value::Array(entries)) = list else { return BTreeMap::new() };
    let named = entries.into_iter().filter_map(|entry| {
        let name = entry.get(key)?.as_str()?.to_owned();
        Some((name, entry))
    });
    named.collect()
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
