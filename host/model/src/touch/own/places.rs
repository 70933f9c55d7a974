//! Where the files and links of a config say something of units.

use super::names::{is_too_long, of_quadlet};
use crate::config::{File, NodeConfig};
use crate::path::{clean, is_below};
use crate::plan::{QUADLET_DIRECTORIES, unit_sources};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// So many links are followed, one to the other.
const MOST_HOPS: usize = 40;
/// So many files and links are looked at below links.
const MOST_STEPS: usize = 100_000;
/// So many bytes of a path take as much as one of them.
const PER_STEP: usize = 256;

/// The kernel takes no longer path.
const LONGEST_PATH: usize = 4096;

/// Where a masked unit leads to.
const MASKED: &str = "/dev/null";

/// What a config has among units.
#[derive(Default)]
pub(super) struct Places<'c> {
    /// Files: of which unit they say something, and where they stand.
    pub(super) files: Vec<(Cow<'c, str>, &'c File<'c>)>,
    /// Names of units that mean the same.
    pub(super) same: Vec<(String, String)>,
    /// Units that start others: by `.wants`, `.requires` and `.upholds`.
    pub(super) starts: Vec<Starts>,
    /// Units of which something is said that the config does not hold.
    pub(super) elsewhere: BTreeSet<String>,
    /// There is more than is looked at.
    pub(super) too_much: bool,
}

pub(super) struct Starts {
    pub(super) unit: String,
    pub(super) started: String,
    /// The unit stops when what it starts does.
    pub(super) requires: bool,
}

/// What a config has among units.
pub(super) fn places<'c>(config: &'c NodeConfig<'c>) -> Places<'c> {
    let mut places = Places::default();
    // One source of units may stand in another one.
    let among_units = unit_sources().flat_map(|directory| files_at(config, directory));
    let among_units: BTreeMap<&str, &File<'c>> =
        among_units.map(|(_, file)| (file.path.as_ref(), file)).collect();
    for (path, file) in among_units {
        places.says(unit_at(path), file);
    }
    let links = links(config);
    let mut steps = 0;
    // What is looked at as if it stood among units, with where it really is.
    let mut shown: Vec<(String, String)> = Vec::new();
    for (path, target) in &links {
        if is_among_units(path) {
            shown.push((path.clone(), target.clone()));
        }
    }
    let mut known = BTreeSet::new();
    while let Some((path, target)) = shown.pop() {
        if !known.insert((path.clone(), target.clone())) {
            continue;
        }
        // A link to what it stands in makes paths without end.
        if path.len() > LONGEST_PATH {
            places.too_much = true;
            return places;
        }
        places.names(&path, &target);
        let Some(real) = followed(&links, &target) else {
            places.too_much = true;
            return places;
        };
        let mut is_there = is_system(&real);
        for (below, file) in files_at(config, &real) {
            steps += 1;
            if !below.is_empty() && !below.starts_with('/') {
                continue;
            }
            is_there = true;
            let path = format!("{path}{below}");
            places.says(unit_at(&path).map(|unit| Cow::Owned(unit.into_owned())), file);
        }
        for (link, target) in links.range(real.clone()..) {
            let Some(below) = link.strip_prefix(real.as_str()) else { break };
            steps += 1;
            if below.starts_with('/') {
                is_there = true;
                let path = format!("{path}{below}");
                steps += (path.len() + target.len()) / PER_STEP;
                if steps > MOST_STEPS {
                    break;
                }
                if is_among_units(&path) {
                    shown.push((path, target.clone()));
                }
            }
        }
        if !is_there {
            places.unknown(&path);
        }
        if steps > MOST_STEPS {
            places.too_much = true;
            return places;
        }
    }
    places
}

impl<'c> Places<'c> {
    /// That a file says something of a unit.
    fn says(&mut self, unit: Option<Cow<'c, str>>, file: &'c File<'c>) {
        match unit {
            Some(unit) if is_too_long(&unit) => self.too_much = true,
            unit => self.files.extend(unit.map(|unit| (unit, file))),
        }
    }

