//! Which lines and which keys differ between two texts.

use std::collections::{BTreeMap, BTreeSet};

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
/// differ are returned, in the order of their names: those with other values, and
/// those that stand in another order within their section, or below another line of
/// several `[section]`, with all that stand between the first and the last of these.
///
/// ```
/// use tread_guest_sdk::diff;
/// let keys = diff::keys("vm.swappiness = 10\nkernel.panic = 1", "vm.swappiness=20\nkernel.panic=1", '=');
/// assert_eq!(keys.len(), 1);
/// assert_eq!(keys[0].key, "vm.swappiness");
/// assert_eq!((&keys[0].before[..], &keys[0].after[..]), (&["10"][..], &["20"][..]));
/// ```
pub fn keys<'a>(before: &'a str, after: &'a str, separator: char) -> Vec<Key<'a>> {
    let (before, after) = (read(before, separator), read(after, separator));
    let mut all: BTreeMap<(&str, &str), Values<'a>> = BTreeMap::new();
    for line in &before {
        all.entry((line.section, line.key)).or_default().0.push(line.value);
    }
    for line in &after {
        all.entry((line.section, line.key)).or_default().1.push(line.value);
    }
    let same: BTreeSet<(&str, &str)> =
        all.iter().filter(|(_, (before, after))| before == after).map(|(key, _)| *key).collect();
    let has_its_values = |line: &&Line<'_>| same.contains(&(line.section, line.key));
    let moved = moved(
        places(before.iter().filter(has_its_values)),
        &places(after.iter().filter(has_its_values)),
    );
    let mut keys: Vec<Key<'a>> = all
        .into_iter()
        .filter(|(key, (before, after))| before != after || moved.contains(key))
        .map(|((section, key), (before, after))| {
            let key = match section {
                "" => key.to_string(),
                section => format!("{section}.{key}"),
            };
            Key { key, before, after }
        })
        .collect();
    keys.sort_by(|one, other| one.key.cmp(&other.key));
    keys
}

/// The values of a key before and after.
type Values<'a> = (Vec<&'a str>, Vec<&'a str>);

/// A line with a key, below a line `[section]`, which is the one with this number.
struct Line<'a> {
    section: &'a str,
    header: usize,
    key: &'a str,
    value: &'a str,
}

fn read(text: &str, separator: char) -> Vec<Line<'_>> {
    let (mut section, mut header) = ("", 0);
    let mut lines = Vec::new();
    for line in meaningful(text, &["#", ";"]) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.trim();
            header += 1;
            continue;
        }
        let halves = if separator == ' ' {
            line.split_once(char::is_whitespace)
        } else {
            line.split_once(separator)
        };
        let (key, value) = halves.unwrap_or((line, ""));
        lines.push(Line { section, header, key: key.trim_end(), value: value.trim_start() });
    }
    lines
}

/// The lines of each section: below which of its headers each stands, and what it says.
type Places<'a> = BTreeMap<&'a str, Vec<(usize, &'a str, &'a str)>>;

fn places<'l, 'a: 'l>(lines: impl Iterator<Item = &'l Line<'a>>) -> Places<'a> {
    let mut places = Places::new();
    let mut headers: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for line in lines {
        let (count, last) = headers.entry(line.section).or_insert((0, line.header));
        if *last != line.header {
            (*count, *last) = (*count + 1, line.header);
        }
        places.entry(line.section).or_default().push((*count, line.key, line.value));
    }
    places
}

/// The keys that stand in another order, or below another header of the same name.
fn moved<'a>(before: Places<'a>, after: &Places<'a>) -> BTreeSet<(&'a str, &'a str)> {
    let mut moved = BTreeSet::new();
    for (section, before) in before {
        let Some(after) = after.get(section) else { continue };
        let pairs = || before.iter().zip(after);
        let is_same = |(one, other): &(_, _)| one == other;
        let begin = pairs().take_while(is_same).count();
        let end = before.len() - pairs().rev().take_while(is_same).count();
        let between = before.get(begin..end).unwrap_or_default();
        moved.extend(between.iter().map(|(_, key, _)| (section, *key)));
    }
    moved
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
    fn a_key_that_changes_places_or_sections_is_one_that_differs() {
        for (before, after, separator, differ) in [
            (
                "[Timer]\nOnBootSec=15min\nOnCalendar=\n",
                "[Timer]\nOnCalendar=\nOnBootSec=15min\n",
                '=',
                &["Timer.OnBootSec", "Timer.OnCalendar"][..],
            ),
            (
                "[Route]\nDestination=a\nMetric=5\n[Route]\nDestination=b\n",
                "[Route]\nDestination=a\n[Route]\nDestination=b\nMetric=5\n",
                '=',
                &["Route.Destination", "Route.Metric"],
            ),
            (
                "[Route]\nDestination=a\n[Route]\nDestination=b\n",
                "[Route]\nDestination=a\nDestination=b\n",
                '=',
                &["Route.Destination"],
            ),
            (
                "PermitRootLogin no\nMatch user a\nX11Forwarding no",
                "Match user a\nPermitRootLogin no\nX11Forwarding no",
                ' ',
                &["Match", "PermitRootLogin"],
            ),
            ("[a]\nb.c=1", "[a.b]\nc=1", '=', &["a.b.c", "a.b.c"]),
            // What comes, goes and changes moves nothing else; nor do whole sections.
            ("a=1\nb=1\nc=1", "n=1\nb=1\na=2\nc=1", '=', &["a", "n"]),
            ("[A]\na=1\n[B]\nb=1", "[B]\nb=1\n[A]\na=1", '=', &[]),
            ("[A]\nx=1\n[A]\na=1", "[A]\na=1", '=', &["A.x"]),
        ] {
            let found: Vec<String> =
                keys(before, after, separator).into_iter().map(|key| key.key).collect();
            assert_eq!(found, differ, "{before:?} → {after:?}");
        }
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
