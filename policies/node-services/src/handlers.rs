//! Which files of CRI-O define which runtime handlers.

use crate::service::Service;
use std::cell::OnceCell;
use tread_guest_sdk::{Context, State};
use tread_policy_formats::{Map, Table, Value};

/// What all files of CRI-O in a call define, before or after the change. They are read when this is
/// asked for the first time, and only then: a change may bring many handlers.
pub(crate) struct Handlers<'c> {
    context: &'c Context<'c>,
    read: &'c dyn Fn(&State) -> Option<Table>,
    defined: OnceCell<Defined<'c>>,
}

/// The paths of files, by what they define.
#[derive(Default)]
struct Defined<'c> {
    /// By the name of a handler in lower case: CRI-O takes it in any case.
    by_handler: Map<Vec<&'c str>>,
    /// Those that cannot be read may define any.
    unreadable: Vec<&'c str>,
}

impl<'c> Handlers<'c> {
    /// `read` gives nothing for a file that cannot be read.
    pub(crate) fn of(
        context: &'c Context<'c>,
        read: &'c dyn Fn(&State) -> Option<Table>,
    ) -> Handlers<'c> {
        Handlers { context, read, defined: OnceCell::new() }
    }

    /// Whether a file other than `path` defines this handler, as far as that can be told.
    pub(crate) fn is_elsewhere(&self, path: &str, handler: &str) -> bool {
        let defined = self.defined.get_or_init(|| self.defined());
        let named = defined.by_handler.get(&handler.to_ascii_lowercase());
        let mut files = named.into_iter().flatten().chain(&defined.unreadable);
        files.any(|other| *other != path)
    }

    fn defined(&self) -> Defined<'c> {
        let changed = self.context.changes.iter();
        let changed = changed.flat_map(|it| [(it.path(), &it.before), (it.path(), &it.after)]);
        let unchanged = self.context.unchanged.iter().map(|it| (it.path(), &it.state));
        let mut defined = Defined::default();
        for (path, state) in changed.chain(unchanged) {
            let Some(path) = path.filter(|path| Service::of(path) == Some(Service::Crio)) else {
                continue;
            };
            match (self.read)(state) {
                Some(table) => defined.add(path, &table, &["crio", "runtime", "runtimes"]),
                None => defined.unreadable.push(path),
            }
        }
        defined
    }
}

impl<'c> Defined<'c> {
    /// The keys of the table at this place, which CRI-O finds in any case.
    fn add(&mut self, path: &'c str, table: &Table, place: &[&str]) {
        let Some((next, rest)) = place.split_first() else {
            for handler in table.keys() {
                let files = self.by_handler.get_or_add(handler.to_ascii_lowercase(), Vec::new);
                // Both sides of a file come one after the other.
                if let Some(files) = files.filter(|files| files.last() != Some(&path)) {
                    files.push(path);
                }
            }
            return;
        };
        for (key, value) in table.iter() {
            if let Value::Table(inner) = value
                && key.eq_ignore_ascii_case(next)
            {
                self.add(path, inner, rest);
            }
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
        let handlers = Handlers::of(&context, &read);
        assert_eq!(reads.get(), 0);
        for name in 0..220 {
            let is_elsewhere = name < 100 || (200..210).contains(&name);
            let handler = format!("Handler-{name}");
            assert_eq!(handlers.is_elsewhere(MINE, &handler), is_elsewhere, "{handler}");
        }
        // Both sides of two changed files, and 100 that stay.
        assert_eq!(reads.get(), 104);
    }

    #[test]
    fn a_file_that_cannot_be_read_may_define_any_handler_but_of_its_own_it_is_not_asked() {
        let changes = [test::file_added(MINE, "[[")];
        let context = Context { changes: &changes, unchanged: &[] };
        let handlers = Handlers::of(&context, &crate::read_crio);
        assert!(!handlers.is_elsewhere(MINE, "kata"));
        assert!(handlers.is_elsewhere("/etc/crio/crio.conf.d/50-other", "kata"));
    }
}
