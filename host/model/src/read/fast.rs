//! The common case, fast: one JSON document on each side, or several in which
//! nothing has to be merged.
//!
//! A pull reader over the bytes. Over one document on each side it runs in
//! lockstep: where the new side has an entry with the very text of the old
//! side's, it takes over what was read there and skips the bytes.
//!
//! It is strict: whatever it accepts, the diagnosing reader accepts too, and
//! with the same result. Where it is in any doubt it returns `None`, and the
//! diagnosing reader reads everything again.

mod config;
mod cursor;
mod entries;
mod several;
mod sort;

use super::diagnosing::Order;
use super::document::Input;
use super::side::Side;
use entries::Known;
use sort::sort;

/// Reads one side; `None` if in doubt.
pub(super) fn side<'a>(inputs: &[Input<'a>], by: Order) -> Option<Side<'a>> {
    several::side(inputs, by)
}

/// Reads both sides; `None` if in doubt.
pub(super) fn sides<'a>(old: &[Input<'a>], new: &[Input<'a>]) -> Option<(Side<'a>, Side<'a>)> {
    let ([old], [new]) = (old, new) else {
        return Some((side(old, Order::ByRole)?, side(new, Order::ByRole)?));
    };
    let mut first = config::read(old, &Known::default())?;
    let known = Known { files: &first.config.files, units: &first.config.units };
    let mut second = config::read(new, &known)?;
    sort(&mut first.config)?;
    sort(&mut second.config)?;
    Some((first.into_side(old), second.into_side(new)))
}