    /// What a link is among units: a name, and one that it leads to, or that it starts.
    fn names(&mut self, path: &str, target: &str) {
        let Some(place) = in_unit_directory(path).filter(|_| target != MASKED) else { return };
        // No file has a longer name either.
        if is_too_long(base(target)) || path.split('/').any(is_too_long) {
            self.too_much = true;
            return;
        }
        let named = of_quadlet(base(target)).into_owned();
        let mut same = |one: &str| {
            let one = of_quadlet(one);
            if *one != named {
                self.same.push((one.into_owned(), named.clone()));
            }
        };
        let Some((directory, started)) = place.rsplit_once('/') else { return same(place) };
        let directory = base(directory);
        let kinds = [(".wants", false), (".requires", true), (".upholds", false)];
        let of = kinds
            .iter()
            .find_map(|(end, requires)| directory.strip_suffix(end).map(|unit| (unit, *requires)));
        if let Some((unit, requires)) = of {
            // The name of the link counts, and so does what it leads to.
            same(started);
            let [unit, started] = [unit, started].map(|name| of_quadlet(name).into_owned());
            self.starts.push(Starts { unit, started, requires });
        } else if is_in_quadlets(path) {
            same(started);
        }
    }

    /// That the config does not hold what a link leads to.
    fn unknown(&mut self, path: &str) {
        match in_unit_directory(path) {
            // All units stand there.
            None => self.too_much = true,
            Some(place) => {
                let (first, below) = place.split_once('/').unwrap_or((place, ""));
                // Of what stands in `.wants` and the like the name is all that counts.
                if !below.is_empty() && !first.ends_with(".d") {
                    return;
                }
                let ends = [".d", ".wants", ".requires", ".upholds"];
                let unit = ends.iter().find_map(|end| first.strip_suffix(end)).unwrap_or(first);
                self.elsewhere.insert(of_quadlet(unit).into_owned());
            }
        }
    }
}

/// Whether the configs need not hold what is at this path: a unit of the image, or `/dev/null`.
fn is_system(path: &str) -> bool {
    path == MASKED || in_unit_directory(path).is_some()
}

/// The links of a config, with the place that each leads to.
fn links(config: &NodeConfig<'_>) -> BTreeMap<String, String> {
    let fixed = config.fixed.iter().find(|fixed| fixed.id == crate::refuse::LINKS);
    let all = fixed.and_then(|fixed| serde_json::from_str::<Value>(&fixed.value).ok());
    let Some(Value::Array(all)) = all else { return BTreeMap::new() };
    let links = all.iter().filter_map(|link| {
        let text = |key: &str| link.get(key).and_then(Value::as_str);
        let (path, target) = (clean(text("path")?), text("target")?);
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let target = match target.starts_with('/') {
            true => clean(target),
            false => clean(&format!("{directory}/{target}")),
        };
        Some((path, target))
    });
    links.collect()
}

/// A path without links on its way; None: they lead in a circle, or too far.
fn followed(links: &BTreeMap<String, String>, path: &str) -> Option<String> {
    let mut path = path.to_owned();
    for _ in 0..MOST_HOPS {
        if path.len() > LONGEST_PATH {
            return None;
        }
        let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
        let ends = ends.chain([path.len()]);
        let next = ends.filter_map(|end| Some((links.get(path.get(..end)?)?, end))).next();
        let Some((target, end)) = next else { return Some(path) };
        path = format!("{target}{}", path.get(end..).unwrap_or_default());
    }
    None
}

/// The files whose paths begin with a path, each with what follows it.
fn files_at<'c>(
    config: &'c NodeConfig<'c>,
    path: &str,
) -> impl Iterator<Item = (&'c str, &'c File<'c>)> {
    // The files are in the order of their paths.
    let first = config.files.partition_point(|file| *file.path < *path);
    let files = config.files.get(first..).unwrap_or_default().iter();
    files.map_while(move |file| Some((file.path.strip_prefix(path)?, file)))
}

/// Whether a link at a path says something of units: among them, or above all.
fn is_among_units(path: &str) -> bool {
    in_unit_directory(path).is_some()
        || unit_sources().any(|directory| {
            let directory = directory.trim_end_matches('/');
            directory == path || is_below(directory, path)
        })
}

fn in_unit_directory(path: &str) -> Option<&str> {
    unit_sources().find_map(|directory| path.strip_prefix(directory))
}

fn is_in_quadlets(path: &str) -> bool {
    QUADLET_DIRECTORIES.iter().any(|directory| path.starts_with(directory))
}

/// Of which unit something is written at a path.
pub(super) fn unit_at(path: &str) -> Option<Cow<'_, str>> {
    let place = in_unit_directory(path)?;
    if is_in_quadlets(path) {
        // Those of users stand beside, and others at any depth.
        if place.starts_with("users/") {
            return None;
        }
        let (directories, name) = place.rsplit_once('/').unwrap_or(("", place));
        return Some(of_quadlet(base(directories).strip_suffix(".d").unwrap_or(name)));
    }
    match place.split_once('/') {
        None => Some(of_quadlet(place)),
        Some((directory, _)) => directory.strip_suffix(".d").map(of_quadlet),
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
