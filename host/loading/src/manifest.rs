//! A policy as a ConfigMap: written as YAML, measured, and found again.

use anyhow::{Context as _, Result, anyhow, bail};
use base64_simd::STANDARD as BASE64;
use serde_json::{Value, json};
use std::fmt::Write as _;
use tread_console::print::line;
use tread_model::digest::Sha256;
use tread_model::packed::{self, KEY_ANNOTATION, SETTINGS};
use tread_model::read::{Input, document_values};

/// Makes tread load a ConfigMap.
pub use tread_model::description::POLICY_LABEL as LABEL;
/// The digest of the module.
pub use tread_model::packed::DIGEST_ANNOTATION as DIGEST;
/// What the module claims, one claim a line, as a namespace allows them.
pub const CLAIMS: &str = "tread.dev/policy-claims";
/// The name and version that the module gives itself.
pub const VERSION: &str = "tread.dev/policy-version";
/// Where the module is.
pub const KEY: &str = "policy.wasm";

/// The values of `data` and `binaryData` together, decoded: what the API server
/// takes.
pub const MOST_DATA: usize = 1 << 20;

/// Keys and values of all annotations together: what the API server takes.
pub const MOST_ANNOTATIONS: usize = 256 << 10;

/// Where `kubectl apply` keeps the whole object, unless the server does that.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A ConfigMap with a policy.
#[derive(Debug, Clone)]
pub struct Manifest<'m> {
    /// Of the ConfigMap.
    pub namespace: &'m str,
    /// Of the ConfigMap.
    pub name: &'m str,
    /// `chrony 1.0.0`
    pub version: String,
    /// Of the module.
    pub digest: Sha256,
    /// What the module claims.
    pub claims: Vec<&'m str>,
    /// The component.
    pub module: &'m [u8],
    /// As YAML.
    pub settings: Option<&'m str>,
}

impl Manifest<'_> {
    fn annotations(&self) -> [(&'static str, String); 3] {
        [
            (CLAIMS, self.claims.join("\n")),
            (DIGEST, self.digest.to_string()),
            (VERSION, self.version.clone()),
        ]
    }

    /// The manifest, for `kubectl`.
    pub fn yaml(&self) -> Result<String> {
        let mut out = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\n  namespace: {}\n  labels:\n    \
             {LABEL}: \"true\"\n  annotations:\n",
            quoted(self.name),
            quoted(self.namespace),
        );
        for (name, value) in self.annotations() {
            writeln!(out, "    {name}: {}", scalar(&value, 6))?;
        }
        if let Some(settings) = self.settings {
            writeln!(out, "data:\n  {SETTINGS}: {}", scalar(settings, 4))?;
        }
        writeln!(out, "binaryData:\n  {KEY}: \"{}\"", BASE64.encode_to_string(self.module))?;
        Ok(out)
    }

    /// What the API server would count against [`MOST_ANNOTATIONS`] after a
    /// `kubectl apply` that keeps the object in an annotation.
    pub fn applied_bytes(&self) -> usize {
        let annotations = self.annotations();
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "labels": {LABEL: "true"},
                "annotations": annotations
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())))
                    .collect::<serde_json::Map<_, _>>(),
            },
            "binaryData": {KEY: ""},
        });
        if let (Some(settings), Some(object)) = (self.settings, object.as_object_mut()) {
            object.insert("data".to_owned(), json!({SETTINGS: settings}));
        }
        // Go writes what has a meaning in HTML, and two line separators, as \uXXXX.
        let json = object.to_string();
        let longer = json.chars().map(|c| match c {
            '<' | '>' | '&' => 5,
            '\u{2028}' | '\u{2029}' => 3,
            _ => 0,
        });
        // kubectl ends it with a line break.
        let copy =
            json.len() + longer.sum::<usize>() + BASE64.encoded_length(self.module.len()) + 1;
        let own: usize = annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
        own + LAST_APPLIED.len() + copy
    }
}

/// Text in YAML: a block of lines where that gives the same text again, one
/// quoted line where not.
fn scalar(text: &str, indent: usize) -> String {
    let plain = |c: char| matches!(c, ' '..='~' | '\n');
    let starts_well = !text.starts_with([' ', '\n']);
    if !text.contains('\n') || !starts_well || !text.chars().all(plain) {
        return quoted(text);
    }
    // What ends it: one line break, none, or more.
    let (body, mark) = match text.strip_suffix('\n') {
        Some(body) if body.ends_with('\n') => return quoted(text),
        Some(body) => (body, ""),
        None => (text, "-"),
    };
    let mut out = format!("|{mark}");
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.push_str(&" ".repeat(indent));
            out.push_str(line);
        }
    }
    out
}

