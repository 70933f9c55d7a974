//! The units of a config, which Ignition writes to files of their own.

use crate::canonical;
use crate::config::{Dropin, NodeConfig, Unit};

/// The unit of this name, if the config has it.
pub(super) fn unit<'c, 'a>(config: &'c NodeConfig<'a>, name: &str) -> Option<&'c Unit<'a>> {
    let at = config.units.binary_search_by(|unit| unit.name.as_ref().cmp(name)).ok()?;
    config.units.get(at)
}

/// The drop-in of this name, if the unit has it.
fn dropin<'u, 'a>(unit: &'u Unit<'a>, name: &str) -> Option<&'u Dropin<'a>> {
    let at = unit.dropins.binary_search_by(|dropin| dropin.name.as_ref().cmp(name)).ok()?;
    unit.dropins.get(at)
}

/// The unit of the config that is, or has a drop-in, at this path.
pub(super) fn unit_at<'c>(config: &'c NodeConfig<'_>, path: &str) -> Option<&'c str> {
    let name = path.strip_prefix("/etc/systemd/system/")?;
    let is_there = |text: &Option<_>| canonical::text(text).is_some();
    let unit = match name.split_once('/') {
        None => unit(config, name).filter(|unit| is_there(&unit.contents)),
        Some((directory, name)) => unit(config, directory.strip_suffix(".d")?)
            .filter(|unit| dropin(unit, name).is_some_and(|it| is_there(&it.contents))),
    };
    unit.map(|unit| unit.name.as_ref())
}
