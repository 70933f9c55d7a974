//! Units that the configs bring along, and what they do to the system when they
//! are touched.

mod says;

use crate::canonical;
use crate::config::{File, NodeConfig, Unit};
use crate::contents;
use crate::plan::UNIT_DIRECTORIES;
use crate::unit_name::kind_of_unit;
use says::{aliases, ends, started, started_by, stops_with};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// How many bytes of text are looked at for all units that one policy names: a
/// hundred times as much as real configs have.
pub const ROOM: usize = 8 << 20;
/// A unit takes as much besides its text.
const PER_UNIT: usize = 256;
/// So many names of other units are kept.
const MOST_NAMES: usize = 100_000;

/// What two configs say of their units.
#[derive(Debug, Default)]
pub struct OwnUnits<'c> {
    /// Of unit files and drop-ins, by the name that they are written for.
    texts: BTreeMap<Cow<'c, str>, Vec<Cow<'c, str>>>,
    /// Which units have a name as an alias.
    aliases: BTreeMap<String, Vec<Cow<'c, str>>>,
    /// Units with an alias that only systemd can work out: each may be meant by any
    /// name.
    named_anyhow: Vec<Cow<'c, str>>,
    /// Which units stop when a unit does.
    stop_with: BTreeMap<String, Vec<Cow<'c, str>>>,
    /// What a name leads to by links: other names of it, and what it starts.
    links: BTreeMap<String, Vec<String>>,
    /// How many bytes of text are known.
    bytes: usize,
    /// How many names they hold of other units.
    named: usize,
    /// There is more than is looked at.
    too_much: bool,
}

