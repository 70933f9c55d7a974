//! Settings between JSON and a policy's own type.
//!
//! Everything here works on pieces of JSON text: a tree of values would bring
//! a second reader of every settings type into the component.

use crate::{Policy, json};
use std::collections::BTreeMap;

/// The fields of a JSON object, each as its text.
type Object<'a> = BTreeMap<String, &'a str>;

/// Whether the policy takes settings at all: a type without any value to hold
/// takes none. A constant, so that a policy without settings carries no JSON.
pub(crate) const fn taken<P: Policy>() -> bool {
    size_of::<P::Settings>() != 0
}

/// The settings in `text`, which is a JSON object. What is left out has its
/// default.
///
/// # Errors
/// One sentence for each setting that is wrong.
pub(crate) fn read<P: Policy>(text: &str) -> Result<P::Settings, Vec<String>> {
    if !taken::<P>() {
        return match text.trim() {
            "" | "{}" => Ok(P::Settings::default()),
            _ => Err(vec![format!("{} takes no settings", P::NAME)]),
        };
    }
    let given: Object<'_> = json::fields(text)
        .map_err(|error| vec![format!("the settings must be one JSON object: {error}")])?;
    let defaults = defaults::<P>();
    let mut all: Object<'_> = json::fields(&defaults).unwrap_or_default();
    let mut errors = Vec::new();
    for (name, value) in &given {
        let Some(default) = all.get(name).copied() else {
            errors.push(unknown(name, &all));
            continue;
        };
        // With all others at their defaults, an error is this one's.
        all.insert(name.clone(), value);
        if let Err(error) = typed::<P>(&all) {
            errors.push(format!("{name}: {error}"));
        }
        all.insert(name.clone(), default);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    all.extend(given);
    typed::<P>(&all).map_err(|error| vec![error])
}

fn typed<P: Policy>(settings: &Object<'_>) -> Result<P::Settings, String> {
    json::read(&object(settings)).map_err(|error| error.to_string())
}

fn unknown(name: &str, known: &Object<'_>) -> String {
    let known: Vec<&str> = known.keys().map(String::as_str).collect();
    format!("{name}: there is no such setting; there are: {}", known.join(", "))
}

/// Every setting with its default, as a JSON object.
fn defaults<P: Policy>() -> String {
    serde_json::to_string(&P::Settings::default()).unwrap_or_default()
}

/// The JSON text of an object, its fields in order of name.
fn object(fields: &Object<'_>) -> String {
    let field = |(name, value): (&String, &&str)| format!("{}:{value}", quoted(name));
    format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// What the description says of the settings: the defaults and the schema.
#[cfg(any(test, target_arch = "wasm32"))]
pub(crate) fn described<P: Policy>() -> Option<(String, String)> {
    taken::<P>().then(|| {
        let defaults = defaults::<P>();
        let fields: Object<'_> = json::fields(&defaults).unwrap_or_default();
        let schema = P::schema().unwrap_or_else(|| schema::of(&fields));
        (object(&fields), schema)
    })
}

/// A JSON Schema, from nothing but defaults.
#[cfg(any(test, target_arch = "wasm32"))]
mod schema {
    use super::{Object, quoted};
    use crate::json;

    /// The schema of the whole: nothing but the settings that have a default.
    pub(super) fn of(defaults: &Object<'_>) -> String {
        let properties = properties(defaults);
        format!(r#"{{"type":"object","additionalProperties":false,"properties":{properties}}}"#)
    }

    fn properties(fields: &Object<'_>) -> String {
        let property = |(name, text): (&String, &&str)| {
            let name = quoted(name);
            match of_type(text) {
                // Any type may stand where the default is nothing.
                None => format!(r#"{name}:{{"default":{text}}}"#),
                Some(kind) => format!(r#"{name}:{{{kind},"default":{text}}}"#),
            }
        };
        format!("{{{}}}", fields.iter().map(property).collect::<Vec<_>>().join(","))
    }

    /// The part of a schema that tells the type of such a value.
    fn of_type(value: &str) -> Option<String> {
        let kind = match value.as_bytes().first()? {
            b'"' => "string",
            b't' | b'f' => "boolean",
            b'n' => return None,
            b'[' => {
                let items = json::items(value).ok()?;
                return Some(match items.first().and_then(|item| of_type(item)) {
                    Some(item) => format!(r#""type":"array","items":{{{item}}}"#),
                    None => r#""type":"array""#.to_string(),
                });
            }
            b'{' => {
                let fields = json::fields(value).ok()?;
                let properties = properties(&fields);
                return Some(format!(r#""type":"object","properties":{properties}"#));
            }
            _ if value.contains(['.', 'e', 'E']) => "number",
            _ => "integer",
        };
        Some(format!(r#""type":"{kind}""#))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Claim, Context, Verdict};
    use serde::{Deserialize, Serialize};
    use serde_json::Value;

    macro_rules! policy {
        ($name:ident, $settings:ty) => {
            struct $name;
            impl Policy for $name {
                type Settings = $settings;
                const NAME: &'static str = "sample";
                const VERSION: &'static str = "1.0.0";
                const SUMMARY: &'static str = "For tests";
                const CLAIMS: &'static [Claim] = &[];
                fn classify(_: &$settings, _: &Change, _: &Context<'_>) -> Verdict {
                    Verdict::abstain()
                }
            }
        };
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Some {
        unit: String,
        limit: u32,
        hosts: Vec<String>,
    }

    impl Default for Some {
        fn default() -> Some {
            Some { unit: "a.service".into(), limit: 3, hosts: vec!["b".into()] }
        }
    }

    policy!(With, Some);
    policy!(Without, ());

    #[test]
    fn what_is_left_out_has_its_default() {
        let settings = read::<With>(r#"{"limit": 4}"#).unwrap();
        assert_eq!(settings, Some { limit: 4, ..Some::default() });
    }

    #[test]
    fn every_wrong_setting_is_named() {
        let errors =
            read::<With>(r#"{"limit": "x", "unti": "b.service", "hosts": 1}"#).unwrap_err();
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert!(errors[0].starts_with("hosts: "), "{errors:?}");
        assert_eq!(errors[1], "limit: expected u32, not the text \"x\"");
        assert_eq!(errors[2], "unti: there is no such setting; there are: hosts, limit, unit");
        assert!(read::<With>("[]").is_err());
    }

    #[test]
    fn a_policy_without_settings_takes_none() {
        assert_eq!(read::<Without>("{}"), Ok(()));
        assert_eq!(read::<Without>(r#"{"a":1}"#), Err(vec!["sample takes no settings".into()]));
        assert_eq!(described::<Without>(), None);
    }

    #[test]
    fn the_schema_follows_from_the_defaults() {
        let (defaults, schema) = described::<With>().unwrap();
        assert_eq!(defaults, r#"{"hosts":["b"],"limit":3,"unit":"a.service"}"#);
        let schema: Value = serde_json::from_str(&schema).unwrap();
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["limit"]["type"], "integer");
        assert_eq!(schema["properties"]["hosts"]["items"]["type"], "string");
        assert_eq!(schema["properties"]["unit"]["default"], "a.service");
    }
}
