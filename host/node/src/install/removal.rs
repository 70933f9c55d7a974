//! The links that disabling a unit removes.

use super::context::{Context, How};
use super::error::InstallError;
use super::load::Mode;
use super::places::CONFIG;
use crate::unit_name::UnitName;
use crate::view::{Entry, View, real, split};
use std::collections::BTreeSet;

/// How deep the folders of links are looked into: they have one level.
const DEEPEST: usize = 4;

/// The links to all units that were added, and to those that they name. They are gone
/// from the context's view afterwards.
pub(super) fn all(context: &mut Context<'_>, how: How) -> Result<Vec<String>, InstallError> {
    let mut marked = BTreeSet::new();
    while let Some(at) = context.next() {
        let found = context.traverse(at, how);
        let info = context.info(at);
        match found {
            Err(InstallError::Unreadable(error)) => return Err(error.into()),
            Ok(_) if info.mode != Some(Mode::Regular) => {}
            // Of a unit that is not there, or is none, links may be left over.
            Ok(_) | Err(_) => drop(marked.insert(info.name)),
        }
    }
    let mut removed = Vec::new();
    loop {
        let mut links = Vec::new();
        links_below(&context.view, CONFIG, DEEPEST, &mut links)?;
        let mut more = false;
        for link in links {
            if is_marked(&context.view, &link, &marked)? {
                context.view.set(&link, Entry::Absent);
                // A link to this one goes too.
                more |= marked.insert(link.clone());
                removed.push(link);
            }
        }
        if !more {
            removed.sort();
            return Ok(removed);
        }
    }
}

/// All links with names of units in a folder and those below it.
fn links_below(
    view: &dyn View,
    folder: &str,
    deepest: usize,
    links: &mut Vec<String>,
) -> Result<(), InstallError> {
    for name in view.names(folder)? {
        let path = format!("{folder}/{name}");
        match view.glance(&path)? {
            Entry::Folder if deepest > 0 => links_below(view, &path, deepest - 1, links)?,
            Entry::Link(_) if UnitName::of(&name).is_some() => links.push(path),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a link has the name of a marked unit, or of an instance of one, or leads to
/// one.
fn is_marked(view: &dyn View, link: &str, marked: &BTreeSet<String>) -> Result<bool, InstallError> {
    let name = split(link).1;
    let template = UnitName::of(name).and_then(UnitName::template);
    if marked.contains(name) || template.is_some_and(|it| marked.contains(&it)) {
        return Ok(true);
    }
    let Some(target) = real(view, link, true)? else { return Ok(false) };
    Ok(marked.contains(&target) || marked.contains(split(&target).1))
}
