//! The policies that `--policy` names: components as they are, or packed into
//! ConfigMaps.

use crate::file::no_directory;
use crate::manifest::{self, Entry, check_digest};
use crate::what::what;
use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Map, Value};
use std::path::Path;
use tread_console::inputs::{self, NamedBytes};
use tread_engine::inspect;
use tread_engine::limits::Limits;
use tread_model::description::Description;
use tread_model::read::{Input, document_values};

/// A policy of a template owner, as it was given.
#[derive(Debug)]
pub(crate) struct Given {
    /// The file, and where in it, for messages.
    pub(crate) place: String,
    /// The bytes of its component.
    pub(crate) component: Vec<u8>,
    /// The settings that it was packed with.
    pub(crate) settings: Map<String, Value>,
    /// What it says of itself.
    pub(crate) description: Description,
}

/// Reads the policies of a file, and says what else is in it that is not one.
pub(crate) fn read(path: &Path, limits: &Limits) -> Result<(Vec<Given>, Option<String>)> {
    no_directory(path)?;
    let file = inputs::read_file(path)?;
    if !file.bytes.starts_with(b"\0asm")
        && let Some(kinds) = kinds_of_manifest(&file)
        && kinds.iter().any(|kind| kind == "ConfigMap")
    {
        let given = packed(&file, &kinds, limits)?;
        return Ok((given, unread(&file.name, &kinds)));
    }
    let description = match inspect::description(&file.bytes, limits) {
        Ok(description) => description,
        Err(failure) if file.bytes.starts_with(b"\0asm") => bail!("{}: {failure}", file.name),
        Err(failure) => {
            let what = what(path, &file.bytes, &inspect::inspect(&file.bytes, limits));
            let advice = what.advice.map(|it| format!(": {it}")).unwrap_or_default();
            bail!("{}: {failure}; this is {}{advice}", file.name, what.title);
        }
    };
    let settings = Map::new();
    let given = Given { place: file.name, component: file.bytes, settings, description };
    Ok((vec![given], None))
}

/// The kinds of the objects in a manifest; None if it is none.
fn kinds_of_manifest(file: &NamedBytes) -> Option<Vec<String>> {
    let documents = document_values(&Input { name: &file.name, bytes: &file.bytes }).ok()?;
    let kinds = documents.iter().filter_map(|document| document.value.get("kind")?.as_str());
    Some(kinds.map(str::to_owned).collect())
}

/// Each module that stands in a ConfigMap of a manifest, with its settings.
fn packed(file: &NamedBytes, kinds: &[String], limits: &Limits) -> Result<Vec<Given>> {
    let (entries, _) = manifest::entries(&Input { name: &file.name, bytes: &file.bytes })?;
    let modules: Vec<Entry> = entries.into_iter().filter(Entry::is_wasm).collect();
    if modules.is_empty() {
        bail!(
            "{} holds no module, but: {}. A packed policy has it in binaryData, as \
             `tread policy pack` writes it",
            file.name,
            kinds.join(", ")
        );
    }
    modules.into_iter().map(|entry| unpacked(&file.name, entry, limits)).collect()
}

fn unpacked(file: &str, entry: Entry, limits: &Limits) -> Result<Given> {
    check_digest(file, &entry)?;
    let place = format!("{file}, {}", entry.place());
    let description = inspect::description(&entry.bytes, limits)
        .map_err(|failure| anyhow!("{place}: {failure}"))?;
    let settings = match &entry.settings {
        Some(text) => read_settings(text).with_context(|| format!("{place}, data.settings"))?,
        None => Map::new(),
    };
    Ok(Given { place, component: entry.bytes, settings, description })
}

fn read_settings(text: &str) -> Result<Map<String, Value>> {
    let documents = document_values(&Input { name: "the settings", bytes: text.as_bytes() })?;
    match documents.into_iter().map(|document| document.value).collect::<Vec<_>>().pop() {
        Some(Value::Object(settings)) => Ok(settings),
        _ => bail!("expected one object with the policy's settings, such as `drain: never`"),
    }
}

/// What of a manifest `--policy` does not read, although tread would.
fn unread(name: &str, kinds: &[String]) -> Option<String> {
    let rules = ["DisruptionPolicy", "MachineConfiguration"];
    let kind = kinds.iter().find(|kind| rules.contains(&kind.as_str()))?;
    Some(format!("{name} holds a {kind} too, which --policy does not read: give it with --rules."))
}
