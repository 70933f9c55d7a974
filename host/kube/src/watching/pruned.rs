//! What the API server left of what was written: one whose definition is older drops what it does
//! not know, and what stands there never is what was to be written.

use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use tread_model::digest::Digest;

/// What the API server did not keep is written again after that: its definition
/// may be a newer one by then.
const KEPT_AGAIN: Duration = Duration::from_secs(1800);

/// What was written as a status, and what the API server left of it, by the name of the object.
#[derive(Debug, Default)]
pub struct Pruned(BTreeMap<String, (Digest, Digest, Instant)>);

impl Pruned {
    /// Whether an object stands there as it was written.
    pub fn stands(&self, name: &str, wanted: Digest, standing: Digest) -> bool {
        let is_known = |it: &(Digest, Digest, Instant)| {
            (it.0, it.1) == (wanted, standing) && it.2.elapsed() < KEPT_AGAIN
        };
        wanted == standing || self.0.get(name).is_some_and(is_known)
    }

    /// Notes what was written, and what is left of it.
    pub fn note(&mut self, name: &str, wanted: Digest, kept: Digest) {
        if wanted == kept {
            self.0.remove(name);
            return;
        }
        // Those of objects that are gone end too.
        self.0.retain(|_, it| it.2.elapsed() < KEPT_AGAIN);
        self.0.insert(name.to_owned(), (wanted, kept, Instant::now()));
    }

    /// Forgets all objects but these.
    pub fn keep(&mut self, names: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| names(name));
    }
}

/// What a status says, times of its conditions aside.
pub fn says(mut status: Value) -> Digest {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.remove("lastTransitionTime");
    }
    Digest::of(status.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_of_which_the_api_server_drops_a_part_is_not_written_again_and_again() {
        let mut pruned = Pruned::default();
        let status = |tread: Option<&str>| says(json!({"effect": "reload", "tread": tread}));
        let (wanted, left) = (status(Some("new")), status(None));
        assert!(!pruned.stands("a", wanted, left), "it was never written");
        pruned.note("a", wanted, left);
        assert!(pruned.stands("a", wanted, left));
        assert!(!pruned.stands("a", status(Some("other")), left), "it says something else");
        assert!(!pruned.stands("a", wanted, status(Some("others"))), "somebody wrote it");
        pruned.note("a", wanted, wanted);
        assert!(!pruned.stands("a", wanted, left), "the definition is newer by now");
        pruned.note("b", wanted, left);
        pruned.keep(|name| name != "b");
        assert!(!pruned.stands("b", wanted, left));
    }

    #[test]
    fn after_a_while_it_is_written_again_and_what_is_gone_is_forgotten() {
        let mut pruned = Pruned::default();
        let (wanted, left) = (says(json!({"a": 1})), says(json!({})));
        let before = Instant::now().checked_sub(KEPT_AGAIN).unwrap();
        pruned.0.insert("a".to_owned(), (wanted, left, before));
        assert!(!pruned.stands("a", wanted, left));
        pruned.note("b", wanted, left);
        assert!(pruned.stands("b", wanted, left));
        assert_eq!(pruned.0.keys().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn since_when_a_condition_holds_is_no_difference() {
        let status = |at: &str, status: &str| {
            says(json!({"conditions": [{"lastTransitionTime": at, "status": status}]}))
        };
        assert_eq!(status("1", "True"), status("2", "True"));
        assert_ne!(status("1", "True"), status("1", "False"));
    }
}
