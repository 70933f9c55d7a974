//! Files, units and users; those that the other side has too are taken over.

use super::cursor::Cursor;
use super::sort::sort_by;
use crate::config::{Dropin, File, Origin, Source, Unit, User};
use crate::ignition;
use crate::read::merge::needs_source;
use crate::read::normal;
use crate::unit_name::is_unit_name;
use std::borrow::Cow;

/// How far to look ahead in the old side for the text of an entry: so many may
/// have been removed in one place.
const AHEAD: usize = 3;

/// How far to look for the entry that was replaced.
const FAR: usize = 64;

/// What the old side has, in the order in which it was written.
#[derive(Default)]
pub(super) struct Known<'o, 'a> {
    pub(super) files: &'o [File<'a>],
    pub(super) units: &'o [Unit<'a>],
}

/// An entry of a list that both sides have.
pub(super) trait Entry<'a>: Clone {
    fn raw(&self) -> &'a [u8];
    fn key(&self) -> &str;
    fn set_origin(&mut self, origin: Origin);
    fn read(cursor: &mut Cursor<'a>, origin: Origin) -> Option<Self>;
}

impl<'a> Entry<'a> for File<'a> {
    fn raw(&self) -> &'a [u8] {
        self.raw
    }

    fn key(&self) -> &str {
        &self.path
    }

    fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }

    fn read(cursor: &mut Cursor<'a>, origin: Origin) -> Option<Self> {
        file(cursor, origin)
    }
}

impl<'a> Entry<'a> for Unit<'a> {
    fn raw(&self) -> &'a [u8] {
        self.raw
    }

    fn key(&self) -> &str {
        &self.name
    }

    fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }

    fn read(cursor: &mut Cursor<'a>, origin: Origin) -> Option<Self> {
        unit(cursor, origin)
    }
}

/// A list of entries, in lockstep with the old side's.
pub(super) fn list<'a, T: Entry<'a>>(cursor: &mut Cursor<'a>, mut known: &[T]) -> Option<Vec<T>> {
    // How many entries there may be: an entry is seldom smaller than this. It is only
    // a guess, for the capacity of the list.
    let guess = if known.is_empty() { cursor.rest().len() / 2048 } else { known.len() };
    let mut entries: Vec<T> = Vec::with_capacity(guess + 1);
    cursor.list(|cursor, index| {
        let origin = Origin { document: 0, index };
        let text = cursor.rest();
        let same = known.iter().take(AHEAD).position(|old| text.starts_with(old.raw()));
        let at = match same {
            Some(at) => {
                let mut entry = known.get(at)?.clone();
                cursor.skip_bytes(entry.raw().len())?;
                entry.set_origin(origin);
                entries.push(entry);
                Some(at)
            }
            None => {
                let entry = T::read(cursor, origin)?;
                let at = known.iter().take(FAR).position(|old| old.key() == entry.key());
                entries.push(entry);
                at
            }
        };
        if let Some(at) = at {
            known = known.get(at + 1..)?;
        }
        Some(())
    })?;
    Some(entries)
}

fn file<'a>(cursor: &mut Cursor<'a>, origin: Origin) -> Option<File<'a>> {
    const FIELDS: [&str; 7] = ["path", "contents", "mode", "overwrite", "user", "group", "append"];
    let start = cursor.rest();
    let (mut path, mut contents, mut mode) = (None, (Source::default(), false), None);
    let mut overwrite = None;
    let (mut user, mut group) = (Cow::Borrowed("root"), Cow::Borrowed("root"));
    cursor.object(&FIELDS, |cursor, field| {
        match field {
            0 => path = Some(clean(cursor.text()?)?),
            1 => contents = source(cursor)?,
            2 => mode = Some(normal::mode(cursor.number()?).ok()?),
            3 => overwrite = Some(cursor.boolean()?),
            4 => user = owner(cursor)?,
            5 => group = owner(cursor)?,
            _ => cursor.empty_list()?,
        }
        Some(())
    })?;
    let (contents, has_source) = contents;
    if overwrite == Some(true) && !has_source {
        return None;
    }
    let mode = normal::mode_if_special(mode);
    let raw = cursor.since(start)?;
    let (path, appends) = (path?, false);
    let needs_source = needs_source(has_source, overwrite);
    Some(File { path, contents, mode, user, group, appends, needs_source, raw, origin })
}

/// A path that is written as it has to be.
fn clean(path: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let is_clean = normal::path(&path).is_ok_and(|clean| clean == path);
    is_clean.then_some(path)
}

