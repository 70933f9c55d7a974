//! Labels, and what Kubernetes takes for one.

/// Labels of an object.
pub type Labels = std::collections::BTreeMap<String, String>;

/// So long is a name, or a value, at most.
const LONGEST: usize = 63;
/// So long is what stands before a name, at most.
const LONGEST_PREFIX: usize = 253;

/// Whether something is the key of a label.
pub fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_prefix(prefix) && is_name(name),
        None => is_name(key),
    }
}

fn is_prefix(prefix: &str) -> bool {
    let is_part = |part: &str| {
        let takes = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        has_ends(part, takes) && part.bytes().all(|c| takes(c) || c == b'-')
    };
    prefix.len() <= LONGEST_PREFIX && prefix.split('.').all(is_part)
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
