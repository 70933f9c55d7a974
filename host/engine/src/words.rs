//! What a policy can say without telling anything of what it is offered: texts that it
//! had before.

use crate::limits::REASONS_BESIDE_SECRETS;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use tread_model::description::Declarations;
use tread_model::touch::touch;
use tread_model::unit_name::is_of_names;

/// The reasons and the names of units that a policy had before it was offered
/// anything: those of its description, its declarations and its settings.
#[derive(Debug, Clone, Default)]
pub struct Words {
    reasons: BTreeSet<String>,
    units: BTreeSet<String>,
}

impl Words {
    /// Of what a policy declares, the texts of its description, and its complete settings, of which an
    /// admin wrote `admins`. Of the sentences of its author so many are known as it may declare, the
    /// declared ones first; of those of an admin all.
    pub fn new(
        declarations: &Declarations,
        description: &[String],
        settings: &str,
        admins: &Map<String, Value>,
    ) -> Words {
        let mut words = Words::default();
        words.reasons.extend(declarations.reasons.iter().cloned());
        let mut authors = words.reasons.len();
        for text in description.iter().chain(&declarations.reasons) {
            words.read_units(text);
            if let Ok(object @ Value::Object(_)) = serde_json::from_str(text) {
                words.read(&object, &mut |_, _| {});
            }
        }
        for value in admins.values() {
            words.read(value, &mut |words, text| {
                words.reasons.insert(text.to_owned());
            });
        }
        if let Ok(settings) = serde_json::from_str(settings) {
            words.read(&settings, &mut |words, text| {
                if authors < REASONS_BESIDE_SECRETS && words.reasons.insert(text.to_owned()) {
                    authors += 1;
                }
            });
        }
        words
    }

    /// Whether this whole sentence was there before.
    pub(crate) fn know_reason(&self, reason: &str) -> bool {
        self.reasons.contains(reason)
    }

    /// Whether this name of a unit was there before.
    pub(crate) fn know_unit(&self, unit: &str) -> bool {
        self.units.contains(unit)
    }

    /// How many units were named before.
    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }

    /// All texts within a value, the keys of objects included.
    fn read(&mut self, value: &Value, each: &mut impl FnMut(&mut Words, &str)) {
        match value {
            Value::String(text) => {
                self.read_units(text);
                each(self, text);
            }
            Value::Array(items) => items.iter().for_each(|item| self.read(item, each)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.read_units(key);
                    self.read(value, each);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The units that a text names, each as a word of its own or as a claim.
    fn read_units(&mut self, text: &str) {
        let part_of_a_name = |c: char| u8::try_from(c).is_ok_and(is_of_names);
        for word in text.split(|c| !part_of_a_name(c)) {
            let word = word.strip_prefix("unit:").unwrap_or(word).trim_end_matches(['.', ':']);
            if touch(word).is_ok() {
                self.units.insert(word.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words() -> Words {
        let declarations = Declarations {
            needs_secrets: true,
            reasons: vec!["a.service reads it when it starts.".to_owned()],
        };
        let description = [
            "Restarts b.service, c@1.service".to_owned(),
            "unit:d.service".to_owned(),
            "unit:e*.service".to_owned(),
            r#"{"service": "f.service", "list": [{"g.service": 1}]}"#.to_owned(),
        ];
        let settings = r#"{"units": ["h\\x2d1.service"], "reason": "said by an admin", "n": 1}"#;
        Words::new(&declarations, &description, settings, &Map::new())
    }

    #[test]
    fn units_are_known_where_they_are_written_in_full() {
        for unit in [
            "a.service",
            "b.service",
            "c@1.service",
            "d.service",
            "f.service",
            "g.service",
            "h\\x2d1.service",
        ] {
            assert!(words().know_unit(unit), "{unit}");
        }
        for unit in ["e1.service", "e*.service", "service", "xa.service", "a.servic", "1.service"] {
            assert!(!words().know_unit(unit), "{unit}");
        }
    }

    #[test]
    fn reasons_are_known_as_whole_sentences_of_the_policy_or_its_settings() {
        assert!(words().know_reason("a.service reads it when it starts."));
        assert!(words().know_reason("said by an admin"));
        for reason in ["a.service reads it", "Restarts b.service, c@1.service", ""] {
            assert!(!words().know_reason(reason), "{reason}");
        }
    }

    #[test]
    fn of_an_authors_sentences_as_many_are_known_as_it_may_declare_and_of_an_admins_all() {
        let many = |who: &str| (0..300).map(|n| format!("{who} {n:03}")).collect::<Vec<_>>();
        let known = |reasons: Vec<String>, settings: &Value, admins: Value| {
            let declarations = Declarations { needs_secrets: true, reasons };
            let admins = admins.as_object().cloned().unwrap_or_default();
            Words::new(&declarations, &[], &settings.to_string(), &admins)
        };
        let count = |words: &Words, who: &str| {
            many(who).iter().filter(|reason| words.know_reason(reason)).count()
        };
        let owners = json!({"list": many("author")});
        let words = known(vec!["declared".to_owned()], &owners, json!({}));
        assert!(words.know_reason("declared") && words.know_reason("author 254"));
        assert_eq!(count(&words, "author"), 255);
        let both = json!({"list": many("author"), "other": many("admin")});
        let words = known(Vec::new(), &both, json!({"other": many("admin")}));
        assert_eq!((count(&words, "author"), count(&words, "admin")), (256, 300));
    }
}
