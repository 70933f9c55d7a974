//! Where two readings of a file differ.

use crate::service::Service;
use tread_policy_formats::{Table, Value};

/// A key whose value differs.
#[derive(Debug)]
pub(crate) struct Difference<'a> {
    /// The key, from the outermost table inwards.
    pub(crate) path: Vec<&'a str>,
    /// How many of these, from the outermost, were there before.
    pub(crate) known: usize,
    /// How many of these, from the outermost, are there afterwards.
    pub(crate) kept: usize,
    /// The value until then.
    pub(crate) before: Option<&'a Value>,
    /// The value afterwards.
    pub(crate) after: Option<&'a Value>,
}

/// All keys that differ, in order. Tables are compared key by key, lists as a
/// whole, and a table against nothing is all of its keys; against a value that is
/// none, it is the key and all of its keys. An empty table is a
/// key like any other (in a map it defines an entry), unless it is a section.
pub(crate) fn differences<'a>(
    service: Service,
    before: &'a Table,
    after: &'a Table,
) -> Vec<Difference<'a>> {
    let mut walk = Walk { service, path: Vec::new(), found: Vec::new() };
    walk.tables(Some(before), Some(after), (0, 0));
    walk.found
}

struct Walk<'a> {
    service: Service,
    path: Vec<&'a str>,
    found: Vec<Difference<'a>>,
}

impl<'a> Walk<'a> {
    /// The last are how many of the keys so far are there on each side.
    fn tables(
        &mut self,
        before: Option<&'a Table>,
        after: Option<&'a Table>,
        (known, kept): (usize, usize),
    ) {
        let mut keys: Vec<&str> = Vec::new();
        for key in [before, after].into_iter().flatten().flat_map(Table::keys) {
            if let Err(at) = keys.binary_search(&key) {
                keys.insert(at, key);
            }
        }
        for key in keys {
            self.path.push(key);
            let (before, after) =
                (before.and_then(|table| table.get(key)), after.and_then(|table| table.get(key)));
            let there =
                (known + usize::from(before.is_some()), kept + usize::from(after.is_some()));
            self.values(before, after, there);
            self.path.pop();
        }
    }

    fn values(
        &mut self,
        before: Option<&'a Value>,
        after: Option<&'a Value>,
        there: (usize, usize),
    ) {
        match (before, after) {
            _ if before == after => {}
            (Some(Value::Table(before)), Some(Value::Table(after))) => {
                self.tables(Some(before), Some(after), there);
            }
            (Some(Value::Table(table)), None) if !table.is_empty() => {
                self.tables(Some(table), None, there);
            }
            (None, Some(Value::Table(table))) if !table.is_empty() => {
                self.tables(None, Some(table), there);
            }
            (Some(Value::Table(_)), None) | (None, Some(Value::Table(_)))
                if self.service.is_section(&self.path) => {}
            _ => {
                let (path, (known, kept)) = (self.path.clone(), there);
                self.found.push(Difference { path, known, kept, before, after });
                // One side is no table, so the service knows no key in the other.
                let table = |value: Option<&'a Value>| match value {
                    Some(Value::Table(table)) => Some(table),
                    _ => None,
                };
                self.tables(table(before), table(after), there);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_policy_formats::toml;

    fn found(before: &str, after: &str) -> Vec<(String, usize)> {
        let table = |text: &str| toml::parse(text.as_bytes()).unwrap();
        let (before, after) = (table(before), table(after));
        let found = differences(Service::Crio, &before, &after);
        found.into_iter().map(|difference| (difference.path.join("."), difference.kept)).collect()
    }

    fn is(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
        expected.iter().map(|(path, kept)| ((*path).to_string(), *kept)).collect()
    }

    #[test]
    fn the_keys_that_differ_are_named_down_to_the_leaf() {
        let before = "same = 1\n[a]\nx = 1\ny = [1]\n[gone]\nz.w = 1";
        let after = "same = 1\n[a]\nx = 2\ny = [1, 2]\n[new.deep]\nk = 1";
        let expected = [("a.x", 2), ("a.y", 2), ("gone.z.w", 0), ("new.deep.k", 3)];
        assert_eq!(found(before, after), is(&expected));
        assert_eq!(found("[a.b]\nx = 1\ny = 2", "[a.b]\nx = 1"), is(&[("a.b.y", 2)]));
        assert_eq!(found("a = 1", "[a]\nb = 1"), is(&[("a", 1), ("a.b", 2)]));
        assert_eq!(found("[a]\nb = 1", "a = 1"), is(&[("a", 1), ("a.b", 1)]));
    }

    #[test]
    fn the_order_of_keys_is_no_difference() {
        assert_eq!(found("a = 1\nb = 2", "b = 2\na = 1"), []);
    }

    #[test]
    fn an_empty_table_is_an_entry_unless_it_is_a_section() {
        assert_eq!(found("", "[crio]\n[crio.runtime]"), []);
        assert_eq!(found("[crio.runtime]", ""), []);
        assert_eq!(found("", "[Crio]"), is(&[("Crio", 1)]));
        assert_eq!(found("", "[crio.x]"), is(&[("crio.x", 2)]));
        assert_eq!(found("[crio.x.b]", "[crio]"), is(&[("crio.x.b", 1)]));
        assert_eq!(found("crio = {}", "crio = 1"), is(&[("crio", 1)]));
    }
}
