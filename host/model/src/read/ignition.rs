//! An Ignition config, of itself or inside a MachineConfig.

use super::fields::{Fields, expected};
use super::layer::{Layer, LayerFile, LayerOwner, LayerUnit, LayerUser, Part};
use super::report::Report;
use super::{left_out, normal};
use crate::config::{Dropin, File, Origin, Source, Unit, User};
use crate::contents::Decoder;
use crate::ignition;
use crate::text::quoted;
use crate::unit_name::is_unit_name;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

const USER_REST: [&str; 11] = [
    "gecos",
    "groups",
    "homeDir",
    "noCreateHome",
    "noLogInit",
    "noUserGroup",
    "primaryGroup",
    "shell",
    "shouldExist",
    "system",
    "uid",
];

/// Whether this is a version of Ignition configs that tread reads.
pub(super) fn is_supported(version: &str) -> bool {
    minor(version).is_some()
}

/// The number in the middle of a version that tread reads.
fn minor(version: &str) -> Option<u8> {
    let versions = ["3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"];
    let minors = (0u8..).zip(versions);
    minors.into_iter().find(|(_, known)| *known == version).map(|(minor, _)| minor)
}

/// Takes out of a document what its version of Ignition does not know, if it is
/// a MachineConfig or an Ignition config.
pub(super) fn leave_out_of_document(document: &mut Value, report: &mut Report) {
    match document.get("kind").is_some() {
        true => {
            let config = document.pointer_mut("/spec/config");
            config.into_iter().for_each(|config| leave_out(config, "spec.config", report));
        }
        false => leave_out(document, "", report),
    }
}

/// The same for an Ignition config that stands at `path`.
pub(super) fn leave_out(config: &mut Value, path: &str, report: &mut Report) {
    let version = config.pointer("/ignition/version").and_then(Value::as_str);
    if let Some(minor) = version.and_then(minor) {
        left_out::leave_out(config, minor, path, report);
    }
}

/// Reads a config into a layer; `document` is its number on its side.
pub(super) fn read(config: &Fields<'_>, document: u32, layer: &mut Layer, report: &mut Report) {
    let ignition = config.child("ignition", report);
    if ignition.is_none() && config.get("ignition").is_none() {
        report
            .problem(config.at("ignition"), "is missing: expected ignition.version 3.0.0 to 3.5.0");
    }
    let Some(ignition) = ignition else { return };
    if !version(&ignition, report) {
        // The fields of another version mean something else.
        return;
    }
    for (name, part) in [
        ("config", Part::Config),
        ("proxy", Part::Proxy),
        ("security", Part::Security),
        ("timeouts", Part::Timeouts),
    ] {
        fixed(&ignition, name, part, layer, report);
    }
    fixed(config, "kernelArguments", Part::KernelArguments, layer, report);
    if let Some(storage) = config.child("storage", report) {
        read_storage(&storage, document, layer, report);
    }
    if let Some(systemd) = config.child("systemd", report) {
        let units = systemd.objects("units", report);
        let units = units.into_iter().filter_map(|(index, fields)| {
            Some((fields.path().to_owned(), unit(&fields, Origin { document, index }, report)?))
        });
        let units = units.collect();
        layer.units = without_twins(units, "unit", |unit| &unit.unit.name, report);
    }
    if let Some(passwd) = config.child("passwd", report) {
        fixed(&passwd, "groups", Part::Groups, layer, report);
        let users = passwd.objects("users", report);
        let users = users.into_iter().filter_map(|(index, fields)| {
            Some((fields.path().to_owned(), user(&fields, Origin { document, index }, report)?))
        });
        let users = users.collect();
        layer.users = without_twins(users, "user", |user| &user.user.name, report);
    }
    layer.faults = report.take_faults();
    layer.notes = report.take_notes();
}

