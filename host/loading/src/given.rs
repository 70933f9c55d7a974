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

/// The module of each ConfigMap of a manifest, with its settings: what a cluster loads of it.
fn packed(file: &NamedBytes, kinds: &[String], limits: &Limits) -> Result<Vec<Given>> {
    let (entries, _) = manifest::entries(&Input { name: &file.name, bytes: &file.bytes })?;
    let mut given = Vec::new();
    // Other ConfigMaps, with other data, may stand beside that of a policy.
    for entry in entries {
        let may_be_meant = entry.is_named() || entry.is_wasm();
        if may_be_meant && entry.is_loaded().with_context(|| file.name.clone())? {
            given.push(unpacked(&file.name, entry, limits)?);
        }
    }
    if given.is_empty() {
        bail!(
            "{} holds no module, but: {}. A packed policy has it in binaryData, as \
             `tread policy pack` writes it",
            file.name,
            kinds.join(", ")
        );
    }
    Ok(given)
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

/// The settings that a module was packed with. A cluster reads them alike.
fn read_settings(text: &str) -> Result<Map<String, Value>> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let documents = document_values(&Input { name: "the settings", bytes: text.as_bytes() })?;
    match <[_; 1]>::try_from(documents).map(|[document]| document.value) {
        Ok(Value::Object(settings)) => Ok(settings),
        _ => bail!("expected one object with the policy's settings, such as `drain: never`"),
    }
}

/// What of a manifest `--policy` does not read, although tread would.
fn unread(name: &str, kinds: &[String]) -> Option<String> {
    let rules = ["DisruptionPolicy", "MachineConfiguration"];
    let kind = kinds.iter().find(|kind| rules.contains(&kind.as_str()))?;
    Some(format!("{name} holds a {kind} too, which --policy does not read: give it with --rules."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64_simd::STANDARD as BASE64;
    use serde_json::json;

    fn policy() -> &'static [u8] {
        include_bytes!("../../../policies/prebuilt/ssh-keys.wasm")
    }

    #[test]
    fn settings_are_one_object_in_yaml_as_in_a_cluster() {
        let read = |text| read_settings(text).map(Value::Object).map_err(|error| error.to_string());
        assert_eq!(read("drain: never\nn: 5"), Ok(json!({"drain": "never", "n": 5})));
        for blank in ["", "  \n"] {
            assert_eq!(read(blank), Ok(json!({})), "{blank:?}");
        }
        for bad in ["[1]", "a", "a: [", "a: 1\n---\nb: 2"] {
            read(bad).unwrap_err();
        }
    }

    #[test]
    fn of_a_config_map_with_several_modules_the_one_that_it_names_is_read_as_in_a_cluster() {
        let module = BASE64.encode_to_string(policy());
        let read = |keys: &[&str], named: Option<&str>| {
            let data: Map<String, Value> =
                keys.iter().map(|key| ((*key).to_owned(), json!(module))).collect();
            let annotations = json!({"tread.dev/policy-key": named});
            let metadata = json!({"namespace": "apps", "name": "a", "annotations": annotations});
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                "binaryData": data});
            let bytes = map.to_string().into_bytes();
            let file = NamedBytes { name: "all.json".to_owned(), bytes };
            let given = packed(&file, &["ConfigMap".to_owned()], &Limits::default());
            let places = given.map(|all| all.into_iter().map(|it| it.place).collect::<Vec<_>>());
            places.map_err(|error| format!("{error:#}"))
        };
        let one = |key: &str| Ok(vec![format!("all.json, ConfigMap apps/a, key {key}")]);
        assert_eq!(read(&["any"], None), one("any"));
        assert_eq!(read(&["x", "y"], Some("y")), one("y"));
        for (keys, named, words) in [
            (&["x", "y"][..], None, "binaryData has the keys x, y: name that of the module in"),
            (&["x"], Some("z"), "all.json: ConfigMap apps/a: binaryData has no key z"),
        ] {
            let why = read(keys, named).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn a_key_that_is_named_as_the_module_and_holds_none_is_an_error_beside_one_that_does() {
        let data = json!({"policy.wasm": BASE64.encode_to_string(policy()), "notes": "bm90ZXM="});
        let annotations = json!({"tread.dev/policy-key": "notes"});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "binaryData": data,
            "metadata": {"name": "a", "annotations": annotations}});
        let file = NamedBytes { name: "all.json".to_owned(), bytes: map.to_string().into_bytes() };
        let why = packed(&file, &["ConfigMap".to_owned()], &Limits::default()).err().unwrap();
        assert!(format!("{why:#}").contains("key notes"), "{why:#}");
    }
}
