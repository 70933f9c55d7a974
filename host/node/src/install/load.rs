//! Finding the file of a unit and reading its `[Install]` section, as systemctl does.

use super::error::InstallError;
use super::places::{SEARCHED, is_below};
use super::section::Section;
use super::specifiers::Facts;
use crate::unit_name::{Form, UnitName};
use crate::view::{Entry, View, real, split};
use std::collections::BTreeMap;

/// What stands under a unit's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A file.
    Regular,
    /// A link to the file of another unit.
    Alias,
    /// A link to a file elsewhere.
    Linked,
    /// Nothing that can be started.
    Masked,
}

/// A unit, and what was found of it.
#[derive(Debug, Clone)]
pub(super) struct Info {
    pub(super) name: String,
    /// Where it was found; empty before.
    pub(super) path: String,
    /// Not set before it was looked for.
    pub(super) mode: Option<Mode>,
    /// Where the link leads.
    pub(super) target: String,
    pub(super) section: Section,
    /// Only another unit's `Also=` names it.
    pub(super) auxiliary: bool,
}

impl Info {
    pub(super) fn new(name: &str, auxiliary: bool) -> Info {
        Info {
            name: name.to_owned(),
            path: String::new(),
            mode: None,
            target: String::new(),
            section: Section::default(),
            auxiliary,
        }
    }

    pub(super) fn unit(&self) -> Result<UnitName<'_>, InstallError> {
        UnitName::of(&self.name).ok_or_else(|| InstallError::Name(self.name.clone()))
    }

    fn no_file(&self, path: &str) -> InstallError {
        InstallError::NoFile { unit: self.name.clone(), path: path.to_owned() }
    }
}

/// What units are looked for in.
#[derive(Clone, Copy)]
pub(super) struct Sources<'s> {
    pub(super) view: &'s dyn View,
    pub(super) facts: &'s Facts,
    /// Whether sections are read, or files are only found.
    pub(super) load: bool,
}

