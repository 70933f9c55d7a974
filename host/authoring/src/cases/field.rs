//! What is read of a case.

use anyhow::{Result, anyhow};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A piece of a case; what is wrong with it is told with the name of its field.
pub(super) fn read<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (path, inner) = (error.path().to_string(), error.inner().to_string());
        // An unknown field is named already.
        match path == "." || inner.starts_with("unknown field") {
            true => anyhow!(inner),
            false => anyhow!("{path}: {inner}"),
        }
    })
}