/// JSON is YAML, as far as texts go.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A module in a ConfigMap.
#[derive(Debug)]
pub struct Entry {
    /// Of the ConfigMap; empty if it names none.
    pub namespace: String,
    /// Of the ConfigMap.
    pub name: String,
    /// In `binaryData`.
    pub key: String,
    /// All keys of that `binaryData`.
    pub keys: Vec<String>,
    /// The key that the ConfigMap's annotation names.
    pub named_key: Option<String>,
    /// What stands there, decoded.
    pub bytes: Vec<u8>,
    /// The digest that its annotation gives it.
    pub digest: Option<String>,
    /// `data.settings`, which is YAML.
    pub settings: Option<String>,
    /// Whether its ConfigMap has the label by which a cluster finds it.
    pub is_labelled: bool,
}

impl Entry {
    /// Whether it is WebAssembly, of whatever kind.
    pub fn is_wasm(&self) -> bool {
        self.bytes.starts_with(b"\0asm")
    }

    /// The ConfigMap's name, and where it is: one line, whatever stands in the manifest.
    pub fn place(&self) -> String {
        format!("{}, key {}", self.config_map(), line(&self.key))
    }

    /// The ConfigMap, in one line.
    pub fn config_map(&self) -> String {
        let name = line(&self.name);
        match self.namespace.as_str() {
            "" => format!("ConfigMap {name}"),
            namespace => format!("ConfigMap {}/{name}", line(namespace)),
        }
    }

    /// Whether its ConfigMap names it as the module.
    pub fn is_named(&self) -> bool {
        self.named_key.as_ref() == Some(&self.key)
    }

    /// Whether it is the one that a cluster loads. An error where a cluster finds no module.
    pub fn is_loaded(&self) -> Result<bool> {
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        let key = packed::module_key(self.named_key.as_deref(), &keys)
            .map_err(|why| anyhow!("{}: {}", self.config_map(), line(&why)))?;
        Ok(self.key == key)
    }

    /// Whether it is the module that its ConfigMap is there for: what a cluster loads, or any
    /// WebAssembly where that finds no module. What nobody named is none if it is no WebAssembly.
    pub fn is_meant(&self) -> bool {
        let may_be_meant = self.is_named() || self.is_wasm();
        may_be_meant && self.is_loaded().unwrap_or_else(|_| self.is_wasm())
    }

    /// What is wrong, if the annotation gives another digest than the bytes have.
    pub fn mismatch(&self, digest: &Sha256) -> Option<String> {
        packed::digest_mismatch(self.digest.as_deref()?, digest).map(|why| line(&why))
    }
}

/// Every entry of `binaryData` of every ConfigMap in a manifest, and the kinds
/// of all its objects, each in one line.
pub fn entries(input: &Input<'_>) -> Result<(Vec<Entry>, Vec<String>)> {
    let (mut entries, mut kinds) = (Vec::new(), Vec::new());
    for document in document_values(input)? {
        let value = document.value;
        let kind = value.get("kind").and_then(Value::as_str).unwrap_or("no kind");
        kinds.push(line(kind));
        if kind == "ConfigMap" && value.get("apiVersion").is_none_or(|it| it == "v1") {
            add(&value, &mut entries).with_context(|| match document.label.as_str() {
                "" => input.name.to_owned(),
                label => format!("{}, document {label}", input.name),
            })?;
        }
    }
    Ok((entries, kinds))
}

/// The modules of a manifest, as [`Entry::is_meant`] tells them; none if it is something else.
pub fn modules(input: &Input<'_>) -> Result<Vec<Entry>> {
    let is_text = std::str::from_utf8(input.bytes).is_ok_and(|text| !text.contains('\0'));
    if !is_text || document_values(input).is_err() {
        return Ok(Vec::new());
    }
    Ok(entries(input)?.0.into_iter().filter(Entry::is_meant).collect())
}

