//! Which lines and which keys differ between two texts.

use std::collections::BTreeMap;

/// The lines that differ between two texts.
///
/// ```
/// use tread_guest_sdk::diff;
/// assert!(diff::lines("a\nb", "a\nb\n").is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines<'a> {
    /// Lines that are not there any more, in order. A line that stood twice
    /// and stands once is listed once.
    pub removed: Vec<&'a str>,
    /// Lines that were not there before, in order.
    pub added: Vec<&'a str>,
    /// Whether the lines that stay are in another order.
    pub moved: bool,
}

impl Lines<'_> {
    /// Whether nothing differs.
    ///
    /// ```
    /// use tread_guest_sdk::diff;
    /// assert!(!diff::lines("a", "b").is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty() && !self.moved
    }
}

/// Compares two texts line by line.
///
/// ```
/// use tread_guest_sdk::diff;
/// let lines = diff::lines("a\nb\nc", "a\nc\nd");
/// assert_eq!((lines.removed, lines.added, lines.moved), (vec!["b"], vec!["d"], false));
/// assert!(diff::lines("a\nb", "b\na").moved);
/// ```
pub fn lines<'a>(before: &'a str, after: &'a str) -> Lines<'a> {
    compare(before.lines().collect(), after.lines().collect())
}

/// Compares two texts line by line, without blank lines, without lines that
/// start with one of `comments`, and without white space around a line.
///
/// ```
/// use tread_guest_sdk::diff;
/// let lines = diff::lines_without("# old note\nserver a", "\n  server a\n; note", &["#", ";"]);
/// assert!(lines.is_empty());
/// ```
pub fn lines_without<'a>(before: &'a str, after: &'a str, comments: &[&str]) -> Lines<'a> {
    compare(meaningful(before, comments).collect(), meaningful(after, comments).collect())
}

fn meaningful<'a>(text: &'a str, comments: &[&str]) -> impl Iterator<Item = &'a str> {
    let means =
        |line: &&str| !line.is_empty() && !comments.iter().any(|comment| line.starts_with(comment));
    text.lines().map(str::trim).filter(means)
}

fn compare<'a>(before: Vec<&'a str>, after: Vec<&'a str>) -> Lines<'a> {
    let removed = beyond(&before, &after);
    let added = beyond(&after, &before);
    let moved = stay(&before, &removed) != stay(&after, &added);
    Lines { removed, added, moved }
}

/// The lines of `these` that go beyond those of `others`, each as many times
/// as it has too many; the last ones are taken for the surplus.
fn beyond<'a>(these: &[&'a str], others: &[&'a str]) -> Vec<&'a str> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    others.iter().for_each(|line| *left.entry(line).or_default() += 1);
    these
        .iter()
        .filter(|line| match left.get_mut(**line) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        })
        .copied()
        .collect()
}

/// `these` without the last ones that are in `gone`.
fn stay<'a>(these: &[&'a str], gone: &[&'a str]) -> Vec<&'a str> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    gone.iter().for_each(|line| *left.entry(line).or_default() += 1);
    let mut stay: Vec<&str> = these
        .iter()
        .rev()
        .filter(|line| match left.get_mut(**line) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        })
        .copied()
        .collect();
    stay.reverse();
    stay
}

/// A key that differs between two texts.
///
/// ```
/// use tread_guest_sdk::diff;
/// let keys = diff::keys("[Journal]\nStorage=auto", "[Journal]\nStorage=persistent", '=');
/// assert_eq!((keys[0].key.as_str(), keys[0].after[0]), ("Journal.Storage", "persistent"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key<'a> {
    /// `KEY`, or `SECTION.KEY` below a line `[SECTION]`.
    pub key: String,
    /// Its values before, in order; none if it was not there.
    pub before: Vec<&'a str>,
    /// Its values after, in order; none if it is not there any more.
    pub after: Vec<&'a str>,
}

/// Compares two texts that are made of `key = value` lines (`separator` `'='`)
/// or of `key value` lines (`separator` `' '`, which stands for any white
/// space). Blank lines and those that start with `#` or `;` are left out, a
/// line `[section]` puts its name before the keys below it. Only the keys that
/// differ are returned, in the order of their names.
///
/// ```
/// use tread_guest_sdk::diff;
/// let keys = diff::keys("vm.swappiness = 10\nkernel.panic = 1", "vm.swappiness=20\nkernel.panic=1", '=');
/// assert_eq!(keys.len(), 1);
/// assert_eq!(keys[0].key, "vm.swappiness");
/// assert_eq!((&keys[0].before[..], &keys[0].after[..]), (&["10"][..], &["20"][..]));
/// ```
pub fn keys<'a>(before: &'a str, after: &'a str, separator: char) -> Vec<Key<'a>> {
    let mut all: BTreeMap<String, (Vec<&'a str>, Vec<&'a str>)> = BTreeMap::new();
    read(before, separator, |key, value| all.entry(key).or_default().0.push(value));
    read(after, separator, |key, value| all.entry(key).or_default().1.push(value));
    all.into_iter()
        .filter(|(_, (before, after))| before != after)
        .map(|(key, (before, after))| Key { key, before, after })
        .collect()
}

fn read<'a>(text: &'a str, separator: char, mut each: impl FnMut(String, &'a str)) {
    let mut section = "";
    for line in meaningful(text, &["#", ";"]) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.trim();
            continue;
        }
        let halves = if separator == ' ' {
            line.split_once(char::is_whitespace)
        } else {
            line.split_once(separator)
        };
        let (key, value) = halves.unwrap_or((line, ""));
        let (key, value) = (key.trim_end(), value.trim_start());
        let key = if section.is_empty() { key.to_string() } else { format!("{section}.{key}") };
        each(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_their_order_is_seen() {
        for (before, after, removed, added, moved) in [
            ("", "", &[][..], &[][..], false),
            ("a\nb", "b\na", &[], &[], true),
            ("a\na", "a", &["a"], &[], false),
            ("a", "a\nb\na", &[], &["b", "a"], false),
            ("a\nb\nc", "c\nb", &["a"], &[], true),
            ("a\r\nb", "a\nb", &[], &[], false),
            ("x\na\nb", "a\nb\ny", &["x"], &["y"], false),
        ] {
            let lines = lines(before, after);
            assert_eq!(lines.removed, removed, "{before:?} → {after:?}");
            assert_eq!(lines.added, added, "{before:?} → {after:?}");
            assert_eq!(lines.moved, moved, "{before:?} → {after:?}");
        }
    }

    #[test]
    fn keys_are_compared_by_section_and_value() {
        let before = "[Journal]\nStorage=auto\n# note\n[Other]\nStorage=none\n";
        let after = "[Journal]\nStorage = persistent\n[Other]\nStorage=none\nNew=1";
        let keys = keys(before, after, '=');
        let names: Vec<_> = keys.iter().map(|key| key.key.as_str()).collect();
        assert_eq!(names, ["Journal.Storage", "Other.New"]);
        assert!(keys[1].before.is_empty());
    }

    #[test]
    fn a_key_that_stands_several_times_has_several_values() {
        let keys =
            keys("server a iburst\nserver b", "server b\nserver a iburst\nmakestep 1 3", ' ');
        let names: Vec<_> = keys.iter().map(|key| key.key.as_str()).collect();
        assert_eq!(names, ["makestep", "server"]);
        assert_eq!(keys[1].after, ["b", "a iburst"]);
    }
}
