//! The one cleaning of all that is written to the cluster: what strangers wrote
//! into a name, an annotation, a label or a setting is repeated in conditions and
//! Events, and kubectl prints those on a terminal.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tread_model::text::{is_unfit, one_line};

/// What tread itself writes in lines: one for each that gave a reason.
const IN_LINES: &str = "reason";

/// One line in which nothing drives a terminal, hides, or turns what stands
/// around it.
pub fn clean(text: &str) -> String {
    if !text.chars().any(is_unfit) {
        return text.to_owned();
    }
    let breaks =
        |c: char| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut out = String::with_capacity(text.len());
    for line in text.split(breaks).map(one_line).filter(|line| !line.is_empty()) {
        if !out.is_empty() {
            out.push_str(if out.ends_with(['.', ':', ';', ',', '!', '?']) { " " } else { "; " });
        }
        out.push_str(&line);
    }
    out
}

/// An object in which each text is cleaned.
pub fn cleaned<T: Serialize + DeserializeOwned>(object: T) -> T {
    let Ok(mut value) = serde_json::to_value(&object) else { return object };
    match clean_all(&mut value, false) {
        true => serde_json::from_value(value).unwrap_or(object),
        false => object,
    }
}

/// Whether anything had to be cleaned.
fn clean_all(value: &mut Value, in_lines: bool) -> bool {
    match value {
        Value::String(text) => {
            let fit = match in_lines {
                true => text.split('\n').map(clean).collect::<Vec<_>>().join("\n"),
                false => clean(text),
            };
            let differs = fit != *text;
            *text = fit;
            differs
        }
        Value::Array(all) => {
            let mut found = false;
            for it in all {
                found |= clean_all(it, in_lines);
            }
            found
        }
        Value::Object(fields) => {
            let mut found = false;
            for (name, it) in fields {
                found |= clean_all(it, name == IN_LINES);
            }
            found
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_becomes_a_line_that_drives_nothing() {
        for (text, expected) in [
            ("plain  text — größe", "plain  text — größe"),
            ("\u{1b}[31mred\u{1b}[0m", "[31mred [0m"),
            ("\u{1b}]0;title\u{7}x", "]0;title x"),
            ("\u{202e}olleh\u{200b}", "olleh"),
            ("one\ntwo\r\n\nthree", "one; two; three"),
            ("several:\n  one.\n  two", "several: one. two"),
            ("\u{9b}31m", "31m"),
            ("\u{1b}\n\u{7f}", ""),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
            assert!(!clean(text).chars().any(is_unfit), "{text:?}");
        }
    }

    #[test]
    fn every_text_of_an_object_is_cleaned_and_reasons_keep_their_lines() {
        let odd = "a\u{1b}[2Jb\nc";
        let value = json!({"x": [{"y": odd, "reason": odd}], "n": 1, "fine": "a"});
        let expected =
            json!({"x": [{"y": "a [2Jb; c", "reason": "a [2Jb\nc"}], "n": 1, "fine": "a"});
        assert_eq!(cleaned(value), expected);
        assert_eq!(cleaned(expected.clone()), expected, "cleaning twice changes nothing");
    }
}