fn add(config_map: &Value, entries: &mut Vec<Entry>) -> Result<()> {
    let metadata = |field: &str| config_map.pointer(&format!("/metadata/{field}"));
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("").to_owned();
    let digest = metadata("annotations")
        .and_then(|it| it.get(DIGEST))
        .map(|digest| digest.as_str().map_or_else(|| digest.to_string(), str::to_owned));
    let named_key = metadata("annotations").and_then(|it| it.get(KEY_ANNOTATION)?.as_str());
    let settings = config_map.pointer(&format!("/data/{SETTINGS}")).and_then(Value::as_str);
    let is_labelled =
        metadata("labels").and_then(|it| it.get(LABEL)).is_some_and(|it| *it == "true");
    let data = match config_map.get("binaryData") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(data)) => data,
        Some(_) => bail!("binaryData: expected keys and values"),
    };
    for (key, value) in data {
        let field = || format!("binaryData.{}", line(key));
        let text_of = value.as_str().context("expected base64").with_context(field)?;
        let compact: Vec<u8> = text_of.bytes().filter(|it| !it.is_ascii_whitespace()).collect();
        let bytes = BASE64.decode_to_vec(&compact).map_err(|_| {
            anyhow!("{}: cannot be read as base64: it is cut off or was edited", field())
        })?;
        entries.push(Entry {
            namespace: text(metadata("namespace")),
            name: text(metadata("name")),
            key: key.clone(),
            keys: data.keys().cloned().collect(),
            named_key: named_key.map(str::to_owned),
            bytes,
            digest: digest.clone(),
            settings: settings.map(str::to_owned),
            is_labelled,
        });
    }
    Ok(())
}

