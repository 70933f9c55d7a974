//! An entry of a MachineConfig as it is written, and what follows from that alone.

use serde_json::Value;
use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};

const FORCE_FILE: &str = "/run/machine-config-daemon-force";

/// A file, or a unit, as it is written.
#[derive(Debug, Clone)]
pub(super) struct Written {
    value: Value,
    /// Why the operator's daemon rejects it, whatever there was before.
    rejected: Option<&'static str>,
}

impl PartialEq for Written {
    fn eq(&self, other: &Written) -> bool {
        self.value == other.value
    }
}

impl Written {
    pub(super) fn file(path: &str, value: Value) -> Written {
        Written { rejected: why_rejected(path, &value), value }
    }

    pub(super) fn unit(_: &str, value: Value) -> Written {
        Written { rejected: None, value }
    }

    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    pub(super) fn into_value(self) -> Value {
        self.value
    }

    pub(super) fn rejected(&self) -> Option<&'static str> {
        self.rejected
    }
}

/// Why the daemon rejects a file, whatever there was before.
fn why_rejected(path: &str, file: &Value) -> Option<&'static str> {
    let source = file.get("contents").and_then(|it| it.get("source"));
    let has_source = source.is_some_and(Value::is_string);
    if file.get("append").is_some() {
        Some("`append` cannot be applied again")
    } else if path == FORCE_FILE {
        Some("it would make every node write everything again")
    } else if !has_source && file.get("overwrite") != Some(&Value::Bool(false)) {
        Some("it has no contents.source, and the operator sets `overwrite`, which needs one")
    } else if file.get("mode").and_then(Value::as_i64).is_some_and(|mode| mode > 0o777) {
        Some("the mode is larger than 0777")
    } else {
        None
    }
}

/// Whether two entries are written alike. Those that are held once are not read for it.
pub(super) fn are_alike(one: &Arc<Written>, other: &Arc<Written>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

/// Entries that many MachineConfigs have are held once, for as long as one of these is.
#[derive(Debug, Default)]
pub struct Alike(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The last one of each hash.
    entries: HashMap<u64, Weak<Written>>,
    /// With so many, those that are gone are looked for.
    full: usize,
}

/// Fewer are not looked through.
const FEW: usize = 1024;

impl Alike {
    /// The one that is written like this.
    pub(super) fn one(&self, written: Written) -> Arc<Written> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = known.entries.hasher().hash_one(&written.value);
        let there = known.entries.get(&hash).and_then(Weak::upgrade);
        let is_it = |there: &Arc<Written>| **there == written && there.rejected == written.rejected;
        if let Some(there) = there.filter(is_it) {
            return there;
        }
        if known.entries.len() >= known.full.max(FEW) {
            known.entries.retain(|_, entry| entry.strong_count() > 0);
            known.full = known.entries.len().saturating_mul(2);
        }
        let written = Arc::new(written);
        known.entries.insert(hash, Arc::downgrade(&written));
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_alike_is_held_once_and_forgotten_with_the_last_who_has_it() {
        let alike = Alike::default();
        let one = |text: &str| alike.one(Written::unit("a", json!({"contents": text})));
        let (first, second, other) = (one("a"), one("a"), one("b"));
        assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&first, &other));
        assert!(are_alike(&first, &second) && !are_alike(&first, &other));
        let apart = Arc::new(Written::clone(&first));
        assert!(are_alike(&first, &apart), "held twice all the same");
        for number in 0..10 * FEW {
            drop(one(&number.to_string()));
        }
        assert!(alike.0.lock().unwrap().entries.len() <= FEW);
        assert!(Arc::ptr_eq(&first, &one("a")));
    }

    #[test]
    fn an_entry_is_rejected_by_its_path_too() {
        for (path, value, rejected) in [
            ("/etc/a", json!({"contents": {"source": ""}, "mode": 0o777}), false),
            ("/etc/a", json!({"contents": {"source": ""}, "mode": 0o1777}), true),
            ("/etc/a", json!({"contents": {}}), true),
            ("/etc/a", json!({"overwrite": false}), false),
            ("/etc/a", json!({"append": [], "contents": {"source": ""}}), true),
            ("/run/machine-config-daemon-force", json!({"contents": {"source": ""}}), true),
        ] {
            let file = Written::file(path, value);
            assert_eq!(file.rejected().is_some(), rejected, "{path} {file:?}");
        }
    }
}
