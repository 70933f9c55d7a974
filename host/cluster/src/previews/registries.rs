//! The MachineConfig in which OpenShift's operator renders mirrors, as it will
//! render it.

use super::body::Bodies;
use super::side::{Generated, Piece, Side};
use super::texts::{Text, gone, inputs};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use tread_model::config::Source;
use tread_model::contents::decode;
use tread_model::mirrors::{self, REGISTRIES_CONF};
use tread_model::read::{self, MACHINE_CONFIG_API};

const POLICY_JSON: &str = "/etc/containers/policy.json";

/// A side with all that is rendered at hand.
pub(super) struct WithMirrors {
    pub(super) side: Side,
    /// What could not be told of it.
    pub(super) doubts: Vec<String>,
}

/// Renders what the operator will render of mirrors.
pub(super) fn with_mirrors(side: &Side, bodies: &Bodies) -> Result<WithMirrors, String> {
    let mut all = WithMirrors { side: side.clone(), doubts: Vec::new() };
    for piece in &mut all.side.configs {
        if let Piece::Generated(generated) = piece {
            let (config, doubts) = render(generated, bodies)?;
            all.doubts.extend(doubts);
            *piece = Piece::given(generated.name.clone(), config.to_string().into_bytes().into());
        }
    }
    Ok(all)
}

fn render(generated: &Generated, bodies: &Bodies) -> Result<(Value, Vec<String>), String> {
    let bytes = |piece: &Piece| -> Result<Vec<u8>, String> {
        piece.bytes(bodies).map(<[u8]>::to_vec).ok_or_else(|| gone(piece.name()))
    };
    let mut config = match &generated.before {
        None => empty(&generated.name),
        Some(piece) => serde_json::from_slice(&bytes(piece)?)
            .map_err(|_| format!("the MachineConfig {} cannot be read", generated.name))?,
    };
    let files = files(&mut config)
        .ok_or_else(|| format!("the MachineConfig {} is none", generated.name))?;
    let before = match file(files, REGISTRIES_CONF) {
        Some(file) => Some(text(file).ok_or_else(|| {
            format!("{REGISTRIES_CONF} in the MachineConfig {} is no text", generated.name)
        })?),
        None => None,
    };
    let policy = file(files, POLICY_JSON).and_then(text);
    let policy = policy.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let is_rejected = |scope: &str| {
        let docker = policy.as_ref().and_then(|policy| policy.get("transports")?.get("docker"));
        let wanted = docker.and_then(|scopes| scopes.get(scope)?.get(0)?.get("type"));
        wanted.is_some_and(|wanted| wanted == "reject")
    };

    let mut texts: Vec<Text<'_>> = Vec::new();
    let templates = generated.templates.iter().filter(|_| before.is_none());
    for piece in templates.chain(&generated.mirrors) {
        texts.push((piece.name().to_owned(), Cow::Owned(bytes(piece)?)));
    }
    let read = match texts.is_empty() {
        true => None,
        false => {
            let side = read::side_in_order("new", &inputs(&texts));
            Some(side.map_err(|problems| problems.to_string())?)
        }
    };
    let (template, objects) = match &read {
        Some(side) => {
            let file = side.config.files.iter().find(|file| file.path == REGISTRIES_CONF);
            let bytes = file.and_then(|file| decode(&file.contents).ok().flatten());
            let text = bytes.and_then(|bytes| String::from_utf8(bytes.into_owned()).ok());
            (text, side.mirrors.as_slice())
        }
        None => (None, [].as_slice()),
    };
    let rendered = mirrors::rerender(before.as_deref(), template.as_deref(), is_rejected, objects)
        .map_err(|problems| problems.to_string())?;
    // What is the same stays as it is written: the operator compares writing.
    if rendered.text != before {
        put(files, rendered.text.as_deref());
    }
    Ok((config, rendered.doubts))
}

/// One that says nothing yet.
fn empty(name: &str) -> Value {
    json!({
        "apiVersion": MACHINE_CONFIG_API,
        "kind": "MachineConfig",
        "metadata": {"name": name},
        "spec": {"config": {"ignition": {"version": "3.4.0"}}},
    })
}

/// The list of its files; None: it is no MachineConfig.
fn files(config: &mut Value) -> Option<&mut Vec<Value>> {
    let mut at = config;
    for field in ["spec", "config", "storage"] {
        let object = at.as_object_mut()?;
        at = object.entry(field).or_insert(Value::Null);
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
    }
    let files = at.as_object_mut()?.entry("files").or_insert(Value::Null);
    if files.is_null() {
        *files = Value::Array(Vec::new());
    }
    files.as_array_mut()
}

fn file<'f>(files: &'f [Value], path: &str) -> Option<&'f Value> {
    files.iter().find(|file| file.get("path").is_some_and(|it| it == path))
}

fn text(file: &Value) -> Option<String> {
    let url = file.pointer("/contents/source")?.as_str()?;
    let gzip = file.pointer("/contents/compression").is_some_and(|it| it == "gzip");
    let source = Source { url: Some(Cow::Borrowed(url)), gzip };
    String::from_utf8(decode(&source).ok()??.into_owned()).ok()
}

fn put(files: &mut Vec<Value>, text: Option<&str>) {
    let place =
        files.iter().position(|file| file.get("path").is_some_and(|it| it == REGISTRIES_CONF));
    let Some(text) = text else {
        place.map(|place| files.remove(place));
        return;
    };
    let contents = json!({"source": mirrors::data_url(text)});
    match place.and_then(|place| files.get_mut(place)?.as_object_mut()) {
        Some(file) => {
            file.insert("contents".to_owned(), contents);
        }
        None => files.push(json!({
            "path": REGISTRIES_CONF, "mode": 0o644, "overwrite": true, "contents": contents,
        })),
    }
}
