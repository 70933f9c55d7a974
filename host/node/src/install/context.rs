//! The units that one enabling or disabling is about: the one that is named, those that
//! its links lead to, and those that `Also=` names.

use super::error::InstallError;
use super::load::{Info, Mode, Sources};
use super::places::is_config;
use super::specifiers::Facts;
use crate::unit_name::{Form, UnitName};
use crate::view::{Overlay, View, split};
use std::collections::BTreeMap;

/// How many links may lead from a name to a unit.
const MOST_LINKS: usize = 64;

pub(super) struct Context<'c> {
    /// As it is when the links are made that were made so far.
    pub(super) view: Overlay<'c>,
    pub(super) facts: &'c Facts,
    units: Vec<Info>,
    /// Where each stands.
    by_name: BTreeMap<String, usize>,
    /// About how many of them something was done.
    done: usize,
}

/// How units are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct How {
    /// Whether sections are read, or files are only found.
    pub(super) load: bool,
    /// Whether links in the folders of admins are followed.
    pub(super) follow: bool,
}

impl<'c> Context<'c> {
    pub(super) fn new(view: &'c dyn View, facts: &'c Facts) -> Context<'c> {
        let (units, by_name) = (Vec::new(), BTreeMap::new());
        Context { view: Overlay::new(view), facts, units, by_name, done: 0 }
    }

    /// Adds a unit, if it is not there yet.
    pub(super) fn add(&mut self, name: &str, auxiliary: bool) -> Result<usize, InstallError> {
        if UnitName::of(name).is_none() {
            return Err(InstallError::Name(name.to_owned()));
        }
        if let Some(at) = self.by_name.get(name).copied() {
            if let Some(info) = self.units.get_mut(at) {
                info.auxiliary &= auxiliary;
            }
            return Ok(at);
        }
        let at = self.units.len();
        self.units.push(Info::new(name, auxiliary));
        self.by_name.insert(name.to_owned(), at);
        Ok(at)
    }

    /// The next unit that nothing was done about.
    pub(super) fn next(&mut self) -> Option<usize> {
        let at = self.done;
        (at < self.units.len()).then(|| {
            self.done += 1;
            at
        })
    }

    /// What was found of a unit.
    pub(super) fn info(&self, at: usize) -> Info {
        self.units.get(at).cloned().unwrap_or_else(|| Info::new("", false))
    }

    fn with(
        &mut self,
        at: usize,
        load: bool,
        then: impl FnOnce(Sources<'_>, &mut Info) -> Result<bool, InstallError>,
    ) -> Result<bool, InstallError> {
        let mut info = self.info(at);
        let known = info.section.also.len();
        let done = then(Sources { view: &self.view, facts: self.facts, load }, &mut info);
        let also: Vec<String> = info.section.also.iter().skip(known).cloned().collect();
        if let Some(kept) = self.units.get_mut(at) {
            *kept = info;
        }
        let done = done?;
        for name in also {
            self.add(&name, true)?;
        }
        Ok(done)
    }

    fn search(&mut self, at: usize, load: bool) -> Result<(), InstallError> {
        self.with(at, load, |sources, info| sources.search(info).map(|()| true)).map(drop)
    }

    /// Finds a unit and follows its links, and says which unit they lead to.
    pub(super) fn traverse(&mut self, start: usize, how: How) -> Result<usize, InstallError> {
        self.search(start, how.load)?;
        let mut at = start;
        for _ in 0..=MOST_LINKS {
            let info = self.info(at);
            let linked = match info.mode {
                Some(Mode::Alias) => false,
                Some(Mode::Linked) => true,
                Some(Mode::Regular | Mode::Masked) | None => return Ok(at),
            };
            if !how.follow && is_config(&info.path) {
                return Err(InstallError::Link { unit: info.name, path: info.path });
            }
            if self.with(at, how.load, |sources, info| sources.follow(info, linked))? {
                continue;
            }
            // The link leads to a unit with another name.
            let target = split(&info.target).1;
            let instance = UnitName::of(&info.name).and_then(UnitName::instance);
            let template = UnitName::of(target).filter(|it| it.form() == Form::Template);
            let made = template.zip(instance).and_then(|(it, instance)| it.with_instance(instance));
            if made.as_deref() == Some(info.name.as_str()) {
                self.with(at, how.load, |sources, info| sources.follow(info, true))?;
                continue;
            }
            let target = made.unwrap_or_else(|| target.to_owned());
            at = self.add(&target, false)?;
            self.search(at, how.load).map_err(|error| match error {
                InstallError::Missing(target) => InstallError::Dangling { unit: info.name, target },
                error => error,
            })?;
        }
        let info = self.info(at);
        Err(InstallError::Link { unit: info.name, path: info.path })
    }
}
