//! What files in sysctl.d set, as sysctl.d(5) has it: files count in the order
//! of their names, and of a key that stands several times the last value counts.
//!
//! systemd-sysctl writes a key at the place from which it has its last value: a line
//! that only says this value again changes nothing, and one with another value puts
//! the key behind all that stand before it. The order matters where one key resets
//! another, and files of the operating system, which are not seen here, may stand
//! between any two files.

use std::collections::{BTreeMap, BTreeSet};

/// What one file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Keys and values, in order; a key as the path below `/proc/sys`. Without a
    /// value no pattern is to touch the key.
    lines: Vec<(String, Option<String>)>,
    /// The first line that systemd-sysctl would stumble over.
    pub broken_line: Option<usize>,
}

impl File {
    pub fn read(text: &str) -> File {
        let mut file = File::default();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            // A - in front says that it may fail.
            let bare = line.strip_prefix('-');
            match (line.split_once('='), bare) {
                (Some((key, value)), _) => {
                    let key = key.trim();
                    let key = key.strip_prefix('-').unwrap_or(key);
                    // To the kernel, white space is white space.
                    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
                    file.lines.push((path_of(key), Some(value)));
                }
                (None, Some(key)) => file.lines.push((path_of(key), None)),
                (None, None) => file.broken_line = file.broken_line.or(Some(number)),
            }
        }
        file
    }

    /// Every key and pattern that it names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|(key, _)| key.as_str())
    }
}

/// What several files say together.
#[derive(Debug, Default)]
pub struct Values<'f> {
    keys: BTreeMap<&'f str, Key<'f>>,
    /// Where a key gets its last value in each file, by the path of the file and the
    /// number of the line.
    order: BTreeMap<(&'f str, usize), &'f str>,
}

/// What is said of one key or pattern.
#[derive(Debug, PartialEq, Eq)]
pub struct Key<'f> {
    /// None if no pattern is to touch it.
    value: Option<&'f str>,
    /// The paths of files that say this value since another one stood there, and
    /// before them the one with that other value (false).
    files: Vec<(&'f str, bool)>,
}

impl Key<'_> {
    /// Whether it depends on what is there on the node.
    fn is_uncertain(&self, name: &str) -> bool {
        self.value.is_none() || name.contains(['*', '?', '['])
    }
}

impl<'f> Values<'f> {
    /// Of files by their paths, in the order of their names.
    pub fn of(files: &'f BTreeMap<String, File>) -> Values<'f> {
        type Line<'f> = (&'f str, usize, Option<&'f str>);
        let mut lines: BTreeMap<&str, Vec<Line<'f>>> = BTreeMap::new();
        for (path, file) in files {
            for (number, (key, value)) in file.lines.iter().enumerate() {
                lines.entry(key).or_default().push((path, number, value.as_deref()));
            }
        }
        let mut values = Values::default();
        for (name, lines) in lines {
            let value = lines.last().and_then(|(_, _, value)| *value);
            let other = lines.iter().rposition(|(_, _, it)| *it != value);
            let mut files: Vec<(&str, bool)> = Vec::new();
            for (path, number, it) in lines.into_iter().skip(other.unwrap_or_default()) {
                let place = (path, it == value);
                if files.last() != Some(&place) {
                    files.push(place);
                    if it == value {
                        values.order.insert((path, number), name);
                    }
                }
            }
            values.keys.insert(name, Key { value, files });
        }
        values
    }

    /// Whether any file names it.
    pub fn has(&self, name: &str) -> bool {
        self.keys.contains_key(name)
    }

    /// Those of the names in this file that have another value afterwards, or are written
    /// at another place.
    pub fn changed(
        &self,
        after: &Values<'f>,
        path: &str,
        names: BTreeSet<&'f str>,
    ) -> Vec<&'f str> {
        let moved = self.moved(after, path);
        let differs =
            |name: &&str| self.keys.get(name) != after.keys.get(name) || moved.contains(name);
        names.into_iter().filter(differs).collect()
    }

