//! What files in sysctl.d set, as sysctl.d(5) has it: files count in the order
//! of their names, and of a key that stands several times the last value counts.

use std::collections::{BTreeMap, BTreeSet};

/// What one file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Keys and values, in order; a key as the path below `/proc/sys`.
    assignments: Vec<(String, String)>,
    /// Keys that no pattern is to touch.
    excluded: Vec<String>,
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
                    file.assignments.push((path_of(key), value));
                }
                (None, Some(key)) => file.excluded.push(path_of(key)),
                (None, None) => file.broken_line = file.broken_line.or(Some(number)),
            }
        }
        file
    }

    /// Every key and pattern that it names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let keys = self.assignments.iter().map(|(key, _)| key.as_str());
        keys.chain(self.excluded.iter().map(String::as_str))
    }

    /// Whether it says anything that depends on what is there on the node.
    pub fn has_patterns(&self) -> bool {
        !self.excluded.is_empty() || self.assignments.iter().any(|(key, _)| is_pattern(key))
    }
}

/// What several files say together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Values {
    pub keys: BTreeMap<String, String>,
    /// In the order in which they are tried.
    patterns: Vec<(String, String)>,
    excluded: BTreeSet<String>,
}

impl Values {
    /// Of files in the order of their names.
    pub fn of<'f>(files: impl IntoIterator<Item = &'f File>) -> Values {
        let mut values = Values::default();
        for file in files {
            for (key, value) in &file.assignments {
                if is_pattern(key) {
                    values.patterns.retain(|(pattern, _)| pattern != key);
                    values.patterns.push((key.clone(), value.clone()));
                } else {
                    values.keys.insert(key.clone(), value.clone());
                }
            }
            values.excluded.extend(file.excluded.iter().cloned());
        }
        values
    }

    pub fn same_patterns(&self, other: &Values) -> bool {
        self.patterns == other.patterns && self.excluded == other.excluded
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

fn is_pattern(key: &str) -> bool {
    key.contains(['*', '?', '['])
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

    #[test]
    fn the_last_value_of_the_last_file_counts() {
        let first = File::read("vm.swappiness = 10\nvm.swappiness = 20\nkernel.panic = 1");
        let last = File::read("vm.swappiness = 30");
        let values = Values::of([&first, &last]);
        assert_eq!(values.keys["vm/swappiness"], "30");
        assert_eq!(values.keys["kernel/panic"], "1");
    }

    #[test]
    fn patterns_and_what_they_leave_out_are_kept_apart() {
        let file = File::read("net.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.lo.rp_filter\n");
        assert!(file.has_patterns());
        assert!(file.broken_line.is_none());
        let values = Values::of([&file]);
        assert!(values.keys.is_empty());
        assert!(!values.same_patterns(&Values::default()));
    }

    #[test]
    fn a_line_that_is_no_assignment_is_found() {
        assert_eq!(File::read("# a\nvm.swappiness 10\nb\n").broken_line, Some(2));
    }
}
