//! What was read on each side: told where it is not obvious, so that a wrong
//! directory is noticed.

use crate::inputs::{self, NamedBytes};
use crate::render::sentence::count;
use crate::{UsageError, warn};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tread_model::read::{Input, MirrorKind, Side};

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
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// `3 MachineConfigs of worker (00-worker, …)`
    what: String,
    /// `configs/ (3 files) and mirrors.yaml`
    from: String,
    /// Whether it is one document of one file.
    is_obvious: bool,
    /// The paths as they were named.
    paths: Vec<PathBuf>,
}

impl Source {
    pub(super) fn new(files: &Files, side: &Side<'_>) -> Source {
        let places = &side.config.places;
        let from = files.named.iter().map(|(path, count_of_files, is_directory)| {
            let shown = match path.as_os_str() == "-" {
                true => "standard input".to_owned(),
                false => path.display().to_string(),
            };
            match is_directory {
                true => format!("{shown} ({})", count(*count_of_files, "file")),
                false => shown,
            }
        });
        Source {
            what: what(side, side.makeup.pool()),
            from: from.collect::<Vec<_>>().join(", "),
            is_obvious: places.len() == 1 && files.named.iter().all(|(.., directory)| !directory),
            paths: files.named.iter().map(|(path, ..)| path.clone()).collect(),
        }
    }
}

/// The kinds of objects with their numbers, and the names of the first.
fn what(side: &Side<'_>, pool: Option<&str>) -> String {
    let places = &side.config.places;
    let ignition = places.iter().filter(|place| place.config.is_empty()).count();
    let machine_configs = places.len().saturating_sub(ignition + side.mirrors.len());
    let mirrors = |kind| side.mirrors.iter().filter(|object| object.kind == kind).count();
    let kinds = [
        (machine_configs, "MachineConfig"),
        (ignition, "Ignition config"),
        (mirrors(MirrorKind::Icsp), "ImageContentSourcePolicy"),
        (mirrors(MirrorKind::Idms), "ImageDigestMirrorSet"),
        (mirrors(MirrorKind::Itms), "ImageTagMirrorSet"),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (number, kind) in kinds.into_iter().filter(|(number, _)| *number > 0) {
        let mut part = count(number, kind);
        if let (Some(pool), "MachineConfig") = (pool, kind) {
            part.push_str(&format!(" of {pool}"));
        }
        if kind == "MachineConfig" && ignition == 0 {
            part.push_str(&format!(" ({})", names(&side.config.name)));
        }
        parts.push(part);
    }
    parts.join(", ")
}

/// Of the names of several configs, which are joined by `+`, the first few.
fn names(joined: &str) -> String {
    const MOST: usize = 4;
    let all: Vec<&str> = joined.split('+').collect();
    let shown = all.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A line for each side; none where both are one document of one file each.
pub(super) fn told(old: &Source, new: &Source) -> Vec<String> {
    if old.is_obvious && new.is_obvious && old.paths != new.paths {
        return Vec::new();
    }
    let line =
        |side: &str, source: &Source| format!("{side}: {} from {}", source.what, source.from);
    let mut lines = vec![line("old", old), line("new", new)];
    if old.paths == new.paths {
        lines.push("Both sides were read from the same place.".to_owned());
    }
    lines
}
