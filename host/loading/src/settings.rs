//! `--set POLICY.KEY=VALUE`, held against what each policy says that it takes.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tread_console::exit::UsageError;
use tread_model::description::SettingsDescription;
use tread_model::read::fields::unknown;
use tread_model::schema::Schema;

/// Settings by policy.
pub(crate) type Settings = BTreeMap<String, Map<String, Value>>;

/// `registries.drain=always`, several of them, by policy.
pub(crate) fn parse(given: &[String]) -> Result<Settings, UsageError> {
    let mut all = Settings::new();
    for setting in given {
        let parts = setting
            .split_once('=')
            .and_then(|(key, value)| key.split_once('.').map(|(policy, key)| (policy, key, value)))
            .filter(|(policy, key, _)| !policy.is_empty() && !key.is_empty());
        let Some((policy, key, value)) = parts else {
            return Err(UsageError(format!("--set {setting}: write POLICY.KEY=VALUE")));
        };
        // JSON where it is JSON (true, 5, ["a"]), text where it is not.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        all.entry(policy.to_owned()).or_default().insert(key.to_owned(), value);
    }
    Ok(all)
}

/// A policy that settings may be for.
#[derive(Debug)]
pub(crate) struct Taker<'p> {
    /// Its name.
    pub(crate) name: &'p str,
    /// What it takes, if it takes anything.
    pub(crate) settings: Option<&'p SettingsDescription>,
}

/// Whether every setting is for a policy that takes it, as it is.
pub(crate) fn check(
    settings: &Settings,
    takers: &[Taker<'_>],
    rules: &[&str],
) -> Result<(), UsageError> {
    for (policy, values) in settings {
        let mut named = takers.iter().filter(|taker| taker.name == policy).peekable();
        if named.peek().is_none() {
            return Err(UsageError(nobody(policy, takers, rules)));
        }
        // Of several of one name the set of policies says that it cannot be.
        for taker in named.take(1) {
            for (key, value) in values {
                check_one(taker, key, value)
                    .map_err(|why| UsageError(format!("--set {policy}.{key}: {why}")))?;
            }
        }
    }
    Ok(())
}

fn nobody(policy: &str, takers: &[Taker<'_>], rules: &[&str]) -> String {
    if rules.contains(&policy) {
        return format!(
            "--set {policy}: {policy} is made of rules, which take no settings: change its file"
        );
    }
    let mut names: Vec<&str> = takers.iter().map(|taker| taker.name).collect();
    names.sort_unstable();
    names.dedup();
    format!("--set {policy}: {}", unknown("policy", policy, &names))
}

fn check_one(taker: &Taker<'_>, key: &str, value: &Value) -> Result<(), String> {
    let Some(description) = taker.settings else {
        return Err(format!("{} takes no settings", taker.name));
    };
    let schema: Value = serde_json::from_str(&description.schema).unwrap_or_default();
    let defaults: Value = serde_json::from_str(&description.defaults).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut known: Vec<&str> = [properties, defaults.as_object()]
        .into_iter()
        .flatten()
        .flat_map(|fields| fields.keys().map(String::as_str))
        .collect();
    known.sort_unstable();
    known.dedup();
    if !known.contains(&key) {
        // A schema may say that it takes anything.
        let open = schema.get("additionalProperties").is_some_and(|more| *more != false);
        if !open && !known.is_empty() {
            return Err(unknown(&format!("setting of {}", taker.name), key, &known));
        }
    }
    let problems = Schema::read(&description.schema)?.check_setting(key, value);
    problems.map_err(|problems| {
        // The setting is named before them.
        let named = format!("{key}: ");
        let problems = problems.iter().map(|it| it.strip_prefix(&named).unwrap_or(it));
        problems.collect::<Vec<_>>().join("; ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described() -> SettingsDescription {
        let schema = serde_json::json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "drain": {"enum": ["when-needed", "always"]},
                "limit": {"type": "integer", "maximum": 9},
                "name": {"type": "string", "pattern": "^[a-z0-9]+$"},
                "hosts": {"type": "array", "items": {"type": "string"}},
                "strict": {"type": "boolean"},
            },
        });
        SettingsDescription { defaults: "{}".to_owned(), schema: schema.to_string() }
    }

    fn checked(given: &str) -> Result<(), String> {
        let description = described();
        let takers = [
            Taker { name: "mine", settings: Some(&description) },
            Taker { name: "plain", settings: None },
        ];
        let settings = parse(&[given.to_owned()]).map_err(|error| error.to_string())?;
        check(&settings, &takers, &["time"]).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_are_json_where_they_can_be_and_text_where_not() {
        let read = parse(&["a.x=always".into(), "a.y=5".into(), "b.z=\"5\"".into()]).unwrap();
        assert_eq!(read["a"]["x"], "always");
        assert_eq!(read["a"]["y"], 5);
        assert_eq!(read["b"]["z"], "5");
    }

    #[test]
    fn a_setting_without_policy_key_or_value_is_a_usage_error() {
        for bad in ["drain=always", "registries.drain", "", ".drain=a", "registries.=a"] {
            assert!(parse(&[bad.to_owned()]).unwrap_err().0.contains("POLICY.KEY=VALUE"), "{bad}");
        }
    }

    #[test]
    fn what_a_policy_takes_passes() {
        for good in [
            "mine.drain=always",
            "mine.limit=5",
            "mine.name=x",
            "mine.name=\"5\"",
            "mine.hosts=[\"a\"]",
            "mine.strict=true",
        ] {
            assert_eq!(checked(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn what_no_policy_takes_is_named_with_what_was_meant() {
        for (bad, words) in [
            ("mne.drain=always", "unknown policy \"mne\": did you mean \"mine\"?"),
            ("other.drain=always", "known here are mine, plain"),
            ("time.drain=always", "time is made of rules"),
            ("plain.drain=always", "plain takes no settings"),
            ("mine.drian=always", "unknown setting of mine \"drian\": did you mean \"drain\"?"),
            ("mine.speed=9", "known here are drain, hosts, limit, name, strict"),
            ("mine.drain=never", "expected one of when-needed, always, found \"never\""),
            ("mine.limit=many", "expected a whole number, found \"many\""),
            ("mine.limit=1.5", "expected a whole number"),
            ("mine.name=5", "expected text"),
            ("mine.hosts=a", "expected a list"),
            ("mine.strict=yes", "expected true or false"),
            ("mine.limit=10", "--set mine.limit: expected at most 9, found 10"),
            ("mine.name=X", "expected text that matches /^[a-z0-9]+$/, found \"X\""),
            ("mine.hosts=[\"a\",1]", "--set mine.hosts: hosts[1]: expected text"),
        ] {
            let error = checked(bad).unwrap_err();
            assert!(error.contains(words) && error.starts_with("--set "), "{bad}: {error}");
        }
    }

    #[test]
    fn a_schema_that_takes_anything_leaves_it_to_the_policy() {
        for schema in ["{}", r#"{"additionalProperties": true, "properties": {"a": {}}}"#] {
            let description =
                SettingsDescription { defaults: "{}".to_owned(), schema: schema.to_owned() };
            let takers = [Taker { name: "mine", settings: Some(&description) }];
            let settings = parse(&["mine.x=1".to_owned()]).unwrap();
            assert!(check(&settings, &takers, &[]).is_ok(), "{schema}");
        }
    }
}
