//! How Ignition merges configs: objects field by field, items of lists by what makes them
//! the same, anything else replaced by the later one.

use super::fields::{By, Field, Items, Shape};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What several configs say in one place, the later ones on top. None of them: null.
///
/// What is replaced by something of another type leaves nothing behind.
pub(crate) fn merge(values: Vec<Value>, shape: Shape) -> Value {
    let mut objects = Vec::new();
    let mut list = List::default();
    let mut last = Value::Null;
    for value in values.into_iter().filter(|value| !value.is_null()) {
        match (value, shape) {
            (Value::Object(fields), Shape::Object(_)) => {
                if !last.is_object() {
                    last = Value::Object(Map::new());
                }
                objects.push(fields);
            }
            (Value::Array(items), Shape::List(of)) => {
                if !last.is_array() {
                    last = Value::Array(Vec::new());
                }
                list.add(items, of.by);
            }
            (other, _) => {
                objects.clear();
                list = List::default();
                last = other;
            }
        }
    }
    match (last, shape) {
        (Value::Object(_), Shape::Object(fields)) => Value::Object(merge_fields(objects, fields)),
        (Value::Array(_), Shape::List(of)) => Value::Array(list.merged(of)),
        (other, _) => other,
    }
}

fn merge_fields(layers: Vec<Map<String, Value>>, fields: &[Field]) -> Map<String, Value> {
    let mut lists: BTreeMap<&str, List> = BTreeMap::new();
    let mut others: BTreeMap<String, (Shape, Vec<Value>)> = BTreeMap::new();
    for mut layer in layers {
        // First all that this config takes away, then all that it adds.
        for field in fields {
            let (Shape::List(of), Some(Value::Array(items))) = (field.shape, layer.get(field.name))
            else {
                continue;
            };
            for key in items.iter().filter_map(|item| key(item, of.by)) {
                for other in field.instead_of {
                    lists.entry(other).and_modify(|list| list.remove(&key));
                }
            }
        }
        for field in fields {
            match (field.shape, layer.remove(field.name)) {
                (_, None | Some(Value::Null)) => {}
                (Shape::List(of), Some(Value::Array(items))) => {
                    others.remove(field.name);
                    lists.entry(field.name).or_default().add(items, of.by);
                }
                (shape, Some(value)) => {
                    lists.remove(field.name);
                    let values = others.entry(field.name.to_owned());
                    values.or_insert((shape, Vec::new())).1.push(value);
                }
            }
        }
        for (name, value) in layer {
            others.entry(name).or_insert((Shape::Leaf, Vec::new())).1.push(value);
        }
    }
    let mut merged = Map::new();
    for field in fields {
        if let (Shape::List(of), Some(list)) = (field.shape, lists.remove(field.name)) {
            merged.insert(field.name.to_owned(), Value::Array(list.merged(of)));
        }
    }
    let others = others.into_iter().map(|(name, (shape, values))| (name, merge(values, shape)));
    merged.extend(others);
    merged
}

/// A list in the making.
#[derive(Debug, Default)]
struct List {
    /// Each item with what earlier and later configs say of it; none if it was taken away.
    items: Vec<Option<Vec<Value>>>,
    /// Where the items of earlier configs stand.
    places: BTreeMap<String, usize>,
}

impl List {
    /// Adds what the next config has.
    fn add(&mut self, items: Vec<Value>, by: By) {
        let mut added = Vec::new();
        for item in items {
            let key = key(&item, by);
            let place = key.as_ref().and_then(|key| self.places.get(key)).copied();
            match (place, key) {
                (Some(_), Some(key)) if by == By::Header && !has(&item, "value") => {
                    self.remove(&key);
                }
                (Some(place), _) => {
                    let there = self.items.get_mut(place).and_then(Option::as_mut);
                    there.into_iter().for_each(|values| values.push(item.clone()));
                }
                (None, key) => {
                    added.extend(key.map(|key| (key, self.items.len())));
                    self.items.push(Some(vec![item]));
                }
            }
        }
        for (key, place) in added {
            self.places.entry(key).or_insert(place);
        }
    }

    fn remove(&mut self, key: &str) {
        let place = self.places.remove(key);
        if let Some(item) = place.and_then(|place| self.items.get_mut(place)) {
            *item = None;
        }
    }

    fn merged(self, of: Items) -> Vec<Value> {
        let shape = if of.fields.is_empty() { Shape::Leaf } else { Shape::Object(of.fields) };
        self.items.into_iter().flatten().map(|values| merge(values, shape)).collect()
    }
}

/// What makes an item the same as another one. None: it is the same as no other.
fn key(item: &Value, by: By) -> Option<String> {
    let text = |name: &str| item.get(name)?.as_str().map(str::to_owned);
    match by {
        By::Nothing => None,
        By::Itself => item.as_str().map(str::to_owned),
        By::Field(name) => text(name),
        By::Header => text("name"),
        By::Partition => {
            let number = item.get("number").and_then(Value::as_i64).filter(|it| *it != 0);
            let number = number.map(|number| format!("number {number}"));
            number.or_else(|| Some(format!("label {}", text("label")?)))
        }
    }
}

