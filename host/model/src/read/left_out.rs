//! Fields that Ignition does not know are left out, with a warning, as Ignition's
//! parser and OpenShift's operator do. A known name in other capitals is read as they
//! read it.

use super::fields::{join, unknown};
use super::normal;
use super::report::Report;
use crate::ignition::{CONFIG, Field, Shape};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How many different fields of one config are named in warnings.
const NAMED: usize = 10;

/// More than these are only counted.
const KEPT: usize = 1000;

/// A longer name of a field is cut, because the warning stands in many plans.
const LONGEST: usize = 100;

/// Takes out of a config what Ignition 3.`minor` does not know. `path` is where
/// the config stands.
pub(super) fn leave_out(config: &mut Value, minor: u8, path: &str, report: &mut Report) {
    let mut walk = Walk { minor, found: BTreeMap::new(), more: 0, report };
    if let Value::Object(map) = config {
        walk.object(map, CONFIG, path, "");
    }
    let Walk { found, more, report, .. } = walk;
    let more = more + found.len().saturating_sub(NAMED);
    for (_, LeftOut { first, what, times }) in found.into_iter().take(NAMED) {
        let others = match times {
            1 => String::new(),
            2 => " (and in 1 other place)".to_owned(),
            times => format!(" (and in {} other places)", times - 1),
        };
        report.note(format!("{first}{others}: {what}"));
    }
    if more > 0 {
        report.note(format!("{more} more fields that Ignition does not know are left out"));
    }
}

/// A field that stands in one place or in several.
struct LeftOut {
    first: String,
    what: String,
    times: usize,
}

struct Walk<'r> {
    minor: u8,
    /// By their place without the indices of lists.
    found: BTreeMap<String, LeftOut>,
    more: usize,
    report: &'r mut Report,
}

impl Walk<'_> {
    fn object(&mut self, map: &mut Map<String, Value>, fields: &[Field], path: &str, kind: &str) {
        let known = |name: &str| {
            let mut fields = fields.iter().filter(|field| field.since <= self.minor);
            fields.find(|field| field.name == name).copied()
        };
        let odd: Vec<String> = map.keys().filter(|name| known(name).is_none()).cloned().collect();
        for name in odd {
            let meant = fields.iter().filter(|field| field.since <= self.minor);
            let meant = meant.map(|field| field.name).find(|field| same(field, &name));
            match meant {
                Some(meant) => self.other_capitals(map, &name, meant, path, kind),
                None => self.unknown(map, &name, fields, path, kind),
            }
        }
        for field in fields {
            let Some(value) = map.get_mut(field.name) else { continue };
            let (path, kind) = (|| join(path, field.name), || format!("{kind}.{}", field.name));
            match (field.shape, value) {
                (Shape::Object(fields), Value::Object(map)) => {
                    self.object(map, fields, &path(), &kind());
                }
                (Shape::List(of), Value::Array(items)) if !of.fields.is_empty() => {
                    let (path, kind) = (path(), kind());
                    for (index, item) in items.iter_mut().enumerate() {
                        if let Value::Object(map) = item {
                            self.object(map, of.fields, &format!("{path}[{index}]"), &kind);
                        }
                    }
                }
                // A value of the wrong type is reported by whoever reads it.
                _ => {}
            }
        }
    }

    fn other_capitals(
        &mut self,
        map: &mut Map<String, Value>,
        name: &str,
        meant: &str,
        path: &str,
        kind: &str,
    ) {
        let Some(value) = map.remove(name) else { return };
        if map.contains_key(meant) {
            let message = format!("stands there twice: Ignition takes {name:?} for it, too");
            self.report.problem(join(path, meant), message);
            return;
        }
        map.insert(meant.to_owned(), value);
        let what = format!("Ignition takes it for {meant:?}; write it so");
        self.note(name, what, path, kind);
    }

    fn unknown(
        &mut self,
        map: &mut Map<String, Value>,
        name: &str,
        fields: &[Field],
        path: &str,
        kind: &str,
    ) {
        let value = map.remove(name).unwrap_or_default();
        // Nothing is lost.
        if normal::prune(&value).is_none() {
            return;
        }
        let minor = self.minor;
        let later = fields.iter().find(|field| field.name == name).map(|field| field.since);
        let why = match later {
            Some(since) => format!(
                "is left out: Ignition knows it from 3.{since}.0 on, and the config says 3.{minor}.0"
            ),
            None => {
                let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
                let hint = unknown("field", name, &names);
                let hint = hint.split_once(": did you mean").map_or(String::new(), |(_, near)| {
                    format!("; did you mean{}", near.trim_end_matches('?'))
                });
                format!("is left out: Ignition has no such field{hint}")
            }
        };
        let what = format!("{why}. OpenShift's operator leaves it out, too");
        self.note(name, what, path, kind);
    }

    fn note(&mut self, name: &str, what: String, path: &str, kind: &str) {
        let shown = match name.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
            None => name.to_owned(),
        };
        let first = || LeftOut { first: join(path, &shown), what, times: 0 };
        let field = format!("{kind}.{shown}");
        if self.found.len() >= KEPT && !self.found.contains_key(&field) {
            self.more += 1;
            return;
        }
        self.found.entry(field).or_insert_with(first).times += 1;
    }
}

