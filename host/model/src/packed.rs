//! A policy in a ConfigMap: which of its bytes are the module, and which settings
//! it was packed with. A cluster and a command on a laptop read it by these rules.

use crate::digest::Sha256;
use crate::read::{Input, document_values, has_no_document};
use crate::text::shortened;
use serde_json::{Map, Value};

/// The annotation that names the key of the module in `binaryData`.
pub const KEY_ANNOTATION: &str = "tread.dev/policy-key";

/// The annotation that holds the digest of the module, as it was packed.
pub const DIGEST_ANNOTATION: &str = "tread.dev/policy-digest";

/// A digest has fewer characters; of anything else the beginning is shown.
const LONGEST_DIGEST: usize = 100;

/// The key in `data` where settings are.
pub const SETTINGS: &str = "settings";

/// The key of the module among those of `binaryData`: the one that is named, or the
/// only one. An error says which keys there are.
pub fn module_key<'k>(named: Option<&'k str>, keys: &[&'k str]) -> Result<&'k str, String> {
    match (named, keys) {
        (_, []) => {
            Err("the ConfigMap has no binaryData: write it with `tread policy pack`".to_owned())
        }
        (Some(named), keys) if keys.contains(&named) => Ok(named),
        (Some(named), keys) => Err(format!(
            "binaryData has no key {named}, which was named as that of the module; it has: {}",
            keys.join(", ")
        )),
        (None, [only]) => Ok(only),
        (None, several) => Err(format!(
            "binaryData has the keys {}: name that of the module in the annotation \
             {KEY_ANNOTATION}",
            several.join(", ")
        )),
    }
}

/// What is wrong, if the digest that is noted beside a module is not the one that it has.
pub fn digest_mismatch(noted: &str, digest: &Sha256) -> Option<String> {
    let noted = Some(noted).filter(|noted| *noted != digest.to_string())?;
    Some(format!(
        "the annotation {DIGEST_ANNOTATION} says {}, but the module's digest is {digest}: one of \
         them was changed after it was packed; pack the module again, or remove the annotation if \
         these bytes are the right ones",
        shortened(noted, LONGEST_DIGEST)
    ))
}

/// The settings that a module was packed with: one object in YAML, or nothing.
pub fn settings(text: &str) -> Result<Map<String, Value>, String> {
    let input = Input { name: "data.settings", bytes: text.as_bytes() };
    if has_no_document(&input) {
        return Ok(Map::new());
    }
    let documents = document_values(&input).map_err(|problems| problems.to_string())?;
    match <[_; 1]>::try_from(documents).map(|[document]| document.value) {
        Ok(Value::Object(settings)) => Ok(settings),
        _ => Err("data.settings: expected one object with the policy's settings, such as \
                  `drain: never`"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_single_key_is_the_module_and_one_of_several_has_to_be_named() {
        assert_eq!(module_key(None, &["x"]), Ok("x"));
        assert_eq!(module_key(Some("y"), &["x", "y"]), Ok("y"));
        for (named, keys, words) in [
            (None, &["x", "y"][..], "the keys x, y: name that of the module in the annotation"),
            (
                Some("z"),
                &["x", "y"],
                "has no key z, which was named as that of the module; it has: x, y",
            ),
            (Some("z"), &["x"], "has no key z"),
            (Some("z"), &[], "has no binaryData"),
            (None, &[], "has no binaryData"),
        ] {
            let why = module_key(named, keys).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn settings_are_one_object_in_yaml_or_nothing() {
        let read = |text| settings(text).map(Value::Object);
        assert_eq!(read("drain: never\nn: 5"), Ok(serde_json::json!({"drain": "never", "n": 5})));
        for blank in ["", "  \n", "# drain: never\n", "---\n# drain: never\n", "null"] {
            assert_eq!(read(blank), Ok(serde_json::json!({})), "{blank:?}");
        }
        for bad in ["[1]", "a", "a: [", "a: 1\n---\nb: 2", "a: 1\na: 2"] {
            assert!(read(bad).unwrap_err().starts_with("data.settings"), "{bad}");
        }
    }
}
