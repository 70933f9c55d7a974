//! Whether a unit is enabled, as `systemctl is-enabled` says it.

use super::context::{Context, How};
use super::error::InstallError;
use super::load::{Info, Mode};
use super::places::{CONFIG, SEARCHED, is_generated, is_runtime, is_transient};
use crate::unit_name::{Form, UnitName};
use crate::view::{Entry, View, split};

/// Whether a unit is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// By links below `/etc`.
    Enabled,
    /// By links that the next boot takes away.
    EnabledRuntime,
    /// Its file is elsewhere, and a link to it is among the units.
    Linked,
    /// Linked, until the next boot.
    LinkedRuntime,
    /// It is another name of a unit.
    Alias,
    /// Nothing can start it.
    Masked,
    /// Masked, until the next boot.
    MaskedRuntime,
    /// There is nothing to enable.
    Static,
    /// It could be enabled, and is not.
    Disabled,
    /// It is not, but a unit that it names or another name of it may be.
    Indirect,
    /// A generator made it.
    Generated,
    /// A program that runs made it.
    Transient,
}

impl State {
    /// As systemctl prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Enabled => "enabled",
            State::EnabledRuntime => "enabled-runtime",
            State::Linked => "linked",
            State::LinkedRuntime => "linked-runtime",
            State::Alias => "alias",
            State::Masked => "masked",
            State::MaskedRuntime => "masked-runtime",
            State::Static => "static",
            State::Disabled => "disabled",
            State::Indirect => "indirect",
            State::Generated => "generated",
            State::Transient => "transient",
        }
    }
}

pub(super) fn of(context: &mut Context<'_>, name: &str) -> Result<State, InstallError> {
    let at = context.add(name, false)?;
    let at = context.traverse(at, How { load: true, follow: true })?;
    let info = context.info(at);
    let unit = info.unit()?;
    if info.mode == Some(Mode::Masked) {
        let runtime = is_runtime(&info.path);
        return Ok(if runtime { State::MaskedRuntime } else { State::Masked });
    }
    if name != split(&info.path).1 && unit.form() != Form::Instance {
        return Ok(State::Alias);
    }
    if is_generated(&info.path) {
        return Ok(State::Generated);
    }
    if is_transient(&info.path) {
        return Ok(State::Transient);
    }
    if let Some(state) = by_links(&context.view, &info, unit, true)? {
        return Ok(state);
    }
    let other_names = by_links(&context.view, &info, unit, false)?.is_some();
    Ok(match () {
        () if other_names => State::Indirect,
        () if info.section.has_links() => State::Disabled,
        () if !info.section.also.is_empty() => State::Indirect,
        () => State::Static,
    })
}

/// What the links in all folders of units say; nothing if none says anything. Links
/// may have to bear a name that the unit's own section gives it.
fn by_links(
    view: &dyn View,
    info: &Info,
    unit: UnitName<'_>,
    own_names: bool,
) -> Result<Option<State>, InstallError> {
    let (mut for_good, mut until_boot) = (false, false);
    let (mut linked, mut linked_until_boot) = (false, false);
    let mut search = Search { view, info, unit, own_names, hidden: false, same_name: false };
    for folder in SEARCHED {
        search.same_name = false;
        if search.finds_in(folder)? {
            match folder {
                CONFIG => return Ok(Some(State::Enabled)),
                folder if is_runtime(folder) => until_boot = true,
                _ => for_good = true,
            }
        } else if search.same_name {
            linked |= folder == CONFIG;
            linked_until_boot |= is_runtime(folder);
        }
        // Links of its name in later folders are hidden by the file itself.
        search.hidden |= info.path.strip_prefix(folder).is_some_and(|it| it.starts_with('/'));
    }
    Ok(match () {
        () if until_boot => Some(State::EnabledRuntime),
        () if for_good && unit.form() == Form::Instance => Some(State::Static),
        () if linked => Some(State::Linked),
        () if linked_until_boot => Some(State::LinkedRuntime),
        () => None,
    })
}

/// What is looked for in a folder of units.
struct Search<'l> {
    view: &'l dyn View,
    info: &'l Info,
    unit: UnitName<'l>,
    own_names: bool,
    /// The unit's file is in a folder that was looked into before.
    hidden: bool,
    /// A link with the unit's name leads to its file.
    same_name: bool,
}

impl Search<'_> {
    fn finds_in(&mut self, folder: &str) -> Result<bool, InstallError> {
        let names = self.view.names(folder)?;
        for name in &names {
            let path = format!("{folder}/{name}");
            let wants = [".wants", ".requires", ".upholds"].iter().any(|it| name.ends_with(it));
            if wants && self.view.glance(&path)? == Entry::Folder {
                for link in self.view.names(&path)? {
                    let entry = self.view.glance(&format!("{path}/{link}"))?;
                    if matches!(entry, Entry::Link(_)) && self.is_wanted_by(&link) {
                        return Ok(true);
                    }
                }
            }
        }
        for name in &names {
            if let Entry::Link(target) = self.view.glance(&format!("{folder}/{name}"))?
                && self.is_name(name, split(&target).1)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a link in a `.wants` folder is one to the unit.
    fn is_wanted_by(&self, link: &str) -> bool {
        let template = UnitName::of(link).and_then(UnitName::template);
        let found = link == self.info.name || template.as_deref() == Some(&*self.info.name);
        found && self.fits(link)
    }

    /// Whether a link among the units is another name of this one.
    fn is_name(&mut self, link: &str, target: &str) -> bool {
        let (by_name, by_target) =
            (!self.hidden && link == self.info.name, target == self.info.name);
        if by_name && by_target {
            self.same_name = true;
            return false;
        }
        (by_name || by_target) && self.fits(link)
    }

    fn fits(&self, link: &str) -> bool {
        let section = &self.info.section;
        let default = section.default_instance.as_deref();
        let by_default = || self.unit.with_instance(default?);
        !self.own_names
            || link == self.info.name
            || section.alias.iter().any(|it| it == link)
            || (self.unit.form() == Form::Template && by_default().as_deref() == Some(link))
    }
}