impl Sources<'_> {
    /// Finds a unit, and reads its file and drop-ins.
    pub(super) fn search(&self, info: &mut Info) -> Result<(), InstallError> {
        if info.mode.is_some() {
            return Ok(());
        }
        let unit = info.unit()?;
        // A template stands in for an instance that has no file of its own.
        let template = unit.template().filter(|_| unit.form() == Form::Instance);
        let names: Vec<String> = [info.name.clone()].into_iter().chain(template).collect();
        let paths = names.iter().flat_map(|name| SEARCHED.map(|folder| format!("{folder}/{name}")));
        let mut found = false;
        for path in paths {
            if self.open(info, &path)? {
                info.path = path;
                found = true;
                break;
            }
        }
        if !found {
            return Err(InstallError::Missing(info.name.clone()));
        }
        if info.mode != Some(Mode::Masked) && self.load {
            self.drop_ins(info, &names)?;
        }
        Ok(())
    }

    /// Follows the link that a unit was found to be. Nothing comes of a link to a file
    /// with another name, unless that does not matter.
    pub(super) fn follow(&self, info: &mut Info, any_name: bool) -> Result<bool, InstallError> {
        if !any_name && split(&info.target).1 != info.name {
            return Ok(false);
        }
        info.path = std::mem::take(&mut info.target);
        info.mode = None;
        let path = info.path.clone();
        match self.open(info, &path)? {
            true => Ok(true),
            false => Err(InstallError::Missing(info.name.clone())),
        }
    }

    /// Takes what stands under a path as a unit's file; `false` if nothing does.
    fn open(&self, info: &mut Info, path: &str) -> Result<bool, InstallError> {
        let entry = self.view.entry(path)?;
        if entry == Entry::Absent {
            return Ok(false);
        }
        let unit = info.unit()?;
        if unit.form() != Form::Plain && !unit.may_be_template() {
            return Err(InstallError::NoTemplate(info.name.clone()));
        }
        info.mode = Some(match entry {
            Entry::Absent => return Ok(false),
            Entry::File(Some(text)) if text.is_empty() => Mode::Masked,
            Entry::File(text) => {
                if self.load {
                    self.read(info, path, text)?;
                }
                Mode::Regular
            }
            Entry::Link(target) => self.link(info, path, &target)?,
            Entry::Folder | Entry::Other => return Err(info.no_file(path)),
        });
        Ok(true)
    }

    fn read(&self, info: &mut Info, path: &str, text: Option<String>) -> Result<(), InstallError> {
        let wrong = |line, what| InstallError::Text { path: path.to_owned(), line, what };
        let Some(text) = text else { return Err(wrong(1, "or another is not valid text".into())) };
        let mut section = std::mem::take(&mut info.section);
        section.add(info.unit()?, &text, self.facts).map_err(|it| wrong(it.line, it.what))?;
        info.section = section;
        Ok(())
    }

    /// What a link makes of a unit.
    fn link(&self, info: &mut Info, path: &str, target: &str) -> Result<Mode, InstallError> {
        let (folder, name) = split(path);
        let link = || InstallError::Link { unit: info.name.clone(), path: path.to_owned() };
        let target = match target.starts_with('/') {
            true => target.to_owned(),
            false => format!("{folder}/{target}"),
        };
        let target = real(self.view, &target, false)?.ok_or_else(link)?;
        let is_alias = is_below(&target);
        if is_alias {
            match alias(name, split(&target).1) {
                Alias::Fine => {}
                Alias::Itself => return Err(link()),
                Alias::Unfit => {
                    let unit = split(&target).1.to_owned();
                    return Err(InstallError::Alias { unit, alias: name.to_owned() });
                }
            }
        }
        let masked = self.is_empty(&target)?;
        info.target = target;
        Ok(match (masked, is_alias) {
            (true, _) => Mode::Masked,
            (false, true) => Mode::Alias,
            (false, false) => Mode::Linked,
        })
    }

    /// Whether nothing is behind a path that could be read: `/dev/null`, an empty file.
    fn is_empty(&self, path: &str) -> Result<bool, InstallError> {
        if path == "/dev/null" {
            return Ok(true);
        }
        let Some(path) = real(self.view, path, true)? else { return Ok(false) };
        Ok(match self.view.entry(&path)? {
            Entry::File(text) => text.is_some_and(|text| text.is_empty()),
            Entry::Other => true,
            Entry::Absent | Entry::Link(_) | Entry::Folder => false,
        })
    }

    /// Reads the drop-ins of a unit, and those of its template.
    fn drop_ins(&self, info: &mut Info, names: &[String]) -> Result<(), InstallError> {
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        for name in names {
            for folder in SEARCHED {
                let folder = format!("{folder}/{name}.d");
                if self.view.glance(&folder)? == Entry::Absent {
                    continue;
                }
                for file in self.view.names(&folder)? {
                    let path = format!("{folder}/{file}");
                    if file.ends_with(".conf") {
                        files.entry(file).or_insert(path);
                    }
                }
            }
        }
        for path in files.into_values() {
            let Some(real) = real(self.view, &path, true)? else {
                return Err(info.no_file(&path));
            };
            match self.view.entry(&real)? {
                Entry::File(Some(text)) if text.is_empty() => {}
                Entry::File(text) => self.read(info, &path, text)?,
                // As `/dev/null`, which hides a drop-in of the same name.
                Entry::Other => {}
                Entry::Absent if real == "/dev/null" => {}
                Entry::Absent | Entry::Folder | Entry::Link(_) => {
                    return Err(info.no_file(&path));
                }
            }
        }
        Ok(())
    }
}

/// Whether a name can be another one of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alias {
    /// It can.
    Fine,
    /// It is the unit's own.
    Itself,
    /// It cannot.
    Unfit,
}

/// Whether a name can be another one of a unit.
pub(super) fn alias(name: &str, unit: &str) -> Alias {
    let Some(other) = UnitName::of(name) else { return Alias::Unfit };
    if !other.may_have_aliases() || (other.form() != Form::Plain && !other.may_be_template()) {
        return Alias::Unfit;
    }
    if name == unit {
        return Alias::Itself;
    }
    let Some(unit) = UnitName::of(unit) else { return Alias::Unfit };
    let form_fits = match (other.form(), unit.form()) {
        (Form::Instance, Form::Template) => true,
        (Form::Instance, Form::Instance) => other.instance() == unit.instance(),
        (of_other, of_unit) => of_other == of_unit,
    };
    match form_fits && other.kind() == unit.kind() {
        true => Alias::Fine,
        false => Alias::Unfit,
    }
}