/// Where contents come from, and whether that is said at all.
fn source<'a>(cursor: &mut Cursor<'a>) -> Option<(Source<'a>, bool)> {
    const FIELDS: [&str; 4] = ["source", "compression", "verification", "httpHeaders"];
    let (mut source, mut is_said) = (Source::default(), false);
    cursor.object(&FIELDS, |cursor, field| {
        match field {
            0 => {
                is_said = true;
                source.url = Some(cursor.text()?).filter(|url| !url.is_empty());
            }
            1 => match cursor.text()?.as_ref() {
                "" => {}
                "gzip" => source.gzip = true,
                _ => return None,
            },
            2 => cursor.object(&[], |_, _| None)?,
            _ => cursor.empty_list()?,
        }
        Some(())
    })?;
    source.gzip &= source.url.is_some();
    let taken = source.url.as_deref().is_none_or(ignition::takes_url);
    taken.then_some((source, is_said))
}

fn owner<'a>(cursor: &mut Cursor<'a>) -> Option<Cow<'a, str>> {
    let (mut id, mut name) = (None, None);
    cursor.object(&["id", "name"], |cursor, field| {
        match field {
            0 => id = Some(u32::try_from(cursor.number()?).ok()?),
            _ => name = Some(cursor.text()?).filter(|name| !name.is_empty()),
        }
        Some(())
    })?;
    match (id, name) {
        (Some(_), Some(_)) => None,
        (Some(0) | None, None) => Some(Cow::Borrowed("root")),
        (Some(id), None) => Some(Cow::Owned(id.to_string())),
        (None, Some(name)) => Some(name).filter(|name| normal::check_owner(name).is_ok()),
    }
}

fn unit<'a>(cursor: &mut Cursor<'a>, origin: Origin) -> Option<Unit<'a>> {
    const FIELDS: [&str; 5] = ["name", "contents", "enabled", "mask", "dropins"];
    let start = cursor.rest();
    let (mut name, mut contents, mut enabled, mut mask) = (None, None, None, None);
    let mut dropins: Vec<Dropin<'a>> = Vec::new();
    cursor.object(&FIELDS, |cursor, field| {
        match field {
            0 => name = Some(cursor.text()?),
            1 => contents = unit_text(cursor)?,
            2 => enabled = Some(cursor.boolean()?),
            3 => mask = Some(cursor.boolean()?),
            _ => cursor.list(|cursor, _| {
                dropins.push(dropin(cursor)?);
                Some(())
            })?,
        }
        Some(())
    })?;
    let name = name.filter(|name| is_unit_name(name))?;
    sort_by(&mut dropins, |dropin| &dropin.name)?;
    let raw = cursor.since(start)?;
    Some(Unit { name, contents, enabled, mask, dropins, raw, origin })
}

fn dropin<'a>(cursor: &mut Cursor<'a>) -> Option<Dropin<'a>> {
    let (mut name, mut contents) = (None, None);
    cursor.object(&["name", "contents"], |cursor, field| {
        match field {
            0 => name = Some(cursor.text()?),
            _ => contents = unit_text(cursor)?,
        }
        Some(())
    })?;
    let name = name.filter(|name| normal::is_dropin_name(name))?;
    Some(Dropin { name, contents })
}

/// The text of a unit, if there is any.
fn unit_text<'a>(cursor: &mut Cursor<'a>) -> Option<Option<Cow<'a, str>>> {
    let text = cursor.text()?;
    match ignition::unit_fault(&text) {
        None => Some(Some(text).filter(|text| !text.is_empty())),
        Some(_) => None,
    }
}

/// Users; what only provisioning can set is left to the slow reader.
pub(super) fn users<'a>(cursor: &mut Cursor<'a>) -> Option<Vec<User<'a>>> {
    const FIELDS: [&str; 3] = ["name", "sshAuthorizedKeys", "passwordHash"];
    let mut users = Vec::new();
    cursor.list(|cursor, index| {
        let mut user = User { origin: Origin { document: 0, index }, ..User::default() };
        cursor.object(&FIELDS, |cursor, field| {
            match field {
                0 => user.name = cursor.text()?,
                1 => user.ssh_keys = different(texts(cursor)?)?,
                _ => user.password_hash = Some(cursor.text()?),
            }
            Some(())
        })?;
        normal::ssh_keys(&mut user.ssh_keys);
        let fine = !user.name.is_empty() && normal::check_account(&user.name).is_ok();
        users.push(Some(user).filter(|_| fine)?);
        Some(())
    })?;
    Some(users)
}

/// Texts of which no two are the same.
fn different(texts: Vec<Cow<'_, str>>) -> Option<Vec<Cow<'_, str>>> {
    let mut sorted: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    sorted.sort_unstable();
    let different = sorted.is_sorted_by(|a, b| a < b);
    different.then_some(texts)
}

/// A list of texts.
pub(super) fn texts<'a>(cursor: &mut Cursor<'a>) -> Option<Vec<Cow<'a, str>>> {
    let mut texts = Vec::new();
    cursor.list(|cursor, _| {
        texts.push(cursor.text()?);
        Some(())
    })?;
    Some(texts)
}
