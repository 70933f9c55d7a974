//! A MachineConfig in short, so that a case shows what matters and nothing else.
//!
//! ```yaml
//! files: {/etc/x: "text", /etc/y: {contents: "…", mode: 0600, user: chrony, group: root}}
//! units: {a.service: "text", b.service: {contents, enabled, mask, dropins: {10-x.conf: "text"}}}
//! sshKeys: ["ssh-ed25519 …"]
//! passwordHash: "…"
//! kernelArguments: [nosmt]
//! kernelType: realtime
//! osImage: quay.io/…@sha256:…
//! extensions: [usbguard]
//! fips: true
//! objects: [ImageDigestMirrorSet and the like, whole]
//! ```

use super::field;
use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tread_model::read::{MACHINE_CONFIG_API, ROLE_LABEL};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[serde(expecting = "a path, or an object such as {files: {/etc/a: \"text\"}}")]
struct Short {
    #[serde(default)]
    files: BTreeMap<String, Value>,
    #[serde(default)]
    units: BTreeMap<String, Value>,
    #[serde(default)]
    ssh_keys: Vec<String>,
    password_hash: Option<String>,
    kernel_arguments: Option<Vec<String>>,
    kernel_type: Option<String>,
    os_image: Option<String>,
    extensions: Option<Vec<String>>,
    fips: Option<bool>,
    #[serde(default)]
    objects: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShortFile {
    contents: Option<String>,
    mode: Option<u32>,
    user: Option<String>,
    group: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShortUnit {
    contents: Option<String>,
    enabled: Option<bool>,
    mask: Option<bool>,
    #[serde(default)]
    dropins: BTreeMap<String, String>,
}

/// The MachineConfig that is meant, and the objects beside it.
pub(super) fn expand(value: Value) -> Result<Vec<Value>> {
    let short: Short = field::read(value)?;
    let files = each(short.files, "files", file)?;
    let units = each(short.units, "units", unit)?;
    let config = object([
        ("ignition", Some(json!({"version": "3.4.0"}))),
        ("storage", (!files.is_empty()).then(|| json!({"files": files}))),
        ("systemd", (!units.is_empty()).then(|| json!({"units": units}))),
        ("passwd", core_user(short.ssh_keys, short.password_hash)),
    ]);
    let spec = object([
        ("config", Some(config)),
        ("kernelArguments", short.kernel_arguments.map(Value::from)),
        ("kernelType", short.kernel_type.map(Value::from)),
        ("osImageURL", short.os_image.map(Value::from)),
        ("extensions", short.extensions.map(Value::from)),
        ("fips", short.fips.map(Value::from)),
    ]);
    let mut all = vec![json!({
        "apiVersion": MACHINE_CONFIG_API,
        "kind": "MachineConfig",
        "metadata": {
            "name": "99-worker-case",
            "labels": {ROLE_LABEL: "worker"},
        },
        "spec": spec,
    })];
    all.extend(short.objects);
    Ok(all)
}

fn each(
    named: BTreeMap<String, Value>,
    field: &str,
    one: fn(String, Value) -> Result<Value>,
) -> Result<Vec<Value>> {
    named
        .into_iter()
        .map(|(name, value)| {
            let place = format!("{field}: {name}");
            one(name, value).context(place)
        })
        .collect()
}

fn file(path: String, value: Value) -> Result<Value> {
    let short = match value {
        Value::String(text) => {
            ShortFile { contents: Some(text), mode: None, user: None, group: None }
        }
        other => strict(other)?,
    };
    Ok(object([
        ("path", Some(Value::from(path))),
        ("contents", short.contents.map(|text| json!({"source": data_url(&text)}))),
        ("mode", short.mode.map(Value::from)),
        ("user", short.user.map(owner)),
        ("group", short.group.map(owner)),
    ]))
}

/// An owner by name, or by number.
fn owner(name: String) -> Value {
    name.parse::<u32>().map_or_else(|_| json!({"name": name}), |id| json!({"id": id}))
}

fn unit(name: String, value: Value) -> Result<Value> {
    let short = match value {
        Value::String(text) => {
            ShortUnit { contents: Some(text), enabled: None, mask: None, dropins: BTreeMap::new() }
        }
        other => strict(other)?,
    };
    let dropins: Vec<Value> = short
        .dropins
        .into_iter()
        .map(|(name, text)| json!({"name": name, "contents": text}))
        .collect();
    Ok(object([
        ("name", Some(Value::from(name))),
        ("contents", short.contents.map(Value::from)),
        ("enabled", short.enabled.map(Value::from)),
        ("mask", short.mask.map(Value::from)),
        ("dropins", (!dropins.is_empty()).then(|| Value::from(dropins))),
    ]))
}

fn core_user(keys: Vec<String>, password_hash: Option<String>) -> Option<Value> {
    if keys.is_empty() && password_hash.is_none() {
        return None;
    }
    let user = object([
        ("name", Some(Value::from("core"))),
        ("sshAuthorizedKeys", (!keys.is_empty()).then(|| Value::from(keys))),
        ("passwordHash", password_hash.map(Value::from)),
    ]);
    Some(json!({"users": [user]}))
}

fn strict<T: DeserializeOwned>(value: Value) -> Result<T> {
    anyhow::ensure!(
        !value.is_boolean(),
        "expected a text or an object, found true or false{}",
        field::OF_YAML
    );
    anyhow::ensure!(value.is_object(), "expected a text or an object");
    field::read(value)
}

fn data_url(text: &str) -> String {
    let encoded = base64_simd::STANDARD.encode_to_string(text);
    format!("data:text/plain;charset=utf-8;base64,{encoded}")
}

/// An object of the fields that are set.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(set.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(value: Value) -> Value {
        expand(value).unwrap().remove(0)["spec"].take()
    }

