//! The links that enable a unit, decided as `systemctl enable`, `disable`, `preset` and
//! `is-enabled` decide, before anything is written.
//!
//! What a unit's `[Install]` section says is data: the links are part of what a config
//! puts on the disk, go through the journal with it, and are compared like files. All
//! of systemd's rules are kept, also those by which it refuses.

mod context;
mod error;
mod links;
mod load;
mod places;
mod removal;
mod section;
mod specifiers;
mod state;

pub use error::InstallError;
pub use links::Link;
pub use specifiers::Facts;
pub use state::State;

use crate::presets::{Preset, Presets};
use crate::unit_name::UnitName;
use crate::view::{Entry, View};
use context::{Context, How};

/// What presets make of a unit's links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PresetLinks {
    /// The links that are removed.
    pub removed: Vec<String>,
    /// The links that are there afterwards.
    pub links: Vec<Link>,
}

/// The links that enabling a unit makes, those included that are there already.
pub fn enable(view: &dyn View, facts: &Facts, name: &str) -> Result<Vec<Link>, InstallError> {
    let mut context = Context::new(view, facts);
    links::add(&mut context, name)?;
    links::all(&mut context, false)
}

/// The links that disabling a unit removes. Folders that they leave empty may stay.
pub fn disable(view: &dyn View, facts: &Facts, name: &str) -> Result<Vec<String>, InstallError> {
    let mut context = Context::new(view, facts);
    context.add(name, false)?;
    removal::all(&mut context, How { load: true, follow: true })
}

/// What the host's presets make of a unit's links.
pub fn preset(
    view: &dyn View,
    facts: &Facts,
    presets: &Presets,
    name: &str,
) -> Result<PresetLinks, InstallError> {
    let found = How { load: false, follow: true };
    let mut context = Context::new(view, facts);
    let at = context.add(name, false)?;
    let at = context.traverse(at, found)?;
    let unit = UnitName::of(name).ok_or_else(|| InstallError::Name(name.to_owned()))?;
    if context.info(at).name != name {
        // Presets speak of units, not of their other names.
        return Ok(PresetLinks::default());
    }
    let names = match presets.of(unit) {
        Preset::Ignore => return Ok(PresetLinks::default()),
        Preset::Disable => {
            let removed = removal::all(&mut context, found)?;
            return Ok(PresetLinks { removed, links: Vec::new() });
        }
        Preset::Enable => vec![name.to_owned()],
        Preset::EnableInstances(names) => names,
    };
    let mut context = Context::new(view, facts);
    for name in names {
        links::add(&mut context, &name)?;
    }
    let links = links::all(&mut context, true)?;
    Ok(PresetLinks { removed: Vec::new(), links })
}

/// Whether a unit is enabled, as systemctl says it.
pub fn state(view: &dyn View, facts: &Facts, name: &str) -> Result<State, InstallError> {
    state::of(&mut Context::new(view, facts), name)
}

/// The links that a unit lacks, if it shall be enabled, or has and should not, if it
/// shall be disabled: none if what the config says of it holds.
pub fn lacks(
    view: &dyn View,
    facts: &Facts,
    name: &str,
    enabled: bool,
) -> Result<Vec<String>, InstallError> {
    if !enabled {
        return disable(view, facts, name);
    }
    let mut lacking = Vec::new();
    for link in enable(view, facts, name)? {
        let entry = view.entry(&link.path)?;
        if entry != Entry::Link(link.target) {
            lacking.push(link.path);
        }
    }
    Ok(lacking)
}

#[cfg(test)]
mod tests;
