//! What the host's presets say of a unit, as systemd.preset(5) has it.
//!
//! A file in an earlier folder hides one of its name in a later one; all that are left
//! are read in the order of their names, and the first line that matches decides.

mod glob;

use crate::tree::PathError;
use crate::unit_name::{Form, UnitName};
use crate::view::{Entry, View, real};
use std::collections::BTreeMap;

/// The folders of presets, those that hide others first.
const FOLDERS: [&str; 4] = [
    "/etc/systemd/system-preset",
    "/run/systemd/system-preset",
    "/usr/local/lib/systemd/system-preset",
    "/usr/lib/systemd/system-preset",
];

/// What presets say of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preset {
    /// It is to be enabled.
    Enable,
    /// These instances of the template are to be enabled.
    EnableInstances(Vec<String>),
    /// It is to be disabled.
    Disable,
    /// It is to be left as it is.
    Ignore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Enable,
    Disable,
    Ignore,
}

#[derive(Debug, PartialEq, Eq)]
struct Rule {
    word: Word,
    pattern: String,
    instances: Vec<String>,
}

/// The host's presets.
#[derive(Debug, Default)]
pub struct Presets {
    rules: Vec<Rule>,
}

impl Presets {
    /// Reads them.
    pub fn read(view: &dyn View) -> Result<Presets, PathError> {
        let mut files = BTreeMap::new();
        for folder in FOLDERS {
            for name in view.names(folder)? {
                if name.ends_with(".preset") {
                    files.entry(name).or_insert(folder);
                }
            }
        }
        let mut presets = Presets::default();
        for (name, folder) in files {
            let path = format!("{folder}/{name}");
            // A link to `/dev/null` is how an admin hides a file: there is nothing in it.
            let Some(path) = real(view, &path, true)? else { continue };
            if let Entry::File(Some(text)) = view.entry(&path)? {
                presets.add(&text);
            }
        }
        Ok(presets)
    }

    /// Adds the lines of a file. Lines that systemd cannot read it skips.
    fn add(&mut self, text: &str) {
        let lines = text.lines().map(str::trim_ascii);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
        self.rules.extend(lines.filter_map(rule));
    }

    /// What they say of a unit. What no line matches is enabled, as systemd has it.
    pub fn of(&self, name: UnitName<'_>) -> Preset {
        let template = name.template();
        for rule in &self.rules {
            let of_template = template.as_deref() == Some(&*rule.pattern);
            if of_template && !rule.instances.is_empty() {
                match (name.form(), name.instance()) {
                    (Form::Template, _) => {
                        let made = rule.instances.iter();
                        let made = made.filter_map(|it| name.with_instance(it)).collect();
                        return Preset::EnableInstances(made);
                    }
                    (_, Some(instance)) if rule.instances.iter().any(|it| it == instance) => {
                        return Preset::Enable;
                    }
                    _ => {}
                }
            }
            if glob::matches(&rule.pattern, name.as_str()) {
                return match rule.word {
                    Word::Enable => Preset::Enable,
                    Word::Disable => Preset::Disable,
                    Word::Ignore => Preset::Ignore,
                };
            }
        }
        Preset::Enable
    }
}

/// What a line says; nothing if systemd cannot read it.
fn rule(line: &str) -> Option<Rule> {
    let (word, rest) = line.split_once(|it: char| it.is_ascii_whitespace())?;
    let rest = rest.trim_ascii_start();
    let word = match word {
        "enable" => Word::Enable,
        "disable" => Word::Disable,
        "ignore" => Word::Ignore,
        _ => return None,
    };
    let whole = |word| Some(Rule { word, pattern: rest.to_owned(), instances: Vec::new() });
    if word != Word::Enable {
        return whole(word);
    }
    let mut words = rest.split_ascii_whitespace();
    let pattern = words.next()?.to_owned();
    let instances: Vec<String> = words.map(str::to_owned).collect();
    let is_template = UnitName::of(&pattern).is_some_and(|it| it.form() == Form::Template);
    (instances.is_empty() || is_template).then_some(Rule { word, pattern, instances })
}

#[cfg(test)]
mod tests;
