//! Units of which a new config does not say whether they are enabled.
//!
//! If the config before said it, and the new one does not, the unit becomes what it was before
//! tread, or else what the host's presets say. A unit that is new on the host is enabled by its
//! presets, as a package's would be. All others are left as they are.

use crate::desired::{
    Desired, Enabling, Impossible, LeftOpen, MASK, OWN_UNITS, UNITS, Why, is_own,
};
use crate::journal::Owned;
use crate::originals::{Original, Originals};
use crate::prepare::{Target, Wanted};
use std::collections::BTreeSet;
use tread_model::canonical;
use tread_model::config::{NodeConfig, Unit};

/// What changes between two configs for units that the new one leaves open.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// For the host's presets.
    pub units: Vec<LeftOpen>,
    /// The links and masks of before tread that come back, in place of presets.
    pub restored: BTreeSet<String>,
}

/// The units that a new config leaves open, and that are not left as they are.
pub fn open(old: &NodeConfig<'_>, new: &NodeConfig<'_>, originals: &Originals) -> Open {
    let mut open = Open::default();
    let brings = |unit: &Unit<'_>| canonical::text(&unit.contents).is_some();
    let find = |config: &'_ NodeConfig<'_>, name: &str| {
        config.units.iter().position(|unit| unit.name == name)
    };
    for unit in &old.units {
        let now = find(new, &unit.name).and_then(|at| new.units.get(at));
        if canonical::mask(unit) == Some(false) && now.and_then(canonical::mask).is_none() {
            open.restored.extend(mask_of(&unit.name, originals));
        }
        if now.is_some_and(|now| now.mask == Some(true) || canonical::enabled(now).is_some()) {
            continue;
        }
        let said = canonical::enabled(unit).is_some();
        let restored = if said { links_of(&unit.name, originals) } else { BTreeSet::new() };
        let gone = brings(unit) && !now.is_some_and(brings);
        match (said && restored.is_empty(), gone) {
            (true, _) => open.add(&unit.name, Why::Lost),
            (false, true) => open.add(&unit.name, Why::Gone),
            (false, false) => {}
        }
        open.restored.extend(restored);
    }
    for unit in new.units.iter().filter(|unit| brings(unit) && unit.mask != Some(true)) {
        if canonical::enabled(unit).is_none() && find(old, &unit.name).is_none() {
            open.add(&unit.name, Why::New);
        }
    }
    open
}

impl Open {
    fn add(&mut self, unit: &str, why: Why) {
        self.units.push(LeftOpen { unit: unit.to_owned(), why });
    }
}

/// The mask of a unit that was there before tread.
fn mask_of(unit: &str, originals: &Originals) -> Option<String> {
    let path = format!("{UNITS}/{unit}");
    let is_mask = |it: &Original| matches!(it, Original::Link { target } if target == MASK);
    originals.get(&path).is_some_and(is_mask).then_some(path)
}

/// The links to a unit that were there before tread.
fn links_of(unit: &str, originals: &Originals) -> BTreeSet<String> {
    let last = |path: &str| path.rsplit('/').next().is_some_and(|name| name == unit);
    let own = format!("{UNITS}/{unit}");
    let links = originals.iter().filter_map(|(path, original)| match original {
        Original::Link { target } => {
            (path.starts_with(UNITS) && *path != own && (last(path) || last(target)))
                .then(|| path.clone())
        }
        Original::File { .. } | Original::Password => None,
    });
    links.collect()
}

/// Adds what presets make of links to all else that changes. What the new config says of a
/// path holds, and so does what stood there before tread. None may make one of tread's own units
/// something else, and none of the links goes that enable them.
pub fn add(
    targets: &mut Vec<Target<'static>>,
    links: Vec<(String, Enabling)>,
    after: &Desired<'_>,
) -> Result<(), Vec<Impossible>> {
    let impossible = links.iter().filter_map(|(unit, Enabling { path, target })| {
        let why = target.as_ref().and_then(|_| is_own(path))?;
        Some(Impossible { of: format!("unit:{unit}"), why })
    });
    let impossible: Vec<Impossible> = impossible.collect();
    if !impossible.is_empty() {
        return Err(impossible);
    }
    for (_, Enabling { path, target }) in links {
        if after.pieces.contains_key(&path) || (target.is_none() && enables_an_own_unit(&path)) {
            continue;
        }
        let there = targets.iter_mut().find(|it| it.path == path);
        match (there, target) {
            (Some(there), Some(target)) => there.wanted = Wanted::Link { target },
            // It goes already, or was there before tread.
            (Some(_), None) => {}
            (None, target) => {
                let wanted = target.map_or(Wanted::Absent, |target| Wanted::Link { target });
                targets.push(Target { path, wanted, folders: Owned::Root });
            }
        }
    }
    Ok(())
}

/// Whether a link enables one of tread's own units, as where a config's unit names it in `Also=`.
fn enables_an_own_unit(path: &str) -> bool {
    OWN_UNITS.iter().any(|own| {
        let folder = path.strip_suffix(own).and_then(|path| path.strip_suffix('/'));
        folder.is_some_and(|folder| folder != UNITS)
    })
}

#[cfg(test)]
mod tests;
