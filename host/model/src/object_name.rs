//! Names that the API server takes for objects.

/// No name of an object is longer.
pub const LONGEST: usize = 253;

/// No part of such a name is longer where it has to be one label, as the name of a
/// namespace.
pub const LONGEST_LABEL: usize = 63;

/// Whether there could be an object of this name: it is not too long, and has only
/// characters that such names have.
pub fn is_possible(name: &str) -> bool {
    name.len() <= LONGEST && name.bytes().all(|byte| is_of_labels(byte) || byte == b'.')
}

/// Whether the API server takes this as the name of an object: labels with dots
/// between them, each of any length.
pub fn is_name(text: &str) -> bool {
    text.len() <= LONGEST && text.split('.').all(is_part)
}

/// Whether this is a label as RFC 1123 has it, which the name of a namespace is.
pub fn is_label(text: &str) -> bool {
    text.len() <= LONGEST_LABEL && is_part(text)
}

fn is_part(text: &str) -> bool {
    let ends = !text.starts_with('-') && !text.ends_with('-');
    !text.is_empty() && ends && text.bytes().all(is_of_labels)
}

fn is_of_labels(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels_with_dots_between_them() {
        let long = "a".repeat(64);
        for (text, possible, name, label) in [
            ("node-config", true, true, true),
            ("99.worker-1", true, true, false),
            ("0", true, true, true),
            ("", true, false, false),
            ("-a", true, false, false),
            ("a-", true, false, false),
            ("a..b", true, false, false),
            ("a.-b", true, false, false),
            ("A", false, false, false),
            ("a_b", false, false, false),
            ("a/b", false, false, false),
            ("größe", false, false, false),
            (&long, true, true, false),
            (&"a".repeat(63), true, true, true),
            (&"a".repeat(253), true, true, false),
            (&"a".repeat(254), false, false, false),
        ] {
            let found = (is_possible(text), is_name(text), is_label(text));
            assert_eq!(found, (possible, name, label), "{text:?}");
        }
    }
}
