//! Links, which Ignition makes when a node is provisioned and nobody touches
//! afterwards.

use serde_json::Value;

/// How many links a reason names.
const NAMED: usize = 3;

/// The paths of the links in a [`crate::config::Fixed`] part.
fn paths(value: &str) -> Vec<String> {
    let Ok(Value::Array(links)) = serde_json::from_str(value) else { return Vec::new() };
    let paths = links.iter().filter_map(|link| link.get("path")?.as_str().map(str::to_owned));
    paths.collect()
}

/// Why links that are removed cost nothing, and what stays.
pub(super) fn why_settled(value: &str) -> String {
    let paths = paths(value);
    let named = paths.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = match paths.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "Nothing has to be done for it: nodes that run keep the links ({named}{more}), as \
         OpenShift's operator leaves them alone too, and only nodes that are provisioned from now \
         on come without. Remove them by hand where they must not stay."
    )
}
