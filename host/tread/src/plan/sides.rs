//! What was read on each side: told where it is not obvious, so that a wrong
//! directory is noticed.

use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tread_console::exit::UsageError;
use tread_console::inputs::{self, NamedBytes};
use tread_console::print::warn;
use tread_console::sentence::count;
use tread_model::read::{Input, MirrorKind, Side};
use tread_model::text::listed;

/// How many objects of a kind are named.
const NAMED: usize = 4;

/// The files of a side.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// In the order in which they are read.
    all: Vec<NamedBytes>,
    /// What was named, how many files it has, and whether it is a directory.
    named: Vec<(PathBuf, usize, bool)>,
}

/// Reads all that was named for a side, and warns of what was left out.
pub(super) fn read_side(side: &str, paths: &[&Path]) -> Result<Files> {
    let mut files = Files::default();
    for path in paths {
        let found = inputs::read(path)?;
        if let Some(warning) = inputs::left_out(path, &found.left_out) {
            warn(&warning);
        }
        files.named.push((path.to_path_buf(), found.files.len(), found.is_directory));
        files.all.extend(found.files);
    }
    match given_twice(&files.all) {
        Some(problem) => Err(UsageError(format!("{side}: {problem}: name it once")).into()),
        None => Ok(files),
    }
}

/// That a file is named twice: by itself, or with the directory that it is in.
fn given_twice(files: &[NamedBytes]) -> Option<String> {
    let mut seen: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for file in files.iter().filter(|_| files.len() > 1) {
        // Standard input and pipes have no path that says what they are.
        let Ok(path) = Path::new(&file.name).canonicalize() else { continue };
        match seen.insert(path, &file.name) {
            Some(before) if before == file.name => {
                return Some(format!("{before} is given twice"));
            }
            Some(before) => {
                return Some(format!("{before} and {} are the same file", file.name));
            }
            None => {}
        }
    }
    None
}

pub(super) fn named(files: &Files) -> Vec<Input<'_>> {
    files.all.iter().map(|file| Input { name: &file.name, bytes: &file.bytes }).collect()
}

/// What a side was made of.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Source {
    /// Each kind that there is.
    objects: Vec<Objects>,
    /// The pool that the MachineConfigs are of, where they say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    /// What was named, in that order.
    from: Vec<Origin>,
    /// Whether it is one document of one file.
    #[serde(skip)]
    is_obvious: bool,
}

/// The objects of one kind.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Objects {
    kind: &'static str,
    count: usize,
    /// Of MachineConfigs, in the order in which they are merged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
}

/// A path as it was named.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Origin {
    path: PathBuf,
    /// Of a directory, how many were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<usize>,
}

/// What was read on both sides.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Read<'s> {
    old: &'s Source,
    new: &'s Source,
    /// Whether the same was named for both.
    same_place: bool,
}

impl<'s> Read<'s> {
    pub(super) fn of(old: &'s Source, new: &'s Source) -> Read<'s> {
        Read { old, new, same_place: old.is_same_place(new) }
    }
}

impl Source {
    pub(super) fn new(files: &Files, side: &Side<'_>) -> Source {
        let from = files.named.iter().map(|(path, count, is_directory)| Origin {
            // Other paths cannot be written as JSON.
            path: path.to_string_lossy().into_owned().into(),
            files: is_directory.then_some(*count),
        });
        let is_one_document = side.config.places.len() == 1;
        Source {
            objects: objects(side),
            pool: side.makeup.pool().map(str::to_owned),
            from: from.collect(),
            is_obvious: is_one_document && files.named.iter().all(|(.., directory)| !directory),
        }
    }

    fn is_same_place(&self, other: &Source) -> bool {
        let paths = |source: &Source| -> Vec<PathBuf> {
            source.from.iter().map(|from| from.path.clone()).collect()
        };
        paths(self) == paths(other)
    }

    /// `3 MachineConfigs of worker (00-worker, …) from configs (3 files), mirrors.yaml`
    fn sentence(&self) -> String {
        let parts = self.objects.iter().map(|objects| {
            let mut part = count(objects.count, objects.kind);
            if let (Some(pool), MACHINE_CONFIG) = (&self.pool, objects.kind) {
                part.push_str(&format!(" of {pool}"));
            }
            if !objects.names.is_empty() {
                part.push_str(&format!(" ({})", listed(&objects.names, NAMED)));
            }
            part
        });
        let from = self.from.iter().map(|from| {
            let shown = match from.path.as_os_str() == "-" {
                true => "standard input".to_owned(),
                false => from.path.display().to_string(),
            };
            match from.files {
                Some(files) => format!("{shown} ({})", count(files, "file")),
                None => shown,
            }
        });
        let (parts, from): (Vec<_>, Vec<_>) = (parts.collect(), from.collect());
        format!("{} from {}", parts.join(", "), from.join(", "))
    }
}

const MACHINE_CONFIG: &str = "MachineConfig";

/// The kinds of objects that there are.
fn objects(side: &Side<'_>) -> Vec<Objects> {
    let places = &side.config.places;
    let ignition = places.iter().filter(|place| place.config.is_empty()).count();
    let machine_configs = places.len().saturating_sub(ignition + side.mirrors.len());
    let mirrors = |kind| side.mirrors.iter().filter(|object| object.kind == kind).count();
    let kinds = [
        (machine_configs, MACHINE_CONFIG),
        (ignition, "Ignition config"),
        (mirrors(MirrorKind::Icsp), "ImageContentSourcePolicy"),
        (mirrors(MirrorKind::Idms), "ImageDigestMirrorSet"),
        (mirrors(MirrorKind::Itms), "ImageTagMirrorSet"),
    ];
    let there = kinds.into_iter().filter(|(count, _)| *count > 0);
    let objects = there.map(|(count, kind)| {
        // An Ignition config has no name, and one of several would be missing.
        let named = kind == MACHINE_CONFIG && ignition == 0;
        let names = side.config.name.split('+').filter(|_| named).map(str::to_owned).collect();
        Objects { kind, count, names }
    });
    objects.collect()
}

/// A line for each side; none where both are one document of one file each.
pub(super) fn lines(old: &Source, new: &Source) -> Vec<String> {
    let same_place = old.is_same_place(new);
    if old.is_obvious && new.is_obvious && !same_place {
        return Vec::new();
    }
    let mut lines = vec![format!("old: {}", old.sentence()), format!("new: {}", new.sentence())];
    if same_place {
        lines.push("Both sides were read from the same place.".to_owned());
    }
    lines
}
