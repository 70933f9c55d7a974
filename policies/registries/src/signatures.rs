//! Whether the runtime would take a signature policy.

use tread_guest_sdk::json;
use tread_policy_formats::{Table, Value, yaml};

/// What is wrong with a `policy.json`, as far as pulls would fail with it.
pub(crate) fn fault(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    if let Err(error) = json::check(text) {
        return Some(["line ", &error.line().unwrap_or(1).to_string(), " is not JSON"].concat());
    }
    // JSON is YAML; this reader finds keys that are set twice.
    match yaml::parse(text) {
        None => Some("it is no object, or sets a key twice".to_string()),
        Some(policy) => shape(&policy).map(str::to_string),
    }
}

fn shape(policy: &Table) -> Option<&'static str> {
    let Some(default) = policy.get("default") else {
        return Some("it has no \"default\", which says what holds for all other images");
    };
    if policy.keys().any(|key| key != "default" && key != "transports") {
        return Some("it may have \"default\" and \"transports\" only");
    }
    let transports = match policy.get("transports") {
        None => &Table::new(),
        Some(Value::Table(transports)) => transports,
        Some(_) => return Some("its \"transports\" is no object"),
    };
    for scopes in transports.values() {
        let Value::Table(scopes) = scopes else {
            return Some("one of its transports is no object");
        };
        if !scopes.values().all(is_requirements) {
            return Some(REQUIREMENTS);
        }
    }
    if is_requirements(default) { None } else { Some(REQUIREMENTS) }
}

const REQUIREMENTS: &str = "each scope needs a list of requirements, at least one, each with a \"type\"; \
    to allow nothing, write reject";

fn is_requirements(value: &Value) -> bool {
    let typed = |item: &Value| {
        item.as_table()
            .is_some_and(|table| table.get("type").is_some_and(|t| t.as_text().is_some()))
    };
    matches!(value, Value::List(items) if !items.is_empty() && items.iter().all(typed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_the_runtime_takes_has_no_fault() {
        for policy in [
            r#"{"default":[{"type":"insecureAcceptAnything"}]}"#,
            r#"{"default":[{"type":"reject"}],"transports":{"docker":{"quay.io":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/x"}]}}}"#,
            r#"{"default":[{"type":"reject"}],"transports":{"docker-daemon":{"":[{"type":"insecureAcceptAnything"}]}}}"#,
        ] {
            assert_eq!(fault(policy.as_bytes()), None, "{policy}");
        }
    }

    #[test]
    fn one_that_would_fail_every_pull_has_one() {
        for policy in [
            "",
            "{",
            "{}",
            "[]",
            r#"{"default":null}"#,
            r#"{"default":{}}"#,
            r#"{"default":[]}"#,
            r#"{"default":[{}]}"#,
            r#"{"default":[{"type":"reject"}],"default":[{"type":"reject"}]}"#,
            r#"{"default":[{"type":"reject"}],"other":1}"#,
            r#"{"default":[{"type":"reject"}],"transports":{"docker":{"a":[]}}}"#,
            r#"{"default":[{"type":"reject"}]} x"#,
        ] {
            assert!(fault(policy.as_bytes()).is_some(), "{policy}");
        }
    }
}