fn version(ignition: &Fields<'_>, report: &mut Report) -> bool {
    let Some(version) = ignition.required_string("version", report) else { return false };
    if is_supported(version) {
        return true;
    }
    let advice = if version.starts_with("2.") || version.starts_with("1.") {
        "convert it with ign-converter, or write it anew with Butane"
    } else {
        "write it in one of these versions"
    };
    report.problem(
        ignition.at("version"),
        format!("Ignition {version:?} is not read, only 3.0.0 to 3.5.0: {advice}"),
    );
    false
}

fn read_storage(storage: &Fields<'_>, document: u32, layer: &mut Layer, report: &mut Report) {
    for (name, part) in [
        ("directories", Part::Directories),
        ("disks", Part::Disks),
        ("filesystems", Part::Filesystems),
        ("links", Part::Links),
        ("luks", Part::Luks),
        ("raid", Part::Raid),
    ] {
        fixed(storage, name, part, layer, report);
    }
    let files = storage.objects("files", report);
    let mut decoder = Decoder::default();
    let files = files.into_iter().filter_map(|(index, fields)| {
        let origin = Origin { document, index };
        Some((fields.path().to_owned(), file(&fields, origin, &mut decoder, report)?))
    });
    let files = files.collect();
    layer.files = without_twins(files, "path", |file| &file.file.path, report);
    other_nodes(storage, layer, report);
}

/// Reports a path that is both a file and a directory or link.
fn other_nodes(storage: &Fields<'_>, layer: &Layer, report: &mut Report) {
    let files = layer.files.iter().map(|it| (it.file.path.as_ref(), it.file.origin.index));
    let files: BTreeMap<&str, u32> = files.collect();
    let mut ignored = Report::new("", "");
    for name in ["directories", "links"] {
        for (_, entry) in storage.objects(name, &mut ignored) {
            let path = entry.string("path", &mut ignored).and_then(|path| normal::path(path).ok());
            if let Some(index) = path.and_then(|path| files.get(path.as_ref())) {
                let first = format!("{}[{index}]", storage.at("files"));
                report.problem(entry.at("path"), format!("is the path of a file too: {first}"));
            }
        }
    }
}

fn file(
    fields: &Fields<'_>,
    origin: Origin,
    decoder: &mut Decoder,
    report: &mut Report,
) -> Option<LayerFile> {
    let overwrite = fields.boolean("overwrite", report);
    let mode = fields.integer("mode", report).and_then(|number| {
        let mode = normal::mode(number);
        mode.map_err(|message| report.problem(fields.at("mode"), message)).ok()
    });
    let (user, group) = (owner(fields, "user", report), owner(fields, "group", report));
    let mut faults = Vec::new();
    let contents = fields.child("contents", report);
    let has_source = contents.as_ref().is_some_and(|it| it.get("source").is_some());
    // What is wrong with these is reported where contents are read.
    let mut ignored = Report::new("", "");
    let said = contents.as_ref().map(|contents| {
        let hash = contents.child("verification", &mut ignored);
        let hash = hash.and_then(|it| Some(it.string("hash", &mut ignored)?.to_owned()));
        let gzip = contents.string("compression", &mut ignored).map(|word| word == "gzip");
        (hash, gzip)
    });
    let (hash, gzip) = said.unwrap_or_default();
    let contents = contents.map(|contents| source(&contents, decoder, &mut faults, report));
    let contents = contents.unwrap_or_default();
    let appended = fields.objects("append", report);
    for (_, contents) in &appended {
        source(contents, decoder, &mut faults, report);
    }
    let appends = !appended.is_empty();
    let text = fields.required_string("path", report)?;
    let path = normal::path(text);
    let path = path.map_err(|message| report.problem(fields.at("path"), message)).ok()?;
    if path != text {
        faults.push((fields.at("path"), ignition::why_dirty(&path)));
    }
    if overwrite == Some(true) && !has_source {
        faults.push((fields.at("overwrite"), ignition::OVERWRITE.to_owned()));
    }
    for (field, reason) in faults {
        report.fault(format!("file:{path}"), field, reason);
    }
    let file = File {
        path: Cow::Owned(path.into_owned()),
        contents,
        mode,
        user: Cow::Borrowed(""),
        group: Cow::Borrowed(""),
        appends,
        needs_source: false,
        raw: &[],
        origin,
    };
    let (merged, gzip_below) = (false, false);
    Some(LayerFile { file, gzip, gzip_below, hash, has_source, overwrite, user, group, merged })
}

