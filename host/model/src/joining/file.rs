//! What a config has at a path, and what a file of it holds.

use crate::config::Source;
use crate::contents::decode;
use crate::path::is_below;
use serde_json::Value;

/// Whether one of these kinds is at a path, or a link above it: beside neither of them Ignition takes
/// anything there.
pub(super) fn is_taken(config: &Value, kinds: &[&str], path: &str) -> bool {
    let is_there = kinds.iter().any(|kind| paths(config, kind).any(|it| it == path));
    is_there || paths(config, "links").any(|link| is_below(path, link))
}

fn paths<'c>(config: &'c Value, kind: &str) -> impl Iterator<Item = &'c str> {
    let entries = config.pointer("/storage").and_then(|storage| storage.get(kind)?.as_array());
    entries.into_iter().flatten().filter_map(|entry| entry.get("path")?.as_str())
}

/// As text.
pub(super) fn text(file: &Value) -> Option<String> {
    let contents = file.get("contents")?;
    let url = contents.get("source")?.as_str()?;
    let gzip = contents.get("compression").is_some_and(|it| it == "gzip");
    let bytes = decode(&Source { url: Some(url.into()), gzip }).ok()??;
    String::from_utf8(bytes.into_owned()).ok()
}
