//! Whether something of a config beats what its kubelet's configuration says of taints, and with
//! it the claim: the command line, files that are laid over that configuration, or another one.

use super::file::text;
use super::kubelet::says_of_taints;
use serde_json::Value;

/// The flag.
pub(super) const FLAG: &str = "--register-with-taints";

/// Where units stand that a config brings as files.
const UNITS: &str = "/etc/systemd/system/";
/// Where a config may bring what units take as their environment, if they do not say where that is.
const ETC: &str = "/etc/";
/// The environment of kubelets whose unit the image has.
const OF_IMAGES: [&str; 3] = [
    "/etc/sysconfig/kubelet",
    "/etc/default/kubelet",
    // kubeadm's.
    "/var/lib/kubelet/kubeadm-flags.env",
];

/// The kubelet's unit.
const KUBELET: &str = "kubelet.service";
/// By which it is told where its configuration is, and what is laid over it.
const CONFIG: &str = "--config";
const OVER: &str = "--config-dir";
/// What is laid over it where only the image says so: OpenShift's folder, and Kubernetes' own.
const OVER_OF_IMAGES: [&str; 2] =
    ["/etc/openshift/kubelet.conf.d", "/etc/kubernetes/kubelet.conf.d"];

/// What somebody says of a kubelet, and who: a unit, or a file.
struct Said {
    whose: String,
    text: String,
    of_kubelet: bool,
}

/// Who beats a claim in the kubelet's configuration, and by which words.
pub(super) enum Beats {
    /// It has taints of its own.
    Taints(String, &'static str),
    /// It names another configuration.
    Other(String, String),
}

/// Who beats what is written into the kubelet's configuration at this path.
pub(super) fn beats(config: &Value, kubelet: &str) -> Option<Beats> {
    if let Some(whose) = says_taints(config) {
        return Some(Beats::Taints(whose, FLAG));
    }
    let mut all: Vec<Said> = said_by_units(config).into_iter().filter(|it| it.of_kubelet).collect();
    let named: Vec<String> =
        all.iter().flat_map(|it| environments(&it.text)).map(str::to_owned).collect();
    all.extend(environment_files(config, &named));
    let other = |it: &Said| {
        let other = values(&it.text, CONFIG).into_iter().find(|path| path != kubelet)?;
        Some(Beats::Other(it.whose.clone(), other))
    };
    if let Some(other) = all.iter().find_map(other) {
        return Some(other);
    }
    let mut over: Vec<String> = all.iter().flat_map(|it| values(&it.text, OVER)).collect();
    over.extend(OVER_OF_IMAGES.map(str::to_owned));
    let is_over = |path: &str| {
        let within = |folder: &String| {
            let rest = path.strip_prefix(folder.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        // The kubelet reads no others there.
        path.ends_with(".conf") && path != kubelet && over.iter().any(within)
    };
    let mut files = list(config, "/storage/files").filter(|file| is_over(word(file, "path")));
    let says_so = files.find(|file| text(file).is_some_and(|text| says_of_taints(&text)))?;
    let whose = format!("file {}, which is laid over it,", word(says_so, "path"));
    Some(Beats::Taints(whose, super::kubelet::FIELD))
}

/// Who says so first: a unit, or a file.
fn says_taints(config: &Value) -> Option<String> {
    let texts = said_by_units(config);
    if let Some(it) = texts.iter().find(|it| says(&it.text)) {
        return Some(it.whose.clone());
    }
    let named: Vec<String> =
        texts.iter().flat_map(|it| environments(&it.text)).map(str::to_owned).collect();
    environment_files(config, &named).find(|it| says(&it.text)).map(|it| it.whose)
}

/// What the units of a config say, with their drop-ins.
fn said_by_units(config: &Value) -> Vec<Said> {
    let units = list(config, "/systemd/units").filter(|unit| !is(unit, "mask"));
    let mut all = Vec::new();
    let mut add = |whose: String, text: &str, of_kubelet: bool| {
        all.push(Said { whose, text: text.to_owned(), of_kubelet });
    };
    for unit in units {
        let name = word(unit, "name");
        let of_kubelet = name == KUBELET;
        if let Some(text) = said(unit) {
            add(format!("unit {name}"), text, of_kubelet);
        }
        for it in unit.get("dropins").and_then(Value::as_array).into_iter().flatten() {
            if let Some(text) = said(it) {
                add(format!("drop-in {} of unit {name}", word(it, "name")), text, of_kubelet);
            }
        }
    }
    for file in list(config, "/storage/files") {
        let path = word(file, "path");
        if let (Some(unit), Some(text)) = (path.strip_prefix(UNITS), text(file)) {
            let of_kubelet = unit.strip_prefix(KUBELET);
            let of_kubelet = of_kubelet.is_some_and(|it| it.is_empty() || it.starts_with(".d/"));
            add(format!("file {path}"), &text, of_kubelet);
        }
    }
    all
}

/// Files that a unit takes as its environment: of those that are named so, and the image's.
fn environment_files<'c>(
    config: &'c Value,
    named: &'c [String],
) -> impl Iterator<Item = Said> + use<'c> {
    let is_named = move |path: &str| {
        OF_IMAGES.contains(&path) || named.iter().any(|named| may_be(named, path))
    };
    list(config, "/storage/files").filter_map(move |file| {
        let path = Some(word(file, "path")).filter(|path| is_named(path))?;
        let whose = format!("file {path}, which a unit takes as its environment,");
        Some(Said { whose, text: text(file)?, of_kubelet: true })
    })
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
    lines(text).any(|line| place(line, FLAG).is_some())
}

/// Where a flag stands first. The kubelet takes `_` in a flag's name for `-`.
fn place(text: &str, flag: &str) -> Option<usize> {
    let mut begins = text.match_indices("--").map(|(at, _)| at);
    begins.find(|at| {
        let named = text.get(*at..).and_then(|text| text.get(..flag.len()));
        named.is_some_and(|named| named.replace('_', "-") == flag)
    })
}

/// What a flag is given: behind `=`, or as the next word.
fn values(text: &str, flag: &str) -> Vec<String> {
    let words = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
    let text: Vec<&str> = lines(text).collect();
    let text = text.join(" ");
    let mut words = text.split(words).filter(|word| !word.is_empty());
    let mut values = Vec::new();
    while let Some(word) = words.next() {
        // An environment may begin with it.
        let Some(at) = place(word, flag) else { continue };
        let is_begin = at == 0 || word.get(..at).is_some_and(|before| before.ends_with('='));
        let value = match word.get(at + flag.len()..) {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        // Where the value stands in quotes of its own it is the next word.
        let value = match value {
            Some("") => words.next(),
            value => value,
        };
        values.extend(value.filter(|_| is_begin).map(str::to_owned));
    }
    values
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
        Some(("" | "/", _)) => path.starts_with(ETC),
        Some((begins, _)) => path.starts_with(begins),
        None => named == path,
    }
}