/// Whether Ignition's reader takes one name for the other: it ignores case, also for
/// the two letters outside of ASCII that have a capital or small form in it.
fn same(known: &str, name: &str) -> bool {
    let fold = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    known.chars().map(fold).eq(name.chars().map(fold))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn left(mut config: Value, minor: u8) -> (Value, Vec<String>, Vec<String>) {
        let mut report = Report::new("a.json", "");
        leave_out(&mut config, minor, "spec.config", &mut report);
        let notes = report.take_notes();
        (config, notes, report.into_problems().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_ignition_does_not_know_is_left_out_and_told_once() {
        let (config, notes, problems) = left(
            json!({
                "networkd": {"units": [{"name": "a"}]},
                "storage": {"files": [
                    {"path": "/a", "filesystem": "root"},
                    {"path": "/b", "filesystem": "root", "contnets": {"source": "data:,"}},
                ], "disks": [{"device": "/dev/a", "partitions": [{"number": 1, "extra": 1}]}]},
                "systemd": {"units": []},
                "passwd": {"users": [{"name": "core", "create": {}}]},
            }),
            4,
        );
        assert_eq!(problems, [""; 0]);
        assert_eq!(
            config,
            json!({
                "storage": {"files": [{"path": "/a"}, {"path": "/b"}],
                    "disks": [{"device": "/dev/a", "partitions": [{"number": 1}]}]},
                "systemd": {"units": []},
                "passwd": {"users": [{"name": "core"}]},
            })
        );
        let too = ". OpenShift's operator leaves it out, too";
        assert_eq!(
            notes,
            [
                format!("spec.config.networkd: is left out: Ignition has no such field{too}"),
                format!(
                    "spec.config.storage.disks[0].partitions[0].extra: is left out: Ignition has \
                     no such field{too}"
                ),
                format!(
                    "spec.config.storage.files[1].contnets: is left out: Ignition has no such \
                     field; did you mean \"contents\"{too}"
                ),
                format!(
                    "spec.config.storage.files[0].filesystem (and in 1 other place): is left out: \
                     Ignition has no such field{too}"
                ),
            ]
        );
    }

    #[test]
    fn a_field_of_a_later_version_is_left_out_and_one_in_other_capitals_is_taken() {
        let of = || json!({"kernelArguments": {"shouldExist": ["a"]}, "Storage": {"Files": []}});
        let (config, notes, _) = left(of(), 2);
        assert_eq!(config, json!({"storage": {"files": []}}));
        assert!(notes.iter().any(|note| note.contains("from 3.3.0 on")), "{notes:?}");
        let (config, ..) = left(of(), 3);
        assert_eq!(config["kernelArguments"], json!({"shouldExist": ["a"]}));
        let (_, _, problems) = left(json!({"storage": {}, "STORAGE": {}}), 5);
        assert_eq!(problems.len(), 1, "{problems:?}");
    }

    #[test]
    fn what_is_empty_is_left_out_without_a_word_and_many_fields_are_counted() {
        let (config, notes, _) = left(json!({"a": {}, "b": [], "c": null, "d": {"e": []}}), 5);
        assert_eq!((config, notes.len()), (json!({}), 0));
        let many: Map<String, Value> =
            (0..100).map(|index| (format!("x{index}"), Value::Bool(true))).collect();
        let (_, notes, _) = left(Value::Object(many), 5);
        assert_eq!(notes.len(), NAMED + 1);
        assert_eq!(notes[NAMED], "90 more fields that Ignition does not know are left out");
    }
}
