//! Entries of two configs, hashed in groups: the larger a group, the more of it is
//! hashed at a time; the smaller, the more groups two configs have in common.
//!
//! Where a group ends depends on nothing but its own config, so that a config has the
//! same digest whatever it is compared with.

use crate::digest::{Digest, Fields};

/// The hash of a name decides whether its group ends behind it: one in so many does.
const ONE_IN: u32 = 16;
/// A group also ends when it has so many bytes.
const LARGEST: usize = 128 << 10;

/// One kind of entries of one config.
#[derive(Debug, Default)]
pub(super) struct Grouped {
    pub(super) groups: Vec<Digest>,
    /// Of each entry that is not equal as written on the other side.
    pub(super) entries: Vec<Digest>,
}

#[derive(Debug, Default)]
struct Side {
    done: Grouped,
    /// The group in the making.
    group: Fields,
}

/// One kind of entries of two configs.
#[derive(Debug)]
pub(super) struct Groups {
    hashed: bool,
    old: Side,
    new: Side,
    /// Whether the unfinished groups of both sides are equal so far: then only that of
    /// the old side is kept, and it stands for both.
    equal: bool,
}

impl Side {
    fn add(&mut self, name: &str, write: impl FnOnce(&mut Fields)) -> bool {
        let begin = self.group.len();
        write(&mut self.group);
        self.done.entries.push(self.group.digest_from(begin));
        self.is_full(name)
    }

    fn is_full(&self, name: &str) -> bool {
        ends_group(name) || self.group.len() >= LARGEST
    }

    fn end(&mut self) {
        if self.group.len() > 0 {
            self.done.groups.push(self.group.finish());
            self.group.clear();
        }
    }
}

impl Groups {
    pub(super) fn new(hashed: bool) -> Groups {
        Groups { hashed, old: Side::default(), new: Side::default(), equal: true }
    }

    /// Takes the next entry of one side, or of both.
    pub(super) fn add(
        &mut self,
        name: &str,
        alike: bool,
        old: Option<impl FnOnce(&mut Fields)>,
        new: Option<impl FnOnce(&mut Fields)>,
    ) {
        if !alike {
            if let Some(write) = old {
                self.add_old(name, write);
            }
            if let Some(write) = new {
                self.add_new(name, write);
            }
            return;
        }
        self.old.done.entries.push(Digest::NONE);
        self.new.done.entries.push(Digest::NONE);
        let Some(write) = old.filter(|_| self.hashed) else { return };
        self.equal |= self.old.group.len() == 0 && self.new.group.len() == 0;
        let begin = self.old.group.len();
        write(&mut self.old.group);
        if !self.equal {
            self.new.group.copy_from(&self.old.group, begin);
        }
        let full = (self.old.is_full(name), self.equal || self.new.is_full(name));
        match (full, self.equal) {
            ((true, _), true) => {
                self.old.end();
                self.new.done.groups.extend(self.old.done.groups.last().copied());
            }
            ((old, new), false) => {
                if old {
                    self.old.end();
                }
                if new {
                    self.new.end();
                }
            }
            ((false, _), true) => {}
        }
    }

    /// Takes an entry that the new side has not, or has otherwise.
    pub(super) fn add_old(&mut self, name: &str, write: impl FnOnce(&mut Fields)) {
        self.part();
        if self.old.add(name, write) {
            self.old.end();
        }
    }

    /// Takes an entry that the old side has not, or has otherwise.
    pub(super) fn add_new(&mut self, name: &str, write: impl FnOnce(&mut Fields)) {
        self.part();
        if self.new.add(name, write) {
            self.new.end();
        }
    }

    /// From here on the unfinished groups of the two sides differ, and each is kept.
    fn part(&mut self) {
        if std::mem::take(&mut self.equal) {
            self.new.group.copy_from(&self.old.group, 0);
        }
    }

    pub(super) fn finish(mut self) -> (Grouped, Grouped) {
        self.part();
        self.old.end();
        self.new.end();
        (self.old.done, self.new.done)
    }
}

/// FNV-1a: each byte of the name counts.
fn ends_group(name: &str) -> bool {
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash ^ (hash >> 16)) % ONE_IN == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Entries = BTreeMap<String, String>;

    fn grouped(old: &Entries, new: &Entries) -> (Grouped, Grouped) {
        let mut groups = Groups::new(true);
        let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let write = |text: &String| {
                let text = text.clone();
                move |fields: &mut Fields| fields.field(text.as_bytes())
            };
            let (before, after) = (old.get(name), new.get(name));
            groups.add(name, before == after, before.map(write), after.map(write));
        }
        groups.finish()
    }

    #[test]
    fn groups_are_the_same_whatever_a_config_is_compared_with() {
        let of = |skip: usize, long: bool| -> Entries {
            let entry =
                |n: usize| (format!("/etc/{n}"), format!("{n}").repeat(if long { 900 } else { 9 }));
            (0..400).filter(|n| skip == 0 || n % skip != 0).map(entry).collect()
        };
        for long in [false, true] {
            let all = of(0, long);
            let alone = grouped(&all, &Entries::new()).0.groups;
            assert!(alone.len() > 4, "{}", alone.len());
            for skip in [2, 3, 7, 50, 399] {
                let other = of(skip, long);
                assert_eq!(grouped(&all, &other).0.groups, alone, "old beside {skip}");
                assert_eq!(grouped(&other, &all).1.groups, alone, "new beside {skip}");
                assert_ne!(grouped(&all, &other).1.groups, alone, "another config");
            }
            let both = grouped(&all, &all);
            assert_eq!((both.0.groups, both.1.groups), (alone.clone(), alone));
        }
    }
}
