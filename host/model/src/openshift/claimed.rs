//! What a nodeDisruptionPolicy is about, also where some of its entries cannot be read.

use crate::claim::{Pattern, escaped};
use crate::description::Claim;
use crate::effect::Effect;
use crate::path::clean;
use serde_json::Value;

/// What the readable entries of a nodeDisruptionPolicy match, whatever else is wrong with it: as
/// long as it cannot be followed, each change of those costs a reboot.
pub fn claimed(policy: &Value) -> Vec<Claim> {
    let mut patterns = Vec::new();
    for path in named(policy, "files", "path") {
        let path = escaped(&clean(path));
        patterns.extend([format!("file:{path}"), format!("file:{path}/**")]);
    }
    patterns.extend(named(policy, "units", "name").map(|name| format!("unit:{}", escaped(name))));
    // Without an action OpenShift keeps its default for it, and tread its own.
    let says_nothing = |keys: &Value| {
        keys.is_null() || keys.get("actions").and_then(Value::as_array).is_some_and(Vec::is_empty)
    };
    if policy.get("sshkey").is_some_and(|keys| !says_nothing(keys)) {
        patterns.extend(["ssh-keys:*", "password:*"].map(str::to_owned));
    }
    patterns.retain(|text| Pattern::parse(text).is_ok());
    let claim = |text: String| Claim::on(text, Effect::Reboot, Effect::Reboot);
    patterns.into_iter().map(claim).collect()
}

/// The names in a list of entries.
fn named<'v>(policy: &'v Value, list: &str, key: &'v str) -> impl Iterator<Item = &'v str> {
    let entries = policy.get(list).and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(move |entry| entry.get(key)?.as_str())
}
