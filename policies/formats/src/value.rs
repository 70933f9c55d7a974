//! What a configuration file says, as a tree.

use crate::Map;

/// A table or mapping; the order of its keys has no meaning.
pub type Table = Map<Value>;

/// A value of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A string.
    Text(String),
    /// A truth value.
    Bool(bool),
    /// A number, a date or a null, as it is written.
    Other(String),
    /// An array or sequence.
    List(Vec<Value>),
    /// A table or mapping.
    Table(Table),
}

impl Value {
    /// The string, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The table, if this is one.
    pub fn as_table(&self) -> Option<&Table> {
        match self {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }
}

/// The dotted keys whose values differ, in order. Tables are compared key by
/// key, lists as a whole; a table against nothing is all of its keys.
pub fn changed_keys(before: &Table, after: &Table) -> Vec<String> {
    let mut keys = Vec::new();
    compare(&mut String::new(), before, after, &mut keys);
    keys
}

fn compare(path: &mut String, before: &Table, after: &Table, keys: &mut Vec<String>) {
    let mut all = Map::new();
    for key in before.keys().chain(after.keys()) {
        all.add(key.to_string(), ());
    }
    for key in all.keys() {
        let length = path.len();
        if length > 0 {
            path.push('.');
        }
        path.push_str(key);
        match (before.get(key), after.get(key)) {
            (Some(Value::Table(before)), Some(Value::Table(after))) => {
                compare(path, before, after, keys);
            }
            (Some(Value::Table(table)), None) if !table.is_empty() => {
                compare(path, table, &Table::new(), keys);
            }
            (None, Some(Value::Table(table))) if !table.is_empty() => {
                compare(path, &Table::new(), table, keys);
            }
            (before, after) if before != after => keys.push(path.clone()),
            _ => {}
        }
        path.truncate(length);
    }
}

/// The table without tables that say nothing: for formats where an empty
/// section means the same as none.
pub fn without_empty_tables(table: Table) -> Table {
    let mut full = Table::new();
    for (key, value) in table.into_entries() {
        match value {
            Value::Table(inner) => {
                let inner = without_empty_tables(inner);
                if !inner.is_empty() {
                    full.insert(key, Value::Table(inner));
                }
            }
            value => full.insert(key, value),
        }
    }
    full
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        crate::toml::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_keys_that_differ_are_named_down_to_the_leaf() {
        let before = table("same = 1\n[a]\nx = 1\ny = [1]\n[gone]\nz.w = 1");
        let after = table("same = 1\n[a]\nx = 2\ny = [1, 2]\n[new.deep]\nk = 1");
        assert_eq!(changed_keys(&before, &after), ["a.x", "a.y", "gone.z.w", "new.deep.k"]);
    }

    #[test]
    fn the_order_of_keys_is_no_difference() {
        assert_eq!(changed_keys(&table("a = 1\nb = 2"), &table("b = 2\na = 1")), [""; 0]);
    }

    #[test]
    fn a_value_that_becomes_a_table_is_one_difference() {
        assert_eq!(changed_keys(&table("a = 1"), &table("[a]\nb = 1")), ["a"]);
    }

    #[test]
    fn an_empty_section_differs_from_none_unless_it_is_left_out() {
        let (before, after) = (table("[a]\n[a.b]\n[c]\nx = 1"), table("[c]\nx = 1"));
        assert_eq!(changed_keys(&before, &after), ["a.b"]);
        assert_eq!(without_empty_tables(before), after);
    }
}
