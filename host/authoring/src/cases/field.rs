//! What is read of a case.

use anyhow::{Result, anyhow};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;
use tread_console::print::line;

/// A piece of a case; what is wrong with it is told with the name of its field.
pub(super) fn read<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (path, inner) = (error.path(), in_words(&error.inner().to_string()));
        // What is wrong with a field's name quotes it already.
        let is_quoted = match path.iter().next_back() {
            None => true,
            Some(Segment::Map { key }) => inner.contains(&format!("`{key}`")),
            Some(_) => false,
        };
        // A field that nobody knows may be called anything.
        match is_quoted {
            true => anyhow!(line(&inner)),
            false => anyhow!(line(&format!("{path}: {inner}"))),
        }
    })
}

/// What to know where a text was read as true or false.
pub(super) const OF_YAML: &str =
    " (YAML reads yes, no, on, off, y and n so, unless they are in quotes)";

/// The library's message in words of YAML.
fn in_words(message: &str) -> String {
    let number = "expected a whole number, such as 0644 without quotes";
    let message = message.replace("expected u32", number);
    let is_text = message.contains("boolean") && message.contains("expected a string");
    if is_text { message + OF_YAML } else { message }
}
