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

use super::{Input, Side};
use crate::config::NodeConfig;
use crate::config::Place;
use entries::Known;

/// Reads both sides; `None` if in doubt.
pub(super) fn sides<'a>(old: &[Input<'a>], new: &[Input<'a>]) -> Option<(Side<'a>, Side<'a>)> {
    let ([old], [new]) = (old, new) else {
        return Some((several::side(old)?, several::side(new)?));
    };
    let mut first = config::read(old, &Known::default())?;
    let known = Known { files: &first.config.files, units: &first.config.units };
    let mut second = config::read(new, &known)?;
    sort(&mut first.config)?;
    sort(&mut second.config)?;
    Some((side(old, first), side(new, second)))
}

fn side<'a>(input: &Input<'a>, document: config::Document<'a>) -> Side<'a> {
    let place =
        Place { file: input.name.to_owned(), document: String::new(), config: document.path };
    let config = NodeConfig { places: vec![place], ..document.config };
    Side { config, mirrors: Vec::new(), makeup: document.makeup }
}

/// Sorts what may be in any order; `None` if something stands there twice.
fn sort(config: &mut NodeConfig<'_>) -> Option<()> {
    sort_by(&mut config.files, |file| &file.path)?;
    sort_by(&mut config.units, |unit| &unit.name)?;
    sort_by(&mut config.users, |user| &user.name)?;
    super::normal::sort(&mut config.extensions);
    Some(())
}

/// Sorts by key; `None` if two have the same one.
fn sort_by<T>(entries: &mut [T], key: impl Fn(&T) -> &str) -> Option<()> {
    if !entries.is_sorted_by(|a, b| key(a) < key(b)) {
        entries.sort_unstable_by(|a, b| key(a).cmp(key(b)));
    }
    entries.is_sorted_by(|a, b| key(a) < key(b)).then_some(())
}