impl<'c> OwnUnits<'c> {
    /// Of the two configs that are compared.
    pub fn of(old: &'c NodeConfig<'_>, new: &'c NodeConfig<'_>) -> OwnUnits<'c> {
        let mut all = OwnUnits::default();
        for config in [old, new] {
            for unit in &config.units {
                let name = || Cow::Borrowed(&*unit.name);
                texts_of(unit).for_each(|text| all.add(name(), Cow::Borrowed(text)));
            }
            files(config).for_each(|(unit, text)| all.add(unit, text));
            let links = links(config);
            for (unit, text) in links.iter().flat_map(|link| link.leads_to(config)) {
                all.add(unit, text);
                all.named += 1;
                if all.too_much {
                    break;
                }
            }
            for (name, leads_to) in links.iter().flat_map(Link::names) {
                all.links.entry(name).or_default().push(leads_to);
            }
        }
        all
    }

    fn add(&mut self, unit: Cow<'c, str>, text: Cow<'c, str>) {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > ROOM || self.named > MOST_NAMES {
            self.too_much = true;
            return;
        }
        let has = |word: &str| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some();
        if has("Alias") {
            for alias in aliases(&text, &unit) {
                self.named += 1;
                match alias {
                    Some(alias) => self.aliases.entry(alias).or_default().push(unit.clone()),
                    None => self.named_anyhow.push(unit.clone()),
                }
            }
        }
        let stop = ["PartOf", "BindsTo", "Requires", "Requisite", "StopPropagatedFrom"];
        if stop.into_iter().any(has) {
            let Some(others) = stops_with(&text, &unit) else {
                self.too_much = true;
                return;
            };
            self.named += others.len();
            for other in others {
                self.stop_with.entry(other).or_default().push(unit.clone());
            }
        }
        if ["WantedBy", "RequiredBy", "UpheldBy"].into_iter().any(has) {
            let Some(others) = started_by(&text, &unit) else {
                self.too_much = true;
                return;
            };
            self.named += others.len();
            for other in others {
                self.links.entry(other).or_default().push(unit.clone().into_owned());
            }
        }
        self.texts.entry(unit).or_default().push(text);
    }

    /// Why touching a unit would not be gentle, by what either config says of it,
    /// as the rest of a sentence that begins with its name. It quotes nothing. What
    /// is looked at is taken from `room`.
    pub fn why_not_gentle(&self, name: &str, room: &mut usize) -> Option<String> {
        if self.too_much {
            return Some(MORE.to_owned());
        }
        let mut next = Next::default();
        for other in &self.named_anyhow {
            next.add(other, "which has it as an alias");
        }
        next.add(name, "");
        while let Some((unit, how)) = next.units.pop() {
            let texts = self.texts(&unit);
            let takes = PER_UNIT + texts.iter().map(|text| text.len()).sum::<usize>();
            let Some(left) = room.checked_sub(takes) else { return Some(MORE.to_owned()) };
            *room = left;
            if let Some(what) = texts.iter().find_map(|text| ends(text, &unit)) {
                let which = match how {
                    "" => "its unit".to_owned(),
                    how => format!("{unit}, {how},"),
                };
                return Some(format!("would not be touched gently: {which} {what}"));
            }
            for other in self.named(&unit) {
                next.add(other, "which has it as an alias");
            }
            let also = texts.iter().flat_map(|text| aliases(text, &unit)).flatten();
            let names = names_for(&unit);
            let linked = names.iter().filter_map(|name| self.links.get(name)).flatten().cloned();
            for other in also.chain(linked) {
                if super::touch_gently(&other).is_err() && kind_of_unit(&other).is_some() {
                    return Some(
                        "would not be touched gently: the configs make it an alias of what ends \
                         the system, or of what much of a node needs, or have it start that"
                            .to_owned(),
                    );
                }
                next.add(&other, "which it starts or is");
            }
            let begun = texts.iter().flat_map(|text| started(text, &unit));
            for other in begun.chain(activated(&unit)) {
                next.add(&other, "which it starts");
            }
            for other in self.stop_with.get(&unit).into_iter().flatten() {
                if super::touch_gently(other).is_err() {
                    return Some(format!(
                        "would not be touched gently: {other} stops with it, and much of a node \
                         with that"
                    ));
                }
                next.add(other, "which stops with it");
            }
        }
        None
    }

    /// The units that have this name as an alias, or that of its template.
    fn named(&self, name: &str) -> impl Iterator<Item = &str> {
        let stem = name.rsplit_once('.');
        let template = stem.and_then(|(stem, kind)| {
            stem.split_once('@').map(|(prefix, _)| format!("{prefix}@.{kind}"))
        });
        let by_template = template.and_then(|template| self.aliases.get(&template));
        let found = self.aliases.get(name).into_iter().chain(by_template).flatten();
        found.map(|name| &**name)
    }

    /// Everything that is written of a unit: of it, of its template, and of all
    /// units whose names begin or end alike.
    fn texts(&self, name: &str) -> Vec<&Cow<'c, str>> {
        let names = names_for(name);
        names.iter().filter_map(|name| self.texts.get(name.as_str())).flatten().collect()
    }
}

/// Why a unit is not looked at.
const MORE: &str = "may not be touched gently: the configs say more of it, and of units that belong to \
                    it, than is looked at";

/// Units to look at, each once, and how each belongs to the first one.
#[derive(Default)]
struct Next {
    known: BTreeSet<String>,
    units: Vec<(String, &'static str)>,
}

impl Next {
    fn add(&mut self, unit: &str, how: &'static str) {
        if !self.known.contains(unit) {
            self.known.insert(unit.to_owned());
            self.units.push((unit.to_owned(), how));
        }
    }
}

/// A link of a config.
struct Link {
    path: String,
    target: String,
}

fn links(config: &NodeConfig<'_>) -> Vec<Link> {
    let fixed = config.fixed.iter().find(|fixed| fixed.id == crate::refuse::LINKS);
    let all = fixed.and_then(|fixed| serde_json::from_str::<Value>(&fixed.value).ok());
    let Some(Value::Array(all)) = all else { return Vec::new() };
    let links = all.iter().filter_map(|link| {
        let text = |key: &str| link.get(key).and_then(Value::as_str).map(cleaned);
        Some(Link { path: text("path")?, target: text("target")? })
    });
    links.collect()
}

/// Without slashes that say nothing.
fn cleaned(path: &str) -> String {
    let mut cleaned = String::with_capacity(path.len());
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        cleaned.push('/');
        cleaned.push_str(part);
    }
    cleaned
}

