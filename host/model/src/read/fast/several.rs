//! A side of several MachineConfigs, of which no two say anything of the same
//! thing: what has to be merged is left to the diagnosing reader.

use super::config;
use super::entries::Known;
use super::sort::sort;
use crate::config::{KernelType, NodeConfig, Place};
use crate::read::diagnosing::Order;
use crate::read::document::Input;
use crate::read::makeup::{Makeup, is_base, merge_order};
use crate::read::side::Side;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Reads one side; `None` if in doubt.
pub(super) fn side<'a>(inputs: &[Input<'a>], by: Order) -> Option<Side<'a>> {
    if let [input] = inputs {
        let mut document = config::read(input, &Known::default())?;
        sort(&mut document.config)?;
        return Some(document.into_side(input));
    }
    let (mut configs, mut places) = (Vec::new(), Vec::new());
    for (number, input) in (0..).zip(inputs) {
        let config::Document { mut config, path, makeup, is_generated } =
            config::read(input, &Known::default())?;
        // A rendered config has no others beside it, and an Ignition config has no
        // name of its own: both are left to the diagnosing reader.
        let Makeup::Single(role) = makeup else { return None };
        config.files.iter_mut().for_each(|file| file.origin.document = number);
        config.units.iter_mut().for_each(|unit| unit.origin.document = number);
        config.users.iter_mut().for_each(|user| user.origin.document = number);
        configs.push((role, config, is_generated));
        places.push(Place { file: input.name.to_owned(), document: String::new(), config: path });
    }
    let names: BTreeSet<&str> = configs.iter().map(|(_, config, _)| config.name.as_ref()).collect();
    if configs.is_empty() || names.len() < configs.len() {
        return None;
    }
    if by == Order::ByRole {
        let roles = configs.iter().map(|(role, ..)| role_of(role.as_ref()));
        let roles: BTreeSet<&str> = roles.collect();
        let base = roles.iter().filter(|role| is_base(role)).count();
        if base > 1 || roles.len() - base > 1 {
            return None;
        }
        configs.sort_by(|a, b| order(a).cmp(&order(b)));
    }
    let named = || configs.iter().filter_map(|(role, ..)| role.as_ref());
    let pool = named().find(|role| !is_base(role)).or_else(|| named().next()).cloned();
    let configs = configs.into_iter().map(|(_, config, is_generated)| (config, is_generated));
    let config = merged(configs, places)?;
    Some(Side { config, mirrors: Vec::new(), makeup: Makeup::Single(pool) })
}

/// In which order the operator merges configs for a pool.
fn order<'c>((role, config, _): &'c (Option<String>, NodeConfig<'_>, bool)) -> (bool, &'c str) {
    merge_order(role.as_deref(), &config.name)
}

/// A config that says nothing belongs to a pool of workers as well.
fn role_of(role: Option<&String>) -> &str {
    role.map_or("worker", String::as_str)
}

/// All of them together; `None` if two have something of the same name.
fn merged<'a>(
    configs: impl Iterator<Item = (NodeConfig<'a>, bool)>,
    places: Vec<Place>,
) -> Option<NodeConfig<'a>> {
    let mut all = NodeConfig { places, ..NodeConfig::default() };
    let mut names = Vec::new();
    // The image of a config that the operator made counts where no other one has any.
    let mut of_operator = Cow::Borrowed("");
    for (config, is_generated) in configs {
        // Whether a config says "default", or nothing, is not known any more.
        if config.kernel_type != KernelType::Default || !config.fixed.is_empty() {
            return None;
        }
        names.push(config.name);
        all.files.extend(config.files);
        all.units.extend(config.units);
        all.users.extend(config.users);
        all.kernel_arguments.extend(config.kernel_arguments);
        all.extensions.extend(config.extensions);
        all.fips |= config.fips;
        if !config.os_image.is_empty() {
            let image = if is_generated { &mut of_operator } else { &mut all.os_image };
            *image = config.os_image;
        }
    }
    if all.os_image.is_empty() {
        all.os_image = of_operator;
    }
    all.name = Cow::Owned(names.join("+"));
    sort(&mut all)?;
    Some(all)
}
