//! Definitions that are older than this program: the API server drops what they
//! do not know, and says nothing.

use super::pruned::says;
use super::watches::Watches;
use crate::advice::INSTALL_AGAIN;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::PoisonError;
use tread_model::text::listed;

/// How many fields are named.
const NAMED: usize = 5;

impl Watches {
    /// Notes what the API server kept of a status that was written.
    pub fn kept(&self, kind: &'static str, wanted: &Value, kept: &Value) {
        let (wanted, kept) = (fields(wanted), fields(kept));
        self.dropped.send_if_modified(|all| {
            let dropped = all.entry(kind).or_default();
            let before = dropped.clone();
            dropped.retain(|field| !kept.contains(field));
            dropped.extend(wanted.difference(&kept).cloned());
            *dropped != before
        });
    }

    /// Whether what stands there is all that the API server keeps of this status.
    pub fn stands(&self, kind: &'static str, name: &str, wanted: &Value, standing: &Value) -> bool {
        let (wanted, standing) = (says(wanted.clone()), says(standing.clone()));
        let pruned = self.pruned.lock().unwrap_or_else(PoisonError::into_inner);
        match pruned.get(kind) {
            Some(pruned) => pruned.stands(name, wanted, standing),
            None => wanted == standing,
        }
    }

    /// Notes what the API server kept of the status of an object, so that the same is not written
    /// again and again.
    pub fn wrote(&self, kind: &'static str, name: &str, wanted: &Value, kept: &Value) {
        self.kept(kind, wanted, kept);
        let (wanted, kept) = (says(wanted.clone()), says(kept.clone()));
        let mut pruned = self.pruned.lock().unwrap_or_else(PoisonError::into_inner);
        pruned.entry(kind).or_default().note(name, wanted, kept);
    }

    /// The definitions that are older than this program, in words. Empty: none is.
    pub fn outdated(&self) -> Vec<String> {
        let all = self.dropped.borrow();
        let old = all.iter().filter(|(_, dropped)| !dropped.is_empty());
        old.map(|(kind, dropped)| {
            let named = listed(&dropped.iter().collect::<Vec<_>>(), NAMED);
            format!(
                "the definition of {kind} is older than this tread, and the API server drops {named}: \
                 {INSTALL_AGAIN}"
            )
        })
        .collect()
    }
}

/// The way to each value that says something: `status.failure.message`.
fn fields(status: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    add("status", status, &mut all);
    all
}

fn add(path: &str, value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::Null => {}
        Value::Array(items) => items.iter().for_each(|it| add(&format!("{path}[]"), it, all)),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, it)| add(&format!("{path}.{name}"), it, all));
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            all.insert(path.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_api_server_drops_is_named_until_it_is_kept() {
        let watches = Watches::default();
        let whole = json!({"state": "Failed", "failure": {"name": "trap", "tries": 1}, "x": null,
            "conditions": [{"type": "Loaded"}]});
        let kept = json!({"state": "Failed", "failure": {"name": "trap"},
            "conditions": [{"type": "Loaded"}]});
        watches.kept("disruptionpolicies", &whole, &whole);
        assert!(watches.outdated().is_empty());
        watches.kept("disruptionpolicies", &whole, &kept);
        let [said] = watches.outdated().try_into().unwrap();
        assert!(said.contains("drops status.failure.tries: apply"), "{said}");
        assert!(said.contains("with the options that tread was installed with, --mode"), "{said}");
        // Another object that has no such field says nothing of it.
        watches.kept("disruptionpolicies", &kept, &kept);
        assert_eq!(watches.outdated().len(), 1);
        watches.kept("disruptionpolicies", &whole, &whole);
        assert!(watches.outdated().is_empty());
    }

    #[test]
    fn what_was_written_stands_though_a_part_of_it_is_dropped() {
        let watches = Watches::default();
        let (whole, kept) =
            (json!({"nodes": 1, "missing": [{"address": "a"}]}), json!({"nodes": 1}));
        let stands = |name, wanted| watches.clone().stands("rollouts", name, wanted, &kept);
        assert!(stands("worker", &kept), "it is the same");
        assert!(!stands("worker", &whole), "it was never written");
        watches.wrote("rollouts", "worker", &whole, &kept);
        assert!(stands("worker", &whole));
        assert!(!stands("infra", &whole), "another one was not written");
        assert!(!stands("worker", &json!({"nodes": 2})), "there is something new to say");
        let [said] = watches.outdated().try_into().unwrap();
        assert!(
            said.contains("of rollouts") && said.contains("status.missing[].address"),
            "{said}"
        );
    }
}
