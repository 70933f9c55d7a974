//! Which files of CRI-O define which runtime handlers, and which one counts for what a reload reads again.

use crate::reload;
use crate::says::{Says, says, within};
use crate::service::{PULL_TIMEOUT, Service};
use std::cell::OnceCell;
use tread_guest_sdk::{Context, State};
use tread_policy_formats::{Map, Table};

/// What all files of CRI-O in a call say. They are read when this is asked for the first time, and only
/// then: a change may bring many handlers.
pub(crate) struct Files<'c> {
    context: &'c Context<'c>,
    read: &'c dyn Fn(&State) -> Option<Table>,
    said: OnceCell<Said<'c>>,
}

/// The paths of files, by what they say.
#[derive(Default)]
struct Said<'c> {
    /// Those that define a handler before or after the change, by its name in lower case: CRI-O takes it
    /// in any case.
    by_handler: Map<Vec<&'c str>>,
    /// Those that cannot be read may define any.
    unreadable: Vec<&'c str>,
    before: Last<'c>,
    after: Last<'c>,
}

/// For each of [`keys`] the file that is read last of those that say something of it, which counts.
type Last<'c> = [Option<(&'c str, Says)>; KEYS];

const KEYS: usize = reload::SETTINGS.len() + 1;

/// Of which keys it is asked what counts, each with its table: those of [`reload::SETTINGS`], and one more.
fn keys() -> impl Iterator<Item = [&'static str; 2]> {
    reload::SETTINGS.iter().map(|it| [it.section, it.key]).chain([PULL_TIMEOUT])
}

/// Which sides of a change a reading is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
    Both,
}

impl<'c> Files<'c> {
    /// `read` gives nothing for a file that cannot be read.
    pub(crate) fn of(
        context: &'c Context<'c>,
        read: &'c dyn Fn(&State) -> Option<Table>,
    ) -> Files<'c> {
        Files { context, read, said: OnceCell::new() }
    }

    /// Whether a file other than `path` defines this handler, as far as that can be told.
    pub(crate) fn is_elsewhere(&self, path: &str, handler: &str) -> bool {
        let said = self.said();
        let named = said.by_handler.get(&handler.to_ascii_lowercase());
        let mut files = named.into_iter().flatten().chain(&said.unreadable);
        files.any(|other| *other != path)
    }

    /// The string that counts for this one of [`reload::SETTINGS`] after the change, and did not before
    /// it, with the file that says it. None if `path` has no part in that: it is neither that file nor the
    /// one that counted before; and none if it cannot be told.
    pub(crate) fn new_text(&self, path: &str, setting: usize) -> Option<(&'c str, &str)> {
        let said = self.said();
        let (before, after) =
            (said.before.get(setting)?.as_ref(), said.after.get(setting)?.as_ref());
        let Some((file, after @ Says::Value(value))) = after else { return None };
        let has_part = *file == path || before.is_some_and(|(file, _)| *file == path);
        let is_new = before.is_none_or(|(_, before)| before != after);
        if has_part && is_new { Some((*file, value.as_text()?)) } else { None }
    }

    /// What counts for [`PULL_TIMEOUT`] before the change and after it.
    pub(crate) fn pull_timeouts(&self) -> [&Says; 2] {
        let said = self.said();
        [&said.before, &said.after].map(|last| match last.last() {
            Some(Some((_, says))) => says,
            _ => &Says::Nothing,
        })
    }

    fn said(&self) -> &Said<'c> {
        self.said.get_or_init(|| {
            let mut said = Said::default();
            for change in self.context.changes {
                said.read(change.path(), &change.before, Side::Before, self.read);
                said.read(change.path(), &change.after, Side::After, self.read);
            }
            for entry in self.context.unchanged {
                said.read(entry.path(), &entry.state, Side::Both, self.read);
            }
            said
        })
    }
}

/// Whether CRI-O reads a file after another: crio.conf first, then what is below crio.conf.d, in
/// each directory by name.
fn is_read_later(path: &str, other: &str) -> bool {
    path.split('/').gt(other.split('/'))
}

impl<'c> Said<'c> {
    fn read(
        &mut self,
        path: Option<&'c str>,
        state: &State,
        side: Side,
        read: &dyn Fn(&State) -> Option<Table>,
    ) {
        let Some(path) = path.filter(|path| Service::of(path) == Some(Service::Crio)) else {
            return;
        };
        let table = read(state);
        match &table {
            Some(table) => within(table, &["crio", "runtime", "runtimes"], &mut |handlers| {
                self.defines(path, handlers);
            }),
            None => self.unreadable.push(path),
        }
        if side != Side::After {
            put(&mut self.before, path, table.as_ref());
        }
        if side != Side::Before {
            put(&mut self.after, path, table.as_ref());
        }
    }

    fn defines(&mut self, path: &'c str, handlers: &Table) {
        for handler in handlers.keys() {
            let files = self.by_handler.get_or_add(handler.to_ascii_lowercase(), Vec::new);
            // Both sides of a file come one after the other.
            if let Some(files) = files.filter(|files| files.last() != Some(&path)) {
                files.push(path);
            }
        }
    }
}

fn put<'c>(last: &mut Last<'c>, path: &'c str, table: Option<&Table>) {
    for (key, last) in keys().zip(last) {
        let says = says(table, key);
        if says != Says::Nothing && last.as_ref().is_none_or(|last| is_read_later(path, last.0)) {
            *last = Some((path, says));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fmt::Write;
    use tread_guest_sdk::test;

    const MINE: &str = "/etc/crio/crio.conf.d/99-mine";

    fn handlers(names: std::ops::Range<usize>) -> String {
        names.fold(String::new(), |mut text, name| {
            writeln!(text, "[crio.runtime.runtimes.handler-{name}]").unwrap();
            text
        })
    }

    #[test]
    fn however_many_handlers_come_every_file_is_read_once_and_without_any_none_is() {
        let changes = [
            test::file_added(MINE, &handlers(0..100)),
            test::file("/etc/crio/crio.conf.d/50-changed", &handlers(200..210), ""),
            test::file("/etc/kubernetes/kubelet.conf", "a: 1", "a: 2"),
        ];
        let unchanged: Vec<_> = (0..100)
            .map(|n| {
                test::unchanged_file(&format!("/etc/crio/crio.conf.d/{n}"), &handlers(n..n + 1))
            })
            .collect();
        let context = Context { changes: &changes, unchanged: &unchanged };
        let reads = Cell::new(0);
        let read = |state: &State| {
            reads.set(reads.get() + 1);
            crate::read_crio(state)
        };
        let files = Files::of(&context, &read);
        assert_eq!(reads.get(), 0);
        for name in 0..220 {
            let is_elsewhere = name < 100 || (200..210).contains(&name);
            let handler = format!("Handler-{name}");
            assert_eq!(files.is_elsewhere(MINE, &handler), is_elsewhere, "{handler}");
        }
        // Both sides of two changed files, and 100 that stay.
        assert_eq!(reads.get(), 104);
    }

    #[test]
    fn a_file_that_cannot_be_read_may_define_any_handler_but_of_its_own_it_is_not_asked() {
        let changes = [test::file_added(MINE, "[[")];
        let context = Context { changes: &changes, unchanged: &[] };
        let files = Files::of(&context, &crate::read_crio);
        assert!(!files.is_elsewhere(MINE, "kata"));
        assert!(files.is_elsewhere("/etc/crio/crio.conf.d/50-other", "kata"));
    }
}
