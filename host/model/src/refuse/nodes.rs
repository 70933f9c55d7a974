//! Directories and links, which Ignition holds against all other entries of a
//! config.

use super::links::LINKS;
use super::units::{unit, unit_at};
use crate::canonical;
use crate::config::{Fault, NodeConfig, Unit};
use crate::path::is_below;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const DIRECTORIES: &str = "storage:directories";

/// No link can have a path that is longer than Linux takes.
const LONGEST_PATH: usize = 4096;

/// Where Ignition writes units.
const UNITS: &str = "/etc/systemd/system/";

/// The directories and links of a config, by path.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    links: BTreeMap<String, Link>,
    directories: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Link {
    target: Option<String>,
    hard: bool,
}

impl Nodes {
    pub(super) fn of(config: &NodeConfig<'_>) -> Nodes {
        let mut nodes = Nodes::default();
        for fixed in &config.fixed {
            if fixed.id != LINKS && fixed.id != DIRECTORIES {
                continue;
            }
            let Ok(Value::Array(entries)) = serde_json::from_str(&fixed.value) else { continue };
            for entry in &entries {
                let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
                let Some(path) = text("path") else { continue };
                if fixed.id == DIRECTORIES {
                    nodes.directories.insert(path);
                } else {
                    let target = text("target").filter(|target| !target.is_empty());
                    let hard = entry.get("hard") == Some(&Value::Bool(true));
                    nodes.links.insert(path, Link { target, hard });
                }
            }
        }
        nodes
    }

    /// The links that a config no longer has, and that stay on nodes that have them.
    pub(super) fn left_over(old: &NodeConfig<'_>, new: &NodeConfig<'_>) -> Nodes {
        if new.fixed.iter().any(|fixed| fixed.id == LINKS) {
            return Nodes::default();
        }
        Nodes { directories: BTreeSet::new(), ..Nodes::of(old) }
    }

    /// The link, if any, at a path or above it.
    fn link_at(&self, path: &str) -> Option<&str> {
        let at = self.links.get_key_value(path).map(|(link, _)| link.as_str());
        at.or_else(|| self.link_above(path))
    }

    /// What a config writes through these links, which nodes still have: it would
    /// come to stand where nobody looks for it.
    pub(super) fn written_through(&self, config: &NodeConfig<'_>) -> Vec<Fault> {
        if self.is_empty() {
            return Vec::new();
        }
        let why = |link: &str| {
            format!(
                "{link} was a link in the old config, nodes that run keep it, and this would be \
                 written to where it leads. Write the path that the link leads to, or keep the \
                 link out of the way: remove it from the nodes by hand, then change this."
            )
        };
        let mut faults = Vec::new();
        for file in &config.files {
            if let Some(link) = self.link_at(&file.path) {
                let field = format!("storage.files[{}].path", file.origin.index);
                let field = config.field(file.origin, &field);
                let id = format!("file:{}", file.path);
                faults.push(Fault { id, field, reason: why(link), by_parser: false });
            }
        }
        for unit in &config.units {
            let path = format!("{UNITS}{}", unit.name);
            let dropins = unit.dropins.iter().map(|dropin| format!("{path}.d/{}", dropin.name));
            let mut paths = dropins.chain([path.clone()]);
            if let Some(link) = paths.find_map(|path| self.link_at(&path)) {
                let field = format!("systemd.units[{}].name", unit.origin.index);
                let field = config.field(unit.origin, &field);
                let id = format!("unit:{}", unit.name);
                faults.push(Fault { id, field, reason: why(link), by_parser: false });
            }
        }
        faults
    }

    fn is_empty(&self) -> bool {
        self.links.is_empty() && self.directories.is_empty()
    }

    /// The link, if any, that a path leads through.
    pub(super) fn link_above(&self, path: &str) -> Option<&str> {
        if self.links.is_empty() {
            return None;
        }
        let ends =
            path.match_indices('/').map(|(end, _)| end).take_while(|end| *end < LONGEST_PATH);
        let mut above = ends.filter_map(|end| path.get(..end));
        above.find_map(|above| self.links.get_key_value(above)).map(|(link, _)| link.as_str())
    }

    /// A directory or link below a path, with what it is.
    pub(super) fn below(&self, path: &str) -> Option<(&'static str, &str)> {
        if self.is_empty() {
            return None;
        }
        let begin = format!("{path}/");
        let link = self.links.range(begin.clone()..).next().map(|(path, _)| ("link", path));
        let directory = self.directories.range(begin..).next().map(|path| ("directory", path));
        let mut found = [link, directory].into_iter().flatten();
        found.find(|(_, it)| is_below(it, path)).map(|(kind, it)| (kind, it.as_str()))
    }

    /// What Ignition's parser rejects of them.
    pub(super) fn faults(&self, config: &NodeConfig<'_>) -> Vec<Fault> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut faults = Vec::new();
        let mut add = |id: &str, reason: String| {
            let field = config.fixed.iter().find(|fixed| fixed.id == id);
            let field = field.map(|fixed| fixed.field.clone()).unwrap_or_default();
            faults.push(Fault { id: id.to_owned(), field, reason, by_parser: true });
        };
        let links = self.links.keys().map(|path| (LINKS, "link", path));
        let directories = self.directories.iter().map(|path| (DIRECTORIES, "directory", path));
        for (id, kind, path) in links.chain(directories) {
            if let Some(unit) = unit_at(config, path) {
                add(
                    id,
                    format!(
                        "The unit {unit} of the same config (systemd.units) is written to {path}, \
                         and Ignition rejects a {kind} there. Remove one of them."
                    ),
                );
            }
            if let Some(link) = self.link_above(path) {
                add(
                    id,
                    format!(
                        "{link} is a link in the same config, and Ignition rejects the {kind} \
                         {path} below it. Write the path that the link leads to."
                    ),
                );
            }
        }
        for (path, Link { target, hard }) in &self.links {
            match target {
                None => add(LINKS, format!("The link {path} has no `target`. Write one.")),
                Some(target) if *hard && self.directories.contains(target) => add(
                    LINKS,
                    format!(
                        "{path} is a hard link to a directory of the same config, which no file \
                         system has. Leave out `hard`."
                    ),
                ),
                Some(_) => {}
            }
        }
        faults
    }
}

/// The unit of the config of which something is written below a path.
pub(super) fn unit_below<'c>(config: &'c NodeConfig<'_>, path: &str) -> Option<&'c str> {
    let dropins = |unit: &Unit<'_>| {
        unit.dropins.iter().any(|dropin| canonical::text(&dropin.contents).is_some())
    };
    let written = |unit: &Unit<'_>| canonical::text(&unit.contents).is_some() || dropins(unit);
    let found = match path.strip_prefix(UNITS) {
        Some(name) => unit(config, name.strip_suffix(".d")?).filter(|unit| dropins(unit)),
        // Of all files of a config three at most are so: as many as there are directories
        // above the units.
        None if is_below(UNITS, path) => config.units.iter().find(|unit| written(unit)),
        None => None,
    };
    found.map(|unit| unit.name.as_ref())
}

/// The unit of the config whose file stands where `path` needs a directory.
pub(super) fn unit_above<'c>(config: &'c NodeConfig<'_>, path: &str) -> Option<&'c str> {
    let (name, _) = path.strip_prefix(UNITS)?.split_once('/')?;
    unit_at(config, path.get(..UNITS.len() + name.len())?)
}
