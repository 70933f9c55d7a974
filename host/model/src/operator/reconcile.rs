//! What the operator's daemon rejects: the pool then degrades, and nothing is
//! changed.

use super::because::Because;
use super::rendered::Rendered;
use crate::effect::Effect;
use serde_json::Value;

/// Everything that it rejects, by id. It does not look at `luks` at all.
pub(super) fn rejections(old: &Rendered, new: &Rendered) -> Vec<Because> {
    let mut rejected = Vec::new();
    let mut reject = |id: String, rule: &str| {
        rejected.push(Because { id, effect: Effect::Refuse, rule: rule.to_owned() });
    };
    if old.fips != new.fips {
        reject("fips".to_owned(), "FIPS mode cannot be changed after installation");
    }
    if old.ignition_arguments != new.ignition_arguments {
        reject("ignition:kernel-arguments".to_owned(), "Ignition's kernelArguments changed");
    }
    for list in ["directories", "disks", "filesystems", "raid"] {
        if old.storage.get(list) != new.storage.get(list) {
            reject(format!("storage:{list}"), "only provisioning can change it");
        }
    }
    let links = new.storage.get("links");
    if links.is_some() && links != old.storage.get("links") {
        reject("storage:links".to_owned(), "only provisioning can change it");
    }
    for (path, file) in &new.files {
        if let Some(rule) = file.rejected() {
            reject(format!("file:{path}"), rule);
        }
    }
    if let Some((id, rule)) = users(&old.passwd, &new.passwd) {
        reject(id, rule);
    }
    rejected.sort_by(|a, b| a.id.cmp(&b.id));
    rejected
}

fn users(old: &Value, new: &Value) -> Option<(String, &'static str)> {
    if old.get("groups") != new.get("groups") {
        return Some(("users:groups".to_owned(), "groups cannot be changed"));
    }
    let list = |passwd: &Value| passwd.get("users").and_then(Value::as_array).cloned();
    let (old, new) = (list(old).unwrap_or_default(), list(new).unwrap_or_default());
    if old == new {
        return None;
    }
    let name = |user: &Value| user.get("name").and_then(Value::as_str).unwrap_or("").to_owned();
    if let Some(other) = new.iter().map(name).find(|name| name != "core") {
        return Some((format!("users:{other}"), "the only user that it changes is core"));
    }
    // Only the last one is looked at; removing all of them is let through.
    let last = new.last()?.as_object()?;
    let known = ["name", "passwordHash", "sshAuthorizedKeys"];
    if last.keys().any(|field| !known.contains(&field.as_str())) {
        return Some(("users:core".to_owned(), "it changes only keys and the password hash"));
    }
    (last.len() < 2).then(|| ("users:core".to_owned(), "core has neither keys nor a password hash"))
}
