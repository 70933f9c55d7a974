//! Names of namespaces, as somebody gives them.

use tread_console::exit::UsageError;

/// A name that the API server takes for a namespace.
pub(crate) fn namespace(text: &str) -> Result<String, UsageError> {
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let good = !text.is_empty()
        && text.len() <= 63
        && text.bytes().all(inside)
        && !text.starts_with('-')
        && !text.ends_with('-');
    if good {
        return Ok(text.to_owned());
    }
    Err(UsageError("expected at most 63 lower-case letters, digits and dashes".to_owned()))
}
