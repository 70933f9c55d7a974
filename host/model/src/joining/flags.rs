//! Whether a config tells its kubelet by its command line with which taints its node registers:
//! that beats the kubelet's configuration, and with it the claim.

use super::file::text;
use serde_json::Value;

/// The flag.
pub(super) const FLAG: &str = "--register-with-taints";

/// Where units stand that a config brings as files.
const UNITS: &str = "/etc/systemd/system/";
/// Where a config may bring what units take as their environment.
const ETC: &str = "/etc/";
/// The environment of kubelets whose unit the image has.
const OF_IMAGES: [&str; 2] = ["/etc/sysconfig/kubelet", "/etc/default/kubelet"];

/// Who says so first: a unit, or a file.
pub(super) fn says_taints(config: &Value) -> Option<String> {
    let units = list(config, "/systemd/units").filter(|unit| !is(unit, "mask"));
    let mut texts = Vec::new();
    for unit in units {
        let name = word(unit, "name");
        texts.extend(said(unit).map(|text| (format!("unit {name}"), text.to_owned())));
        let drop_ins = unit.get("dropins").and_then(Value::as_array).into_iter().flatten();
        let drop_ins = drop_ins.filter_map(|it| Some((word(it, "name"), said(it)?)));
        texts.extend(
            drop_ins.map(|(drop_in, text)| {
                (format!("drop-in {drop_in} of unit {name}"), text.to_owned())
            }),
        );
    }
    let files = || list(config, "/storage/files");
    let as_files = files().filter(|file| word(file, "path").starts_with(UNITS));
    texts.extend(as_files.filter_map(|it| Some((format!("file {}", word(it, "path")), text(it)?))));
    if let Some((whose, _)) = texts.iter().find(|(_, text)| says(text)) {
        return Some(whose.clone());
    }
    let named: Vec<&str> = texts.iter().flat_map(|(_, text)| environments(text)).collect();
    let is_named = |path: &str| {
        path.starts_with(ETC)
            && (OF_IMAGES.contains(&path) || named.iter().any(|named| may_be(named, path)))
    };
    let mut read = files().filter(|file| is_named(word(file, "path")));
    let says_so = read.find(|file| text(file).is_some_and(|text| says(&text)))?;
    Some(format!("file {}, which a unit takes as its environment,", word(says_so, "path")))
}

fn list<'c>(config: &'c Value, at: &str) -> impl Iterator<Item = &'c Value> {
    config.pointer(at).and_then(Value::as_array).into_iter().flatten()
}

fn is(of: &Value, field: &str) -> bool {
    of.get(field).and_then(Value::as_bool).unwrap_or_default()
}

fn word<'v>(of: &'v Value, field: &str) -> &'v str {
    of.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The text of a unit or a drop-in.
fn said(of: &Value) -> Option<&str> {
    of.get("contents").and_then(Value::as_str)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']))
}

fn says(text: &str) -> bool {
    lines(text).any(|line| line.contains(FLAG))
}

/// The files that a unit takes as its environment.
fn environments(unit: &str) -> impl Iterator<Item = &str> {
    lines(unit).filter_map(|line| {
        let (name, path) = line.split_once('=')?;
        let path = path.trim();
        (name.trim() == "EnvironmentFile").then(|| path.strip_prefix('-').unwrap_or(path))
    })
}

/// Whether a file may be one that is named so: with wildcards it is enough how that begins.
fn may_be(named: &str, path: &str) -> bool {
    match named.split_once(['*', '?', '[', '%']) {
        Some((begins, _)) => path.starts_with(begins),
        None => named == path,
    }
}