fn has(item: &Value, name: &str) -> bool {
    item.get(name).is_some_and(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ignition::CONFIG;
    use serde_json::json;

    fn merged(configs: &[Value]) -> Value {
        merge(configs.to_vec(), Shape::Object(CONFIG))
    }

    #[test]
    fn what_is_the_same_is_merged_in_its_place_and_the_rest_follows() {
        let storage = |list: Value| json!({"storage": list});
        for (configs, want) in [
            // Field by field; a text that is there replaces, also an empty one.
            (
                [
                    storage(json!({"files": [
                        {"path": "/a", "mode": 1, "contents": {"source": "data:,a", "compression": "gzip"}},
                        {"path": "/b"}]})),
                    storage(json!({"files": [
                        {"path": "/c"},
                        {"path": "/a", "mode": null, "contents": {"source": "", "compression": ""}}]})),
                ],
                storage(json!({"files": [
                    {"path": "/a", "mode": 1, "contents": {"source": "", "compression": ""}},
                    {"path": "/b"}, {"path": "/c"}]})),
            ),
            // A later config puts another kind in the place of what is there.
            (
                [
                    storage(
                        json!({"files": [{"path": "/a"}], "links": [{"path": "/b"}, {"path": "/c"}]}),
                    ),
                    storage(json!({"directories": [{"path": "/a"}], "files": [{"path": "/b"}]})),
                ],
                storage(json!({"directories": [{"path": "/a"}], "files": [{"path": "/b"}],
                    "links": [{"path": "/c"}]})),
            ),
            // What is appended, and options, stand one behind the other.
            (
                [
                    storage(json!({"files": [{"path": "/a", "append": [{"source": "data:,a"}]}],
                        "filesystems": [{"device": "/d", "options": ["-a"], "format": "xfs"}]})),
                    storage(json!({"files": [{"path": "/a", "append": [{"source": "data:,a"}]}],
                        "filesystems": [{"device": "/d", "options": ["-a"]}, {"device": "/e"}]})),
                ],
                storage(json!({
                    "files": [{"path": "/a", "append": [{"source": "data:,a"}, {"source": "data:,a"}]}],
                    "filesystems": [{"device": "/d", "options": ["-a", "-a"], "format": "xfs"},
                        {"device": "/e"}]})),
            ),
            // Partitions by number, or else by label.
            (
                [
                    storage(json!({"disks": [{"device": "/d", "partitions": [
                        {"number": 1, "label": "x"}, {"number": 0, "label": "y"}, {"sizeMiB": 1}]}]})),
                    storage(json!({"disks": [{"device": "/d", "partitions": [
                        {"number": 1, "label": "y"}, {"label": "y", "sizeMiB": 9}, {"sizeMiB": 2}]}]})),
                ],
                storage(json!({"disks": [{"device": "/d", "partitions": [
                    {"number": 1, "label": "y"}, {"number": 0, "label": "y", "sizeMiB": 9},
                    {"sizeMiB": 1}, {"sizeMiB": 2}]}]})),
            ),
            (
                [
                    json!({"kernelArguments": {"shouldExist": ["a", "b"]}}),
                    json!({"kernelArguments": {"shouldExist": ["b", "c"], "shouldNotExist": ["a"]}}),
                ],
                json!({"kernelArguments": {"shouldExist": ["b", "c"], "shouldNotExist": ["a"]}}),
            ),
            (
                [
                    json!({"systemd": {"units": [{"name": "a.service", "enabled": true,
                        "dropins": [{"name": "a.conf", "contents": "a"}]}]}}),
                    json!({"systemd": {"units": [{"name": "a.service", "mask": true,
                        "dropins": [{"name": "b.conf"}, {"name": "a.conf", "contents": "b"}]}]}}),
                ],
                json!({"systemd": {"units": [{"name": "a.service", "enabled": true, "mask": true,
                    "dropins": [{"name": "a.conf", "contents": "b"}, {"name": "b.conf"}]}]}}),
            ),
            (
                [
                    json!({"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["a", "b"]}]}}),
                    json!({"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["c", "a"]}]}}),
                ],
                json!({"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["a", "b", "c"]}]}}),
            ),
            // A header without a value takes away that of the config below.
            (
                [
                    json!({"ignition": {"config": {"merge": [{"source": "https://a", "httpHeaders": [
                        {"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]}}}),
                    json!({"ignition": {"config": {"merge": [{"source": "https://a", "httpHeaders": [
                        {"name": "A"}, {"name": "B", "value": "3"}]}]}}}),
                ],
                json!({"ignition": {"config": {"merge": [{"source": "https://a", "httpHeaders": [
                    {"name": "B", "value": "3"}]}]}}}),
            ),
        ] {
            assert_eq!(merged(&configs), want, "{configs:?}");
        }
    }

    #[test]
    fn what_was_taken_away_can_come_again_and_has_forgotten_what_it_was() {
        let of = |kind: &str, entry: Value| json!({"storage": {kind: [entry]}});
        let found = merged(&[
            of("files", json!({"path": "/a", "mode": 1})),
            of("links", json!({"path": "/a", "target": "/b"})),
            of("files", json!({"path": "/a", "user": {"id": 1}})),
        ]);
        let storage = json!({"files": [{"path": "/a", "user": {"id": 1}}], "links": []});
        assert_eq!(found, json!({"storage": storage}));
    }

    #[test]
    fn what_is_of_another_type_or_unknown_is_replaced() {
        let found = merged(&[
            json!({"storage": {"files": "no list"}, "x": {"a": 1}, "passwd": {"users": []}}),
            json!({"storage": {"files": [{"path": "/a"}]}, "x": {"b": 1}, "passwd": 3}),
            json!({"storage": null, "passwd": {"groups": [{"name": "a"}]}}),
        ]);
        let want = json!({"storage": {"files": [{"path": "/a"}]}, "x": {"b": 1},
            "passwd": {"groups": [{"name": "a"}]}});
        assert_eq!(found, want);
    }
}
