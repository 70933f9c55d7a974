//! The entries for files and directories.

use super::answer::Place;
use super::defaults;
use super::entry::Act;
use super::exporting::{Exporting, Found};
use super::object::FileEntry;
use crate::claim::{Kind, Shape};
use crate::openshift::api::MOST_ENTRIES;
use crate::operator::default_paths;
use crate::path::is_below;
use crate::plan::{needs_daemon_reload, re_read_directories, re_read_files};
use std::collections::BTreeMap;

/// A path to which an entry may be given, and what of it is asked about.
#[derive(Debug, Default, Clone, Copy)]
struct Asked {
    exactly: bool,
    below: bool,
    /// OpenShift has an entry for it by default.
    default: bool,
}

impl Asked {
    fn is_asked(self) -> bool {
        self.exactly || self.below
    }
}

impl Exporting<'_> {
    pub(super) fn files(&mut self) -> Vec<FileEntry> {
        let asked = self.places();
        let mut entries: BTreeMap<String, Vec<Act>> = BTreeMap::new();
        // A directory sorts before what is in it.
        for (path, asked) in &asked {
            let found = self.found(path, *asked);
            let above = closest(path, &entries);
            let reboots = |list: &Vec<Act>| *list == [Act::Reboot];
            match (found, above) {
                (Ok(Some(list)), Above::Nothing) if reboots(&list) && !asked.default => {
                    self.needless |= asked.is_asked();
                }
                (Ok(Some(list)), Above::Entry(same)) if same == list && !asked.default => {}
                (Ok(Some(list)), _) => {
                    entries.insert(path.clone(), list);
                }
                // Nothing says how, but more than the default is asked for.
                (Err(_), above)
                    if (asked.default || matches!(above, Above::Default))
                        && self.defaults_do_less(path, *asked) =>
                {
                    entries.insert(path.clone(), vec![Act::Reboot]);
                }
                // OpenShift's own default goes on deciding.
                (Ok(None) | Err(_), _) if asked.default => {}
                (Ok(None) | Err(_), Above::Entry(list)) if !reboots(&list) => {
                    entries.insert(path.clone(), vec![Act::Reboot]);
                }
                (Ok(None) | Err(_), _) => {}
            }
        }
        self.within_limit(&mut entries);
        entries.into_iter().map(|(path, actions)| FileEntry { path, actions }).collect()
    }

    fn defaults_do_less(&self, path: &str, asked: Asked) -> bool {
        let (exact, inside) = (format!("file:{path}"), format!("file:{path}/x"));
        (asked.exactly && defaults::do_less(self.voices, Place::Id(&exact), &exact))
            || (asked.below && defaults::do_less(self.voices, Place::Below(path), &inside))
    }

    /// All paths at which the answer may change.
    fn places(&self) -> BTreeMap<String, Asked> {
        let mut asked: BTreeMap<String, Asked> = BTreeMap::new();
        for (_, _, pattern) in self.patterns().filter(|(_, _, it)| it.kind() == Kind::File) {
            for shape in pattern.shapes() {
                match &shape {
                    Shape::Exact(path) => asked.entry(path.clone()).or_default().exactly = true,
                    shape => {
                        let directory = shape.directory().unwrap_or_default();
                        asked.entry(directory.to_owned()).or_default().below = true;
                    }
                }
            }
        }
        for path in default_paths() {
            let place = asked.entry(path.to_owned()).or_default();
            place.default = true;
            match is_directory(path) {
                true => place.below = true,
                false => place.exactly = true,
            }
        }
        // OpenShift's / matches nothing.
        asked.remove("");
        // What systemd has to re-read its units for needs an entry of its own below another one.
        for directory in re_read_directories().map(|it| it.trim_end_matches('/')) {
            if asked.keys().any(|above| is_below(directory, above)) {
                asked.entry(directory.to_owned()).or_default().below = true;
            }
        }
        for file in re_read_files() {
            if asked.keys().any(|above| is_below(file, above)) {
                asked.entry(file.to_owned()).or_default().exactly = true;
            }
        }
        asked
    }

    /// What is answered for a path, as an entry.
    fn found(&mut self, path: &str, asked: Asked) -> Found {
        let id = format!("file:{path}");
        let reload = needs_daemon_reload(&id);
        let exactly = asked.exactly.then(|| self.listed(Place::Id(&id), reload));
        let reload = needs_daemon_reload(&format!("file:{path}/x"));
        let below = asked.below.then(|| self.listed(Place::Below(path), reload));
        let found = match (exactly, below) {
            (Some(one), Some(other)) => match (one, other) {
                (Ok(one), Ok(other)) if one == other => Ok(one),
                (Ok(_), Ok(_)) => Err("the answers for the path and for what lies below it \
                                       differ, and OpenShift has one entry for both"
                    .to_owned()),
                (Err(reason), _) | (_, Err(reason)) => Err(reason),
            },
            (Some(found), None) | (None, Some(found)) => found,
            (None, None) => Ok(None),
        };
        if let Err(reason) = &found {
            for shape in [Shape::Exact(path.to_owned()), Shape::Below(path.to_owned())] {
                self.reasons.insert((Kind::File, shape), reason.clone());
            }
        }
        found
    }

    /// Leaves out whole trees, from the last on, until OpenShift takes the rest.
    fn within_limit(&mut self, entries: &mut BTreeMap<String, Vec<Act>>) {
        while entries.len() > MOST_ENTRIES {
            // Without an entry a default would decide, and perhaps do less.
            let default = |path: &str| default_paths().find(|it| is_at(path, it));
            let free = |path: &&String| default(path).is_none();
            let is_root =
                |path: &&String| !entries.keys().filter(free).any(|other| is_below(path, other));
            let root = entries.keys().rev().filter(free).find(is_root).cloned();
            let left_out: Vec<String> = match root {
                Some(root) => {
                    let tree = entries.keys().filter(|path| is_at(path, &root));
                    tree.filter(free).cloned().collect()
                }
                // One reboot stands for all that is below a default.
                None => {
                    let below = |it: &&str| entries.keys().any(|path| is_below(path, it));
                    let Some(default) = default_paths().find(below) else { return };
                    let tree = entries.keys().filter(|path| is_at(path, default));
                    let tree = tree.cloned().collect();
                    entries.insert(default.to_owned(), vec![Act::Reboot]);
                    tree
                }
            };
            for path in left_out {
                if !default_paths().any(|default| default == path) {
                    entries.remove(&path);
                }
                for shape in [Shape::Exact(path.clone()), Shape::Below(path)] {
                    let reason =
                        format!("OpenShift takes {MOST_ENTRIES} entries for files at most");
                    self.reasons.insert((Kind::File, shape), reason);
                }
            }
        }
    }
}

/// Whether a path is this place, or lies below it.
fn is_at(path: &str, place: &str) -> bool {
    path == place || is_below(path, place)
}

/// What OpenShift would decide by without an entry of its own.
enum Above {
    Nothing,
    Default,
    Entry(Vec<Act>),
}

/// The closest directory above a path that has an entry or a default.
fn closest(path: &str, entries: &BTreeMap<String, Vec<Act>>) -> Above {
    let entry =
        entries.iter().filter(|(above, _)| is_below(path, above)).max_by_key(|it| it.0.len());
    let default = default_paths().filter(|above| is_below(path, above)).map(str::len).max();
    match (entry, default) {
        (Some((entry, list)), default) if default.is_none_or(|default| entry.len() >= default) => {
            Above::Entry(list.clone())
        }
        (_, Some(_)) => Above::Default,
        (_, None) => Above::Nothing,
    }
}

/// Which of OpenShift's defaults are directories.
fn is_directory(default: &str) -> bool {
    let name = default.rsplit_once('/').map_or(default, |(_, name)| name);
    !name.contains('.') || name.ends_with(".d")
}
