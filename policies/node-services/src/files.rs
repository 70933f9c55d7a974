//! Which files of CRI-O define which runtime handlers, and which set what a reload reads again.

use crate::reload;
use crate::service::Service;
use std::cell::OnceCell;
use tread_guest_sdk::{Context, State};
use tread_policy_formats::{Map, Table, Value};

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
    /// Of those that set a key of a reload after the change, or may, the one that is read last.
    last: [Option<&'c str>; reload::SETTINGS.len()],
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

    /// Whether a file that CRI-O reads after `path` sets this one of [`reload::SETTINGS`] after the
    /// change, as far as that can be told.
    pub(crate) fn is_set_later(&self, path: &str, setting: usize) -> bool {
        let last = self.said().last.get(setting).copied().flatten();
        last.is_some_and(|last| is_read_later(last, path))
    }

    fn said(&self) -> &Said<'c> {
        self.said.get_or_init(|| {
            let mut said = Said::default();
            for change in self.context.changes {
                said.read(change.path(), &change.before, false, self.read);
                said.read(change.path(), &change.after, true, self.read);
            }
            for entry in self.context.unchanged {
                said.read(entry.path(), &entry.state, true, self.read);
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
        is_after: bool,
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
        if is_after {
            self.sets(path, table.as_ref());
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

    fn sets(&mut self, path: &'c str, table: Option<&Table>) {
        for (setting, last) in reload::SETTINGS.iter().zip(&mut self.last) {
            let mut is_set = table.is_none();
            if let Some(table) = table {
                within(table, &["crio", setting.section], &mut |section| {
                    is_set |= section.keys().any(|key| key.eq_ignore_ascii_case(setting.key));
                });
            }
            if is_set && last.is_none_or(|last| is_read_later(path, last)) {
                *last = Some(path);
            }
        }
    }
}

/// The tables at this place, which CRI-O finds in any case.
fn within(table: &Table, place: &[&str], found: &mut dyn FnMut(&Table)) {
    let Some((next, rest)) = place.split_first() else { return found(table) };
    for (key, value) in table.iter() {
        if let Value::Table(inner) = value
            && key.eq_ignore_ascii_case(next)
        {
            within(inner, rest, found);
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
