//! The links that enabling a unit makes.

use super::context::{Context, How};
use super::error::InstallError;
use super::load::{Alias, Info, Mode, Sources, alias};
use super::places::{CONFIG, is_below, is_generated, is_in, is_transient};
use super::specifiers::{Unresolved, resolved};
use crate::unit_name::{Form, UnitName};
use crate::view::{Entry, View, real, split};

/// A symbolic link that enabling a unit asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Where it stands.
    pub path: String,
    /// Where it leads. If a link to the same unit is there already, it is where that
    /// one leads, so that it stays.
    pub target: String,
}

/// Adds a unit that is to be enabled.
pub(super) fn add(context: &mut Context<'_>, name: &str) -> Result<(), InstallError> {
    let at = context.add(name, false)?;
    let at = context.traverse(at, How { load: true, follow: true })?;
    let info = context.info(at);
    if info.mode == Some(Mode::Masked) {
        return Err(InstallError::Masked { unit: info.name, path: info.path });
    }
    if is_generated(&info.path) || is_transient(&info.path) {
        return Err(InstallError::Made { unit: info.name, path: info.path });
    }
    Ok(())
}

/// The links of all units that were added, and of those that they name. By presets, a
/// template that nobody can want is left out; otherwise it is an error.
pub(super) fn all(context: &mut Context<'_>, by_preset: bool) -> Result<Vec<Link>, InstallError> {
    let mut links = Vec::new();
    while let Some(at) = context.next() {
        match context.traverse(at, How { load: true, follow: false }) {
            Ok(_) => {}
            Err(InstallError::Unreadable(error)) => return Err(error.into()),
            Err(_) if context.info(at).auxiliary => continue,
            Err(error) => return Err(error),
        }
        let info = context.info(at);
        if info.mode == Some(Mode::Regular) {
            links.extend(of_unit(context, &info, by_preset)?);
        }
    }
    Ok(links)
}

/// The links of one unit.
fn of_unit(
    context: &mut Context<'_>,
    info: &Info,
    by_preset: bool,
) -> Result<Vec<Link>, InstallError> {
    let mut links = Vec::new();
    let mut make = |context: &mut Context<'_>, name: &str, force| -> Result<(), InstallError> {
        let link = link(context, info, name, force)?;
        context.view.set(&link.path, Entry::Link(link.target.clone()));
        links.push(link);
        Ok(())
    };
    if !is_in(&info.path) {
        make(context, &info.name, false)?;
    }
    for text in &info.section.alias {
        let name = replaced(context, info, text)?;
        if let Some(name) = other_name(info, &name)? {
            make(context, &name, false)?;
        }
    }
    let lists = [
        (&info.section.wanted_by, "wants"),
        (&info.section.required_by, "requires"),
        (&info.section.upheld_by, "upholds"),
    ];
    for (list, suffix) in lists.into_iter().filter(|(list, _)| !list.is_empty()) {
        let unit = wanted(context, info)?;
        let is_template = UnitName::of(&unit).is_some_and(|it| it.form() == Form::Template);
        for text in list {
            let target = replaced(context, info, text)?;
            let form = UnitName::of(&target).map(UnitName::form);
            match form {
                Some(Form::Plain) if is_template && by_preset => {}
                Some(Form::Plain) if is_template => {
                    return Err(InstallError::NoInstance { unit, target });
                }
                Some(_) => make(context, &format!("{target}.{suffix}/{unit}"), true)?,
                None if by_preset => {}
                None => return Err(InstallError::Target { unit, target }),
            }
        }
    }
    Ok(links)
}

fn replaced(context: &Context<'_>, info: &Info, text: &str) -> Result<String, InstallError> {
    let default = info.section.default_instance.as_deref();
    resolved(text, info.unit()?, default, context.facts).map_err(|it: Unresolved| {
        let what = it.to_phrase();
        InstallError::Specifier { unit: info.name.clone(), text: text.to_owned(), what }
    })
}