impl Link {
    /// What is written of units where it leads to: a file, or a directory of drop-ins.
    fn leads_to<'c>(
        &self,
        config: &'c NodeConfig<'_>,
    ) -> impl Iterator<Item = (Cow<'c, str>, Cow<'c, str>)> {
        let place = in_unit_directory(&self.path).unwrap_or_default();
        // The files are in the order of their paths.
        let first = config.files.partition_point(|file| *file.path < *self.target);
        let files = config.files.get(first..).unwrap_or_default().iter();
        let below = files.filter(|_| !place.is_empty()).map_while(move |file| {
            let below = file.path.strip_prefix(self.target.as_str())?;
            (below.is_empty() || place.ends_with(".d")).then_some((below, file))
        });
        below.filter_map(move |(below, file)| {
            let is_in_it = below.is_empty() || below.starts_with('/');
            let place = is_in_it.then(|| format!("{place}{below}"))?;
            let unit = unit_at(&place)?.into_owned();
            Some((Cow::Owned(unit), text_of(file)?))
        })
    }

    /// What it is among units: a name, and one that it leads to, or that it starts.
    fn names(&self) -> Vec<(String, String)> {
        let target = base(&self.target);
        let Some(place) = in_unit_directory(&self.path) else { return Vec::new() };
        let both = |one: &str| {
            vec![(one.to_owned(), target.to_owned()), (target.to_owned(), one.to_owned())]
        };
        let Some((directory, started)) = place.split_once('/') else { return both(place) };
        let ends = [".wants", ".requires", ".upholds"];
        let Some(of) = ends.iter().find_map(|end| directory.strip_suffix(end)) else {
            return Vec::new();
        };
        // The name of the link counts, and so does what it leads to.
        let mut found = both(started);
        found.push((of.to_owned(), started.to_owned()));
        found
    }
}

/// Of which unit something is written at a place among units.
fn unit_at(place: &str) -> Option<Cow<'_, str>> {
    let unit = match place.split_once('/') {
        None => place,
        Some((directory, _)) => directory.strip_suffix(".d")?,
    };
    // What Quadlet makes of its files.
    let (stem, kind) = unit.rsplit_once('.').unwrap_or((unit, ""));
    Some(match kind {
        "container" | "kube" => Cow::Owned(format!("{stem}.service")),
        "pod" | "volume" | "network" | "image" | "build" => {
            Cow::Owned(format!("{stem}-{kind}.service"))
        }
        _ => Cow::Borrowed(unit),
    })
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
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
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    if stem.contains('@') {
        names.push(format!("{prefix}@.{kind}"));
    }
    for (end, _) in prefix.match_indices('-') {
        let Some(begin) = prefix.get(..=end) else { continue };
        names.push(format!("{begin}.{kind}"));
        if stem.contains('@') {
            names.push(format!("{begin}@.{kind}"));
            names.push(format!("{begin}@{instance}.{kind}"));
        }
    }
    names.push(kind.to_owned());
    names
}

/// What a path, timer or socket starts where it says nothing else.
fn activated(name: &str) -> Option<String> {
    let (stem, kind) = name.rsplit_once('.')?;
    matches!(kind, "path" | "timer" | "socket").then(|| format!("{stem}.service"))
}

fn in_unit_directory(path: &str) -> Option<&str> {
    UNIT_DIRECTORIES.iter().find_map(|directory| path.strip_prefix(directory))
}

/// Files in which systemd finds units and drop-ins: the unit's name and the text of
/// each.
fn files<'c>(config: &'c NodeConfig<'_>) -> impl Iterator<Item = (Cow<'c, str>, Cow<'c, str>)> {
    config.files.iter().filter_map(|file| {
        let unit = unit_at(in_unit_directory(&file.path)?)?;
        Some((unit, text_of(file)?))
    })
}

fn text_of<'c>(file: &'c File<'_>) -> Option<Cow<'c, str>> {
    Some(match contents::decode(&file.contents).ok()?? {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    })
}

#[cfg(test)]
mod tests;
