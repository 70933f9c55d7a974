//! What is written of units, and where it stands.

use std::borrow::Cow;
use std::fmt;

/// How many bytes of text are looked at for all units that one policy names: a
/// hundred times as much as real configs have.
pub const ROOM: usize = 8 << 20;
/// A unit takes as much besides its text.
pub(super) const PER_UNIT: usize = 256;
/// Something that is written of a unit.
#[derive(Debug)]
pub(super) struct Text<'c> {
    pub(super) text: Cow<'c, str>,
    pub(super) place: Place<'c>,
    pub(super) is_secret: bool,
}

impl<'c> Text<'c> {
    /// A line of it, if that is all that may be told.
    pub(super) fn hidden(&self, line: usize) -> Option<Hidden<'c>> {
        self.is_secret.then_some(Hidden { place: self.place, line })
    }
}

/// A line of a secret text. What it says, and of which unit, is not told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hidden<'c> {
    pub(super) place: Place<'c>,
    pub(super) line: usize,
}

impl fmt::Display for Hidden<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of {}", self.line, self.place)
    }
}

/// Where something is written of a unit.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'c> {
    Unit,
    DropIn(&'c str),
    File(&'c str),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Unit => f.write_str("its contents"),
            Place::DropIn(name) => write!(f, "its drop-in {name}"),
            Place::File(path) => f.write_str(path),
        }
    }
}
