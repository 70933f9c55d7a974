//! A map from names that are pieces of a text.

use std::cmp::Ordering;
use tread_policy_formats::words;

/// So many times fewer names are added one by one.
const FEW: usize = 64;

/// Names in their order, and what belongs to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names<'a, V> {
    entries: Vec<(&'a str, V)>,
}

/// Brings names into their order, each once. It is here once, since each sort that
/// is compiled takes 10 KB.
pub(crate) fn in_order(names: &mut Vec<String>) {
    names.sort_unstable_by(|a, b| words::order(a, b));
    names.dedup();
}

/// As [`in_order`], of pieces of a text.
pub(crate) fn pieces_in_order(names: &mut Vec<&str>) {
    names.sort_unstable_by(|a, b| words::order(a, b));
    names.dedup();
}

/// Brings entries into the order of their names; those of one name stay in theirs.
pub(crate) fn sort<V>(entries: &mut [(&str, V)]) {
    entries.sort_by(|(a, _), (b, _)| words::order(a, b));
}

impl<'a> Names<'a, ()> {
    /// Names in any order.
    pub(crate) fn of(mut names: Vec<&'a str>) -> Names<'a, ()> {
        pieces_in_order(&mut names);
        Names { entries: names.into_iter().map(|name| (name, ())).collect() }
    }
}

impl<V> Default for Names<'_, V> {
    fn default() -> Self {
        Names { entries: Vec::new() }
    }
}

impl<'a, V> Names<'a, V> {
    /// Names in any order; of several that are the same the first one counts.
    pub(crate) fn first_of_each(mut entries: Vec<(&'a str, V)>) -> Names<'a, V> {
        let follows = |pair: &[(&str, V)]| match pair {
            [(a, _), (b, _)] => words::order(a, b) == Ordering::Less,
            _ => true,
        };
        // Most files are in order.
        if !entries.windows(2).all(follows) {
            sort(&mut entries);
            entries.dedup_by(|(later, _), (first, _)| words::equal(later, first));
        }
        Names { entries }
    }

    /// Names that are in order, each once.
    pub(crate) fn in_order(entries: Vec<(&'a str, V)>) -> Names<'a, V> {
        Names { entries }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds all of `later`, which wins.
    pub(crate) fn merge(&mut self, later: Names<'a, V>) {
        if self.is_empty() {
            self.entries = later.entries;
        } else if later.len() < self.len() / FEW {
            later.entries.into_iter().for_each(|(name, value)| self.put(name, value));
        } else {
            let mut entries = later.entries;
            entries.append(&mut self.entries);
            *self = Names::first_of_each(entries);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&V> {
        let at = self.find(name).ok()?;
        self.entries.get(at).map(|(_, value)| value)
    }

    /// Adds an entry, in place of one with the same name.
    pub(crate) fn put(&mut self, name: &'a str, value: V) {
        match self.place(name) {
            Ok(at) => {
                if let Some(entry) = self.entries.get_mut(at) {
                    entry.1 = value;
                }
            }
            Err(at) => self.entries.insert(at, (name, value)),
        }
    }

    /// What belongs to the name: the value, unless there was one before.
    pub(crate) fn first(&mut self, name: &'a str, value: V) -> Option<&mut V> {
        let at = match self.place(name) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, (name, value));
                at
            }
        };
        self.entries.get_mut(at).map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &V)> {
        self.entries.iter().map(|(name, value)| (*name, value))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// The names that start with `start`.
    pub(crate) fn with_start(&self, start: &str) -> impl Iterator<Item = &'a str> {
        let first =
            self.entries.partition_point(|(name, _)| words::order(name, start) == Ordering::Less);
        let rest = self.entries.get(first..).unwrap_or_default();
        rest.iter().map(|(name, _)| *name).take_while(move |name| words::starts_with(name, start))
    }

    pub(crate) fn into_entries(self) -> Vec<(&'a str, V)> {
        self.entries
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(other, _)| words::order(other, name))
    }

    /// As [`Names::find`]; most names are added in their order.
    fn place(&self, name: &str) -> Result<usize, usize> {
        match self.entries.last() {
            Some((last, _)) if words::order(last, name) != Ordering::Less => self.find(name),
            _ => Err(self.entries.len()),
        }
    }
}

/// The names of both, in order, each with what belongs to it on either side.
pub(crate) fn side_by_side<'a, 'n, V>(
    before: &'n Names<'a, V>,
    after: &'n Names<'a, V>,
) -> impl Iterator<Item = (&'a str, Option<&'n V>, Option<&'n V>)> {
    let mut before = before.iter().peekable();
    let mut after = after.iter().peekable();
    std::iter::from_fn(move || {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => words::order(a, b),
        };
        let old = if order == Ordering::Greater { None } else { before.next() };
        let new = if order == Ordering::Less { None } else { after.next() };
        let (name, _) = old.or(new)?;
        Some((name, old.map(|(_, value)| value), new.map(|(_, value)| value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Names<'_, usize> {
        let mut names = Names::default();
        for (number, name) in text.split_whitespace().enumerate() {
            names.put(name, number);
        }
        names
    }

    #[test]
    fn entries_are_in_the_order_of_their_names_and_found_by_them() {
        let mut map = names("b a c b");
        assert_eq!(map.iter().collect::<Vec<_>>(), [("a", &1), ("b", &3), ("c", &2)]);
        assert_eq!((map.get("b"), map.get("x")), (Some(&3), None));
        assert_eq!(map.first("a", 9), Some(&mut 1));
        assert_eq!(map.first("d", 9), Some(&mut 9));
        assert_eq!(map.get("d"), Some(&9));
        assert_eq!(names("a ab abc b aa").with_start("ab").collect::<Vec<_>>(), ["ab", "abc"]);
        assert_eq!(names("a b").with_start("").count(), 2);
        let entries = "b a c b".split(' ').enumerate().map(|(number, name)| (name, number));
        let first = Names::first_of_each(entries.collect());
        assert_eq!(first.iter().collect::<Vec<_>>(), [("a", &1), ("b", &0), ("c", &2)]);
    }

    #[test]
    fn of_two_maps_the_later_one_wins() {
        for (before, later) in [("", "a b"), ("a c", "b"), ("a b c d", "d b a"), ("b", "")] {
            let mut merged = names(before);
            merged.merge(names(later));
            let mut one_by_one = names(before);
            names(later).into_entries().into_iter().for_each(|(name, it)| one_by_one.put(name, it));
            assert_eq!(merged, one_by_one, "{before} and {later}");
        }
        let many: Vec<String> = (0..1000).map(|n| format!("n{n:03}")).collect();
        let many = many.join(" ");
        let mut merged = names(&many);
        merged.merge(names("n500x n500 a"));
        assert_eq!((merged.len(), merged.get("n500"), merged.get("a")), (1002, Some(&1), Some(&2)));
    }

    #[test]
    fn two_maps_stand_side_by_side() {
        let (before, after) = (names("a c d"), names("b c e"));
        let pairs: Vec<_> = side_by_side(&before, &after)
            .map(|(name, old, new)| (name, old.is_some(), new.is_some()))
            .collect();
        let expected = [
            ("a", true, false),
            ("b", false, true),
            ("c", true, true),
            ("d", true, false),
            ("e", false, true),
        ];
        assert_eq!(pairs, expected);
    }
}