/// The unit that others want: of a template, the instance that it has by default.
fn wanted(context: &Context<'_>, info: &Info) -> Result<String, InstallError> {
    let unit = info.unit()?;
    let default = info.section.default_instance.as_deref();
    let Some(default) = default.filter(|_| unit.form() == Form::Template) else {
        return Ok(info.name.clone());
    };
    let name = unit.with_instance(default);
    let name = name.ok_or_else(|| InstallError::Name(format!("{}{default}", unit.prefix())))?;
    let mut instance = Info::new(&name, false);
    let sources = Sources { view: &context.view, facts: context.facts, load: false };
    sources.search(&mut instance)?;
    match instance.mode {
        Some(Mode::Masked) => Err(InstallError::Masked { unit: name, path: instance.path }),
        _ => Ok(name),
    }
}

/// The name of the link that an `Alias=` asks for; nothing if it is the unit's own.
fn other_name(info: &Info, name: &str) -> Result<Option<String>, InstallError> {
    let unfit = || InstallError::Alias { unit: info.name.clone(), alias: name.to_owned() };
    let unit = info.unit()?;
    // Once links of `.wants` folders were made in this way.
    if let Some((folder, link)) = name.rsplit_once('/') {
        let by = folder.strip_suffix(".wants").or_else(|| folder.strip_suffix(".requires"));
        let by = by.and_then(UnitName::of).ok_or_else(unfit)?;
        let link = UnitName::of(link).ok_or_else(unfit)?;
        let of_template = link.template().as_deref() == Some(unit.as_str());
        let fits = match link.form() {
            Form::Plain => link == unit,
            Form::Instance => link == unit || of_template,
            Form::Template => of_template && by.form() == Form::Template,
        };
        return if fits { Ok(Some(name.to_owned())) } else { Err(unfit()) };
    }
    // An instance gives its own to a name without one.
    let template = UnitName::of(name).filter(|it| it.form() == Form::Template);
    let instance = unit.instance().filter(|it| !it.is_empty());
    let name = match template.zip(instance) {
        Some((template, instance)) => template.with_instance(instance).ok_or_else(unfit)?,
        None => name.to_owned(),
    };
    match alias(&name, unit.as_str()) {
        Alias::Fine => Ok(Some(name)),
        Alias::Itself => Ok(None),
        Alias::Unfit => Err(unfit()),
    }
}

/// The link under a name in the folder of links. One that leads elsewhere is replaced
/// only by force.
fn link(context: &Context<'_>, info: &Info, name: &str, force: bool) -> Result<Link, InstallError> {
    let path = format!("{CONFIG}/{name}");
    let target = match context.view.glance(&path)? {
        Entry::Absent => info.path.clone(),
        Entry::Link(target) if leads_to(&context.view, &path, &target, &info.path)? => target,
        Entry::Link(target) if force || is_broken(&context.view, &path, &target)? => {
            info.path.clone()
        }
        _ => return Err(InstallError::Taken { unit: info.name.clone(), path }),
    };
    Ok(Link { path, target })
}

/// Whether a link leads to a unit: in the folders of units, by its name.
fn leads_to(view: &dyn View, link: &str, target: &str, unit: &str) -> Result<bool, InstallError> {
    let target = match target.starts_with('/') {
        true => target.to_owned(),
        false => format!("{}/{target}", split(link).0),
    };
    if target == unit {
        return Ok(true);
    }
    let (Some(one), Some(other)) = (real(view, &target, true)?, real(view, unit, true)?) else {
        return Ok(false);
    };
    let there = view.glance(&one)? != Entry::Absent;
    let same_name = split(&target).1 == split(unit).1;
    Ok((there && one == other) || (same_name && is_below(&target) && is_below(unit)))
}

/// Whether a link leads to nothing. It is in nobody's way: newer releases of systemd
/// replace it.
fn is_broken(view: &dyn View, path: &str, target: &str) -> Result<bool, InstallError> {
    if target == "/dev/null" {
        return Ok(false);
    }
    Ok(match real(view, path, true)? {
        Some(path) => view.glance(&path)? == Entry::Absent,
        None => false,
    })
}
