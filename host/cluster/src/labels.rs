//! Labels, and what Kubernetes takes for one.

use tread_model::object_name;

/// Labels of an object.
pub type Labels = std::collections::BTreeMap<String, String>;

/// So long is a name, or a value, at most.
const LONGEST: usize = 63;

/// Whether something is the key of a label.
pub fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => object_name::is_name(prefix) && is_name(name),
        None => is_name(key),
    }
}

fn is_name(name: &str) -> bool {
    let takes = |c: u8| c.is_ascii_alphanumeric();
    name.len() <= LONGEST
        && has_ends(name, takes)
        && name.bytes().all(|c| takes(c) || b"-_.".contains(&c))
}

/// Whether it begins and ends with what is taken there.
fn has_ends(text: &str, takes: impl Fn(u8) -> bool) -> bool {
    let (first, last) = (text.bytes().next(), text.bytes().last());
    first.is_some_and(&takes) && last.is_some_and(takes)
}

/// Whether something is the value of a label.
pub fn is_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}
