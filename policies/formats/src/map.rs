//! A map in the order of its keys.

/// A map with texts as keys, in their order, kept in one sorted vector: a
/// fraction of the code of a `BTreeMap`, which counts in a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map<V> {
    entries: Vec<(String, V)>,
}

impl<V> Default for Map<V> {
    fn default() -> Map<V> {
        Map { entries: Vec::new() }
    }
}

impl<V> Map<V> {
    /// An empty map.
    pub fn new() -> Map<V> {
        Map::default()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What belongs to `key`.
    pub fn get(&self, key: &str) -> Option<&V> {
        let at = self.find(key).ok()?;
        self.entries.get(at).map(|(_, value)| value)
    }

    /// Whether something belongs to `key`.
    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_ok()
    }

    /// Adds an entry, in place of one with the same key.
    pub fn insert(&mut self, key: String, value: V) {
        match self.find(&key) {
            Ok(at) => {
                if let Some(entry) = self.entries.get_mut(at) {
                    entry.1 = value;
                }
            }
            Err(at) => self.entries.insert(at, (key, value)),
        }
    }

    /// Adds an entry unless there is one with the same key. Whether it did.
    pub fn add(&mut self, key: String, value: V) -> bool {
        match self.find(&key) {
            Ok(_) => false,
            Err(at) => {
                self.entries.insert(at, (key, value));
                true
            }
        }
    }

    /// What belongs to `key`, which is added first if it is not there.
    pub fn get_or_add(&mut self, key: String, value: impl FnOnce() -> V) -> Option<&mut V> {
        let at = match self.find(&key) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, (key, value()));
                at
            }
        };
        self.entries.get_mut(at).map(|(_, value)| value)
    }

    /// The keys and what belongs to them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(key, _)| key)
    }

    /// The keys that start with `start`.
    pub fn keys_with(&self, start: &str) -> impl Iterator<Item = &str> {
        let first = self.entries.partition_point(|(key, _)| key.as_str() < start);
        let rest = self.entries.get(first..).unwrap_or_default();
        rest.iter().map(|(key, _)| key.as_str()).take_while(move |key| key.starts_with(start))
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// The entries themselves.
    pub fn into_entries(self) -> Vec<(String, V)> {
        self.entries
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(other, _)| other.as_str().cmp(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_in_the_order_of_their_keys_and_found_by_them() {
        let mut map = Map::new();
        for (number, key) in ["b", "a", "c", "b"].into_iter().enumerate() {
            map.insert(key.to_string(), number);
        }
        assert_eq!(map.iter().collect::<Vec<_>>(), [("a", &1), ("b", &3), ("c", &2)]);
        assert_eq!((map.get("b"), map.get("x")), (Some(&3), None));
        assert!(!map.add("a".into(), 9) && map.add("d".into(), 4) && map.contains_key("d"));
        assert_eq!(map.get_or_add("a".into(), || 9), Some(&mut 1));
        assert_eq!(map.into_entries().len(), 4);
    }

    #[test]
    fn keys_are_found_by_how_they_start() {
        let mut map = Map::new();
        for key in ["a", "ab", "abc", "b", "aa"] {
            map.insert(key.to_string(), ());
        }
        assert_eq!(map.keys_with("ab").collect::<Vec<_>>(), ["ab", "abc"]);
        assert_eq!(map.keys_with("x").count(), 0);
        assert_eq!(map.keys_with("").count(), 5);
    }
}
