//! The labels by which a resource's machines are found. Whoever writes a resource
//! writes them: what Kubernetes takes for no label would be read as another selector.

use crate::labels::{is_key, is_value};
use std::collections::BTreeMap;
use tread_model::boot_images::shown;

/// The selector in the words of a query, or which label is none.
pub fn query(labels: &BTreeMap<String, String>) -> Result<String, String> {
    let mut words = Vec::with_capacity(labels.len());
    for (key, value) in labels {
        if !is_key(key) || !is_value(value) {
            let label = shown(&format!("{key}={value}"));
            return Err(format!("{label} in its matchLabels is no label that Kubernetes takes"));
        }
        words.push(format!("{key}={value}"));
    }
    Ok(words.join(","))
}
