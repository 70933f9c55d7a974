//! What goes of the config last applied, before it is decided which links enable units.

use crate::desired::{Desired, Piece, UNITS, Unlinked};
use crate::left_open::Open;
use crate::originals::{self, Originals};
use crate::prepare::Target;
use crate::tree::{PathError, Tree};

/// What becomes of the paths that the config before had, and the new one has not, but for those where
/// what is there `stays`; and the links of before tread that come back. The links of a unit stand, as
/// long as the new config says whether it is enabled: by that they stay, or go.
pub(super) fn gone(
    tree: &Tree,
    originals: &Originals,
    (before, after, open): (&Desired<'_>, &Unlinked<'_>, &Open),
    stays: impl Fn(&str) -> bool,
) -> Result<Vec<Target<'static>>, PathError> {
    let goes = |(path, piece): &(&String, &Piece<'_>)| {
        let is_said = enables(path, piece).is_some_and(|unit| after.says(unit));
        !is_said && !after.has(path) && !stays(path)
    };
    let goes = before.pieces.iter().filter(goes).map(|(path, _)| path);
    let mut gone = Vec::new();
    for path in goes.chain(&open.restored) {
        gone.extend(originals::restore(tree, originals, path)?);
    }
    Ok(gone)
}

/// The unit whose link a piece is.
fn enables<'p>(path: &str, piece: &'p Piece<'_>) -> Option<&'p str> {
    let unit = piece.of.strip_prefix("unit:")?;
    let own = path.strip_prefix(UNITS)?.strip_prefix('/')?.strip_prefix(unit);
    let is_text = own.is_some_and(|rest| rest.is_empty() || rest.starts_with(".d/"));
    (!is_text).then_some(unit)
}
