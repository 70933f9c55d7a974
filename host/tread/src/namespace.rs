//! Names of namespaces, as somebody gives them.

use tread_console::exit::UsageError;
use tread_model::object_name::is_label;

/// A name that the API server takes for a namespace.
pub(crate) fn namespace(text: &str) -> Result<String, UsageError> {
    if is_label(text) {
        return Ok(text.to_owned());
    }
    Err(UsageError("expected at most 63 lower-case letters, digits and dashes".to_owned()))
}
