//! The directives of units that are looked at. All others are more than that: what
//! they do to other units, or to the system, is not known here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// What the names of directives begin with that only say whether a unit starts.
const CHECKS: [&str; 2] = ["Condition", "Assert"];

type Keys = BTreeSet<&'static str>;

static KNOWN: LazyLock<BTreeMap<&'static str, Keys>> = LazyLock::new(|| {
    let mut groups: BTreeMap<&str, Keys> = BTreeMap::new();
    let mut sections: BTreeMap<&str, Keys> = BTreeMap::new();
    let mut group = None;
    let mut keys = Keys::new();
    let lines = include_str!("directives.txt").lines().filter(|line| !line.starts_with('#'));
    // One more heading ends the last list.
    for line in lines.chain(["()"]) {
        let inner = |open, close| line.strip_prefix(open).and_then(|it| it.strip_suffix(close));
        let heading = match (inner('(', ')'), inner('[', ']')) {
            (Some(name), _) => Some((name, false)),
            (None, Some(name)) => Some((name, true)),
            (None, None) => None,
        };
        let Some(next) = heading else {
            for word in line.split(' ').filter(|word| !word.is_empty()) {
                match word.strip_prefix('+').and_then(|name| groups.get(name)) {
                    Some(group) => keys.extend(group),
                    None => drop(keys.insert(word)),
                }
            }
            continue;
        };
        let keys = std::mem::take(&mut keys);
        match group.replace(next) {
            Some((name, true)) => drop(sections.insert(name, keys)),
            Some((name, false)) => drop(groups.insert(name, keys)),
            None => {}
        }
    }
    sections
});

/// Whether a directive is one that is looked at. Systemd leaves out one that stands in
/// another section than its own, as real units have it.
pub(super) fn is_known(section: &str, key: &str) -> bool {
    // What stands before all sections is nothing to systemd.
    section.is_empty()
        || KNOWN.contains_key(section)
            && (CHECKS.iter().any(|check| key.starts_with(check))
                || KNOWN.values().any(|keys| keys.contains(key)))
}

/// Whether a directive concerns only the service that it is set for, as
/// `systemd-run` sets it.
pub(super) fn is_known_property(key: &str) -> bool {
    is_known("Service", key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The release whose directives are all sorted.
    const SORTED: u32 = 252;

    #[test]
    fn each_directive_of_a_systemd_that_is_installed_here_is_looked_at() {
        let systemd = "/usr/lib/systemd/systemd";
        let out = Command::new(systemd).arg("--dump-configuration-items").output();
        let out = out.unwrap_or_else(|error| {
            panic!(
                "{systemd}: {error}. This test holds the list of directives against those of a \
                 real systemd, and was not run: install systemd"
            )
        });
        let text = String::from_utf8(out.stdout).unwrap();
        let (mut section, mut seen, mut missing) = ("", 0, Vec::new());
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']');
            } else if let Some((key, _)) = line.split_once('=') {
                seen += 1;
                if !is_known(section, key) {
                    missing.push(format!("[{section}] {key}="));
                }
            }
        }
        assert!(seen > 500, "{systemd} lists {seen} directives, which is no systemd");
        // One that a later systemd brings costs a reboot until it is sorted.
        let version = Command::new(systemd).arg("--version").output().unwrap().stdout;
        let version = String::from_utf8(version).unwrap();
        let version = version.split_whitespace().nth(1).and_then(|it| it.parse::<u32>().ok());
        let room = if version.is_some_and(|it| it > SORTED) { seen / 10 } else { 0 };
        assert!(
            missing.len() <= room,
            "say in directives.txt whether these concern a unit alone, or leave them to the admins \
             here: {missing:?}"
        );
    }

    #[test]
    fn what_is_not_listed_is_more_than_is_looked_at() {
        for (section, key) in [
            ("Unit", "NewAction"),
            ("Unit", "successaction"),
            ("Service", "NewAction"),
            ("Unknown", "Description"),
            ("(exec)", "User"),
            ("", "()"),
        ] {
            assert!(section.is_empty() || !is_known(section, key), "[{section}] {key}=");
        }
        for (section, key) in [
            ("Unit", "ConditionPathExists"),
            ("Unit", "AssertNewThing"),
            ("Service", "StartLimitIntervalSec"),
            ("Service", "MemoryMax"),
            ("Container", "PodmanArgs"),
        ] {
            assert!(is_known(section, key), "[{section}] {key}=");
        }
    }
}
