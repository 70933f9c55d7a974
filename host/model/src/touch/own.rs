//! Units that the configs bring along, and what they do to the system when they
//! are touched.

mod says;

use crate::canonical;
use crate::config::{NodeConfig, Unit};
use crate::contents;
use crate::plan::UNIT_DIRECTORIES;
use crate::unit_name::kind_of_unit;
use says::{aliases, ends};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// What two configs say of their units.
#[derive(Debug, Default)]
pub struct OwnUnits<'c> {
    /// Of unit files and drop-ins, by the name that they are written for.
    texts: BTreeMap<&'c str, Vec<Cow<'c, str>>>,
    /// Which units have a name as an alias.
    aliases: BTreeMap<String, Vec<&'c str>>,
    /// What a name leads to by links: other names of it, and what it starts.
    links: BTreeMap<String, Vec<String>>,
}

impl<'c> OwnUnits<'c> {
    /// Of the two configs that are compared.
    pub fn of(old: &'c NodeConfig<'_>, new: &'c NodeConfig<'_>) -> OwnUnits<'c> {
        let mut all = OwnUnits::default();
        for config in [old, new] {
            for unit in &config.units {
                texts_of(unit).for_each(|text| all.add(&unit.name, Cow::Borrowed(text)));
            }
            files(config).for_each(|(unit, text)| all.add(unit, text));
            links(config).for_each(|(name, leads_to)| {
                all.links.entry(name).or_default().push(leads_to);
            });
        }
        all
    }

    fn add(&mut self, unit: &'c str, text: Cow<'c, str>) {
        if memchr::memmem::find(text.as_bytes(), b"Alias").is_some() {
            for alias in aliases(&text) {
                self.aliases.entry(alias).or_default().push(unit);
            }
        }
        self.texts.entry(unit).or_default().push(text);
    }

    /// Why touching a unit would not be gentle, by what either config says of it,
    /// as the rest of a sentence that begins with its name. It quotes nothing.
    pub fn why_not_gentle(&self, name: &str) -> Option<String> {
        let by_alias = self.aliases.get(name).into_iter().flatten().copied();
        let names: BTreeSet<&str> = std::iter::once(name).chain(by_alias).collect();
        for of in &names {
            let which = match *of == name {
                true => "its unit".to_owned(),
                false => format!("{of}, which has it as an alias,"),
            };
            if let Some(what) = self.texts(of).find_map(|text| ends(text)) {
                return Some(format!("would not be touched gently: {which} {what}"));
            }
        }
        let also = names.iter().flat_map(|of| self.texts(of)).flat_map(|text| aliases(text));
        let linked = names.iter().filter_map(|of| self.links.get(*of)).flatten().cloned();
        let mut known = also.chain(linked).chain(names.iter().map(|name| (*name).to_owned()));
        known.any(|it| super::touch_gently(&it).is_err() && kind_of_unit(&it).is_some()).then(
            || {
                "would not be touched gently: the configs make it an alias of what ends the system"
                    .to_owned()
            },
        )
    }

    /// Everything that is written of a unit: of it, of its template, and of all
    /// units whose names begin or end alike.
    fn texts(&self, name: &str) -> impl Iterator<Item = &Cow<'c, str>> {
        let names = names_for(name);
        let found: Vec<_> =
            names.iter().filter_map(|name| self.texts.get(name.as_str())).flatten().collect();
        found.into_iter()
    }
}

/// What the links of a config are among units: a name, and one that it leads to, or
/// that it starts.
fn links(config: &NodeConfig<'_>) -> impl Iterator<Item = (String, String)> {
    let fixed = config.fixed.iter().find(|fixed| fixed.id == crate::refuse::LINKS);
    let all = fixed.and_then(|fixed| serde_json::from_str::<Value>(&fixed.value).ok());
    let Some(Value::Array(all)) = all else { return Vec::new().into_iter() };
    let mut found = Vec::new();
    for link in &all {
        let text = |key: &str| link.get(key).and_then(Value::as_str);
        let (Some(path), Some(target)) = (text("path"), text("target")) else { continue };
        let target = target.rsplit('/').next().unwrap_or(target);
        let Some(place) = in_unit_directory(path) else { continue };
        let Some((directory, started)) = place.split_once('/') else {
            found.push((place.to_owned(), target.to_owned()));
            found.push((target.to_owned(), place.to_owned()));
            continue;
        };
        let ends = [".wants", ".requires", ".upholds"];
        if let Some(of) = ends.iter().find_map(|end| directory.strip_suffix(end)) {
            found.push((of.to_owned(), started.to_owned()));
        }
    }
    found.into_iter()
}

fn texts_of<'c>(unit: &'c Unit<'_>) -> impl Iterator<Item = &'c str> {
    let dropins = unit.dropins.iter().filter_map(|dropin| canonical::text(&dropin.contents));
    canonical::text(&unit.contents).into_iter().chain(dropins)
}

/// The names under which systemd looks for what is written of a unit: its own, its
/// template's, those that it shares with others that begin alike, and its type.
fn names_for(name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    let Some((stem, kind)) = name.rsplit_once('.') else { return names };
    if let Some((prefix, _)) = stem.split_once('@') {
        names.push(format!("{prefix}@.{kind}"));
    }
    for (end, _) in stem.match_indices('-') {
        names.extend(stem.get(..=end).map(|begin| format!("{begin}.{kind}")));
    }
    names.push(kind.to_owned());
    names
}

fn in_unit_directory(path: &str) -> Option<&str> {
    UNIT_DIRECTORIES.iter().find_map(|directory| path.strip_prefix(directory))
}

/// Files in which systemd finds units and drop-ins: the unit's name and the text of
/// each.
fn files<'c>(config: &'c NodeConfig<'_>) -> impl Iterator<Item = (&'c str, Cow<'c, str>)> {
    config.files.iter().filter_map(|file| {
        let place = in_unit_directory(&file.path)?;
        let unit = match place.split_once('/') {
            None => place,
            Some((directory, _)) => directory.strip_suffix(".d")?,
        };
        let bytes = contents::decode(&file.contents).ok()??;
        let text = match bytes {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        };
        Some((unit, text))
    })
}

#[cfg(test)]
mod tests;
