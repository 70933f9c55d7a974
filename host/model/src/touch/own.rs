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
use std::collections::BTreeSet;

/// What two configs say of their units.
#[derive(Debug, Clone, Copy)]
pub struct OwnUnits<'c, 'a>([&'c NodeConfig<'a>; 2]);

impl<'c, 'a> OwnUnits<'c, 'a> {
    /// Of the two configs that are compared.
    pub fn of(old: &'c NodeConfig<'a>, new: &'c NodeConfig<'a>) -> OwnUnits<'c, 'a> {
        OwnUnits([old, new])
    }

    /// Why touching a unit would not be gentle, by what either config says of it,
    /// as the rest of a sentence that begins with its name. It quotes nothing.
    pub fn why_not_gentle(&self, name: &str) -> Option<String> {
        let mut names = BTreeSet::from([name.to_owned()]);
        names.extend(self.named_by_alias(name));
        let texts: Vec<(&String, Cow<'_, str>)> =
            names.iter().flat_map(|of| self.texts(of).map(move |text| (of, text))).collect();
        for (of, text) in &texts {
            let which = match *of == name {
                true => "its unit".to_owned(),
                false => format!("{of}, which has it as an alias,"),
            };
            if let Some(what) = ends(text) {
                return Some(format!("would not be touched gently: {which} {what}"));
            }
        }
        let also = texts.iter().flat_map(|(_, text)| aliases(text));
        let linked = names.iter().flat_map(|of| self.linked(of));
        let mut known = also.chain(linked).chain(names.iter().cloned());
        known.any(|it| super::touch_gently(&it).is_err() && kind_of_unit(&it).is_some()).then(
            || {
                "would not be touched gently: the configs make it an alias of what ends the system"
                    .to_owned()
            },
        )
    }

    /// The units that have this name as an alias.
    fn named_by_alias(&self, name: &str) -> Vec<String> {
        let has = |text: &str| may_alias(text) && aliases(text).any(|alias| alias == name);
        let mut found = Vec::new();
        for config in self.0 {
            for unit in &config.units {
                let mut texts = texts_of(unit);
                if texts.any(has) {
                    found.push(unit.name.clone().into_owned());
                }
            }
            for (unit, _, text) in files(config) {
                if has(&text) {
                    found.push(unit.to_owned());
                }
            }
        }
        found
    }

    /// What a unit's links lead to: other names of it.
    fn linked(&self, name: &str) -> Vec<String> {
        let mut found = Vec::new();
        for fixed in self.0.iter().flat_map(|config| &config.fixed) {
            if fixed.id != crate::refuse::LINKS || !fixed.value.contains("systemd") {
                continue;
            }
            let Ok(Value::Array(links)) = serde_json::from_str(&fixed.value) else { continue };
            for link in &links {
                let text = |key: &str| link.get(key).and_then(Value::as_str);
                let (Some(path), Some(target)) = (text("path"), text("target")) else { continue };
                let target = target.rsplit('/').next().unwrap_or(target);
                let Some(place) = in_unit_directory(path) else { continue };
                match place.split_once('/') {
                    None if place == name => found.push(target.to_owned()),
                    None if target == name => found.push(place.to_owned()),
                    // What it starts.
                    Some((directory, started)) => {
                        let of = [".wants", ".requires", ".upholds"]
                            .iter()
                            .find_map(|end| directory.strip_suffix(end));
                        if of == Some(name) {
                            found.push(started.to_owned());
                        }
                    }
                    None => {}
                }
            }
        }
        found
    }

    /// Everything that is written of a unit: the unit file and drop-ins, of it, of
    /// its template, and of all units whose names begin or end alike.
    fn texts(&self, name: &str) -> impl Iterator<Item = Cow<'c, str>> + use<'c, 'a> {
        let names = names_for(name);
        let mut texts = Vec::new();
        for config in self.0 {
            for unit in config.units.iter().filter(|unit| names.iter().any(|it| *it == unit.name)) {
                texts.extend(texts_of(unit).map(Cow::Borrowed));
            }
            let files = files(config).filter(|(unit, ..)| names.iter().any(|it| it == unit));
            texts.extend(files.map(|(_, _, text)| text));
        }
        texts.into_iter()
    }
}

fn may_alias(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), b"Alias").is_some()
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

/// Files in which systemd finds units and drop-ins: the unit's name, the path and
/// the text of each.
fn files<'c>(config: &'c NodeConfig<'_>) -> impl Iterator<Item = (&'c str, &'c str, Cow<'c, str>)> {
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
        Some((unit, file.path.as_ref(), text))
    })
}

#[cfg(test)]
mod tests;