/// Reads where contents come from; what Ignition rejects is added to `faults`,
/// by field.
fn source(
    contents: &Fields<'_>,
    decoder: &mut Decoder,
    faults: &mut Vec<(String, String)>,
    report: &mut Report,
) -> Source<'static> {
    let verification = contents.child("verification", report);
    let hash = verification.as_ref().and_then(|it| Some((it, it.string("hash", report)?)));
    let gzip = match contents.string("compression", report) {
        Some("gzip") => true,
        None | Some("") => false,
        Some(other) => {
            let message = format!("expected \"gzip\" or nothing, found {other:?}");
            report.problem(contents.at("compression"), message);
            false
        }
    };
    let url = contents.string("source", report).map(|url| Cow::Owned(url.to_owned()));
    let is_http = |url: &str| url.starts_with("http:") || url.starts_with("https:");
    let headers = contents.objects("httpHeaders", report);
    if !headers.is_empty() && !url.as_deref().is_some_and(is_http) {
        faults.push((contents.at("httpHeaders"), ignition::HEADERS.to_owned()));
    }
    if url.as_deref().is_some_and(|url| !ignition::takes_url(url)) {
        faults.push((contents.at("source"), ignition::URL.to_owned()));
    }
    let source = Source { url, gzip };
    if let Some((verification, hash)) = hash {
        // What cannot be decoded is told when it is compared.
        let bytes = decoder.decode(&source).ok().flatten();
        let fault = match &source.url {
            None => Some(ignition::HASH_OF_NOTHING.to_owned()),
            Some(_) => ignition::hash_fault(hash, bytes),
        };
        faults.extend(fault.map(|why| (verification.at("hash"), why)));
    }
    source
}

/// An owner.
fn owner(fields: &Fields<'_>, name: &str, report: &mut Report) -> LayerOwner {
    let Some(owner) = fields.child(name, report) else { return LayerOwner::default() };
    let id = owner.integer("id", report);
    let at = owner.at("name");
    let name = owner.string("name", report);
    let is_named = name.is_some_and(|name| !name.is_empty());
    if let Some(Err(message)) = name.filter(|_| is_named).map(normal::check_owner) {
        report.problem(at, message);
    }
    let id = match id {
        Some(_) if is_named => {
            report.problem(owner.path(), "expected an id or a name, not both");
            None
        }
        Some(id) if u32::try_from(id).is_err() => {
            report.problem(owner.at("id"), format!("expected 0 to 4294967295, found {id}"));
            None
        }
        Some(0) => Some(Cow::Borrowed("root")),
        Some(id) => Some(Cow::Owned(id.to_string())),
        None => None,
    };
    LayerOwner { id, name: name.map(|name| Cow::Owned(name.to_owned())) }
}

fn unit(fields: &Fields<'_>, origin: Origin, report: &mut Report) -> Option<LayerUnit> {
    let enabled = fields.boolean("enabled", report);
    let mask = fields.boolean("mask", report);
    let mut faults = Vec::new();
    let contents = unit_text(fields, &mut faults, report);
    let dropins = fields.objects("dropins", report);
    let dropins = dropins.into_iter().filter_map(|(_, fields)| {
        Some((fields.path().to_owned(), dropin(&fields, &mut faults, report)?))
    });
    let dropins = dropins.collect();
    let dropins = without_twins(dropins, "drop-in", |dropin: &Dropin<'_>| &dropin.name, report);
    let name = fields.required_string("name", report)?;
    if !is_unit_name(name) {
        report.problem(fields.at("name"), format!("{}; found {}", normal::UNIT_NAME, quoted(name)));
        return None;
    }
    for (field, reason) in faults {
        report.fault(format!("unit:{name}"), field, reason);
    }
    let name = Cow::Owned(name.to_owned());
    let unit = Unit { name, contents, enabled, mask: None, dropins, raw: &[], origin };
    Some(LayerUnit { unit, mask })
}

fn dropin(
    fields: &Fields<'_>,
    faults: &mut Vec<(String, String)>,
    report: &mut Report,
) -> Option<Dropin<'static>> {
    let contents = unit_text(fields, faults, report);
    let name = fields.required_string("name", report)?;
    if !normal::is_dropin_name(name) {
        report
            .problem(fields.at("name"), format!("{}; found {}", normal::DROPIN_NAME, quoted(name)));
        return None;
    }
    Some(Dropin { name: Cow::Owned(name.to_owned()), contents })
}