    fn error(value: Value) -> String {
        format!("{:#}", expand(value).unwrap_err())
    }

    #[test]
    fn an_empty_shorthand_is_a_config_that_sets_nothing() {
        assert_eq!(expanded(json!({})), json!({"config": {"ignition": {"version": "3.4.0"}}}));
    }

    #[test]
    fn a_file_is_its_text_or_its_text_with_owner_and_mode() {
        let spec = expanded(json!({"files": {
            "/etc/a": "hi",
            "/etc/b": {"contents": "hi", "mode": 0o600, "user": "chrony", "group": "root"},
            "/etc/c": {},
        }}));
        let url = "data:text/plain;charset=utf-8;base64,aGk=";
        assert_eq!(
            spec["config"]["storage"]["files"],
            json!([
                {"path": "/etc/a", "contents": {"source": url}},
                {"path": "/etc/b", "contents": {"source": url}, "mode": 384,
                 "user": {"name": "chrony"}, "group": {"name": "root"}},
                {"path": "/etc/c"},
            ])
        );
    }

    #[test]
    fn a_unit_is_its_text_or_an_object_with_drop_ins() {
        let spec = expanded(json!({"units": {
            "a.service": "[Unit]\n",
            "b.service": {"enabled": false, "mask": true, "dropins": {"10-x.conf": "[Service]\n"}},
        }}));
        assert_eq!(
            spec["config"]["systemd"]["units"],
            json!([
                {"name": "a.service", "contents": "[Unit]\n"},
                {"name": "b.service", "enabled": false, "mask": true,
                 "dropins": [{"name": "10-x.conf", "contents": "[Service]\n"}]},
            ])
        );
    }

    #[test]
    fn the_rest_of_a_machine_config_keeps_its_names_and_objects_stand_beside_it() {
        let mut all = expand(json!({
            "sshKeys": ["k"], "passwordHash": "h", "kernelArguments": ["nosmt"],
            "kernelType": "realtime", "osImage": "quay.io/os", "extensions": ["usbguard"],
            "fips": true, "objects": [{"kind": "ImageDigestMirrorSet"}],
        }))
        .unwrap();
        assert_eq!(all.remove(1), json!({"kind": "ImageDigestMirrorSet"}));
        let spec = &all[0]["spec"];
        assert_eq!(
            spec["config"]["passwd"]["users"],
            json!([{"name": "core", "sshAuthorizedKeys": ["k"], "passwordHash": "h"}])
        );
        for (field, value) in [
            ("kernelArguments", json!(["nosmt"])),
            ("kernelType", json!("realtime")),
            ("osImageURL", json!("quay.io/os")),
            ("extensions", json!(["usbguard"])),
            ("fips", json!(true)),
        ] {
            assert_eq!(spec[field], value, "{field}");
        }
    }

    #[test]
    fn what_a_shorthand_does_not_have_is_an_error_that_names_it() {
        for (value, part) in [
            (json!({"file": {}}), "`file`"),
            (
                json!({"files": {"/etc/a": {"content": ""}}}),
                "files: /etc/a: unknown field `content`",
            ),
            (json!({"files": {"/etc/a": 5}}), "files: /etc/a"),
            (json!({"files": {"/etc/a": true}}), "found true or false (YAML reads yes"),
            (
                json!({"files": {"/etc/a": {"mode": "0600"}}}),
                "files: /etc/a: mode: invalid type: string \"0600\", expected a whole number, such as \
                 0644 without quotes",
            ),
            (
                json!({"files": {"/etc/a": {"contents": true}}}),
                "expected a string (YAML reads yes, no, on, off, y and n so, unless they are in \
                 quotes)",
            ),
            (json!({"units": {"a.service": {"masked": true}}}), "units: a.service"),
        ] {
            let message = error(value);
            assert!(message.contains(part), "{part} in {message}");
        }
    }
}