    /// Whether this is a pattern or an exception from one, on either side.
    pub fn is_uncertain(&self, after: &Values<'_>, name: &str) -> bool {
        let keys = [self.keys.get(name), after.keys.get(name)];
        keys.into_iter().flatten().any(|key| key.is_uncertain(name))
    }

    /// Of the keys that get their value in this file on both sides: all from the first to
    /// the last that stand in another order.
    fn moved(&self, after: &Values<'f>, path: &str) -> BTreeSet<&'f str> {
        let (before, after) = (self.in_file(path), after.in_file(path));
        let common = |keys: &[&'f str], others: &[&'f str]| -> Vec<&'f str> {
            let others: BTreeSet<&str> = others.iter().copied().collect();
            keys.iter().copied().filter(|key| others.contains(key)).collect()
        };
        let (before, after) = (common(&before, &after), common(&after, &before));
        let alike = |(one, other): &(&&str, &&str)| one == other;
        let start = before.iter().zip(&after).take_while(alike).count();
        let end = before.iter().rev().zip(after.iter().rev()).take_while(alike).count();
        let until = before.len().saturating_sub(end);
        before.into_iter().take(until).skip(start).collect()
    }

    fn in_file(&self, path: &str) -> Vec<&'f str> {
        let all = self.order.iter().filter(|((file, _), _)| *file == path);
        all.map(|(_, key)| *key).collect()
    }
}

/// `kernel.panic` and `kernel/panic` are `kernel/panic`. After a first dot, dots
/// and slashes change places: `net.ipv4.conf.eth0/7.rp_filter` is that of `eth0.7`.
pub fn path_of(key: &str) -> String {
    match key.find(['.', '/']) {
        Some(at) if key.get(at..).is_some_and(|rest| rest.starts_with('.')) => swapped(key),
        _ => key.to_owned(),
    }
}

/// As people write it.
pub fn shown(path: &str) -> String {
    swapped(path)
}

