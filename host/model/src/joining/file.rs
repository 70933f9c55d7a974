//! What a file of a config holds.

use crate::config::Source;
use crate::contents::decode;
use serde_json::Value;

/// As text.
pub(super) fn text(file: &Value) -> Option<String> {
    let contents = file.get("contents")?;
    let url = contents.get("source")?.as_str()?;
    let gzip = contents.get("compression").is_some_and(|it| it == "gzip");
    let bytes = decode(&Source { url: Some(url.into()), gzip }).ok()??;
    String::from_utf8(bytes.into_owned()).ok()
}
