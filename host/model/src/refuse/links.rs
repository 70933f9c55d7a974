//! Links, which Ignition makes when a node is provisioned and nobody touches
//! afterwards.

use crate::text::listed;
use serde_json::Value;

/// The id of the links of a config.
pub(crate) const LINKS: &str = "storage:links";

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
    let named = listed(&paths(value), NAMED);
    format!(
        "Nothing has to be done for it: nodes that run keep the links ({named}), as \
         OpenShift's operator leaves them alone too, and only nodes that are provisioned from now \
         on come without. Remove them by hand where they must not stay."
    )
}