fn swapped(key: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    key.chars().map(swap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_write_a_key_are_one() {
        for (key, path) in [
            ("kernel.panic", "kernel/panic"),
            ("kernel/panic", "kernel/panic"),
            ("net.ipv4.conf.eth0/7.rp_filter", "net/ipv4/conf/eth0.7/rp_filter"),
            ("net/ipv4/conf/eth0.7/rp_filter", "net/ipv4/conf/eth0.7/rp_filter"),
        ] {
            assert_eq!(path_of(key), path);
        }
        assert_eq!(shown("net/ipv4/conf/eth0.7/rp_filter"), "net.ipv4.conf.eth0/7.rp_filter");
    }

    #[test]
    fn comments_and_layout_say_nothing() {
        let one = File::read("# a\n\n; b\nvm.swappiness = 10\nnet.ipv4.tcp_rmem = 1  2\t3\n");
        let other = File::read("  vm/swappiness=10  \n-net.ipv4.tcp_rmem=1 2 3");
        assert_eq!(one, other);
    }

    fn files(texts: &[(&str, &str)]) -> BTreeMap<String, File> {
        texts.iter().map(|(path, text)| ((*path).to_owned(), File::read(text))).collect()
    }

    #[test]
    fn the_last_value_of_the_last_file_counts() {
        let files = files(&[
            ("a", "vm.swappiness = 10\nvm.swappiness = 20\nkernel.panic = 1"),
            ("b", "vm.swappiness = 30\n-vm.swappiness\nvm.swappiness = 30"),
        ]);
        let values = Values::of(&files);
        assert_eq!(values.keys["vm/swappiness"].value, Some("30"));
        assert_eq!(values.keys["kernel/panic"].value, Some("1"));
        assert!(values.has("kernel/panic") && !values.has("kernel/panic_on_oops"));
    }

    #[test]
    fn a_key_stands_where_it_gets_its_last_value_and_not_where_that_is_said_again() {
        let files = files(&[
            ("a", "a.a = 1\nb.b = 1\nc.c = 1"),
            ("b", "b.b = 2\na.a = 1\nb.b = 2"),
            ("c", "c.c = 2\nc.c = 1"),
        ]);
        let values = Values::of(&files);
        assert_eq!(values.keys["a/a"].files, [("a", true), ("b", true)]);
        assert_eq!(values.keys["b/b"].files, [("a", false), ("b", true)]);
        assert_eq!(values.keys["c/c"].files, [("c", false), ("c", true)]);
        assert_eq!(values.in_file("a"), ["a/a"]);
        assert_eq!(values.in_file("b"), ["b/b", "a/a"]);
        assert_eq!(values.in_file("c"), ["c/c"]);
    }

    /// What systemd-sysctl writes, in order: a line with another value than its key has
    /// puts the key at the end.
    fn written(lines: impl Iterator<Item = (char, char)>) -> Vec<(char, char)> {
        let mut all: Vec<(char, char)> = Vec::new();
        for line in lines.filter(|line| !line.0.is_whitespace()) {
            if !all.contains(&line) {
                all.retain(|(key, _)| *key != line.0);
                all.push(line);
            }
        }
        all
    }

    /// Up to two lines, of which one may be empty.
    fn contents() -> Vec<[(char, char); 2]> {
        let lines = [('a', '1'), ('a', '2'), ('b', '1'), ('b', '2'), (' ', ' ')];
        lines.iter().flat_map(|one| lines.map(|other| [*one, other])).collect()
    }

    #[test]
    fn where_nothing_changes_the_same_is_written_whatever_the_files_of_the_system_say() {
        let mut sides = Vec::new();
        for first in contents() {
            for last in contents() {
                let file = |lines: [(char, char); 2]| {
                    let text = lines.map(|(key, value)| match key {
                        ' ' => String::new(),
                        key => format!("{key} = {value}"),
                    });
                    File::read(&text.join("\n"))
                };
                let files = BTreeMap::from([
                    ("first".to_owned(), file(first)),
                    ("last".to_owned(), file(last)),
                ]);
                // A file of the system before, between and behind them.
                let systems = contents().into_iter().flat_map(|system| {
                    [[system, first, last], [first, system, last], [first, last, system]]
                });
                let outcomes: Vec<_> =
                    systems.map(|files| written(files.into_iter().flatten())).collect();
                sides.push((files, outcomes));
            }
        }
        let values: Vec<_> = sides.iter().map(|(files, _)| Values::of(files)).collect();
        let mut same = 0;
        for (before, (files_before, outcomes_before)) in values.iter().zip(&sides) {
            for (after, (files_after, outcomes_after)) in values.iter().zip(&sides) {
                let is_changed = ["first", "last"].into_iter().any(|path| {
                    !before.changed(after, path, BTreeSet::from(["a", "b"])).is_empty()
                });
                if !is_changed {
                    same += 1;
                    assert_eq!(
                        outcomes_before, outcomes_after,
                        "{files_before:?} to {files_after:?}"
                    );
                }
            }
        }
        // More than each side compared with itself.
        assert!(same > 2 * sides.len(), "{same}");
    }

    #[test]
    fn patterns_and_what_they_leave_out_are_told_apart_from_keys() {
        let text = "net.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.lo.rp_filter\nkernel.panic = 1";
        let (files, none) = (files(&[("a", text)]), BTreeMap::new());
        assert_eq!(files["a"].broken_line, None);
        let (values, none) = (Values::of(&files), Values::of(&none));
        for (name, is_uncertain) in [
            ("net/ipv4/conf/*/rp_filter", true),
            ("net/ipv4/conf/lo/rp_filter", true),
            ("kernel/panic", false),
        ] {
            assert_eq!(values.is_uncertain(&none, name), is_uncertain, "{name}");
            assert_eq!(none.is_uncertain(&values, name), is_uncertain, "{name}");
        }
    }

    #[test]
    fn a_line_that_is_no_assignment_is_found() {
        assert_eq!(File::read("# a\nvm.swappiness 10\nb\n").broken_line, Some(2));
    }
}
