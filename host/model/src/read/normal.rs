//! The normal form of names, modes, kernel arguments, keys and JSON, in whatever way
//! they were written.

use crate::config::KernelType;
use crate::text::is_unfit;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;

/// A cleaned absolute path.
pub(super) fn path(text: &str) -> Result<Cow<'_, str>, &'static str> {
    let Some(rest) = text.strip_prefix('/') else {
        return Err("expected an absolute path");
    };
    if is_odd(rest) {
        return Err(
            "a path cannot contain control characters, or such as turn the direction of text",
        );
    }
    let odd = |pair: &[u8]| matches!(pair, b"//" | b"/.");
    if !rest.is_empty() && !rest.ends_with('/') && !text.as_bytes().windows(2).any(odd) {
        return Ok(Cow::Borrowed(text));
    }
    let mut clean = String::with_capacity(text.len());
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err("expected a path without \"..\": write where it leads to"),
            part => {
                clean.push('/');
                clean.push_str(part);
            }
        }
    }
    if clean.is_empty() {
        Err("expected the path of a file, found \"/\"")
    } else {
        Ok(clean.into())
    }
}

/// Whether a name holds an unfit character.
pub(super) fn is_odd(name: &str) -> bool {
    name.chars().any(is_unfit)
}

/// What to say of an odd name. It is not repeated.
pub(super) const ODD: &str = "holds a character that cannot be shown, such as a control character, \
    a line break, or one that turns the direction of text: write the name without it";

/// What is wrong with the name of a user or group.
pub(super) fn check_account(name: &str) -> Result<(), &'static str> {
    if is_odd(name) {
        Err(ODD)
    } else if name.contains(['/', ':']) {
        Err("no user or group has a / or : in its name")
    } else {
        Ok(())
    }
}

/// What is wrong with the name of an owner, which may be written as a number
/// elsewhere.
pub(super) fn check_owner(name: &str) -> Result<(), &'static str> {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("is a number, which is no name: write it in the field `id`, without quotes");
    }
    check_account(name)
}

/// Permission bits, set-uid, set-gid and sticky included.
pub(super) fn mode(number: i64) -> Result<u32, String> {
    match u32::try_from(number) {
        Ok(mode) if mode <= 0o7777 => Ok(mode),
        _ => Err(format!(
            "expected 0 to 4095 (0o7777 in octal), found {number}; JSON knows no octal numbers: \
             0644 is written 420"
        )),
    }
}

/// The mode, or None where it is the default.
pub(super) fn mode_if_special(mode: Option<u32>) -> Option<u32> {
    mode.filter(|mode| *mode != 0o644)
}

/// What a unit's name should have been.
pub(super) const UNIT_NAME: &str = "expected the name of a systemd unit, such as crio.service: \
    letters, digits and :-_.\\@, then the type";

/// Whether systemd would take it for the name of a drop-in.
pub(super) fn is_dropin_name(name: &str) -> bool {
    name.len() > ".conf".len() && name.ends_with(".conf") && !name.contains('/') && !is_odd(name)
}

/// What a drop-in's name should have been.
pub(super) const DROPIN_NAME: &str =
    "expected a file name that ends in .conf, without control characters";

/// The kernel that a text names.
pub(super) fn kernel_type(text: &str) -> Option<KernelType> {
    match text {
        "" | "default" => Some(KernelType::Default),
        "realtime" => Some(KernelType::Realtime),
        "64k-pages" => Some(KernelType::Pages64k),
        _ => None,
    }
}

/// Adds the kernel arguments in `text`, one token each, without their quotes.
/// None: a quote is not closed.
pub(super) fn kernel_arguments<'a>(text: &'a str, tokens: &mut Vec<Cow<'a, str>>) -> Option<()> {
    if !text.contains('"') {
        tokens.extend(text.split_ascii_whitespace().map(Cow::Borrowed));
        return Some(());
    }
    let mut quoted = false;
    let outside = |c: char| {
        quoted ^= c == '"';
        c.is_ascii_whitespace() && !quoted
    };
    let parts: Vec<&str> = text.split(outside).filter(|part| !part.is_empty()).collect();
    if text.matches('"').count() % 2 == 1 {
        return None;
    }
    tokens.extend(parts.into_iter().map(|part| Cow::Owned(without_quotes(part))));
    Some(())
}

/// As the kernel takes quotes off: around a whole argument, or around its value.
/// Any other quote is part of the argument.
fn without_quotes(argument: &str) -> String {
    let stripped = |text: &str| {
        let inner = text.strip_prefix('"').map(|text| text.strip_suffix('"').unwrap_or(text));
        inner.map(str::to_owned)
    };
    if let Some(whole) = stripped(argument) {
        return whole;
    }
    match argument.split_once('=') {
        Some((key, value)) => {
            format!("{key}={}", stripped(value).unwrap_or_else(|| value.to_owned()))
        }
        None => argument.to_owned(),
    }
}

