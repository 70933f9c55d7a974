//! The units to look at, from one to those that belong to it.

use super::names::is_too_long;
use super::needed::is_harmless_conflict;
use super::relations::Does;
use super::written::{Hidden, PER_UNIT, ROOM};
use std::collections::BTreeSet;

/// There is room for no more units than these.
const MOST_VISITS: usize = ROOM / PER_UNIT;

/// A unit to look at, what comes of it, and how it belongs to the first one.
pub(super) struct Visit<'c> {
    pub(super) unit: String,
    pub(super) comes: Does,
    pub(super) how: How<'c>,
}

/// How a unit belongs to the first one.
#[derive(Clone, Copy, Default)]
pub(super) struct How<'c> {
    /// To the one before it; of the first one there are none.
    pub(super) words: &'static str,
    /// The first secret line on the way to it.
    pub(super) hidden: Option<Hidden<'c>>,
}

impl<'c> How<'c> {
    /// How one belongs to the first one that belongs to this one by a line.
    pub(super) fn then(self, words: &'static str, hidden: Option<Hidden<'c>>) -> How<'c> {
        How { words, hidden: self.hidden.or(hidden) }
    }
}

/// Units to look at, each once for all that comes of it.
#[derive(Default)]
pub(super) struct Next<'c> {
    known: BTreeSet<(String, Does)>,
    pub(super) visits: Vec<Visit<'c>>,
    /// There are more than are looked at, or one has a name that none has.
    pub(super) too_much: bool,
}

impl<'c> Next<'c> {
    pub(super) fn add(&mut self, unit: &str, comes: Does, how: How<'c>) {
        if comes == Does::Stop && is_harmless_conflict(unit) {
            return;
        }
        if is_too_long(unit) || self.known.len() >= MOST_VISITS {
            self.too_much = true;
        } else if self.known.insert((unit.to_owned(), comes)) {
            self.visits.push(Visit { unit: unit.to_owned(), comes, how });
        }
    }
}
