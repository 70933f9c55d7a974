//! Files, directories and links of several configs: at each path stands one of them.
//! Ignition has one key for all three, so that a later config takes away what an
//! earlier one has there of another kind.

use super::layer::{Layer, Part};
use serde_json::Value;
use std::collections::BTreeMap;

/// Which config last says something of a path, by kind.
#[derive(Debug, Default)]
struct Last {
    file: Option<usize>,
    directory: Option<usize>,
    link: Option<usize>,
}

/// The paths of all directories and links, with what stands there last.
#[derive(Debug, Default)]
pub(super) struct OneAtEachPath(BTreeMap<String, Last>);

impl OneAtEachPath {
    pub(super) fn of(layers: &[Layer]) -> OneAtEachPath {
        let mut all: BTreeMap<String, Last> = BTreeMap::new();
        for (number, layer) in layers.iter().enumerate() {
            for path in paths(layer, Part::Directories) {
                all.entry(path).or_default().directory = Some(number);
            }
            for path in paths(layer, Part::Links) {
                all.entry(path).or_default().link = Some(number);
            }
        }
        if !all.is_empty() {
            for (number, layer) in layers.iter().enumerate() {
                for file in &layer.files {
                    if let Some(last) = all.get_mut(&*file.file.path) {
                        last.file = Some(number);
                    }
                }
            }
        }
        OneAtEachPath(all)
    }

    /// The paths at which a config puts a directory or a link in place of a file.
    pub(super) fn displaced(&self, layer: &Layer) -> Vec<String> {
        let has_file = |path: &String| self.0.get(path).is_some_and(|last| last.file.is_some());
        let both = [Part::Directories, Part::Links].into_iter();
        both.flat_map(|part| paths(layer, part)).filter(has_file).collect()
    }

    /// What stays of the directories or links of a config.
    pub(super) fn staying(&self, part: Part, number: usize, mut value: Value) -> Value {
        let Value::Array(entries) = &mut value else { return value };
        if matches!(part, Part::Directories | Part::Links) {
            entries.retain(|entry| {
                let path = entry.get("path").and_then(Value::as_str);
                let Some(last) = path.and_then(|path| self.0.get(path)) else { return true };
                let other = if part == Part::Links { last.directory } else { last.link };
                last.file.max(other).is_none_or(|later| later <= number)
            });
        }
        value
    }
}

fn paths(layer: &Layer, part: Part) -> impl Iterator<Item = String> {
    let entries = layer.fixed.get(&part).and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(|it| Some(it.get("path")?.as_str()?.to_owned()))
}