/// Sorted, without duplicates and without surrounding space.
pub(super) fn ssh_keys(keys: &mut Vec<Cow<'_, str>>) {
    for key in keys.iter_mut() {
        let trimmed = key.trim();
        if trimmed.len() != key.len() {
            *key = Cow::Owned(trimmed.to_owned());
        }
    }
    keys.retain(|key| !key.is_empty());
    sort(keys);
}

/// Sorted, without duplicates.
pub(super) fn sort(texts: &mut Vec<Cow<'_, str>>) {
    texts.sort_unstable();
    texts.dedup();
}

/// Takes out of all objects what is null or empty. None if nothing is left.
pub(super) fn prune(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Array(items) if items.is_empty() => None,
        // An item that is empty is still an item.
        Value::Array(items) => {
            Some(items.iter().map(|item| prune(item).unwrap_or_default()).collect())
        }
        Value::Object(map) => {
            let fields = map.iter().filter_map(|(name, value)| Some((name.clone(), prune(value)?)));
            let map: serde_json::Map<String, Value> = fields.collect();
            (!map.is_empty()).then_some(Value::Object(map))
        }
        other => Some(other.clone()),
    }
}

/// JSON without space, the fields sorted by name.
pub(crate) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            // Whether a map is sorted depends on how serde_json was built.
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(&Value::String(name.clone()), out);
                out.push(':');
                write_canonical(value, out);
            }
            out.push('}');
        }
        // Writing to a String cannot fail.
        plain => _ = write!(out, "{plain}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_are_cleaned_and_never_climb() {
        for (text, want) in [
            ("/etc/foo", Some("/etc/foo")),
            ("/etc//foo", Some("/etc/foo")),
            ("/etc/./foo/", Some("/etc/foo")),
            ("//etc/.foo/..bar", Some("/etc/.foo/..bar")),
            ("/etc/../foo", None),
            ("/..", None),
            ("/", None),
            ("//./", None),
            ("etc/foo", None),
            ("", None),
            ("/a\0b", None),
            ("/a\nb", None),
            ("/a\u{1b}[2Jb", None),
            ("/a\u{202e}b", None),
        ] {
            assert_eq!(path(text).ok().as_deref(), want, "{text:?}");
        }
    }

    #[test]
    fn kernel_arguments_are_split_at_space_outside_of_quotes() {
        for (text, want) in [
            ("", Some(vec![])),
            (" \t ", Some(vec![])),
            ("a b=c", Some(vec!["a", "b=c"])),
            (" a\n b ", Some(vec!["a", "b"])),
            ("a=\"b c\" d", Some(vec!["a=b c", "d"])),
            ("\"a=b c\"", Some(vec!["a=b c"])),
            ("a=\"\" \"\"", Some(vec!["a=", ""])),
            ("a=\"b", None),
            ("a='b c'", Some(vec!["a='b", "c'"])),
            ("a=b\"ar\" f\"o\"o=c", Some(vec!["a=b\"ar\"", "f\"o\"o=c"])),
        ] {
            let mut tokens = Vec::new();
            let got = kernel_arguments(text, &mut tokens).map(|()| tokens);
            assert_eq!(
                got,
                want.map(|want| want.into_iter().map(Cow::Borrowed).collect()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn canonical_json_has_neither_order_nor_empty_fields() {
        for (value, want) in [
            (
                json!({"b": [1, {"y": null, "x": "\u{1}"}], "a": {}}),
                Some(r#"{"b":[1,{"x":"\u0001"}]}"#),
            ),
            (json!({"a": {"b": {"c": []}}}), None),
            (json!([{}, {"a": []}]), Some("[null,null]")),
            (json!(null), None),
            (json!(false), Some("false")),
        ] {
            assert_eq!(prune(&value).map(|value| canonical(&value)).as_deref(), want, "{value}");
        }
    }

    #[test]
    fn modes_have_twelve_bits() {
        for (number, want) in [(0, Some(0)), (0o7777, Some(0o7777)), (0o10000, None), (-1, None)] {
            assert_eq!(mode(number).ok(), want, "{number}");
        }
    }

    #[test]
    fn ssh_keys_are_trimmed_and_sorted() {
        let mut keys: Vec<Cow<'_, str>> = ["b ", "a", "", " b", "\n"].map(Cow::Borrowed).into();
        ssh_keys(&mut keys);
        assert_eq!(keys, ["a", "b"]);
    }
}
