//! The policies that `--policy` names: components as they are, or packed into
//! ConfigMaps.

use crate::file::{no_directory, one};
use crate::manifest::{self, Entry, check_digest};
use crate::what::what;
use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Map, Value};
use std::path::Path;
use tread_console::inputs::NamedBytes;
use tread_console::print::line;
use tread_engine::inspect;
use tread_engine::limits::Limits;
use tread_model::description::Description;
use tread_model::packed;
use tread_model::read::{Input, document_values};
use tread_model::verdict::Failure;

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

/// A module, as far as it was read.
pub(crate) struct Module {
    /// The file, and where in it, for messages.
    pub(crate) place: String,
    /// The bytes of its component.
    pub(crate) component: Vec<u8>,
    /// The settings that it was packed with.
    settings: Map<String, Value>,
}

impl Module {
    /// A file that is a module as a whole.
    pub(crate) fn alone(file: NamedBytes) -> Module {
        Module { place: file.name, component: file.bytes, settings: Map::new() }
    }

    /// The module with its description; or the module as it was, and why it has none.
    pub(crate) fn described(self, limits: &Limits) -> Result<Given, (Module, Failure)> {
        let description = match inspect::description(&self.component, limits) {
            Ok(description) => description,
            Err(failure) => return Err((self, failure)),
        };
        let Module { place, component, settings } = self;
        Ok(Given { place, component, settings, description })
    }
}

/// Reads the policies of a file, and says what else is in it that is not one.
pub(crate) fn read(path: &Path, limits: &Limits) -> Result<(Vec<Given>, Option<String>)> {
    no_directory(path)?;
    let file = one(path)?;
    if let Some(Packed { modules, rules }) = packed(&file)? {
        let described = |module: Module| {
            let given = module.described(limits);
            given.map_err(|(module, failure)| anyhow!("{}: {failure}", module.place))
        };
        let given = modules.into_iter().map(described).collect::<Result<_>>()?;
        let unread = rules.map(|kind| {
            format!(
                "{} holds a {kind} too, which --policy does not read: give it with --rules.",
                file.name
            )
        });
        return Ok((given, unread));
    }
    match Module::alone(file).described(limits) {
        Ok(given) => Ok((vec![given], None)),
        Err((Module { place, component, .. }, failure)) if component.starts_with(WASM) => {
            bail!("{place}: {failure}")
        }
        Err((Module { place, component, .. }, failure)) => {
            let what = what(path, &component, &inspect::inspect(&component, limits));
            let advice = what.advice.map(|it| format!(": {it}")).unwrap_or_default();
            bail!("{place}: {failure}; this is {}{advice}", what.title);
        }
    }
}

/// How WebAssembly begins.
pub(crate) const WASM: &[u8] = b"\0asm";

/// What a manifest with ConfigMaps holds.
pub(crate) struct Packed {
    /// What a cluster loads of them.
    pub(crate) modules: Vec<Module>,
    /// A kind of rules that stand beside them.
    pub(crate) rules: Option<String>,
}

/// The module of each ConfigMap of a manifest, with its settings. Nothing if the file is no manifest,
/// or has no ConfigMap.
pub(crate) fn packed(file: &NamedBytes) -> Result<Option<Packed>> {
    let kinds = match file.bytes.starts_with(WASM) {
        true => None,
        false => kinds_of_manifest(file),
    };
    let Some(kinds) = kinds.filter(|kinds| kinds.iter().any(|kind| kind == "ConfigMap")) else {
        return Ok(None);
    };
    let (entries, _) = manifest::entries(&Input { name: &file.name, bytes: &file.bytes })?;
    let mut modules = Vec::new();
    // Other ConfigMaps, with other data, may stand beside that of a policy.
    for entry in entries {
        let may_be_meant = entry.is_named() || entry.is_wasm();
        if may_be_meant && entry.is_loaded().with_context(|| file.name.clone())? {
            modules.push(unpacked(&file.name, entry)?);
        }
    }
    if modules.is_empty() {
        bail!(
            "{} holds no module, but: {}. A packed policy has it in binaryData, as \
             `tread policy pack` writes it",
            file.name,
            kinds.join(", ")
        );
    }
    let is_of_rules = |kind: &String| kind == "DisruptionPolicy" || kind == "MachineConfiguration";
    Ok(Some(Packed { modules, rules: kinds.into_iter().find(is_of_rules) }))
}

/// The kinds of the objects in a manifest; None if it is none.
pub(crate) fn kinds_of_manifest(file: &NamedBytes) -> Option<Vec<String>> {
    let documents = document_values(&Input { name: &file.name, bytes: &file.bytes }).ok()?;
    let kinds = documents.iter().filter_map(|document| document.value.get("kind")?.as_str());
    // Messages quote them, and each has to stay in its line.
    Some(kinds.map(line).collect())
}

fn unpacked(file: &str, entry: Entry) -> Result<Module> {
    check_digest(file, &entry)?;
    let place = format!("{file}, {}", entry.place());
    let settings = match &entry.settings {
        Some(text) => packed::settings(text).map_err(|why| anyhow!("{place}, {why}"))?,
        None => Map::new(),
    };
    Ok(Module { place, component: entry.bytes, settings })
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
            let packed = packed(&file).map(|it| it.unwrap().modules);
            let places = packed.map(|all| all.into_iter().map(|it| it.place).collect::<Vec<_>>());
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
        let module = packed(&file).unwrap().unwrap().modules.pop().unwrap();
        let (module, failure) = module.described(&Limits::default()).err().unwrap();
        assert!(module.place.contains("key notes"), "{}: {failure}", module.place);
    }
}