/// The digest of the module, which has to be the one of the annotation.
pub fn check_digest(file: &str, entry: &Entry) -> Result<Sha256> {
    let digest = Sha256::of(&entry.bytes);
    match entry.mismatch(&digest) {
        Some(why) => bail!("{file}, {}: {why}", entry.place()),
        None => Ok(digest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest<'m>(module: &'m [u8], settings: Option<&'m str>) -> Manifest<'m> {
        Manifest {
            namespace: "node-config",
            name: "chrony",
            version: "chrony 1.0.0".to_owned(),
            digest: Sha256::of(module),
            claims: vec!["file:/etc/chrony.conf", "unit:chronyd.service"],
            module,
            settings,
        }
    }

    fn read_back(yaml: &str) -> Value {
        let input = Input { name: "m.yaml", bytes: yaml.as_bytes() };
        let mut documents = document_values(&input).unwrap();
        assert_eq!(documents.len(), 1, "{yaml}");
        documents.remove(0).value
    }

    #[test]
    fn a_manifest_says_what_was_packed() {
        let manifest = manifest(b"\0asm", Some("drain: never\n"));
        let value = read_back(&manifest.yaml().unwrap());
        let expected = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "chrony",
                "namespace": "node-config",
                "labels": {"tread.dev/policy": "true"},
                "annotations": {
                    "tread.dev/policy-claims": "file:/etc/chrony.conf\nunit:chronyd.service",
                    "tread.dev/policy-digest": Sha256::of(b"\0asm").to_string(),
                    "tread.dev/policy-version": "chrony 1.0.0",
                },
            },
            "data": {"settings": "drain: never\n"},
            "binaryData": {"policy.wasm": "AGFzbQ=="},
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn settings_stand_in_the_manifest_as_they_were_written() {
        for settings in [
            "",
            "a: 1",
            "a: 1\n",
            "a: 1\n\n",
            "\na: 1\n",
            "  a: 1\n  b: 2\n",
            "# why\na:\n  - x   \n\n  - y: \"<&>\"\n",
            "a: 1\r\nb: 2\r\n",
            "a: \"\t\"\n\tb",
            "a: ü\u{2028}\n",
            "a: 1\n---\nb: 2\n",
            "a: |\n  x\n   y\n",
            "{\"a\": [1, 2]}\n",
        ] {
            let yaml = manifest(b"\0asm", Some(settings)).yaml().unwrap();
            assert_eq!(read_back(&yaml)["data"]["settings"], settings, "{yaml}");
        }
    }

    #[test]
    fn every_byte_of_a_module_comes_back() {
        for length in [0, 1, 2, 3, 4, 255, 256, 1000] {
            let module: Vec<u8> = (0..length).map(|n| (n * 7 + n / 256) as u8).collect();
            let yaml = manifest(&module, None).yaml().unwrap();
            let input = Input { name: "m.yaml", bytes: yaml.as_bytes() };
            let (entries, kinds) = entries(&input).unwrap();
            assert_eq!(kinds, ["ConfigMap"]);
            assert_eq!(entries.len(), 1);
            assert_eq!(entries[0].bytes, module);
            assert_eq!(entries[0].digest, Some(Sha256::of(&module).to_string()));
        }
    }

    #[test]
    fn what_kubectl_keeps_in_an_annotation_is_counted_to_the_byte() {
        for settings in [None, Some("a: \"<&>\u{2028}\"\n")] {
            let manifest = manifest(b"\0asm\x01\x02\x03", settings);
            let object = read_back(&manifest.yaml().unwrap());
            let annotations = object["metadata"]["annotations"].as_object().unwrap();
            let own: usize =
                annotations.iter().map(|(name, it)| name.len() + it.as_str().unwrap().len()).sum();
            let kept = object
                .to_string()
                .replace('<', "\\u003c")
                .replace('>', "\\u003e")
                .replace('&', "\\u0026")
                .replace('\u{2028}', "\\u2028");
            let expected = own + LAST_APPLIED.len() + kept.len() + 1;
            assert_eq!(manifest.applied_bytes(), expected);
        }
    }

    fn of_keys(keys: &[(&str, &str)], named: Option<&str>) -> Vec<Entry> {
        let data: serde_json::Map<_, _> =
            keys.iter().map(|(key, text)| ((*key).to_owned(), Value::from(*text))).collect();
        let annotations = named.map(|key| json!({ KEY_ANNOTATION: key }));
        let map = json!({"kind": "ConfigMap", "binaryData": data,
            "metadata": {"name": "a", "annotations": annotations}});
        let bytes = map.to_string().into_bytes();
        modules(&Input { name: "m.json", bytes: &bytes }).unwrap()
    }

    #[test]
    fn of_a_config_map_the_key_that_a_cluster_loads_is_meant() {
        let (wasm, text) = ("AGFzbQ==", "bm90ZXM=");
        let keys = |keys: &[(&str, &str)], named: Option<&str>| -> Vec<String> {
            of_keys(keys, named).into_iter().map(|entry| entry.key).collect()
        };
        assert_eq!(keys(&[("a", wasm), ("b", wasm)], Some("b")), ["b"]);
        assert_eq!(keys(&[("a", wasm), ("b", text)], Some("b")), ["b"], "whatever it holds");
        assert_eq!(keys(&[("a", wasm)], None), ["a"]);
        assert_eq!(keys(&[("a", text)], None), Vec::<String>::new());
        // Where a cluster finds none, all that can be are there to choose from.
        assert_eq!(keys(&[("a", wasm), ("b", wasm), ("c", text)], None), ["a", "b"]);
        assert_eq!(keys(&[("a", wasm), ("b", text)], Some("c")), ["a"]);
    }

    #[test]
    fn where_an_entry_is_stands_in_one_line_whatever_it_is_called() {
        let forged = "a\nwarning: forged";
        let map = json!({"kind": "ConfigMap", "metadata": {"name": forged, "namespace": forged,
            "annotations": {DIGEST: forged, KEY_ANNOTATION: forged}}, "binaryData": {forged: "AA=="}});
        let other = json!({ "kind": forged });
        let bytes = json!({"kind": "List", "items": [map, other]}).to_string().into_bytes();
        let (found, kinds) = entries(&Input { name: "m.json", bytes: &bytes }).unwrap();
        let digest = check_digest("m.json", &found[0]).unwrap_err().to_string();
        let unloaded = Entry { keys: vec!["b\nc".to_owned()], ..found.into_iter().next().unwrap() };
        let why = unloaded.is_loaded().unwrap_err().to_string();
        for text in [unloaded.place(), unloaded.config_map(), digest, why, kinds.join(" ")] {
            assert!(!text.contains('\n'), "{text:?}");
        }
    }

    #[test]
    fn base64_over_several_lines_is_read_and_broken_base64_is_named() {
        let yaml =
            "kind: ConfigMap\nmetadata: {name: a}\nbinaryData:\n  x: |\n    AGFz\n    bQ==\n";
        let (found, _) = entries(&Input { name: "m", bytes: yaml.as_bytes() }).unwrap();
        assert_eq!(found[0].bytes, b"\0asm");
        for (value, words) in [("AGFzbQ", "cut off"), ("[1]", "expected base64")] {
            let yaml = format!("kind: ConfigMap\nbinaryData: {{policy.wasm: {value}}}\n");
            let error = entries(&Input { name: "m.yaml", bytes: yaml.as_bytes() }).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(words) && error.contains("binaryData.policy.wasm"), "{error}");
            assert!(error.contains("m.yaml"), "{error}");
        }
    }
}