/// The text of a unit or of a drop-in; what Ignition rejects is added to
/// `faults`, by field.
fn unit_text(
    fields: &Fields<'_>,
    faults: &mut Vec<(String, String)>,
    report: &mut Report,
) -> Option<Cow<'static, str>> {
    let text = fields.string("contents", report)?;
    faults.extend(ignition::unit_fault(text).map(|why| (fields.at("contents"), why)));
    Some(Cow::Owned(text.to_owned()))
}

fn user(fields: &Fields<'_>, origin: Origin, report: &mut Report) -> Option<LayerUser> {
    let keys = fields.strings("sshAuthorizedKeys", report);
    let rest =
        USER_REST.iter().filter_map(|name| Some(((*name).to_owned(), fields.get(name)?.clone())));
    let rest: Map<String, Value> = rest.collect();
    let password_hash = owned(fields.string("passwordHash", report));
    let name = fields.required_string("name", report)?;
    if let Err(message) = normal::check_account(name) {
        report.problem(fields.at("name"), message);
        return None;
    }
    let mut seen = BTreeSet::new();
    for (index, key) in &keys {
        if !seen.insert(*key) {
            let at = format!("{}[{index}]", fields.at("sshAuthorizedKeys"));
            report.fault(format!("ssh-keys:{name}"), at, ignition::KEY_TWICE);
        }
    }
    let user = User {
        name: Cow::Owned(name.to_owned()),
        ssh_keys: keys.into_iter().map(|(_, key)| Cow::Owned(key.to_owned())).collect(),
        password_hash,
        rest: String::new(),
        origin,
    };
    Some(LayerUser { user, rest: vec![Value::Object(rest)] })
}

fn owned(text: Option<&str>) -> Option<Cow<'static, str>> {
    text.map(|text| Cow::Owned(text.to_owned()))
}

/// Reads a part that is kept as it is; only its outer form is checked.
fn fixed(fields: &Fields<'_>, name: &str, part: Part, layer: &mut Layer, report: &mut Report) {
    let Some(value) = fields.get(name) else { return };
    let Some(_) = part.names().2 else {
        match value {
            Value::Object(_) => _ = layer.fixed.insert(part, value.clone()),
            other => report.problem(fields.at(name), expected("an object", other)),
        }
        return;
    };
    let mut seen = BTreeMap::new();
    for (_, entry) in fields.objects(name, report) {
        if let Some(key) = part.key(|name| entry.get(name))
            && let Some(first) = seen.insert(key, entry.path().to_owned())
        {
            report.problem(entry.path(), format!("{key:?} stands already in {first}"));
        }
    }
    layer.fixed.insert(part, value.clone());
}

/// Takes out what has the key of an earlier entry, and reports it.
fn without_twins<T>(
    entries: Vec<(String, T)>,
    what: &str,
    key: impl Fn(&T) -> &Cow<'static, str>,
    report: &mut Report,
) -> Vec<T> {
    let mut seen: BTreeMap<Cow<'static, str>, String> = BTreeMap::new();
    let mut kept = Vec::with_capacity(entries.len());
    for (path, entry) in entries {
        let key = key(&entry);
        if let Some(first) = seen.get(key) {
            report.problem(path, format!("the {what} {key:?} stands already in {first}"));
        } else {
            seen.insert(key.clone(), path);
            kept.push(entry);
        }
    }
    kept
}
